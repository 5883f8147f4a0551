// Package markdown reads the few parts of Markdown that models' answers are cut by: fenced code, quotes, headings,
// list signs, table cells and emphasis.
//
// Code, documents and notes are cut out of raw lines (Lines, OpenFence, Thought), because a page in an answer need not
// be good Markdown; what an author says in Markdown is read from its tree (Parse).
package markdown

import (
	"strings"
	"unicode"
)

// A Line is a line of a text by byte offsets: End is without the line end, Next behind it.
type Line struct{ Start, End, Next int }

// Of returns the line's text without its line end.
func (l Line) Of(text string) string { return text[l.Start:l.End] }

// Lines cuts a text into lines. LF, CRLF and a lone CR end a line.
func Lines(text string) []Line {
	var out []Line
	for at := 0; at < len(text); {
		n := strings.IndexAny(text[at:], "\r\n")
		if n < 0 {
			return append(out, Line{at, len(text), len(text)})
		}
		next := at + n + 1
		if text[at+n] == '\r' && next < len(text) && text[next] == '\n' {
			next++
		}
		out = append(out, Line{at, at + n, next})
		at = next
	}
	return out
}

// Invisible reports whether a character shows nothing and takes no place: zero-width blanks, byte
// order marks, soft hyphens, direction marks.
func Invisible(r rune) bool {
	switch r {
	case '\ufeff', '\u200b', '\u200c', '\u200d', '\u2060', '\u00ad', '\u200e', '\u200f', '\u061c', '\u180e':
		return true
	}
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Blank reports whether a character is a blank of any kind, invisible ones included.
func Blank(r rune) bool { return unicode.IsSpace(r) || Invisible(r) }

// TrimBlank cuts blanks of any kind off both ends.
func TrimBlank(s string) string { return strings.TrimFunc(s, Blank) }

// A Fence is the line that opens a fenced code block.
type Fence struct {
	Char   byte   // '`' or '~'
	Len    int    // length of the run
	Indent int    // columns before it
	Info   string // what stands behind it
	Odd    bool   // invisible blanks stand before it
}

// OpenFence reads a line as the start of a fenced code block. Unlike CommonMark it accepts any
// indentation (blocks in list items) and invisible blanks before the run.
func OpenFence(line string) (Fence, bool) {
	var f Fence
	at := 0
	for i, r := range line {
		if !Blank(r) {
			at = i
			break
		}
		switch {
		case r == ' ':
			f.Indent++
		case r == '\t':
			f.Indent += 4 - f.Indent%4
		default:
			f.Odd = true
		}
		at = len(line)
	}
	rest := line[at:]
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return Fence{}, false
	}
	f.Char = rest[0]
	f.Len = len(rest) - len(strings.TrimLeft(rest, string(f.Char)))
	f.Info = TrimBlank(rest[f.Len:])
	if f.Len < 3 || f.Char == '`' && strings.Contains(f.Info, "`") {
		return Fence{}, false
	}
	return f, true
}

// Closes reports whether a line ends the block: the same character, at least as often, nothing else.
func (f Fence) Closes(line string) bool {
	s := TrimBlank(line)
	return len(s) >= f.Len && strings.Trim(s, string(f.Char)) == ""
}

// Language returns the first word of the info string in lower case, without braces, dots and what
// follows a colon: "{.html .numberLines}" and "HTML:index.html" are html.
func (f Fence) Language() string {
	s := strings.TrimLeft(f.Info, "{. ")
	if i := strings.IndexAny(s, " \t:,}"); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(s)
}
