package verdict

import (
	"strings"

	"dagrun.dev/nodes/internal/markdown"
)

// read returns the items below the heading: {n, class, text}. class is the first of the classes
// that an item names, or "".
func (f *fixesRule) read(r *review) []any {
	out := []any{}
	if f == nil {
		return out
	}
	text := strings.Join(r.lines, "\n")
	for _, sec := range markdown.Sections(text) {
		if !markdown.IsHeading(sec.Words, f.Heading) {
			continue
		}
		out = out[:0]
		for _, l := range markdown.Lines(text[sec.Start:sec.End]) {
			line := text[sec.Start:sec.End][l.Start:l.End]
			item, ok := markdown.Item(line)
			if !ok || strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") || len(out) == f.Most {
				continue
			}
			out = append(out, map[string]any{"n": len(out) + 1, "class": f.class(item), "text": item})
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
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
