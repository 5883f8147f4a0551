package markdown

import (
	"strings"
	"unicode"
)

// Heading reads a line as a heading: its level (1 to 6; 7 for a line that is bold as a
// whole) and its words as Words returns them.
func Heading(line string) (level int, words string, ok bool) {
	s := TrimBlank(line)
	hashes := len(s) - len(strings.TrimLeft(s, "#"))
	switch {
	case hashes >= 1 && hashes <= 6 && len(s) > hashes && (s[hashes] == ' ' || s[hashes] == '\t'):
		return hashes, Words(strings.TrimRight(s[hashes:], "# \t")), true
	case bold(s):
		return 7, Words(s), true
	}
	return 0, "", false
}

// bold reports whether a line is one bold text, a colon or full stop behind it aside.
func bold(s string) bool {
	s = strings.TrimRight(s, ":. ")
	for _, mark := range []string{"**", "__"} {
		if len(s) > 4 && strings.HasPrefix(s, mark) && strings.HasSuffix(s, mark) && !strings.Contains(s[2:len(s)-2], mark) {
			return true
		}
	}
	return false
}

// Words returns a text in lower case with single blanks, without emphasis, numbering in front and
// signs at both ends: "**2. Deeply  integrated:**" is "deeply integrated".
func Words(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '*' || r == '_' || r == '`' || Invisible(r):
			return -1
		case Blank(r):
			return ' '
		}
		return unicode.ToLower(r)
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	s = strings.TrimLeft(s, "0123456789.)( ")
	return strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// IsHeading reports whether the words of a heading are the wanted ones, alone or followed by more
// that a sign sets off: "absent", "absent (3)", "absent: what is missing", but not "absent minded".
func IsHeading(words, want string) bool {
	want = Words(want)
	rest, ok := strings.CutPrefix(words, want)
	if !ok || want == "" {
		return false
	}
	rest = strings.TrimLeft(rest, " ")
	if rest == "" {
		return true
	}
	for _, r := range rest {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '\''
	}
	return true
}

// A Section is the text below a heading up to the next heading of its level or above, by byte
// offsets.
type Section struct {
	Level      int
	Words      string
	Start, End int // of the text below
}

// Sections returns the sections of a text in order, headings in fenced code aside.
func Sections(text string) []Section {
	var out []Section
	var open []int // indexes of sections without an end, levels ascending
	code := Code(text)
	for i, l := range Lines(text) {
		if code[i] {
			continue
		}
		level, words, ok := Heading(l.Of(text))
		if !ok {
			continue
		}
		for len(open) > 0 && out[open[len(open)-1]].Level >= level {
			out[open[len(open)-1]].End = l.Start
			open = open[:len(open)-1]
		}
		open = append(open, len(out))
		out = append(out, Section{Level: level, Words: words, Start: l.Next, End: len(text)})
	}
	return out
}

// Body returns the text below the last section of that heading that has any: an answer that repeats its
// outline first has an empty one before.
func Body(text string, found []Section, heading string) (string, bool) {
	for i := len(found) - 1; i >= 0; i-- {
		if !IsHeading(found[i].Words, heading) {
			continue
		}
		if body := text[found[i].Start:found[i].End]; TrimBlank(body) != "" {
			return body, true
		}
	}
	return "", false
}

// Code tells for each line whether it belongs to a fenced code block, fence lines included.
// An open block goes on to the end.
func Code(text string) []bool {
	lines := Lines(text)
	out := make([]bool, len(lines))
	var f Fence
	in := false
	for i, l := range lines {
		s := l.Of(text)
		switch {
		case in:
			out[i] = true
			in = !f.Closes(s)
		default:
			f, in = OpenFence(s)
			out[i] = in
		}
	}
	return out
}

// Item cuts the list sign off a line: "- x", "* x", "+ x", "• x", "1. x", "2) x"; ok is false when there is none.
func Item(line string) (text string, ok bool) {
	s := strings.TrimLeftFunc(line, Blank)
	for _, sign := range []string{"- ", "* ", "+ ", "• ", "– ", "— "} {
		if rest, ok := strings.CutPrefix(s, sign); ok {
			return TrimBlank(rest), true
		}
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits > 0 && digits < 4 && len(s) > digits+1 && (s[digits] == '.' || s[digits] == ')') && Blank(rune(s[digits+1])) {
		return TrimBlank(s[digits+1:]), true
	}
	return "", false
}
