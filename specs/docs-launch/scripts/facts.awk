# What the comments of a shell library say of its functions, as JSON. The first line of a file is about the module; a
# function is described by the comment right above it: usage, blank line, text, then lines "Exit status:" and
# "Environment:" whose items are separated by semicolons.
BEGIN { printf "{\"modules\": [" }
FNR == 1 {
	module = FILENAME; sub(/.*\//, "", module); sub(/\.sh$/, "", module)
	about = $0; sub(/^# */, "", about)
	printf "%s{\"name\": %s, \"file\": %s, \"about\": %s}", modules++ ? ", " : "", quoted(module), quoted(FILENAME), quoted(about)
	n = 0
	next
}
/^#/ { line = $0; sub(/^# ?/, "", line); comment[n++] = line; next }
/^[a-z][a-z0-9_]*\(\) *\{/ {
	if (n > 0) {
		name = $0; sub(/\(.*/, "", name)
		described(name)
	}
}
{ n = 0 }
END { printf "], \"functions\": [%s]}\n", functions }

function described(name,    i, text, part, statuses, environment) {
	part = "text"
	for (i = 1; i < n; i++) {
		if (comment[i] ~ /^Exit status: /) { part = "status"; sub(/^Exit status: /, "", comment[i]) }
		if (comment[i] ~ /^Environment: /) { part = "environment"; sub(/^Environment: /, "", comment[i]) }
		if (comment[i] == "") continue
		if (part == "text") text = text (text == "" ? "" : " ") comment[i]
		if (part == "status") statuses = statuses (statuses == "" ? "" : " ") comment[i]
		if (part == "environment") environment = environment (environment == "" ? "" : " ") comment[i]
	}
	functions = functions (functions == "" ? "" : ", ") sprintf("{\"name\": %s, \"module\": %s, \"file\": %s, \"line\": %d, \"usage\": %s, \"text\": %s, \"statuses\": [%s], \"environment\": [%s]}", \
		quoted(name), quoted(module), quoted(FILENAME), FNR, quoted(comment[0]), quoted(text), items(statuses), items(environment))
}

# items makes a list of texts of what semicolons separate.
function items(text,    k, m, part, out) {
	m = split(text, part, /; */)
	for (k = 1; k <= m; k++) {
		sub(/\.$/, "", part[k])
		out = out (k > 1 ? ", " : "") quoted(part[k])
	}
	return out
}

function quoted(text) {
	gsub(/\\/, "\\\\&", text); gsub(/"/, "\\\"", text); gsub(/\t/, "\\t", text)
	return "\"" text "\""
}
