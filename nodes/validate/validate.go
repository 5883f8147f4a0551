// Package validate is the kind of node that checks a text and counts things in it.
//
// It changes nothing. It is also a step of an agent's accept list.
package validate

import (
	_ "embed"
	"encoding/json"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

//go:embed schema.cue
var schema string

// Kind is the kind "validate", alone and as a step.
var Kind = accept.NewKind("validate", schema, settingsOf)

func settingsOf(with json.RawMessage) (*accept.Settings, error) {
	s, err := decode(with)
	if err != nil {
		return nil, err
	}
	return &accept.Settings{Step: step{s}, From: s.From, Traits: s.describe()}, nil
}

// step is the settings as a step.
type step struct{ *settings }

// Apply makes all checks and counts.
func (x step) Apply(s *accept.State) error {
	x.count(s)
	var failed []string
	var warnings []any
	category := ""
	for _, c := range x.Checks {
		wrong := c.run(s)
		if wrong == "" {
			continue
		}
		if c.Message != "" {
			wrong = c.Message
		}
		wrong = c.Name + ": " + wrong
		if c.Level == "warn" {
			s.Warn("%s", wrong)
			warnings = append(warnings, wrong)
			continue
		}
		if failed == nil {
			category = c.Category
		}
		failed = append(failed, wrong)
	}
	x.record(s, failed, warnings)
	if failed == nil {
		return nil
	}
	return nodes.Fail(category, strings.Join(failed, "; "))
}

// record writes what was checked to the quality log.
func (x step) record(s *accept.State, failed []string, warnings []any) {
	if len(x.Checks) == 0 {
		return
	}
	result := "pass"
	fields := map[string]any{"checks": len(x.Checks), "warnings": len(warnings)}
	if failed != nil {
		result = "fail"
		fields["failed"] = failed
	}
	if warnings != nil {
		fields["warningDetails"] = warnings
	}
	fields["result"] = result
	s.Note("quality", "validation", fields)
}
