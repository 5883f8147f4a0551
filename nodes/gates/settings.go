package gates

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/browser"
)

// settings are #Gates in Go.
type settings struct {
	browser.Source
	Viewports []browser.Viewport `json:"viewports"`
	Checks    []check            `json:"checks"`
	Verdict   verdict            `json:"verdict"`
	Timeout   browser.Duration   `json:"timeout"`
	Repeat    int                `json:"repeat"`
	Waits     browser.Waits      `json:"waits"`
	Browser   browser.Settings   `json:"browser"`
	To        string             `json:"to"`
}

// A check has exactly one of JS, File, Text, Value, Meta.
type check struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Class string `json:"class"`

	JS    string          `json:"js"`
	File  string          `json:"file"`
	Args  json.RawMessage `json:"args"`
	World string          `json:"world"` // clean | page
	Text  *textCheck      `json:"text"`
	Value json.RawMessage `json:"value"`
	Meta  string          `json:"meta"`

	Min       *float64           `json:"min"`
	Max       *float64           `json:"max"`
	Viewports []browser.Viewport `json:"viewports"`
	Timeout   browser.Duration   `json:"timeout"`
}

// A textCheck has exactly one of Matches and SharedWith.
type textCheck struct {
	Of         *source `json:"of"`
	Matches    string  `json:"matches"`
	SharedWith *source `json:"sharedWith"`
}

// A source has exactly one field.
type source struct {
	Artifact string       `json:"artifact"`
	File     string       `json:"file"`
	Text     *accept.Text `json:"text"`
}

type verdict struct {
	Rules      []rule `json:"rules"`
	Else       string `json:"else"`
	Incomplete string `json:"incomplete"`
}

type rule struct {
	Class   string   `json:"class"`
	Checks  []string `json:"checks"`
	AtLeast int      `json:"atLeast"`
	Then    string   `json:"then"`
	Reason  string   `json:"reason"`
}

const ownWorld = "page" // a check that sees what the page's scripts have made

const (
	inPage = "js"
	inText = "text"
	value  = "value"
	meta   = "meta"
)

// kinds returns what the check says it is; there should be one.
func (c *check) kinds() []string {
	var kinds []string
	if c.JS != "" {
		kinds = append(kinds, inPage)
	}
	if c.File != "" {
		kinds = append(kinds, inPage)
	}
	if c.Text != nil {
		kinds = append(kinds, inText)
	}
	if len(c.Value) > 0 {
		kinds = append(kinds, value)
	}
	if c.Meta != "" {
		kinds = append(kinds, meta)
	}
	return kinds
}

func (c *check) kind() string { return append(c.kinds(), "")[0] }

// read decodes settings; what is left out has the schema's default.
func read(with json.RawMessage) (*settings, error) {
	s := &settings{Repeat: 1, Waits: browser.DefaultWaits(), Browser: browser.DefaultSettings()}
	if err := s.Timeout.UnmarshalText([]byte("5s")); err != nil {
		return nil, err
	}
	if err := accept.Decode(with, s); err != nil {
		return nil, err
	}
	if s.Verdict.Incomplete == "" {
		s.Verdict.Incomplete = "INCOMPLETE"
	}
	for i := range s.Verdict.Rules {
		s.Verdict.Rules[i].AtLeast = max(1, s.Verdict.Rules[i].AtLeast)
	}
	for i := range s.Checks {
		c := &s.Checks[i]
		if len(c.Viewports) == 0 {
			c.Viewports = s.Viewports
		}
		if c.Timeout == 0 {
			c.Timeout = s.Timeout
		}
	}
	return s, nil
}

// browsing says whether any check needs a browser.
func (s *settings) browsing() bool {
	return slices.ContainsFunc(s.Checks, func(c check) bool { return c.kind() == inPage })
}

// Describe reads what the compiler must know of checked settings.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := read(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	d := &describer{set: s, tr: nodes.Traits{Effect: "pure", Outputs: map[string]string{
		"verdict": "string", "rule": "string", "reason": "string", "passed": "int", "failed": "int", "notRun": "int",
		"failures": "list", "byClass": "map", "degraded": "bool", "browser": "string",
	}}}
	if s.Page != nil || s.browsing() {
		s.Source.Describe(&d.tr)
	}
	d.checks()
	d.rules()
	d.tr.Notes = append(s.notes(), d.tr.Notes...)
	if s.To != "" {
		d.tr.Writes = append(d.tr.Writes, s.To)
	}
	return d.tr, nil
}

type describer struct {
	set *settings
	tr  nodes.Traits
}

func (d *describer) problem(path, format string, args ...any) {
	d.tr.Problems = append(d.tr.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (d *describer) checks() {
	if len(d.set.Checks) == 0 {
		d.problem("checks", "want at least one")
	}
	names := map[string]bool{}
	for i := range d.set.Checks {
		c := &d.set.Checks[i]
		at := fmt.Sprintf("checks.%d", i)
		if names[c.Name] {
			d.problem(at+".name", "two checks are named %s", c.Name)
		}
		names[c.Name] = true
		if n := len(c.kinds()); n != 1 {
			d.problem(at, "want exactly one of js, file, text, value, meta")
			continue
		}
		if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
			d.problem(at+".min", "is above max: nothing can pass")
		}
		switch c.kind() {
		case inPage:
			d.file(c.File)
			if len(c.Viewports) == 0 {
				d.problem(at, "no viewport: give viewports to the node or to the check")
			}
		case inText:
			d.text(at+".text", c.Text)
		case value:
			d.bounds(at, c)
		case meta:
			if c.Min != nil || c.Max != nil {
				d.problem(at, "a check of checks has no bounds")
			}
		}
	}
}

func (d *describer) bounds(at string, c *check) {
	var n float64
	bounded := c.Min != nil || c.Max != nil
	if json.Unmarshal(c.Value, &n) == nil && !bounded {
		d.problem(at, "a number needs min or max")
	}
	if string(c.Value) == "true" && bounded || string(c.Value) == "false" && bounded {
		d.problem(at, "a truth value has no bounds")
	}
}

func (d *describer) text(at string, t *textCheck) {
	if (t.Matches == "") == (t.SharedWith == nil) {
		d.problem(at, "want exactly one of matches, sharedWith")
	}
	if _, err := regexp.Compile(t.Matches); err != nil {
		d.problem(at+".matches", "%v", err)
	}
	if t.Of == nil && (d.set.Page == nil || d.set.Page.URL != "") {
		d.problem(at+".of", "missing: there is no page whose source could be read")
	}
	d.source(at+".of", t.Of)
	d.source(at+".sharedWith", t.SharedWith)
}

func (d *describer) source(at string, s *source) {
	if s == nil {
		return
	}
	given := 0
	if s.Text != nil {
		given++
	}
	if s.File != "" {
		given++
		d.file(s.File)
	}
	if s.Artifact != "" {
		given++
		if !slices.Contains(d.tr.Reads, s.Artifact) {
			d.tr.Reads = append(d.tr.Reads, s.Artifact)
		}
	}
	if given != 1 {
		d.problem(at, "want exactly one of artifact, file, text")
	}
}

func (d *describer) file(name string) {
	if name != "" && !slices.Contains(d.tr.Files, name) {
		d.tr.Files = append(d.tr.Files, name)
	}
}

// rules finds rules that can never hold: a verdict that depends on a misspelt class would be one by silence.
func (d *describer) rules() {
	var names, classes []string
	for _, c := range d.set.Checks {
		names = append(names, c.Name)
		if !slices.Contains(classes, c.Class) {
			classes = append(classes, c.Class)
		}
	}
	for _, class := range classes {
		if !slices.ContainsFunc(d.set.Verdict.Rules, func(r rule) bool { return r.Class == class || r.Class == "" }) {
			d.tr.Notes = append(d.tr.Notes, "no rule counts checks of class "+class)
		}
	}
	for i, r := range d.set.Verdict.Rules {
		at := fmt.Sprintf("verdict.rules.%d", i)
		if r.Class != "" && len(r.Checks) > 0 {
			d.problem(at, "want class or checks, not both")
		}
		if r.Class != "" && !slices.Contains(classes, r.Class) {
			d.problem(at+".class", "no check is of class %q; classes are %s", r.Class, strings.Join(classes, ", "))
		}
		for j, name := range r.Checks {
			if !slices.Contains(names, name) {
				d.problem(fmt.Sprintf("%s.checks.%d", at, j), "no check is named %q", name)
			}
		}
		if most := d.most(r); r.AtLeast > most && most > 0 {
			d.problem(at+".atLeast", "only %d checks count here: the rule can never hold", most)
		}
	}
}

func (d *describer) most(r rule) int {
	n := 0
	for _, c := range d.set.Checks {
		if r.counts(&c) {
			n++
		}
	}
	return n
}

// counts says whether a check is one of those whose failures the rule counts.
func (r *rule) counts(c *check) bool {
	switch {
	case r.Class != "":
		return c.Class == r.Class
	case len(r.Checks) > 0:
		return slices.Contains(r.Checks, c.Name)
	}
	return true
}
