package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes text of others safe to show: one line, in which control characters, those that turn the direction of
// writing and what is no text appear as escapes.
func Plain(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return !visible(c) }) {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == '\n' || c == '\t' || c == '\r':
			b.WriteByte(' ')
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case visible(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

func visible(c rune) bool {
	return c != utf8.RuneError && c != '\u2028' && c != '\u2029' &&
		!unicode.Is(unicode.Cc, c) && !unicode.Is(unicode.Bidi_Control, c)
}
