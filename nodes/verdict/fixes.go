package verdict

import (
	"strings"

	"dagrun.dev/nodes/internal/markdown"
)

// read returns what is listed below the heading: {n, class, text}. class is the first of the classes
// that an item names, or "".
func (f *fixesRule) read(r *review) []any {
	out := []any{}
	if f == nil {
		return out
	}
	text := strings.Join(r.raw, "\n")
	found := markdown.Sections(text)
	for _, sec := range found {
		if !markdown.IsHeading(sec.Words, f.Heading) {
			continue
		}
		items := listed(text[sec.Start:sec.End])
		for n, item := range items[:min(len(items), f.Most)] {
			out = append(out, map[string]any{"n": n + 1, "class": f.class(item), "text": item})
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}

// listed returns the items of a text: those of its outermost list, else its headings, else the rows of
// its table.
func listed(text string) []string {
	var items, headings, rows []string
	least := len(text)
	for _, l := range markdown.Lines(text) {
		line := l.Of(text)
		unmarked := strings.TrimLeft(line, " \t")
		indent := len(line) - len(unmarked)
		if rest, ok := strings.CutPrefix(unmarked, "* "); ok {
			unmarked = "- " + rest
		}
		plain := strings.TrimSpace(normal(unmarked))
		switch item, ok := markdown.Item(plain); {
		case ok && item != "" && indent < least:
			items, least = []string{item}, indent
		case ok && item != "" && indent == least:
			items = append(items, item)
		case ok:
		case strings.HasPrefix(plain, "#"):
			headings = append(headings, bare(plain))
		case rule(plain):
			rows = nil // what stands above is the head
		case strings.HasPrefix(plain, "|"):
			rows = append(rows, strings.Join(strings.Fields(strings.Join(cells(plain), " ")), " "))
		}
	}
	switch {
	case items != nil:
		return items
	case headings != nil:
		return headings
	}
	return rows
}

func (f *fixesRule) class(item string) string {
	words := strings.FieldsFunc(item, func(r rune) bool { return !wordRune(r) })
	for _, w := range words {
		for _, c := range f.Classes {
			if strings.EqualFold(strings.Trim(w, "-_."), c) {
				return c
			}
		}
	}
	return ""
}
