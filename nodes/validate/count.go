package validate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// count records the declared counts as values and as one quality record.
func (x step) count(s *accept.State) {
	if len(x.Counts) == 0 {
		return
	}
	fields := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(x.Counts)) {
		c := x.Counts[name]
		of := c.Of
		if of == "" {
			of = x.Of
		}
		n := -1
		if text, ok := s.Subject(of); ok {
			n = c.read(text)
		}
		if n < 0 {
			s.Warn("%s: nothing to count: no %q", name, c.Label+c.Items)
		} else {
			fields[name] = n
		}
		s.Values[name] = n
	}
	s.Note("quality", x.Record, fields)
}

// read returns the count, or -1.
func (c *count) read(text string) int {
	if c.Label != "" {
		return labelled(text, c.Label)
	}
	found := markdown.Sections(text)
	for _, sec := range found {
		if markdown.IsHeading(sec.Words, c.Items) {
			return items(text[sec.Start:sec.End])
		}
	}
	return -1
}

// items counts the list items of the outermost level.
func items(text string) int {
	n, code := 0, markdown.Code(text)
	for i, l := range markdown.Lines(text) {
		line := l.Of(text)
		if _, ok := markdown.Item(line); ok && !code[i] && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "\t") {
			n++
		}
	}
	return n
}

var whole = regexp.MustCompile(`^[ :=(|—–-]*([0-9]{1,9})(?:$|[^0-9.,%/]|[.,](?:$|[^0-9]))`)

// ranged finds that two numbers stand there: 2-3, 2 or 3.
var ranged = regexp.MustCompile(`^[^0-9]*[0-9]+ *(?:[-–—~+±]|\.\.+|to|or|bis) *[0-9]`)

// labelled returns the first whole number behind a label at the start of a line, heading or table cell: "Absent: 2",
// "## Absent (2)", "| Absent | 2 |". Lines in code do not count.
func labelled(text, label string) int {
	code := markdown.Code(text)
	want := fold(label)
	for i, l := range markdown.Lines(text) {
		if code[i] {
			continue
		}
		line := fold(l.Of(text))
		if item, ok := markdown.Item(line); ok {
			line = item
		}
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, "#| "), want)
		if !ok {
			continue
		}
		if m := whole.FindStringSubmatch(rest); m != nil && !ranged.MatchString(rest) {
			if n, err := strconv.Atoi(m[1]); err == nil {
				return n
			}
		}
	}
	return -1
}

// fold is lower case without emphasis, with single blanks.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '*' || r == '_' || r == '`' || markdown.Invisible(r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
	return strings.Join(strings.FieldsFunc(s, markdown.Blank), " ")
}
