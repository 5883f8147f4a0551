# Git without anything of the user's: no configuration, no identity, no hooks.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0

# as_of TIME COMMAND...: the git command that makes a commit, at a time that is given.
as_of() {
	when=$1
	shift
	GIT_AUTHOR_DATE=$when GIT_COMMITTER_DATE=$when git -c user.name=docs-launch -c user.email=docs-launch@localhost -c commit.gpgSign=false "$@"
}
