package printable

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns of a terminal a character takes. Where terminals differ it is rather too many.
func columns(c rune) int {
	switch kind := width.LookupRune(c).Kind(); {
	case c < 0x300:
		return 1
	case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut is a line of which no more is left than fits into a number of columns, with dots where something is left out, and
// how many columns it takes.
func Cut(line string, most int) (string, int) {
	taken, end := 0, 0 // end is where the dots go
	for i, c := range line {
		if taken < most {
			end = i
		}
		if taken += columns(c); taken > most {
			return line[:end] + "…", most
		}
	}
	return line, taken
}

// Wrap breaks a line at spaces, so that its parts fit into a number of columns where its words do. What follows the
// first part is indented.
func Wrap(line string, most, indent int) (lines []string) {
	for {
		taken, at := 0, 0
		for i, c := range line {
			if c == ' ' && strings.TrimLeft(line[:i], " ") != "" {
				at = i
			}
			if taken += columns(c); taken > most && at > 0 {
				break
			}
		}
		if taken <= most || at == 0 {
			return append(lines, line)
		}
		lines = append(lines, line[:at])
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[at:], " ")
	}
}
