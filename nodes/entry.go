package nodes

import (
	"sort"
	"strings"
)

// Heading returns the line of an entry's metadata, without a line end: the value of "title", then
// the others as "name: value" in the order of their names; "" without metadata. Line ends
// inside values become blanks.
func (e Entry) Heading() string {
	names := make([]string, 0, len(e.Meta))
	for name := range e.Meta {
		if name != "title" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var parts []string
	for _, name := range names {
		parts = append(parts, name+": "+oneLine(e.Meta[name]))
	}
	head := oneLine(e.Meta["title"])
	if head != "" && len(parts) > 0 {
		head += " — "
	}
	return head + strings.Join(parts, " · ")
}

// String returns the entry as it is shown in live files and prompts: a Markdown heading of the
// third level and the text.
func (e Entry) String() string {
	head := e.Heading()
	if head == "" {
		return e.Text
	}
	if e.Text == "" {
		return "### " + head
	}
	return "### " + head + "\n\n" + e.Text
}

// Accumulated is the text of an accumulator: its title as a heading, then each entry as String shows it.
func Accumulated(title string, list []Entry) string {
	var b strings.Builder
	b.WriteString("# " + title + "\n")
	for _, e := range list {
		e.Text = strings.TrimSpace(e.Text)
		b.WriteString("\n" + e.String() + "\n")
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
