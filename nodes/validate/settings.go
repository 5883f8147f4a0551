package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// settings is #Validate.
type settings struct {
	From   *accept.From     `json:"from"`
	Of     string           `json:"of"`
	Checks []check          `json:"checks"`
	Counts map[string]count `json:"counts"`
	Record string           `json:"record"`
}

// check is #ValidateCheck: one test and how it counts.
type check struct {
	Name     string `json:"name"`
	Of       string `json:"of"`
	Level    string `json:"level"`
	Category string `json:"category"`
	Message  string `json:"message"`

	NonEmpty   *bool           `json:"nonEmpty"`
	MinChars   *int            `json:"minChars"`
	MaxChars   *int            `json:"maxChars"`
	Contains   *string         `json:"contains"`
	Absent     *string         `json:"absent"`
	Matches    *string         `json:"matches"`
	NotMatches *string         `json:"notMatches"`
	HTML       string          `json:"html"`
	CSS        *cssRule        `json:"css"`
	Sections   []string        `json:"sections"`
	JSON       json.RawMessage `json:"json"`

	test     string // which of them
	re       *regexp.Regexp
	schema   *jsonschema.Schema
	mistakes []string // of the settings
}

type cssRule struct {
	Selectors []string `json:"selectors"`
	Property  string   `json:"property"`
	Min       *float64 `json:"min"`
	Max       *float64 `json:"max"`
}

type count struct {
	Label string `json:"label"`
	Items string `json:"items"`
	Of    string `json:"of"`
}

func decode(with json.RawMessage) (*settings, error) {
	var s settings
	if err := accept.Decode(with, &s); err != nil {
		return nil, err
	}
	if s.Record == "" {
		s.Record = "counts"
	}
	for i := range s.Checks {
		s.Checks[i].prepare(s.Of)
	}
	return &s, nil
}

// prepare fills in what the schema says and compiles what the test needs.
func (c *check) prepare(of string) {
	if c.Of == "" {
		c.Of = of
	}
	if c.Level == "" {
		c.Level = "fail"
	}
	var tests []string
	for _, t := range []struct {
		name  string
		given bool
	}{
		{"nonEmpty", c.NonEmpty != nil}, {"minChars", c.MinChars != nil}, {"maxChars", c.MaxChars != nil},
		{"contains", c.Contains != nil}, {"absent", c.Absent != nil}, {"matches", c.Matches != nil},
		{"notMatches", c.NotMatches != nil}, {"html", c.HTML != ""}, {"css", c.CSS != nil},
		{"sections", c.Sections != nil}, {"json", c.JSON != nil},
	} {
		if t.given {
			tests = append(tests, t.name)
		}
	}
	if len(tests) != 1 {
		c.mistakes = append(c.mistakes, "want exactly one test: nonEmpty, minChars, maxChars, contains, absent, matches, notMatches, html, css, sections or json")
		return
	}
	c.test = tests[0]
	if c.Name == "" {
		c.Name = c.test
	}
	if c.Category == "" {
		c.Category = "validation_failed"
		if c.test == "sections" {
			c.Category = "sections_missing"
		}
	}
	c.compile()
}

func (c *check) compile() {
	var err error
	switch c.test {
	case "matches":
		c.re, err = regexp.Compile(*c.Matches)
	case "notMatches":
		c.re, err = regexp.Compile(*c.NotMatches)
	case "json":
		c.schema, err = compileSchema(c.JSON)
	case "css":
		if c.CSS.Property == "" {
			c.CSS.Property = "max-width"
		}
		err = c.CSS.check()
	}
	if err != nil {
		c.mistakes = append(c.mistakes, err.Error())
	}
}

// describe reads what the compiler must know, from aside.
func (s *settings) describe() nodes.Traits {
	tr := nodes.Traits{Outputs: map[string]string{}}
	problem := func(path, text string) { tr.Problems = append(tr.Problems, nodes.Problem{Path: path, Text: text}) }
	for i, c := range s.Checks {
		for _, text := range c.mistakes {
			problem(accept.Path("checks", fmt.Sprint(i)), text)
		}
		tr.Categories = append(tr.Categories, nodes.Named{Path: accept.Path("checks", fmt.Sprint(i)) + ".category", Name: c.Category})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		tr.Outputs[name] = "int?"
		if c := s.Counts[name]; (c.Label == "") == (c.Items == "") {
			problem(accept.Path("counts", name), "want one of label and items")
		}
	}
	if len(s.Checks) == 0 && len(s.Counts) == 0 {
		problem("", "want at least one of checks and counts")
	}
	return tr
}
