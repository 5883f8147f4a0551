package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	sh := &sheet{property: logical(strings.ToLower(r.Property)), wanted: map[string]bool{}, exists: map[string]bool{}, values: map[string]cssValue{}, vars: map[string]string{}}
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
				sh.rulesOf(string(z.Text()))
			}
		case html.EndTagToken:
			inStyle = false
		}
	}
}

// appliesToScreens reports whether a style element has no condition.
func appliesToScreens(style html.Token) bool {
	for _, a := range style.Attr {
		if media := strings.ToLower(strings.TrimSpace(a.Val)); a.Key == "media" && media != "" && media != "all" && media != "screen" {
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
	value, ok := sh.declared(style)
	for _, n := range names {
		if sh.wanted[n] {
			sh.exists[n] = true
			sh.set(n, value, ok)
		}
	}
}

var cssComment = regexp.MustCompile(`(?s)/\*.*?(?:\*/|\z)`)

// rulesOf reads the rules of a style sheet. Blocks of @media, @supports and the like are conditions
// and are left out, except @layer; a block within a rule ends its declarations and is a rule of its own.
func (sh *sheet) rulesOf(css string) {
	css = cssComment.ReplaceAllString(css, " ")
	type block struct {
		prelude string
		skipped bool // it is a condition, or in one
	}
	var open []block
	start := 0 // of what is not yet read
	declare := func(end int) {
		if n := len(open); n > 0 && !open[n-1].skipped && !strings.HasPrefix(open[n-1].prelude, "@") {
			sh.declare(open[n-1].prelude, css[start:end])
		}
	}
	for i := 0; i < len(css); i++ {
		switch css[i] {
		case '"', '\'':
			i = cssString(css, i)
		case '(':
			i = urlEnd(css, i)
		case ';':
			if len(open) == 0 {
				start = i + 1
			}
		case '{':
			head := start + strings.LastIndexByte(css[start:i], ';') + 1
			declare(head)
			prelude := strings.TrimSpace(css[head:i])
			condition := strings.HasPrefix(prelude, "@") && !strings.HasPrefix(prelude, "@layer")
			open = append(open, block{prelude, condition || len(open) > 0 && open[len(open)-1].skipped})
			start = i + 1
		case '}':
			declare(i)
			open = open[:max(0, len(open)-1)]
			start = i + 1
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

// urlEnd returns the end of a bracket that begins at i when it is that of a url without quotes, else i.
func urlEnd(css string, i int) int {
	const longest = 100_000 // of an address with data
	rest := css[i+1 : min(len(css), i+longest)]
	if !strings.EqualFold(css[max(0, i-3):i], "url") || strings.HasPrefix(strings.TrimSpace(rest[:min(len(rest), 20)]), `"`) || strings.HasPrefix(strings.TrimSpace(rest[:min(len(rest), 20)]), "'") {
		return i
	}
	if n := strings.IndexAny(rest, ")\n"); n >= 0 && rest[n] == ')' {
		return i + 1 + n
	}
	return i
}

// declare takes the declarations of a rule for those of its selectors that are wanted.
func (sh *sheet) declare(prelude, body string) {
	value, ok := sh.declared(body)
	for prelude != "" && ok {
		var s string
		s, prelude, _ = strings.Cut(prelude, ",")
		if name := subject(s); sh.wanted[name] {
			sh.set(name, value, ok)
		}
	}
}

func (sh *sheet) set(selector string, v cssValue, ok bool) {
	if ok && (v.important || !sh.values[selector].important) {
		sh.values[selector] = v
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

// declared returns what declarations set the property to, the last one first, and notes custom properties.
func (sh *sheet) declared(body string) (out cssValue, ok bool) {
	for body != "" {
		var d string
		d, body, _ = strings.Cut(body, ";")
		property, value, found := strings.Cut(d, ":")
		if !found {
			continue
		}
		property, value = strings.TrimSpace(property), strings.TrimSpace(value)
		bare := strings.TrimSpace(strings.TrimSuffix(value, "important"))
		important := len(bare) < len(value) && strings.HasSuffix(bare, "!")
		if important {
			value = strings.TrimSpace(strings.TrimSuffix(bare, "!"))
		}
		switch {
		case strings.HasPrefix(property, "--"):
			sh.vars[property] = value
		case logical(strings.ToLower(property)) == sh.property && (important || !out.important):
			out, ok = cssValue{value, important}, true
		}
	}
	return out, ok
}

// logical names a property by the direction that it has in a page written from left to right.
func logical(property string) string {
	switch property {
	case "max-inline-size", "min-inline-size", "inline-size":
		return strings.Replace(property, "inline-size", "width", 1)
	}
	return property
}
