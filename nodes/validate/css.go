package validate

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
	"golang.org/x/net/html"

	"dagrun.dev/nodes/internal/accept"
)

// A sheet is what a page says about some boxes: which of them exist and what its rules set outside of conditions.
type sheet struct {
	wanted   map[string]bool // "tag", ".class", "#id"
	property string
	exists   map[string]bool
	values   map[string]cssValue // by selector: what the last rule sets
	vars     map[string]string   // custom properties
	steps    int                 // of computing lengths, bounded
}

// A cssValue is the value of a declaration. An important one is replaced by important ones only.
type cssValue struct {
	text      string
	important bool
}

var simpleSelector = regexp.MustCompile(`^(?:[.#][A-Za-z_-][A-Za-z0-9_-]*|[A-Za-z][A-Za-z0-9-]*)$`)

// A cssRule is #ValidateCSS.
type cssRule struct {
	Selectors []string `json:"selectors"`
	Property  string   `json:"property"`
	Min       *float64 `json:"min"`
	Max       *float64 `json:"max"`
}

func newCSS(r cssRule) (judge, error) {
	r.Property = cmp.Or(r.Property, "max-width")
	if len(r.Selectors) == 0 {
		return nil, errors.New("css: want at least one selector")
	}
	for _, s := range r.Selectors {
		if !simpleSelector.MatchString(s) {
			return nil, fmt.Errorf("css: want a class, an id or an element, got %q", s)
		}
	}
	if r.Min == nil && r.Max == nil {
		return nil, errors.New("css: want at least one of min and max")
	}
	return r.measure, nil
}

// measure returns what does not hold, or "".
func (r *cssRule) measure(page string) string {
	sh := readSheet(page, r)
	found := false
	for _, selector := range r.Selectors {
		name := foldTag(selector)
		value, ok := sh.values[name]
		if !ok {
			continue
		}
		if !sh.exists[name] {
			return fmt.Sprintf("%s has %s: %s, but no element is %s", selector, r.Property, value.text, selector)
		}
		px, ok := sh.pixels(value.text, 0)
		if !ok {
			return fmt.Sprintf("%s of %s is %q, no length in pixels", r.Property, selector, accept.Clip(mostShown, value.text))
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

// foldTag makes the name of an element lower case.
func foldTag(selector string) string {
	if selector[0] == '.' || selector[0] == '#' {
		return selector
	}
	return strings.ToLower(selector)
}

// readSheet reads the style elements and style attributes of a page for what a rule asks.
func readSheet(page string, r *cssRule) *sheet {
	sh := &sheet{
		property: logical(strings.ToLower(r.Property)),
		wanted:   map[string]bool{}, exists: map[string]bool{}, values: map[string]cssValue{}, vars: map[string]string{},
	}
	for _, s := range r.Selectors {
		sh.wanted[foldTag(s)] = true
	}
	z := html.NewTokenizer(strings.NewReader(page))
	inStyle := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return sh
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			inStyle = tok.Data == "style" && appliesToScreens(tok)
			sh.element(tok)
		case html.TextToken:
			if inStyle {
				sh.rulesOf(string(z.Text()), nil)
			}
		case html.EndTagToken:
			inStyle = false
		}
	}
}

// appliesToScreens reports whether a style element has no condition.
func appliesToScreens(style html.Token) bool {
	for _, a := range style.Attr {
		media := strings.ToLower(strings.TrimSpace(a.Val))
		if a.Key == "media" && media != "" && media != "all" && media != "screen" {
			return false
		}
	}
	return true
}

// element notes which of the wanted boxes an element is, and what its style attribute sets.
func (sh *sheet) element(tok html.Token) {
	names, style := []string{tok.Data}, ""
	for _, a := range tok.Attr {
		switch a.Key {
		case "class":
			for _, c := range strings.Fields(a.Val) {
				if sh.wanted["."+c] && !slices.Contains(names, "."+c) {
					names = append(names, "."+c)
				}
			}
		case "id":
			names = append(names, "#"+a.Val)
		case "style":
			style = a.Val
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !sh.wanted[n] })
	for _, n := range names {
		sh.exists[n] = true
	}
	if style != "" && len(names) > 0 {
		sh.rulesOf(style, names)
	}
}

// rulesOf reads the rules of a style sheet, or the declarations of a style attribute, which stand for the selectors of
// the element. Blocks of @media, @supports and the like are conditions and are left out, except @layer.
func (sh *sheet) rulesOf(src string, element []string) {
	type block struct {
		selectors []string
		skipped   bool // it is a condition, or in one
	}
	open := []block{{selectors: element}}
	p := css.NewParser(parse.NewInputString(src), element != nil)
	for {
		gt, _, data := p.Next()
		here := open[len(open)-1]
		switch gt {
		case css.ErrorGrammar:
			if !p.HasParseError() {
				return // the end
			}
		case css.BeginAtRuleGrammar:
			open = append(open, block{here.selectors, here.skipped || string(data) != "@layer"})
		case css.BeginRulesetGrammar:
			open = append(open, block{sh.subjects(joined(p.Values())), here.skipped})
		case css.EndAtRuleGrammar, css.EndRulesetGrammar:
			open = open[:max(1, len(open)-1)]
		case css.DeclarationGrammar, css.CustomPropertyGrammar:
			if !here.skipped {
				sh.declare(here.selectors, string(data), strings.TrimSpace(joined(p.Values())))
			}
		}
	}
}

func joined(tokens []css.Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.Write(t.Data)
	}
	return b.String()
}

// subjects returns those of the selectors of a rule that are wanted.
func (sh *sheet) subjects(selectors string) []string {
	var out []string
	for s := range strings.SplitSeq(selectors, ",") {
		if name := subject(s); sh.wanted[name] && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// declare notes a custom property, or the wanted one for selectors.
func (sh *sheet) declare(selectors []string, property, value string) {
	if strings.HasPrefix(property, "--") {
		sh.vars[property] = value
		return
	}
	if logical(strings.ToLower(property)) != sh.property {
		return
	}
	bare, important := strings.CutSuffix(value, "!important")
	for _, s := range selectors {
		if important || !sh.values[s].important {
			sh.values[s] = cssValue{strings.TrimSpace(bare), important}
		}
	}
}

var lastPart = regexp.MustCompile(`[^\s>+~]+$`)

// subject returns the class, id or element that a selector is about: the last part of it, without
// states; "" when that is none of these alone.
func subject(selector string) string {
	s := lastPart.FindString(strings.TrimSpace(selector))
	if i := strings.IndexAny(s, ":["); i > 0 {
		return "" // in some state only
	}
	if simpleSelector.MatchString(s) {
		return foldTag(s)
	}
	// main.page: the class narrows the element down.
	if i := strings.LastIndexAny(s, ".#"); i > 0 && simpleSelector.MatchString(s[i:]) {
		return s[i:]
	}
	return ""
}

// logical names a property by the direction that it has in a page written from left to right.
func logical(property string) string {
	switch property {
	case "max-inline-size", "min-inline-size", "inline-size":
		return strings.Replace(property, "inline-size", "width", 1)
	}
	return property
}

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
