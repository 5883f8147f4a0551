package gates

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/browser"
)

// settings are #Gates in Go.
type settings struct {
	browser.View
	Checks  []check        `json:"checks"`
	Verdict verdict        `json:"verdict"`
	Timeout nodes.Duration `json:"timeout"`
	Repeat  int            `json:"repeat"`
	To      string         `json:"to"`
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
	Timeout   nodes.Duration     `json:"timeout"`
}

// A textCheck has exactly one of Matches and SharedWith.
type textCheck struct {
	Of         *accept.From `json:"of"`
	Matches    string       `json:"matches"`
	SharedWith *accept.From `json:"sharedWith"`
}

const ownWorld = "page" // of a check that sees what the page's scripts have made

// The methods by which checks are made.
const (
	byValue = "value" // a recorded value is compared
	byText  = "text"  // a text is read, without a browser
	byCode  = "js"    // code runs in the page
	byMeta  = "meta"  // the results of the others are looked at
)

// method returns how the check is made.
func (c *check) method() string {
	switch {
	case len(c.Value) > 0:
		return byValue
	case c.Text != nil:
		return byText
	case c.Meta != "":
		return byMeta
	}
	return byCode
}

// bounded reports whether a number is asked for.
func (c *check) bounded() bool { return c.Min != nil || c.Max != nil }

// read decodes settings; what is left out has the schema's default.
func read(with json.RawMessage) (nodes.Settings, error) {
	s := &settings{View: browser.DefaultView(), Timeout: nodes.Duration(5 * time.Second), Repeat: 1,
		Verdict: verdict{Incomplete: "INCOMPLETE"}}
	err := accept.Decode(with, s)
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
	return s, err
}

// browsing reports whether any check needs a browser.
func (s *settings) browsing() bool {
	return slices.ContainsFunc(s.Checks, func(c check) bool { return c.method() == byCode })
}

// classes returns the classes of the checks in the order in which they come.
func (s *settings) classes() []string {
	var list []string
	for _, c := range s.Checks {
		if !slices.Contains(list, c.Class) {
			list = append(list, c.Class)
		}
	}
	return list
}

// Traits are what the compiler must know.
func (s *settings) Traits() nodes.Traits {
	tr := nodes.Traits{Effect: "pure", Outputs: map[string]string{
		"verdict": "string", "rule": "string", "reason": "string", "passed": "int", "failed": "int", "notRun": "int",
		"failures": "list", "unproven": "list", "byClass": "map", "degraded": "bool", "browser": "string",
	}}
	if s.Page != nil || s.browsing() {
		s.Source.Describe(&tr)
	}
	tr.Notes = s.notes()
	s.describeChecks(&tr)
	s.describeRules(&tr)
	tr.Write("to", s.To)
	return tr
}

func (s *settings) describeChecks(tr *nodes.Traits) {
	if len(s.Checks) == 0 {
		tr.Problemf("checks", "want at least one")
	}
	names := map[string]bool{}
	for i := range s.Checks {
		c, at := &s.Checks[i], fmt.Sprintf("checks.%d", i)
		if names[c.Name] {
			tr.Problemf(at+".name", "two checks are named %s", c.Name)
		}
		names[c.Name] = true
		if !tr.OneOf(at, "js, file, text, value, meta",
			c.JS != "", c.File != "", c.Text != nil, len(c.Value) > 0, c.Meta != "") {
			continue
		}
		if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
			tr.Problemf(at+".min", "is above max: nothing can pass")
		}
		c.describe(tr, at)
		if c.Text != nil {
			s.describeText(tr, at+".text", c.Text)
		}
	}
}

func (c *check) describe(tr *nodes.Traits, at string) {
	switch c.method() {
	case byCode:
		tr.File(c.File)
		if len(c.Viewports) == 0 {
			tr.Problemf(at, "no viewport: give viewports to the node or to the check")
		}
	case byValue:
		var value any
		_ = json.Unmarshal(c.Value, &value) // it was read before
		switch value.(type) {
		case float64:
			if !c.bounded() {
				tr.Problemf(at, "a number needs min or max")
			}
		case bool:
			if c.bounded() {
				tr.Problemf(at, "a truth value has no bounds")
			}
		}
	case byMeta:
		if c.bounded() {
			tr.Problemf(at, "a check of checks has no bounds")
		}
	}
}

func (s *settings) describeText(tr *nodes.Traits, at string, t *textCheck) {
	tr.OneOf(at, "matches, sharedWith", t.Matches != "", t.SharedWith != nil)
	if _, err := regexp.Compile(t.Matches); err != nil {
		tr.Problemf(at+".matches", "%v", err)
	}
	if t.Of != nil {
		t.Of.Describe(tr, at+".of")
	} else if s.Page == nil || s.Page.URL != "" {
		tr.Problemf(at+".of", "missing: there is no page whose source could be read")
	}
	if t.SharedWith != nil {
		t.SharedWith.Describe(tr, at+".sharedWith")
	}
}

// describeRules finds rules that can never hold: a verdict that depends on a misspelt class would be one by silence.
func (s *settings) describeRules(tr *nodes.Traits) {
	classes := s.classes()
	for _, class := range classes {
		if !slices.ContainsFunc(s.Verdict.Rules, func(r rule) bool { return r.Class == class || r.Class == "" }) {
			tr.Notes = append(tr.Notes, "no rule counts checks of class "+class)
		}
	}
	for i, r := range s.Verdict.Rules {
		at := fmt.Sprintf("verdict.rules.%d", i)
		if r.Class != "" && len(r.Checks) > 0 {
			tr.Problemf(at, "want class or checks, not both")
		}
		if r.Class != "" && !slices.Contains(classes, r.Class) {
			tr.Problemf(at+".class", "no check is of class %q; classes are %s", r.Class, strings.Join(classes, ", "))
		}
		for j, name := range r.Checks {
			if !slices.ContainsFunc(s.Checks, func(c check) bool { return c.Name == name }) {
				tr.Problemf(fmt.Sprintf("%s.checks.%d", at, j), "no check is named %q", name)
			}
		}
		most := 0
		for j := range s.Checks {
			if r.counts(&s.Checks[j]) {
				most++
			}
		}
		if r.AtLeast > most && most > 0 {
			tr.Problemf(at+".atLeast", "only %d checks count here: the rule can never hold", most)
		}
	}
}

// notes say for a plan what is checked, where, within which bounds, and what follows from it: how
// many checks, those of each class in their order, and the verdict's rules.
func (s *settings) notes() []string {
	first := strconv.Itoa(len(s.Checks)) + " checks"
	if len(s.Checks) == 1 {
		first = "1 check"
	}
	if s.browsing() && len(s.Viewports) > 0 {
		first += " at " + browser.Sizes(s.Viewports)
	}
	out := []string{first}
	for _, class := range s.classes() {
		var names []string
		for i := range s.Checks {
			if c := &s.Checks[i]; c.Class == class {
				names = append(names, c.note(s.Viewports))
			}
		}
		out = append(out, strings.TrimPrefix(class+" checks: ", " ")+strings.Join(names, ", "))
	}
	return append(out, "verdict: "+s.Verdict.note())
}

// note is the name of a check with its bounds, and with its viewports where they are its own.
func (c *check) note(common []browser.Viewport) string {
	text := c.Name
	if c.Min != nil {
		text += " >= " + strconv.FormatFloat(*c.Min, 'g', -1, 64)
	}
	if c.Max != nil {
		text += " <= " + strconv.FormatFloat(*c.Max, 'g', -1, 64)
	}
	if c.method() == byCode && !slices.Equal(c.Viewports, common) {
		text += " at " + browser.Sizes(c.Viewports)
	}
	return text
}

func (v *verdict) note() string {
	var rules []string
	for _, r := range v.Rules {
		about := r.about()
		if r.AtLeast > 1 {
			about = fmt.Sprintf("%d %s", r.AtLeast, about)
		}
		rules = append(rules, about+" -> "+r.Then)
	}
	return strings.Join(append(rules, "else "+v.Else), ", ")
}
