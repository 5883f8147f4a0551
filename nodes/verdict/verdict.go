// Package verdict is the kind of node that reads a decision and scores from labelled lines of a review.
//
// It reads labels, values and numbers and judges no prose: a line holds exactly one value or it decides nothing, and a
// review without such a line is asked for again. What a review says beside its labelled lines it cannot see; where that
// matters, a shaped answer asks for it as data. It does not route. It is also a step of an agent's
// accept list.
package verdict

import (
	_ "embed"
	"fmt"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

//go:embed schema.cue
var schema string

// Kind is the kind "verdict", alone and as a step.
var Kind = accept.NewKind("verdict", schema, func() accept.Settings { return &settings{} })

// Apply reads the review.
func (x *settings) Apply(s *accept.State) error {
	text, ok := s.Subject(x.Of)
	if !ok {
		return nodes.Failf("no_verdict", "no review: %s was not taken", x.Of)
	}
	said, cut := markdown.Said(text)
	if cut {
		s.Warn("the thinking in the review is never closed; what stands behind its start was not read")
	}
	review := markdown.Parse(said)
	if inner, ok := review.Quoted(); ok {
		s.Warn("the whole review stands in one code block")
		review = inner
	}
	rows, whole := review.Outside()
	if whole != "" {
		s.Warn("the whole review stands in <%s>", whole)
	}
	inside := len(review.Rows) - len(rows)
	review.Rows = rows
	scores, missing := x.readScores(s, review)
	return x.conclude(s, review, inside, scores, missing)
}

// readScores records the scores that were read, the gate, and which of the required ones were not.
func (x *settings) readScores(s *accept.State, review *markdown.Doc) (scores map[string]any, missing []string) {
	scores = map[string]any{}
	gate := "none"
	for _, label := range x.labels() {
		rule := x.Scores[label]
		value, ok := rule.read(s, review, label)
		switch {
		case rule.Least != nil && (!ok || value < *rule.Least):
			gate = "fail"
		case rule.Least != nil && gate == "none":
			gate = "pass"
		}
		if !ok {
			if rule.Required {
				missing = append(missing, label)
			}
			continue
		}
		scores[label] = value
		if rule.As != "" {
			s.Values[rule.As] = value
		}
	}
	s.Values["scores"], s.Values["gate"] = scores, gate
	return scores, missing
}

// conclude records the decision, or says why there is none: whoever is asked again writes it elsewhere than in an
// element of HTML, where inside lines of the review stand.
func (x *settings) conclude(
	s *accept.State, review *markdown.Doc, inside int, scores map[string]any, missing []string,
) error {
	var got ruling
	if x.Decision != nil {
		got = x.Decision.read(review)
	}
	if got.reason == "" && missing != nil {
		got = ruling{reason: "missing", text: "not read: " + strings.Join(missing, ", ")}
	}
	if got.reason == "" {
		if x.Decision != nil {
			s.Values["decision"] = got.value
			if got.form {
				s.Warn("the decision %s stands in the brackets of a form", got.value)
			}
			x.compare(s, got.value, scores)
		}
		return nil
	}
	if got.reason == "missing" && inside > 0 {
		got.text += "; what stands within tags of HTML does not count: write it outside of them"
	}
	s.Values["reason"] = got.reason
	message := fmt.Sprintf("no verdict (%s): %s", got.reason, got.text)
	if x.Decision == nil || x.Decision.Else == "" || s.Again != nil && s.Again("no_verdict") {
		return nodes.Fail("no_verdict", message)
	}
	s.Values["decision"] = x.Decision.Else
	s.Warn("%s; goes on as %s", message, x.Decision.Else)
	s.Note("decision", "verdict-else", map[string]any{"decision": x.Decision.Else, "reason": got.reason, "text": got.text})
	return nil
}

// compare records that the decision and the numbers do not fit: the most lenient decision with a score of 0 or
// below its least, or the harshest one with nothing but full marks.
func (x *settings) compare(s *accept.State, decision string, scores map[string]any) {
	values := x.Decision.Values
	if len(values) < 2 || len(scores) == 0 {
		return
	}
	low, full := s.Values["gate"] == "fail", true
	for label, v := range scores {
		low, full = low || v == 0.0, full && v == x.Scores[label].Max
	}
	if decision == values[0] && low || decision == values[len(values)-1] && full {
		s.Warn("the decision %s does not fit the scores", decision)
		s.Note("quality", "contradiction", map[string]any{"decision": decision, "scores": scores, "gate": s.Values["gate"]})
	}
}
