package validate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
	"dagrun.dev/nodes/internal/shape"
)

// A check is #ValidateCheck: one test and how it counts.
type check struct {
	Name     string `json:"name"`
	Of       string `json:"of"`
	Level    string `json:"level"`
	Category string `json:"category"`
	Message  string `json:"message"`

	schema  string // name of the JSON Schema that is its test
	wrong   judge
	mistake error // of the settings; such a check holds of nothing
}

// A judge says what does not hold of a text, or "".
type judge func(text string) string

// tests are all there are: from the setting that asks for one comes the judge, or what is wrong with the setting.
var tests = map[string]func(setting json.RawMessage) (judge, error){
	"nonEmpty":   test(nonEmpty),
	"minChars":   test(func(least int) (judge, error) { return chars(least, math.MaxInt), nil }),
	"maxChars":   test(func(most int) (judge, error) { return chars(math.MinInt, most), nil }),
	"contains":   test(contains),
	"absent":     test(absent),
	"matches":    test(matches),
	"notMatches": test(notMatches),
	"html":       test(func(string) (judge, error) { return complete, nil }),
	"css":        test(newCSS),
	"sections":   test(sections),
	"json":       followsSchema,
}

// testNames lists them for messages, in the order of the reference.
const testNames = "nonEmpty, minChars, maxChars, contains, absent, matches, notMatches, html, css, sections or json"

// test reads a setting as the type that its test wants.
func test[T any](prepare func(T) (judge, error)) func(json.RawMessage) (judge, error) {
	return func(raw json.RawMessage) (judge, error) {
		var v T
		if err := accept.Decode(raw, &v); err != nil {
			return nil, err
		}
		return prepare(v)
	}
}

// UnmarshalJSON reads a check. Mistakes that the schema cannot say are kept for the plan to show.
func (c *check) UnmarshalJSON(b []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	var asked []string
	settings := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if tests[name] != nil {
			asked = append(asked, name)
			settings[name] = fields[name]
			delete(fields, name)
		}
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	type common check
	if err := accept.Decode(rest, (*common)(c)); err != nil {
		return err
	}
	c.Level = cmp.Or(c.Level, "fail")
	if len(asked) != 1 {
		c.mistake = errors.New("want exactly one test: " + testNames)
		return nil
	}
	if asked[0] == "json" {
		c.schema = c.Name
	}
	c.Name = cmp.Or(c.Name, asked[0])
	if asked[0] == "sections" {
		c.Category = cmp.Or(c.Category, "sections_missing")
	}
	c.Category = cmp.Or(c.Category, "validation_failed")
	c.wrong, c.mistake = tests[asked[0]](settings[asked[0]])
	return nil
}

// run makes the check and returns the message of one that does not hold, or "".
func (c *check) run(s *accept.State, of string) string {
	of = cmp.Or(c.Of, of)
	wrong := ""
	switch text, ok := s.Subject(of); {
	case c.mistake != nil:
		wrong = c.mistake.Error()
	case !ok:
		wrong = fmt.Sprintf("there is no %s", of)
	default:
		wrong = c.wrong(text)
	}
	if wrong == "" {
		if c.schema != "" {
			s.Schemas[of] = c.schema
		}
		return ""
	}
	return c.Name + ": " + cmp.Or(c.Message, wrong)
}

// mostShown bounds how much of a text a message shows, in characters.
const mostShown = 300

func nonEmpty(wanted bool) (judge, error) {
	return func(text string) string { return unless(!wanted || markdown.TrimBlank(text) != "", "empty") }, nil
}

func chars(least, most int) judge {
	return func(text string) string {
		n := utf8.RuneCountInString(text)
		return unless(n >= least, "%d characters, want at least %d", n, least) +
			unless(n <= most, "%d characters, want at most %d", n, most)
	}
}

func contains(part string) (judge, error) {
	return func(text string) string { return unless(strings.Contains(text, part), "does not contain %q", part) }, nil
}

func absent(part string) (judge, error) {
	return func(text string) string { return unless(!strings.Contains(text, part), "contains %q", part) }, nil
}

func matches(expression string) (judge, error) {
	re, err := regexp.Compile(expression)
	return func(text string) string { return unless(re.MatchString(text), "does not match %s", re) }, err
}

func notMatches(expression string) (judge, error) {
	re, err := regexp.Compile(expression)
	return func(text string) string {
		at := re.FindStringIndex(text)
		if at == nil {
			return ""
		}
		return fmt.Sprintf("matches %s: %q", re, accept.Clip(mostShown, text[at[0]:at[1]]))
	}, err
}

// unless returns a message about what does not hold, "" where it does.
func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// complete says which end tags of a page are missing. What looks like one in a script, a comment or
// an attribute is none.
func complete(page string) string {
	missing := []string{"body", "html"}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return unless(len(missing) == 0, "without </%s>", strings.Join(missing, "> and </"))
		case html.EndTagToken, html.SelfClosingTagToken: // XHTML: <body/>
			closed, _ := z.TagName()
			missing = slices.DeleteFunc(missing, func(tag string) bool { return tag == string(closed) })
		}
	}
}

// sections says which sections are not there, or have nothing below.
func sections(wanted []string) (judge, error) {
	return func(text string) string {
		doc := markdown.Parse(text)
		var missing []string
		for _, heading := range wanted {
			if _, ok := doc.Section(heading); !ok {
				missing = append(missing, fmt.Sprintf("%q", heading))
			}
		}
		return unless(missing == nil, "missing or empty: %s", strings.Join(missing, ", "))
	}, nil
}

// followsSchema says where a JSON text departs from a schema.
func followsSchema(raw json.RawMessage) (judge, error) {
	schema, problems := shape.Compile(raw)
	if schema == nil {
		return nil, fmt.Errorf("json: %s", strings.TrimPrefix(problems[0].Path+": "+problems[0].Text, ": "))
	}
	return func(text string) string {
		if err := validate(schema, text); err != nil {
			return accept.Clip(mostShown, err.Error())
		}
		return ""
	}, nil
}

// validate reads a text as one JSON value. A duplicate key in one object is a mistake: which of the two
// counts depends on the reader.
func validate(schema *shape.Schema, text string) error {
	value, n, err := accept.Value(text)
	if err != nil {
		return err
	}
	if rest := text[n:]; markdown.TrimBlank(rest) != "" {
		return fmt.Errorf("more stands behind the JSON value: %s", accept.Quote(rest))
	}
	return schema.Check(value, "the value")
}
