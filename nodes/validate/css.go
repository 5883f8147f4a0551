package validate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// A sheet is what a page says about boxes: which elements exist and what its rules set outside of
// conditions.
type sheet struct {
	exists map[string]bool   // "tag", ".class", "#id" of elements
	rules  []cssDecl         // in order
	vars   map[string]string // custom properties
}

// A cssDecl is one declaration for one selector.
type cssDecl struct{ selector, property, value string }

var simpleSelector = regexp.MustCompile(`^(?:[.#][A-Za-z_-][A-Za-z0-9_-]*|[A-Za-z][A-Za-z0-9-]*)$`)

// check says what is wrong with the settings.
func (r *cssRule) check() error {
	if len(r.Selectors) == 0 {
		return fmt.Errorf("css: want at least one selector")
	}
	for _, s := range r.Selectors {
		if !simpleSelector.MatchString(s) {
			return fmt.Errorf("css: want a class, an id or an element, got %q", s)
		}
	}
	if r.Min == nil && r.Max == nil {
		return fmt.Errorf("css: want at least one of min and max")
	}
	return nil
}

// measure returns what does not hold, or "".
func (r *cssRule) measure(page string) string {
	sh := readSheet(page)
	found := false
	for _, selector := range r.Selectors {
		name := selector
		if name[0] != '.' && name[0] != '#' {
			name = strings.ToLower(name)
		}
		value, ok := sh.value(name, r.Property)
		if !ok {
			continue
		}
		if !sh.exists[name] {
			return fmt.Sprintf("%s has %s: %s, but no element is %s", selector, r.Property, value, selector)
		}
		px, ok := sh.pixels(value, 0)
		if !ok {
			return fmt.Sprintf("%s of %s is %q, no length in pixels", r.Property, selector, value)
		}
		if r.Min != nil && px < *r.Min || r.Max != nil && px > *r.Max {
			return fmt.Sprintf("%s of %s is %gpx, want %s", r.Property, selector, px, r.wanted())
		}
		found = true
	}
	if !found {
		return fmt.Sprintf("no %s for %s outside of @media", r.Property, strings.Join(r.Selectors, ", "))
	}
	return ""
}

func (r *cssRule) wanted() string {
	switch {
	case r.Min == nil:
		return fmt.Sprintf("at most %gpx", *r.Max)
	case r.Max == nil:
		return fmt.Sprintf("at least %gpx", *r.Min)
	}
	return fmt.Sprintf("%g-%gpx", *r.Min, *r.Max)
}

// readSheet reads the style elements and style attributes of a page.
func readSheet(page string) *sheet {
	sh := &sheet{exists: map[string]bool{}, vars: map[string]string{}}
	z := html.NewTokenizer(strings.NewReader(page))
	inStyle := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return sh
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			inStyle = tok.Data == "style"
			sh.element(tok)
		case html.TextToken:
			if inStyle {
				sh.rulesOf(string(z.Text()))
			}
		case html.EndTagToken:
			inStyle = false
		}
	}
}

func (sh *sheet) element(tok html.Token) {
	names := []string{tok.Data}
	style := ""
	for _, a := range tok.Attr {
		switch a.Key {
		case "class":
			for _, c := range strings.Fields(a.Val) {
				names = append(names, "."+c)
			}
		case "id":
			names = append(names, "#"+a.Val)
		case "style":
			style = a.Val
		}
	}
	for _, n := range names {
		sh.exists[n] = true
		if style != "" {
			sh.declare(n, style)
		}
	}
}

var cssComment = regexp.MustCompile(`(?s)/\*.*?(?:\*/|\z)`)

// rulesOf reads the rules of a style sheet. Blocks of @media, @supports and the like are conditions
// and are left out, except @layer.
func (sh *sheet) rulesOf(css string) {
	css = cssComment.ReplaceAllString(css, " ")
	depth, skip, start := 0, 0, 0 // skip: depth at which a condition began
	prelude := ""
	for i := 0; i < len(css); i++ {
		switch css[i] {
		case '"', '\'':
			i = cssString(css, i)
		case ';':
			if depth == 0 {
				start = i + 1
			}
		case '{':
			depth++
			prelude = strings.TrimSpace(css[start:i])
			if skip == 0 && strings.HasPrefix(prelude, "@") && !strings.HasPrefix(prelude, "@layer") {
				skip = depth
			}
			start = i + 1
		case '}':
			if skip == 0 && prelude != "" && !strings.HasPrefix(prelude, "@") {
				for _, s := range strings.Split(prelude, ",") {
					sh.declare(subject(s), css[start:i])
				}
			}
			if depth == skip {
				skip = 0
			}
			depth = max(0, depth-1)
			prelude, start = "", i+1
		}
	}
}

func cssString(css string, i int) int {
	quote := css[i]
	for i++; i < len(css); i++ {
		if css[i] == '\\' {
			i++
		} else if css[i] == quote || css[i] == '\n' {
			return i
		}
	}
	return len(css) - 1
}

var lastPart = regexp.MustCompile(`[^\s>+~]+$`)

// subject returns the class, id or element that a selector is about: the last part of it, without
// states; "" when that is none of these alone.
func subject(selector string) string {
	s := lastPart.FindString(strings.TrimSpace(selector))
	if i := strings.IndexAny(s, ":["); i > 0 {
		return "" // in some state only
	}
	if s == ":root" {
		return s
	}
	if simpleSelector.MatchString(s) {
		if s[0] != '.' && s[0] != '#' {
			s = strings.ToLower(s)
		}
		return s
	}
	// main.page: the class narrows the element down.
	if i := strings.LastIndexAny(s, ".#"); i > 0 && simpleSelector.MatchString(s[i:]) {
		return s[i:]
	}
	return ""
}

func (sh *sheet) declare(selector, body string) {
	if selector == "" {
		return
	}
	for _, d := range strings.Split(body, ";") {
		property, value, ok := strings.Cut(d, ":")
		if !ok {
			continue
		}
		property = strings.TrimSpace(property)
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		if strings.HasPrefix(property, "--") {
			sh.vars[property] = value
			continue
		}
		sh.rules = append(sh.rules, cssDecl{selector, strings.ToLower(property), value})
	}
}

// value returns what the last rule for a box says.
func (sh *sheet) value(selector, property string) (value string, ok bool) {
	for _, d := range sh.rules {
		if d.selector == selector && d.property == strings.ToLower(property) {
			value, ok = d.value, true
		}
	}
	return value, ok
}

var (
	length = regexp.MustCompile(`^([0-9]*\.?[0-9]+)(px|rem)$`)
	call   = regexp.MustCompile(`^(var|min|max|clamp|calc)\((.*)\)$`)
	sum    = regexp.MustCompile(`^(.+) ([+-]) (.+)$`)
)

// deepest bounds how far functions and variables are followed.
const deepest = 10

// pixels computes a length. Of min() and max() the lengths in pixels count, because the others
// depend on the window.
func (sh *sheet) pixels(value string, depth int) (float64, bool) {
	value = strings.ToLower(strings.TrimSpace(value))
	if depth > deepest {
		return 0, false
	}
	if m := length.FindStringSubmatch(value); m != nil {
		v, err := strconv.ParseFloat(m[1], 64)
		if m[2] == "rem" {
			v *= 16
		}
		return v, err == nil
	}
	m := call.FindStringSubmatch(value)
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
