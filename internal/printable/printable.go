// Package printable makes text that others wrote safe for a terminal and for a log line.
//
// It hides no secrets.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes text safe for a terminal and for a log line: terminal sequences
// are taken out, other control characters, reordering marks and bytes that are no UTF-8 are
// written as \x1b or \u202e. Newline and tab stay; carriage returns become newlines.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch n := sequence(s[i:]); {
		case n > 0:
			i += n - 1
		case s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n':
		case s[i] == '\r':
			b.WriteByte('\n')
		default:
			b.WriteByte(s[i])
		}
	}
	return Escape(b.String(), func(r rune) bool { return r == '\n' || r == '\t' || !unsafe(r) })
}

// Escape writes what is not safe, and bytes that are no UTF-8, as \x1b or \u202e.
func Escape(s string, safe func(rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case safe(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// unsafe reports runes that move the cursor, reorder text or hide it.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || r == 0xfeff || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f ||
		r == 0x200e || r == 0x200f || r == 0x061c || r >= 0xe0000 && r <= 0xe007f
}

// sequence returns the length of the terminal sequence (ECMA-48) that s begins with, or 0.
func sequence(s string) int {
	if len(s) < 2 || s[0] != 0x1b {
		return 0
	}
	switch c := s[1]; {
	case c == '[': // control sequence: parameters, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X': // strings, up to BEL or ESC \
		for i := 2; i < len(s) && i < 4096; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			if s[i] == '\n' {
				return i
			}
		}
		return 2
	case c >= 0x20 && c <= 0x7e:
		return 2
	}
	return 0
}

// Some names the first few of a list.
func Some(list []string, most int) string {
	text := strings.Join(list[:min(most, len(list))], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Line is Text on one line: runs of white space become one space.
func Line(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }

// Clip returns the first n bytes of s at most, cut between characters, with dots behind where
// something is left out.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
