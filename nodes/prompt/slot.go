package prompt

import (
	"strings"
	"unicode/utf8"
)

const (
	defaultHeading = "## [{INDEX}/{COUNT}] {LABEL}{MARK}"
	defaultJoin    = "\n\n"
	defaultArrow   = " → "
)

// A slot is the value of one variable, in parts that trimming may shorten.
type slot struct {
	parts               []part
	join, before, after string
	empty               string // shown when the parts hold nothing
}

// A part is a text, an entry or a file with its heading.
type part struct {
	label string // for records
	head  string // heading and the line ends behind it
	text  string
	runes int // of both: trimming measures often
}

func newPart(label, head, text string) part {
	return part{label, head, text, utf8.RuneCountInString(head) + utf8.RuneCountInString(text)}
}

func (s *slot) add(label, head, text string) { s.parts = append(s.parts, newPart(label, head, text)) }

// held is the number of characters of the parts.
func (s *slot) held() (n int) {
	for _, p := range s.parts {
		n += p.runes
	}
	return n
}

// chars is the number of characters of String, without building it.
func (s *slot) chars() int {
	n := s.held()
	if n == 0 {
		return utf8.RuneCountInString(s.empty)
	}
	return n + utf8.RuneCountInString(s.join)*(len(s.parts)-1) + utf8.RuneCountInString(s.before+s.after)
}

func (s *slot) String() string {
	if s.held() == 0 {
		return s.empty
	}
	var b strings.Builder
	b.WriteString(s.before)
	for i, p := range s.parts {
		if i > 0 {
			b.WriteString(s.join)
		}
		b.WriteString(p.head + p.text)
	}
	b.WriteString(s.after)
	return b.String()
}
