# The repository that is documented: a bare one in $DAGRUN_OUT/repo.git. Without $REPO it is made of the folder source,
# as one commit whose name depends on the content alone.
. scripts/git.sh

if [ -n "$REPO" ]; then
	git clone -q --bare --template= -- "$REPO" "$DAGRUN_OUT/repo.git"
else
	git init -q --bare --template= -b main "$DAGRUN_OUT/repo.git"
	cp -R source "$TMPDIR/clone"
	cd "$TMPDIR/clone"
	git init -q --template= -b main .
	git config core.fileMode false
	git add .
	git update-index --chmod=+x bin/keep test/run
	as_of 2026-01-05T09:00:00Z commit -q -m "The keep library"
	git push -q "$DAGRUN_OUT/repo.git" main
fi
at() { git --git-dir="$DAGRUN_OUT/repo.git" "$@"; }
printf '{"branch": "%s", "commit": "%s"}\n' "$(at symbolic-ref --short HEAD)" "$(at rev-parse HEAD)" > "$DAGRUN_OUT/outputs.json"
