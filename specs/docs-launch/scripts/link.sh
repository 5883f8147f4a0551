# The worktree of the documentation: one page for each section that there is, with the way to its neighbours, and an index.
# $SECTIONS has a line for each section of the outline: id, title, modules, divided by tabs.
mkdir -p "$DAGRUN_OUT/docs"
cd "$DAGRUN_OUT/docs"

line() { printf '%s\n' "$SECTIONS" | sed -n "$1p"; }
id() { line "$1" | cut -f1; }
title() { line "$1" | cut -f2; }

count=$(printf '%s\n' "$SECTIONS" | wc -l)
{
	printf '# %s\n\n' "$TITLE"
	n=1
	while [ "$n" -le "$count" ]; do
		text="$DAGRUN_IN/sections/$(id "$n").md"
		if [ -f "$text" ]; then
			printf -- '- [%s](%s.md)\n' "$(title "$n")" "$(id "$n")"
		fi
		n=$((n + 1))
	done
} > index.md

n=1
while [ "$n" -le "$count" ]; do
	text="$DAGRUN_IN/sections/$(id "$n").md"
	if [ -f "$text" ]; then
		{
			cat "$text"
			printf '\n---\n\n[Contents](index.md)'
			[ "$n" -eq 1 ] || printf ' | before: [%s](%s.md)' "$(title $((n - 1)))" "$(id $((n - 1)))"
			[ "$n" -eq "$count" ] || printf ' | next: [%s](%s.md)' "$(title $((n + 1)))" "$(id $((n + 1)))"
			printf '\n'
		} > "$(id "$n").md"
	fi
	n=$((n + 1))
done
