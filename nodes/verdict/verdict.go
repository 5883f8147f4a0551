// Package verdict is the kind of node that reads labelled scores and a decision out of a review.
//
// It does not route: it says what was read, and never resolves doubt towards the lenient side.
// It is also a step of an agent's accept list.
package verdict

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

// Kind is the kind "verdict", alone and as a step.
var Kind = accept.NewKind("verdict", schema, settingsOf)

func settingsOf(with json.RawMessage) (*accept.Settings, error) {
	s, err := decode(with)
	if err != nil {
		return nil, err
	}
	return &accept.Settings{Step: step{s}, From: s.From, Traits: s.describe()}, nil
}

// step is the settings as a step.
type step struct{ *settings }

// Apply reads the review.
func (x step) Apply(s *accept.State) error {
	text, ok := s.Subject(x.Of)
	if !ok {
		return nodes.Fail("no_verdict", fmt.Sprintf("no review: %s was not taken", x.Of))
	}
	r := read(text)
	if r.fenced {
		s.Warn("the whole review stands in one code block")
	}
	if err := x.planted(s); err != nil {
		return err
	}
	v := x.readScores(s, r)
	s.Values["fixes"] = x.Fixes.read(r)
	err := x.conclude(s, r, v)
	for _, g := range x.groups() {
		s.Values[g.name] = v.values[g.name]
	}
	s.Values["na"] = v.na
	s.Values["gate"] = v.gate
	return err
}

// scores are the scores of a review. What is not read is left out of values.
type scores struct {
	values  map[string]map[string]any // group, label, number
	na      []any
	gate    string   // pass, fail, none
	missing []string // required ones that were not read
	zero    bool     // one is 0 or below its least
	read    int      // how many were read
	full    int      // how many of them have their maximum
}

// readScores reads all declared scores. One that is not read is -1 as a value of its own.
func (x step) readScores(s *accept.State, r *review) *scores {
	v := &scores{values: map[string]map[string]any{}, na: []any{}, gate: "none"}
	labels := x.labels()
	for _, g := range x.groups() {
		v.values[g.name] = map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(g.rules)) {
			rule := g.rules[name]
			value := v.add(g.name, name, rule, x.score(s, r, name, rule, labels))
			if rule.As != "" {
				s.Values[rule.As] = value
			}
		}
	}
	return v
}

// add records one score and returns its value, -1 when there is none.
func (v *scores) add(group, name string, rule scoreRule, got reading) float64 {
	value := float64(-1)
	switch got.status {
	case good, warned:
		value = got.value
		v.values[group][name] = value
		v.read++
		if value == rule.Max {
			v.full++
		}
	case na:
		v.na = append(v.na, name)
	default:
		if rule.Required {
			v.missing = append(v.missing, name)
		}
	}
	v.zero = v.zero || value == 0
	switch {
	case rule.Least == nil:
	case value < *rule.Least:
		v.zero, v.gate = true, "fail"
	case v.gate == "none":
		v.gate = "pass"
	}
	return value
}

func (x step) labels() []label {
	var out []label
	for _, g := range x.groups() {
		for _, name := range slices.Sorted(maps.Keys(g.rules)) {
			out = append(out, g.rules[name].label)
		}
	}
	return out
}

// score reads one score from all lines: the same value twice is one, of two different ones the
// lower counts, and one that is doubtful anywhere is not read.
func (x step) score(s *accept.State, r *review, name string, rule scoreRule, labels []label) reading {
	var out reading
	for _, line := range r.lines {
		if line != "" {
			out = combine(s, name, rule, out, readScore(line, rule.label, labels, rule))
		}
	}
	switch {
	case out.status == ambiguous || out.status == invalid:
		s.Warn("%s was not read: what stands there is %s", name, out.status)
	case out.status == warned:
		s.Warn("%s: %g of %g, behind an older value", name, out.value, rule.Max)
	case out.status == missing && r.maxima()[rule.Max]:
		s.Warn("%s was not read, though there are scores of its maximum", name)
	}
	return out
}

func combine(s *accept.State, name string, rule scoreRule, a, b reading) reading {
	switch {
	case b.status == missing:
		return a
	case a.status == missing:
		return b
	case a.status == ambiguous || b.status == ambiguous:
		return reading{status: ambiguous}
	case a.status >= warned && b.status >= warned:
		if a.value == b.value {
			return a
		}
		if rule.Conflict == "drop" {
			return reading{status: ambiguous}
		}
		s.Warn("%s: %g and %g; the lower one counts", name, a.value, b.value)
		if b.value < a.value {
			return b
		}
		return a
	case a.status >= warned, b.status == invalid:
		return a
	}
	return b
}

// conclude reads the decision and says whether the review is a verdict.
func (x step) conclude(s *accept.State, r *review, v *scores) error {
	s.Values["consistent"], s.Values["reason"], s.Values["decision"] = true, "", ""
	got := ruling{}
	if x.Decision != nil {
		got = decide(s, r, x.Decision)
	}
	if got.reason == "" && len(v.missing) > 0 {
		got = ruling{reason: "missing", text: "not read: " + strings.Join(v.missing, ", ")}
	}
	if got.reason == "" {
		s.Values["decision"] = got.value
		x.contradiction(s, v, got.value)
		return nil
	}
	s.Values["reason"] = got.reason
	message := fmt.Sprintf("no verdict (%s): %s", got.reason, got.text)
	if x.Decision == nil || x.Decision.Else == "" {
		return nodes.Fail("no_verdict", message)
	}
	s.Values["decision"] = x.Decision.Else
	s.Warn("%s; goes on as %s", message, x.Decision.Else)
	s.Note("decision", "verdict-else", map[string]any{"decision": x.Decision.Else, "reason": got.reason, "text": got.text})
	return nil
}

// contradiction records that the decision and the numbers do not fit.
func (x step) contradiction(s *accept.State, v *scores, decision string) {
	if x.Decision == nil || len(x.Decision.Values) < 2 {
		return
	}
	values := x.Decision.Values
	lenient, harsh := decision == values[0], decision == values[len(values)-1]
	if lenient && v.zero || harsh && v.read > 0 && v.full == v.read {
		s.Values["consistent"] = false
		s.Warn("the decision %s does not fit the scores", decision)
		s.Note("quality", "contradiction", map[string]any{"decision": decision, "scores": v.values["scores"], "gate": v.gate})
	}
}
