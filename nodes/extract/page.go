package extract

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// seam returns where a document is cut by the end of its block and goes on in a second block that names a language; -1 if
// nowhere. A sample in the page opens its own block first.
func (a *answer) seam(d *candidate) int {
	if d.fence == nil {
		return -1
	}
	closed := -1
	for i := a.lineOf(d.start); i < len(a.lines) && a.lines[i].Start < d.end; i++ {
		text := a.lines[i].Of(a.src)
		switch f, ok := markdown.OpenFence(text); {
		case !ok || f.Char != d.fence.Char || f.Len < d.fence.Len:
		case f.Info != "" && closed >= 0:
			return closed
		case f.Info != "": // a sample: read on behind it
			for i++; i < len(a.lines) && a.lines[i].Start < d.end && !f.Closes(a.lines[i].Of(a.src)); i++ {
			}
		case closed >= 0:
			closed = -1 // a sample without a language
		default:
			closed = a.lines[i].Start
		}
	}
	return -1
}

// bytesOf returns a document's bytes: without the indent of its block and without notes that stand in it.
func (a *answer) bytesOf(d *candidate) string {
	text := a.without(d)
	switch {
	case d.fence != nil && d.fence.Indent > 0:
		text = outdent(text, d.fence.Indent)
	case d.fence == nil && d.indent > 0 && indented(text, d.indent):
		text = outdent(text, d.indent)
	}
	return strings.Trim(text, "\r\n\ufeff")
}

// without cuts the notes out that were taken from a document.
func (a *answer) without(d *candidate) string {
	var b strings.Builder
	at := d.start
	for _, h := range a.inDocs {
		if h.start >= at && h.end <= d.end {
			b.WriteString(a.src[at:h.start])
			at = h.end
		}
	}
	b.WriteString(a.src[at:d.end])
	return b.String()
}

// indented reports whether all lines but the first begin with so many blanks, or hold nothing else.
func indented(text string, columns int) bool {
	for i, l := range markdown.Lines(text) {
		line := l.Of(text)
		if i > 0 && len(line)-len(strings.TrimLeft(line, " \t")) < columns && strings.TrimSpace(line) != "" {
			return false
		}
	}
	return true
}

// outdent takes up to so many columns of blanks off each line.
func outdent(text string, columns int) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		line := text[l.Start:l.Next]
		for n := 0; n < columns && line != "" && (line[0] == ' ' || line[0] == '\t'); line = line[1:] {
			if line[0] == '\t' {
				n += 4
			} else {
				n++
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// inspect looks for bytes that cannot be part of a page and for parts that were left out.
func inspect(s *accept.State, text string, h *htmlRule) error {
	if n := strings.Count(text, "\x00"); n > 0 {
		if h.Controls == "fail" {
			return nodes.Fail("protocol", fmt.Sprintf("the document holds %d NUL bytes", n))
		}
		s.Warn("%d NUL bytes were removed from the document", n)
	}
	if !utf8.ValidString(text) {
		s.Warn("the document is not UTF-8 text throughout")
	}
	if strings.ContainsFunc(text, control) {
		s.Warn("the document holds control characters")
	}
	if strings.Contains(text, "\n<<<<<<< ") && strings.Contains(text, "\n>>>>>>> ") {
		s.Warn("the document holds the marks of a merge conflict")
	}
	if h.Placeholders == "ignore" {
		return nil
	}
	found := placeholders(text)
	if len(found) == 0 {
		return nil
	}
	const most = 3
	what := strings.Join(found[:min(len(found), most)], "; ")
	if h.Placeholders == "warn" {
		s.Warn("the document may leave parts out: %s", what)
		return nil
	}
	return nodes.Fail("placeholder", "the document leaves parts out: "+what)
}

func control(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != 0 || r == 0x7f
}

// compare holds a document against the version before it.
func compare(s *accept.State, text []byte, h *htmlRule) error {
	before, ok, err := s.Previous(h.Previous)
	if err != nil {
		return &nodes.Error{Category: "config", Message: "artifact " + h.Previous, Err: err}
	}
	s.Values["changed"] = true
	if !ok {
		return nil
	}
	if h.MinRatio > 0 && float64(len(text)) < h.MinRatio*float64(len(before)) {
		return nodes.Fail("placeholder", fmt.Sprintf("the document has %d bytes, less than %g of the %d of the version before: parts were left out",
			len(text), h.MinRatio, len(before)))
	}
	if bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(before)) {
		s.Values["changed"] = false
		s.Note("decision", "accept-no-modification", map[string]any{"artifact": h.To, "reason": "the document is identical to the version before"})
		s.Note("quality", "no-modification", map[string]any{"artifact": h.To})
	}
	return nil
}
