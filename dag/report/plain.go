package report

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes text of others safe to show: one line, in which control characters, those that turn the
// direction of writing and what is no text appear as escapes. B-10
func Plain(s string) string {
	clean := true
	for _, c := range s {
		clean = clean && shown(c)
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == '\n' || c == '\t' || c == '\r':
			b.WriteByte(' ')
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case shown(c):
			b.WriteRune(c)
		case c < 0x100:
			b.WriteString(`\x` + strconv.FormatUint(uint64(c)|0x100, 16)[1:])
		default:
			b.WriteString(`\u` + strconv.FormatUint(uint64(c)|0x100000, 16)[2:])
		}
	}
	return b.String()
}

func shown(c rune) bool {
	return c != utf8.RuneError && c != '\u2028' && c != '\u2029' && !unicode.Is(unicode.Cc, c) && !unicode.Is(unicode.Bidi_Control, c)
}
