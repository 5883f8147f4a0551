// Package number says what a double keeps of a number as it is written, for whoever reads JSON, YAML or answers. It
// knows neither of them.
package number

import (
	"math"
	"strconv"
	"strings"
)

// Float reads a number as the double next to it. What would become infinite, or nothing, has none.
func Float(text string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && (f != 0 || zero(text))
}

func zero(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.Trim(mantissa, "+-0.") == ""
}

// Whole reports whether a number is written as an integer.
func Whole(text string) bool { return !strings.ContainsAny(text, ".eE") }

// Stays reports whether an integer, as JSON writes it, is the same one as a double.
func Stays(text string) bool {
	if len(text) <= 15 {
		return true
	}
	f, ok := Float(text)
	return ok && strconv.FormatFloat(f, 'f', -1, 64) == text
}
