package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// mostPattern is the largest regular expression that is not our own, in instructions of its machine. Matching
// takes time in proportion to the product of machine and text: (x?){1000} a hundred times over takes
// minutes for a page.
const mostPattern = 4_000

// ErrPattern is wrapped by the error for a regular expression of more than mostPattern instructions.
var ErrPattern = errors.New("the pattern is too large")

// CompilePattern compiles a regular expression of at most mostPattern instructions. It returns how many
// there are, about.
func CompilePattern(src string) (re *regexp.Regexp, size int, err error) {
	if parsed, err := syntax.Parse(src, syntax.Perl); err == nil {
		size = instructions(parsed)
	}
	if size > mostPattern {
		return nil, size, fmt.Errorf("%w: it takes %d instructions, want at most %d", ErrPattern, size, mostPattern)
	}
	re, err = regexp.Compile(src)
	return re, size, err
}

// instructions is how many a regular expression takes, about. Nothing is made that grows with the counts in it, and
// counting stops at far more than mostPattern: counts of counts grow beyond any number.
func instructions(re *syntax.Regexp) int {
	const enough = 1 << 30
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+instructions(sub)+1, enough)
	}
	if re.Op == syntax.OpRepeat {
		n *= min(max(re.Min, re.Max, 1), 1000)
	}
	return min(n, enough)
}
