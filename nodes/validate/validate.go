// Package validate is the kind of node that checks a text and counts things in it.
//
// It changes nothing. It is also a step of an agent's accept list.
package validate

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

//go:embed schema.cue
var schema string

// Kind is the kind "validate", alone and as a step.
var Kind = accept.NewKind("validate", schema, func() accept.Settings { return &settings{Record: "counts"} })

// settings is #Validate.
type settings struct {
	accept.Alone
	Of     string           `json:"of"`
	Checks []check          `json:"checks"`
	Counts map[string]count `json:"counts"`
	Record string           `json:"record"`
}

// Describe reads what the compiler must know.
func (x *settings) Describe(tr *nodes.Traits) {
	for i, c := range x.Checks {
		at := fmt.Sprintf("checks.%d", i)
		if c.mistake != nil {
			tr.Problemf(at, "%v", c.mistake)
		}
		tr.Categories = append(tr.Categories, nodes.Named{Path: at + ".category", Name: c.Category})
	}
	for _, name := range slices.Sorted(maps.Keys(x.Counts)) {
		tr.Output("counts."+name, name, "int?")
		if c := x.Counts[name]; (c.Label == "") == (c.Items == "") {
			tr.Problemf("counts."+name, "want one of label and items")
		}
	}
	if len(x.Checks) == 0 && len(x.Counts) == 0 {
		tr.Problemf("", "want at least one of checks and counts")
	}
}

// Apply makes all checks and counts. What was checked goes to the quality log, and with what result.
func (x *settings) Apply(s *accept.State) error {
	x.count(s)
	if len(x.Checks) == 0 {
		return nil
	}
	var failed, warnings []string
	category := ""
	for _, c := range x.Checks {
		wrong := c.run(s, x.Of)
		switch {
		case wrong == "":
		case c.Level == "warn":
			s.Warn("%s", wrong)
			warnings = append(warnings, wrong)
		default:
			if failed == nil {
				category = c.Category
			}
			failed = append(failed, wrong)
		}
	}
	fields := map[string]any{"checks": len(x.Checks), "warnings": len(warnings), "result": "pass"}
	if warnings != nil {
		fields["warningDetails"] = warnings
	}
	if failed == nil {
		s.Note("quality", "validation", fields)
		return nil
	}
	fields["result"], fields["failed"] = "fail", failed
	s.Note("quality", "validation", fields)
	return nodes.Fail(category, strings.Join(failed, "; "))
}

// A count is #ValidateCount.
type count struct {
	Label string `json:"label"`
	Items string `json:"items"`
	Of    string `json:"of"`
}

// count records the declared counts as values and as one quality record. One that was not read is absent.
func (x *settings) count(s *accept.State) {
	if len(x.Counts) == 0 {
		return
	}
	fields := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(x.Counts)) {
		c := x.Counts[name]
		text, found := s.Subject(cmp.Or(c.Of, x.Of))
		n, ok := c.read(text)
		if !found || !ok {
			s.Warn("%s: nothing to count: no %q", name, c.Label+c.Items)
			continue
		}
		fields[name], s.Values[name] = n, n
	}
	s.Note("quality", x.Record, fields)
}

// whole is a whole number behind a label and nothing else: ": 2", "(2)", "- 2", "| 2 |".
var whole = regexp.MustCompile(`^[ :=(-]*([0-9]{1,9})[ ).]*$`)

// read returns the number behind a label at the start of a line, heading or table cell, or the number of
// list items below a heading.
func (c *count) read(text string) (int, bool) {
	doc := markdown.Parse(text)
	if c.Items != "" {
		body, ok := doc.Section(c.Items)
		n := 0
		for _, r := range markdown.Parse(body).Rows {
			if r.Item == 1 {
				n++
			}
		}
		return n, ok
	}
	for _, r := range doc.Rows {
		rest, at := r.After(c.Label)
		if at < 0 {
			continue
		}
		for _, cell := range rest {
			if m := whole.FindStringSubmatch(cell); m != nil {
				n, err := strconv.Atoi(m[1])
				return n, err == nil
			}
		}
	}
	return 0, false
}
