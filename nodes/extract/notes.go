package extract

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// takeNotes takes the blocks between markers. With broken markers nothing is taken.
func (x *settings) takeNotes(s *accept.State, a *answer) error {
	var first error
	fail := func(level, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		switch {
		case level == "ignore":
		case level != "fail":
			s.Warn("%s", text)
		case first == nil:
			first = nodes.Fail("sections_missing", text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.Markers)) {
		m := x.Markers[name]
		found := a.noted[name]
		switch {
		case found.broken != "":
			fail(m.Broken, "%s: nothing was taken: %s", name, found.broken)
			continue
		case len(found.blocks) == 0:
			fail(m.Missing, "%s: no block between %s and %s", name, m.Start, m.End)
			continue
		}
		text := a.joined(s, name, m, found.blocks)
		switch {
		case found.where == inCode:
			s.Warn("%s: the block stands in a code block", name)
		case found.where == inDocument:
			s.Warn("%s: the block stands inside the document and is cut out of it", name)
		case found.coded:
			s.Warn("%s: another block, in a code block, does not count", name)
		}
		s.Texts[name] = text
		if m.To != "" && text != "" {
			s.Artifacts[m.To] = []byte(text + "\n")
		}
		s.Note("decision", "extract-notes", map[string]any{
			"name": name, "blocks": len(found.blocks), "chars": utf8.RuneCountInString(text),
		})
	}
	return first
}

// joined makes one text of the blocks. One that repeats an earlier one adds nothing.
func (a *answer) joined(s *accept.State, name string, m markers, blocks []notesBlock) string {
	if len(blocks) > 1 {
		s.Warn("%s: %d blocks (%s)", name, len(blocks), cmp.Or(m.Blocks, "join"))
	}
	switch m.Blocks {
	case "first":
		blocks = blocks[:1]
	case "last":
		blocks = blocks[len(blocks)-1:]
	}
	var texts []string
	seen := map[string]bool{}
	for _, b := range blocks {
		text := notesText(a.src[b.inner.start:b.inner.end])
		if text != "" && !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// takeSections takes the text below headings.
func (x *settings) takeSections(s *accept.State, a *answer) error {
	if len(x.Sections) == 0 {
		return nil
	}
	text := a.text()
	doc := markdown.Parse(text)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(x.Sections)) {
		sec := x.Sections[name]
		body, ok := doc.Section(sec.Heading)
		if !ok {
			switch sec.Missing {
			case "ignore":
			case "fail":
				missing = append(missing, sec.Heading)
			default:
				s.Warn("%s: no section %q", name, sec.Heading)
			}
			continue
		}
		body = notesText(body)
		s.Texts[name] = body
		put(s, body, sec.To, sec.Value, sec.MaxChars)
	}
	if missing != nil {
		return nodes.Failf("sections_missing", "sections are missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

// takeText takes the answer itself.
func takeText(s *accept.State, a *answer, t *textRule) error {
	text := a.text()
	if a.endless {
		return nodes.Fail("truncated", "the thinking is never closed: "+tail(a.src))
	}
	if text == "" {
		return nodes.Fail("no_artifact", "the answer holds no text")
	}
	if end := cutEnd(text, given(t.CutEnds, defaultCutEnds)); end != "" {
		return nodes.Failf("truncated", "the answer ends in %q", end)
	}
	put(s, text, t.To, t.Value, t.MaxChars)
	return nil
}

// put makes a text an artifact and a value, as far as these have names. A value is cut where it is too long.
func put(s *accept.State, text, artifact, value string, most int) {
	if artifact != "" {
		s.Artifacts[artifact] = []byte(text + "\n")
	}
	if value == "" {
		return
	}
	most = cmp.Or(most, mostValue)
	if r := []rune(text); len(r) > most {
		s.Warn("%s: %d characters cut to %d", value, len(r), most)
		text = string(r[:most])
	}
	s.Values[value] = text
}
