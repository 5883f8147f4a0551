package verdict

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// settings is #Verdict.
type settings struct {
	accept.Alone
	Of       string               `json:"of"`
	Decision *decisionRule        `json:"decision"`
	Scores   map[string]scoreRule `json:"scores"`
}

type decisionRule struct {
	Label  string   `json:"label"`
	Values []string `json:"values"` // most lenient first
	Else   string   `json:"else"`
}

// scoreRule is #VerdictScore: a number alone is read as {max: ...}.
type scoreRule struct {
	Max      float64  `json:"max"`
	As       string   `json:"as"`
	Required bool     `json:"required"`
	Least    *float64 `json:"least"`
}

func (rule *scoreRule) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] != '{' {
		return json.Unmarshal(b, &rule.Max)
	}
	type fields scoreRule
	return accept.Decode(b, (*fields)(rule))
}

// labels are the labels of scores in order.
func (x *settings) labels() []string { return slices.Sorted(maps.Keys(x.Scores)) }

// Describe reads what the compiler must know.
func (x *settings) Describe(tr *nodes.Traits) {
	tr.Outputs = map[string]string{"decision": "string?", "reason": "string?", "scores": "map", "gate": "string"}
	if x.Decision != nil {
		tr.Outputs["decision"] = "string"
	}
	seen := map[string]string{}
	for _, label := range x.labels() {
		r, at := x.Scores[label], "scores."+label
		if !(r.Max > 0) {
			tr.Problemf(at, "the maximum must be above 0")
		}
		folded := markdown.Fold(label)
		if before, twice := seen[folded]; twice {
			tr.Problemf(at, "the label is declared twice; first at %s", before)
		}
		seen[folded] = at
		if folded == "" {
			tr.Problemf(at, "the label is empty")
		}
		tr.Output(at+".as", r.As, "number?")
	}
	if d := x.Decision; d != nil {
		if markdown.Fold(d.Label) == "" {
			tr.Problemf("decision.label", "the label is empty")
		}
		if len(d.Values) == 0 {
			tr.Problemf("decision.values", "want at least one value")
		}
		if d.Else != "" && !slices.Contains(d.Values, d.Else) {
			tr.Problemf("decision.else", "%q is none of the values %s", d.Else, strings.Join(d.Values, ", "))
		}
		if d.Else != "" && len(d.Values) > 1 && d.Else == d.Values[0] {
			tr.Problemf("decision.else", "%q is the most lenient value: doubt would be resolved towards it", d.Else)
		}
	}
	if x.Decision == nil && len(x.Scores) == 0 {
		tr.Problemf("", "want at least one of decision and scores")
	}
}
