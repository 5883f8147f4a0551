# One commit with the documentation on a branch of its own, and the request to take it over: as a ref, as a GitHub server
# keeps it, and as pull-request.json. Commit and branch depend on the content alone, so that a second attempt after a crash
# finds what the first one pushed.
. scripts/git.sh

if [ -n "$REPO" ]; then
	remote=$REPO shown=$REPO
	git clone -q --template= -- "$REPO" "$TMPDIR/clone"
else
	cp -R "$DAGRUN_IN/repo.git" "$DAGRUN_OUT/repo.git"
	remote=$DAGRUN_OUT/repo.git shown=repo.git
	git clone -q --template= "$remote" "$TMPDIR/clone"
fi
cd "$TMPDIR/clone"
git config core.fileMode false
git checkout -q -b work "$BASE_COMMIT"
rm -rf "docs/$NAME"
mkdir -p docs
cp -R "$DAGRUN_IN/docs" "docs/$NAME"
git add docs
tree=$(git write-tree)
branch=docs/$NAME-$(printf %.12s "$tree")
as_of "$(git log -1 --format=%cI "$BASE_COMMIT")" commit -q -m "$PR_TITLE" -m "$PR_BODY"
commit=$(git rev-parse HEAD)
git push -q "$remote" "HEAD:refs/heads/$branch" "HEAD:refs/pull/1/head"
if [ -d "$DAGRUN_OUT/repo.git" ]; then
	rm -f "$DAGRUN_OUT/repo.git/FETCH_HEAD"
fi

quoted() { printf %s "$1" | awk '{ gsub(/\\/, "\\\\&"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }'; }
{
	printf '{"url": "%s#%s", "title": "%s", "base": "%s", "branch": "%s", "commit": "%s",\n' \
		"$(quoted "$shown")" "$branch" "$(quoted "$PR_TITLE")" "$BASE" "$branch" "$commit"
	printf ' "body": "%s",\n "files": [' "$(quoted "$PR_BODY")"
	git diff --name-only "$BASE_COMMIT" HEAD | awk '{ printf "%s\"%s\"", (NR > 1 ? ", " : ""), $0 }'
	printf ']}\n'
} > "$DAGRUN_OUT/pull-request.json"
printf '{"url": "%s#%s", "branch": "%s", "commit": "%s"}\n' "$(quoted "$shown")" "$branch" "$branch" "$commit" > "$DAGRUN_OUT/outputs.json"
