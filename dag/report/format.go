package report

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/printable"
)

// shown is how many entries of a list a line shows.
const shown = 5

// Parts are the pieces of a text, of which those are left out that say nothing.
type Parts []string

// Add adds a piece that is given.
func (p *Parts) Add(given bool, format string, args ...any) {
	if given {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// entryOf returns the entry of a list for which is holds; where there is none, the list gets a fresh one.
func entryOf[T any](list *[]T, is func(*T) bool, fresh T) *T {
	for i := range *list {
		if is(&(*list)[i]) {
			return &(*list)[i]
		}
	}
	*list = append(*list, fresh)
	return &(*list)[len(*list)-1]
}

// nth is a number as an ordinal.
func nth(n int) string {
	suffixes := []string{"th", "st", "nd", "rd"}
	if last := n % 10; last < len(suffixes) && n%100/10 != 1 {
		return fmt.Sprintf("%d%s", n, suffixes[last])
	}
	return fmt.Sprintf("%dth", n)
}

// waited is a time that was waited, if it is worth a word.
func waited(sec float64) string {
	if sec < 0.005 {
		return ""
	}
	return Duration(sec)
}

// Some is a list on one line, not too much of it.
func Some(list any) string {
	all := reflect.ValueOf(list)
	var parts []string
	for i := range min(all.Len(), shown) {
		parts = append(parts, fmt.Sprint(all.Index(i)))
	}
	text := strings.Join(parts, ", ")
	if more := all.Len() - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Instant prints an instant for people: local time and its zone. Logs and JSON have UTC.
func Instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + Instant(t)
}

// Duration prints seconds as people say them: 0.25s, 7.5s, 3m05s, 2h10m. Nothing for an unknown time.
func Duration(sec float64) string {
	switch {
	case sec <= 0:
		return ""
	case sec < 0.005:
		return "<0.01s"
	case sec < 1:
		return fmt.Sprintf("%.2fs", sec)
	case sec < 59.95:
		return fmt.Sprintf("%.1fs", sec)
	case sec < 3599.5:
		s := int(sec + 0.5)
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	m := int(sec/60 + 0.5)
	return fmt.Sprintf("%dh%02dm", m/60, m%60)
}

// Count prints a number of things: 1 node, 2 nodes.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Titled is a title in brackets, behind a name.
func Titled(title string) string {
	if title == "" {
		return ""
	}
	return " (" + title + ")"
}

// AttemptText names an attempt behind a node; nothing where there was none.
func AttemptText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

// Reason is a category and a message, or what there is of them.
func Reason(category, message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(category+": "+message, ": "), ": ")
}

// ReasonText says why a run pauses, and at which node unless the message names it.
func ReasonText(pause machine.Pause, node, message string) string {
	reason := string(pause)
	if reason != "" && node != "" && !strings.Contains(message, node) {
		reason += " at " + node
	}
	return Reason(reason, message)
}

// ReasonInBrackets is ReasonText with the reason itself in brackets and what follows behind them.
func ReasonInBrackets(pause machine.Pause, node, message string) string {
	head, message, more := strings.Cut(ReasonText(pause, node, message), ": ")
	if !more {
		return "(" + head + ")"
	}
	return "(" + head + "): " + message
}

// shortDigest is as much of a digest as people compare.
func shortDigest(d string) string { return d[:min(12, len(d))] }

func usdRange(r [3]dag.USD) string {
	low, high := r[0].String(), r[2].String()
	if low == high { // as printed
		return "$" + low
	}
	return "$" + low + " to $" + high
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Plain makes text of others safe to show: one line, in which control characters, those that turn the direction of
// writing and what is no text appear as escapes.
func Plain(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return !visible(c) }) {
		return s
	}
	return printable.Escape(blanks.Replace(s), visible)
}

var blanks = strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")

func visible(c rune) bool {
	return c != utf8.RuneError && c != '\u2028' && c != '\u2029' &&
		!unicode.Is(unicode.Cc, c) && !unicode.Is(unicode.Bidi_Control, c)
}
