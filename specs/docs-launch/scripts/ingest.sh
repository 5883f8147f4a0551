# Its files: tree/ as they are, inventory.json what there is.
. scripts/git.sh

git clone -q --template= "$DAGRUN_IN/repo.git" "$TMPDIR/clone"
rm -rf "$TMPDIR/clone/.git"
mkdir -p "$DAGRUN_OUT/tree"
cp -R "$TMPDIR/clone/." "$DAGRUN_OUT/tree"
cd "$DAGRUN_OUT/tree"
find . -type f | LC_ALL=C sort | sed 's|^\./||' | while read -r name; do
	echo "$(wc -c < "$name") $(wc -l < "$name") $name"
done | awk '
	{
		size = $1; lines = $2; sub(/^[0-9]+ [0-9]+ /, ""); gsub(/\\/, "\\\\&"); gsub(/"/, "\\\"")
		printf "%s{\"path\": \"%s\", \"bytes\": %d, \"lines\": %d}", (NR > 1 ? ", " : "{\"files\": ["), $0, size, lines
	}
	END { print "]}" }' > "$DAGRUN_OUT/inventory.json"
