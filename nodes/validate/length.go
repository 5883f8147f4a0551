package validate

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	length = regexp.MustCompile(`^([0-9]*\.?[0-9]+)(px|rem)$`)
	call   = regexp.MustCompile(`(?s)^(var|min|max|clamp|calc)\((.*)\)$`)
	sum    = regexp.MustCompile(`(?s)^(.+) ([+-]) (.+)$`)
)

// Bounds on following functions and variables: a variable may name itself, or others many times over.
const (
	deepest   = 10
	mostSteps = 1000
)

// pixels computes a length. Of min() and max() the lengths in pixels count, because the others
// depend on the window.
func (sh *sheet) pixels(value string, depth int) (float64, bool) {
	value = strings.TrimSpace(value)
	if sh.steps++; depth > deepest || sh.steps > mostSteps {
		return 0, false
	}
	folded := strings.ToLower(value)
	if m := length.FindStringSubmatch(folded); m != nil {
		v, err := strconv.ParseFloat(m[1], 64)
		if m[2] == "rem" {
			v *= 16
		}
		return v, err == nil
	}
	open := strings.IndexByte(value, '(')
	if open < 0 {
		return 0, false
	}
	m := call.FindStringSubmatch(folded[:open] + value[open:]) // names of variables are told apart by case
	if m == nil {
		return 0, false
	}
	args := arguments(m[2])
	switch m[1] {
	case "var":
		if v, ok := sh.vars[args[0]]; ok {
			return sh.pixels(v, depth+1)
		}
		if len(args) > 1 {
			return sh.pixels(args[1], depth+1)
		}
		return 0, false
	case "calc":
		return sh.calc(m[2], depth)
	case "clamp":
		return sh.pixels(args[len(args)-1], depth+1)
	}
	out, found := 0.0, false
	for _, a := range args {
		v, ok := sh.pixels(a, depth+1)
		if ok && (!found || m[1] == "min" && v < out || m[1] == "max" && v > out) {
			out, found = v, true
		}
	}
	return out, found
}

// calc computes sums; anything else in calc() is no length here.
func (sh *sheet) calc(expr string, depth int) (float64, bool) {
	if depth > deepest {
		return 0, false
	}
	if m := sum.FindStringSubmatch(expr); m != nil {
		a, ok1 := sh.calc(m[1], depth+1)
		b, ok2 := sh.pixels(m[3], depth+1)
		if m[2] == "-" {
			b = -b
		}
		return a + b, ok1 && ok2
	}
	return sh.pixels(expr, depth+1)
}

// arguments cuts at commas outside of brackets.
func arguments(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[start:]))
}
