package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Nearest returns the name among names that want was most probably meant to be, or "": one of every three letters may
// be wrong, and of four and more another one where the first is right. With more than that every short name is near
// some other, and what is suggested leads astray. The first of equally near names wins.
func Nearest(want string, names []string) string {
	n := len([]rune(want))
	best, least := "", 4
	for _, name := range names {
		most := n / 3
		switch {
		case n > 3 && strings.EqualFold(first(want), first(name)):
			most++
		case n > 1 && strings.HasPrefix(name, want): // the last letter is missing
			most = max(most, 1)
		}
		most = min(most, 3, least-1)
		if d := distance(strings.ToLower(want), strings.ToLower(name), most); d <= most && name != want {
			best, least = name, d
		}
	}
	return best
}

// first returns the first letter.
func first(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a
// into b; anything beyond most is most+1.
func distance(a, b string, most int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > most || len(y)-len(x) > most {
		return most + 1
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(y)], most+1)
}

// DidYouMean is the end of a message about a name that is none of names: the nearest of them, if there is one.
func DidYouMean(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// mostNames is how many names a message lists.
const mostNames = 40

// OrKnown is DidYouMean, but for that it says what names there are where none is near.
func OrKnown(name string, names []string) string {
	switch near := DidYouMean(name, names); {
	case near != "":
		return near
	case len(names) == 0:
		return "; there are none"
	case len(names) > mostNames:
		return fmt.Sprintf("; there are %d, such as %s", len(names), strings.Join(names[:6], ", "))
	}
	return "; known: " + strings.Join(names, ", ")
}
