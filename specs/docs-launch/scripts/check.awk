# Holds pages to the facts. Problems are printed as the JSON that a command leaves in outputs.json.
# $SECTIONS: lines of id, title, modules (divided by blanks); $FUNCTIONS: lines of name, module, usage, statuses
# (divided by semicolons). The pages are the arguments; a missing one is a problem of its section.
BEGIN {
	sections = split(ENVIRON["SECTIONS"], row, "\n")
	for (i = 1; i <= sections; i++) {
		split(row[i], f, "\t"); id[i] = f[1]; title[f[1]] = f[2]
		m = split(f[3], module, " ")
		for (k = 1; k <= m; k++) covers[module[k]] = f[1]
	}
	functions = split(ENVIRON["FUNCTIONS"], row, "\n")
	for (i = 1; i <= functions; i++) {
		split(row[i], f, "\t"); name[i] = f[1]; of[f[1]] = f[2]; usage[f[1]] = f[3]; statuses[f[1]] = f[4]
	}
}
FNR == 1 {
	page = FILENAME; sub(/.*\//, "", page); sub(/\.md$/, "", page)
	there[page] = 1; fenced = 0
	if (page != "index" && $0 != "# " title[page]) problem("structure", page, "the first line is not \"# " title[page] "\"")
}
/^```/ { fenced = !fenced }
!fenced && /^#+ / { heading = tolower($0); sub(/^#+ */, "", heading); gsub(/[^a-z0-9 _-]/, "", heading); gsub(/ /, "-", heading); anchor[page "#" heading] = 1 }
/TODO|TBD|[Ll]orem/ { problem("structure", page, "line " FNR " is a placeholder: " $0) }
{
	text[page] = text[page] $0 "\n"
	if (fenced) next
	rest = $0
	while (match(rest, /\]\([^)]*\)/)) {
		link[++links] = substr(rest, RSTART + 2, RLENGTH - 3); from[links] = page
		rest = substr(rest, RSTART + RLENGTH)
	}
	rest = $0
	while (match(rest, /`[^`]*`/)) {
		word = substr(rest, RSTART + 1, RLENGTH - 2); sub(/[ (].*/, "", word)
		if (word ~ /^[a-z]+(_[a-z]+)+$/ && !(word in of) && word !~ /^set_/) problem("names", page, "there is no function " word)
		rest = substr(rest, RSTART + RLENGTH)
	}
}
END {
	for (i = 1; i <= sections; i++) if (!there[id[i]]) problem("structure", id[i], "the page is missing")
	for (i = 1; i <= links; i++) {
		if (link[i] ~ /^(https?:|mailto:)/) continue
		file = link[i]; hash = ""
		if (k = index(file, "#")) { hash = substr(file, k); file = substr(file, 1, k - 1) }
		sub(/\.md$/, "", file)
		if (file == "") file = from[i]
		if (!there[file]) problem("links", from[i], "the link " link[i] " leads nowhere")
		else if (hash != "" && !((file hash) in anchor)) problem("links", from[i], "there is no heading for the link " link[i])
	}
	for (i = 1; i <= functions; i++) {
		page = covers[of[name[i]]]
		if (page == "") { problem("coverage", id[1], "no section covers the module " of[name[i]]); continue }
		if (!there[page]) continue
		if (!index(text[page], usage[name[i]])) { problem("coverage", page, "it does not show how to call " usage[name[i]]); continue }
		m = split(statuses[name[i]], status, ";")
		for (k = 1; k <= m; k++) if (match(status[k], /^[0-9]+ /)) {
			number = substr(status[k], 1, RLENGTH - 1)
			if (!index(text[page], "`" number "`")) problem("statuses", page, "it does not say of " name[i] ": exit status `" number "`, " substr(status[k], RLENGTH + 1))
		}
	}
	printf "{\"problems\": [%s], \"found\": [", problems
	for (i = 1; i <= sections; i++) if (bad[id[i]] != "") printf "%s{\"id\": %s, \"title\": %s, \"problems\": [%s]}", shown++ ? ", " : "", quoted(id[i]), quoted(title[id[i]]), bad[id[i]]
	printf "]}\n"
}

function problem(gate, page, what,    x) {
	if (page == "index") page = id[1]
	x = sprintf("{\"gate\": %s, \"page\": %s, \"text\": %s}", quoted(gate), quoted(page), quoted(what))
	if (seen[x]++) return
	problems = problems (problems == "" ? "" : ", ") x
	bad[page] = bad[page] (bad[page] == "" ? "" : ", ") quoted(what)
}

function quoted(text) {
	gsub(/\\/, "\\\\&", text); gsub(/"/, "\\\"", text); gsub(/\t/, "\\t", text)
	return "\"" text "\""
}
