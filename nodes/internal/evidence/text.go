package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"dagrun.dev/internal/printable"
)

// mostText is how much of what a failure said is read.
const mostText = 16000

// lazily compiles a pattern when a text is first held against it: most commands meet no failure, and would pay for it
// at their start.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// marks are a byte order mark and the sequences that colour a terminal.
var marks = lazily(`\x{FEFF}|\x1b\[[0-9;?]*[@-~]`)

// Clean returns text without byte order marks, colours, and what cannot be seen around it.
func Clean(text string) string {
	if strings.IndexByte(text, '\x1b') >= 0 || strings.Contains(text, "\uFEFF") { // few have any, and many are long
		text = marks().ReplaceAllString(text, "")
	}
	return strings.TrimFunc(text, unseen)
}

// unseen reports whether a character shows nothing: a blank, one without a width, a control character.
func unseen(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector) ||
		strings.ContainsRune("\u034f\u115f\u1160\u2800\u3164\uffa0", r)
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// httpStatus returns a number that is a status of HTTP, else 0.
func httpStatus(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 300 || n > 599 {
		return 0
	}
	return n
}

// message returns the known line of a text, else its first, shortened.
func message(text, known string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if known != "" {
		line = known
	}
	if line = strings.TrimSpace(line); line == "" {
		return "no message"
	}
	return printable.Clip(line, 300)
}
