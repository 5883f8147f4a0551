package validate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// mostShown bounds how much of a text a message shows.
const mostShown = 300

// run makes one check and returns what does not hold, or "".
func (c *check) run(s *accept.State) string {
	if c.mistakes != nil {
		return strings.Join(c.mistakes, "; ")
	}
	text, ok := s.Subject(c.Of)
	if !ok {
		return fmt.Sprintf("there is no %s", c.Of)
	}
	switch c.test {
	case "nonEmpty":
		if *c.NonEmpty && markdown.TrimBlank(text) == "" {
			return "empty"
		}
	case "minChars":
		if n := utf8.RuneCountInString(text); n < *c.MinChars {
			return fmt.Sprintf("%d characters, want at least %d", n, *c.MinChars)
		}
	case "maxChars":
		if n := utf8.RuneCountInString(text); n > *c.MaxChars {
			return fmt.Sprintf("%d characters, want at most %d", n, *c.MaxChars)
		}
	case "contains":
		if !strings.Contains(text, *c.Contains) {
			return fmt.Sprintf("does not contain %q", *c.Contains)
		}
	case "absent":
		if strings.Contains(text, *c.Absent) {
			return fmt.Sprintf("contains %q", *c.Absent)
		}
	case "matches":
		if !c.re.MatchString(text) {
			return fmt.Sprintf("does not match %s", c.re)
		}
	case "notMatches":
		if m := c.re.FindString(text); c.re.MatchString(text) {
			return fmt.Sprintf("matches %s: %q", c.re, accept.Clip(mostShown, m))
		}
	case "html":
		return complete(text)
	case "css":
		return c.CSS.measure(text)
	case "sections":
		return c.missing(text)
	case "json":
		return c.follow(text)
	}
	return ""
}

// complete says which end tags of a page are missing. What looks like one in a script, a comment or
// an attribute is none.
func complete(page string) string {
	closed := map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			var missing []string
			for _, tag := range []string{"body", "html"} {
				if !closed[tag] {
					missing = append(missing, "</"+tag+">")
				}
			}
			if missing != nil {
				return "without " + strings.Join(missing, " and ")
			}
			return ""
		case html.EndTagToken, html.SelfClosingTagToken: // XHTML: <body/>
			name, _ := z.TagName()
			closed[string(name)] = true
		}
	}
}

// missing says which sections are not there, or have nothing below.
func (c *check) missing(text string) string {
	found := markdown.Sections(text)
	var missing []string
	for _, want := range c.Sections {
		if _, ok := markdown.Body(text, found, want); !ok {
			missing = append(missing, fmt.Sprintf("%q", want))
		}
	}
	if missing == nil {
		return ""
	}
	return "missing or empty: " + strings.Join(missing, ", ")
}

// follow says where a JSON text departs from the schema.
func (c *check) follow(text string) string {
	name := c.Of
	if name == "" {
		name = "answer"
	}
	v, err := tree.ParseJSON(name, []byte(text), tree.Defaults)
	if err != nil {
		return err.Error()
	}
	if !c.schema.Valid(v) {
		found := c.schema.Check(v.Clone(), "")
		if len(found) > 0 {
			return accept.Clip(mostShown, found.Error())
		}
		return "does not follow the schema"
	}
	return ""
}
