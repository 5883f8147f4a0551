package validate

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// A count is #ValidateCount.
type count struct {
	Label string `json:"label"`
	Items string `json:"items"`
	Of    string `json:"of"`
}

// count records the declared counts as values and as one quality record. One that was not read is absent.
func (x *settings) count(s *accept.State) {
	if len(x.Counts) == 0 {
		return
	}
	fields := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(x.Counts)) {
		c := x.Counts[name]
		text, found := s.Subject(cmp.Or(c.Of, x.Of))
		n, ok := c.read(text)
		if !found || !ok {
			s.Warn("%s: nothing to count: no %q", name, c.Label+c.Items)
			continue
		}
		fields[name], s.Values[name] = n, n
	}
	s.Note("quality", x.Record, fields)
}

// whole is a whole number behind a label and nothing else: ": 2", "(2)", "- 2", "| 2 |".
var whole = regexp.MustCompile(`^[ :=(-]*([0-9]{1,9})[ ).]*$`)

// read returns the number behind a label at the start of a line, heading or table cell, or the number of
// list items below a heading.
func (c *count) read(text string) (int, bool) {
	doc := markdown.Parse(text)
	if c.Items != "" {
		body, ok := doc.Section(c.Items)
		n := 0
		for _, r := range markdown.Parse(body).Rows {
			if r.Item == 1 {
				n++
			}
		}
		return n, ok
	}
	for _, r := range doc.Rows {
		rest, at := r.After(c.Label)
		if at < 0 {
			continue
		}
		for _, cell := range rest {
			if m := whole.FindStringSubmatch(cell); m != nil {
				n, err := strconv.Atoi(m[1])
				return n, err == nil
			}
		}
	}
	return 0, false
}
