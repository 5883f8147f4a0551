# Files that are never half written.

# put FILE
#
# Writes what comes on standard input to FILE, all of it or nothing: into a temporary file beside FILE first, which
# then takes its place. A reader sees the old content or the new one.
# Exit status: 0 FILE has the new content; 1 FILE is as it was.
put() {
	_put_new=$(mktemp "$1.XXXXXX") || return 1
	if cat >"$_put_new" && mv "$_put_new" "$1"; then
		return 0
	fi
	rm -f "$_put_new"
	return 1
}

# put_if_changed FILE
#
# As put, but leaves FILE alone, its time included, when the content is the same.
# Exit status: 0 FILE has the content; 1 FILE is as it was.
put_if_changed() {
	_put_new=$(mktemp "$1.XXXXXX") || return 1
	if cat >"$_put_new"; then
		if cmp -s "$_put_new" "$1"; then
			rm -f "$_put_new"
			return 0
		fi
		mv "$_put_new" "$1" && return 0
	fi
	rm -f "$_put_new"
	return 1
}
