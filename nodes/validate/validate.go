// Package validate is the kind of node that checks a text and counts things in it.
//
// It changes nothing. It is also a step of an agent's accept list.
package validate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

//go:embed schema.cue
var schema string

// Kind is the kind "validate", alone and as a step.
var Kind = accept.NewKind("validate", schema, settingsOf)

// settings is #Validate.
type settings struct {
	From   *accept.From     `json:"from"`
	Of     string           `json:"of"`
	Checks []check          `json:"checks"`
	Counts map[string]count `json:"counts"`
	Record string           `json:"record"`
}

func settingsOf(with json.RawMessage) (*accept.Settings, error) {
	s := settings{Record: "counts"}
	if err := accept.Decode(with, &s); err != nil {
		return nil, err
	}
	return &accept.Settings{Step: step{&s}, From: s.From, Traits: s.describe()}, nil
}

// describe reads what the compiler must know; from is the kind's affair.
func (s *settings) describe() nodes.Traits {
	tr := nodes.Traits{Outputs: map[string]string{}}
	for i, c := range s.Checks {
		at := fmt.Sprintf("checks.%d", i)
		if c.mistake != nil {
			tr.Problemf(at, "%v", c.mistake)
		}
		tr.Categories = append(tr.Categories, nodes.Named{Path: at + ".category", Name: c.Category})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		tr.Output("counts."+name, name, "int?")
		if c := s.Counts[name]; (c.Label == "") == (c.Items == "") {
			tr.Problemf("counts."+name, "want one of label and items")
		}
	}
	if len(s.Checks) == 0 && len(s.Counts) == 0 {
		tr.Problemf("", "want at least one of checks and counts")
	}
	return tr
}

// step is the settings as a step.
type step struct{ *settings }

// Apply makes all checks and counts. What was checked goes to the quality log, and with what result.
func (x step) Apply(s *accept.State) error {
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
