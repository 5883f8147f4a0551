// Package validate is the kind of node that checks a text and counts things in it.
//
// It changes nothing. It is also a step of an agent's accept list.
package validate

import (
	_ "embed"
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
