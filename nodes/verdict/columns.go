package verdict

import (
	"regexp"
	"strconv"
	"strings"
)

// longestHead bounds what is repeated for each row of a table.
const longestHead = 100

// withColumns adds, behind each table, its columns as rows: a label may be the head of one.
func withColumns(lines []string) []string {
	var out []string
	from := 0 // what of lines is not in out yet
	for i := 0; i+1 < len(lines); i++ {
		if !strings.Contains(lines[i], "|") || !rule(lines[i+1]) {
			continue
		}
		end := i + 2
		for end < len(lines) && strings.Contains(lines[end], "|") {
			end++
		}
		head := split(lines[i])
		dead := past(head)
		out = append(out, lines[from:i+2]...)
		for _, row := range lines[i+2 : end] {
			out = append(out, without(row, dead))
		}
		for _, row := range lines[i+2 : end] {
			for n, cell := range split(row) {
				if n < len(head) && len(head[n]) < longestHead && !dead[n] {
					out = append(out, "| "+head[n]+" | "+cell+" |")
				}
			}
		}
		from, i = end, end-1
	}
	return append(out, lines[from:]...)
}

// counted is the head of a column of one round of several.
var counted = regexp.MustCompile(`(?i)^(?:cycle|round|pass|iteration|review|run|v)[ #.]*([0-9]+)$`)

// past tells which columns hold older scores or limits, not those of this review: by their heads, and of numbered rounds all
// but the highest.
func past(head []string) map[int]bool {
	dead := map[int]bool{}
	last, highest := -1, -1
	for n, cell := range head {
		cell = strings.TrimSpace(cell)
		if len(cell) < longestHead && foreignRe.MatchString(cell) {
			dead[n] = true
		}
		m := counted.FindStringSubmatch(cell)
		if m == nil {
			continue
		}
		if round, err := strconv.Atoi(m[1]); err == nil && round > highest {
			if last >= 0 {
				dead[last] = true
			}
			last, highest = n, round
		} else {
			dead[n] = true
		}
	}
	return dead
}

// without empties cells of a row.
func without(row string, dead map[int]bool) string {
	if len(dead) == 0 {
		return row
	}
	cells := split(row)
	for n := range cells {
		if dead[n] {
			cells[n] = " "
		}
	}
	return "| " + strings.Join(cells, "|") + " |"
}

// rule reports whether a line is the one below a table's head.
func rule(line string) bool {
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: ") == ""
}

func split(row string) []string { return strings.Split(strings.Trim(row, "| "), "|") }
