package validate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/net/html"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

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
	doc := markdown.Parse(text)
	var missing []string
	for _, want := range c.Sections {
		if _, ok := doc.Section(want); !ok {
			missing = append(missing, fmt.Sprintf("%q", want))
		}
	}
	if missing == nil {
		return ""
	}
	return "missing or empty: " + strings.Join(missing, ", ")
}

// follow says where a JSON text departs from the schema. A key that stands twice in one object is a mistake: which of the
// two counts depends on the reader.
func (c *check) follow(text string) string {
	value, n, err := accept.Value(text)
	if err == nil && markdown.TrimBlank(text[n:]) != "" {
		err = fmt.Errorf("more stands behind the JSON value: %s", accept.Quote(text[n:]))
	}
	var v any
	if err == nil {
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(value))
	}
	if err == nil {
		err = c.schema.Validate(v)
	}
	if err != nil {
		return accept.Clip(mostShown, departure(err))
	}
	return ""
}

// departure is the first mistake that a validation has found, with its place.
func departure(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return err.Error()
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	return strings.TrimPrefix(strings.Join(v.InstanceLocation, ".")+": "+v.ErrorKind.LocalizedString(printer), ": ")
}

var printer = message.NewPrinter(language.English)
