package verdict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// settings is #Verdict.
type settings struct {
	From     *accept.From         `json:"from"`
	Of       string               `json:"of"`
	About    string               `json:"about"`
	Decision *decisionRule        `json:"decision"`
	Scores   map[string]scoreRule `json:"scores"`
	Tiers    map[string]scoreRule `json:"tiers"`
	Arc      map[string]scoreRule `json:"arc"`
	Fixes    *fixesRule           `json:"fixes"`
}

type decisionRule struct {
	Label    string    `json:"label"`
	Values   []string  `json:"values"` // most lenient first
	Conflict string    `json:"conflict"`
	Final    *[]string `json:"final"`
	Else     string    `json:"else"`

	label       label
	finals      []label
	contradicts func() *contradiction // made when it is needed
}

// scoreRule is #VerdictScore: a number alone is read as {max: ...}.
type scoreRule struct {
	Max      float64  `json:"max"`
	Bare     bool     `json:"bare"`
	As       string   `json:"as"`
	Required bool     `json:"required"`
	Least    *float64 `json:"least"`
	Conflict string   `json:"conflict"`

	label label
}

type fixesRule struct {
	Heading string   `json:"heading"`
	Classes []string `json:"classes"`
	Most    int      `json:"most"`
}

func (r *scoreRule) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] != '{' {
		return json.Unmarshal(b, &r.Max)
	}
	type fields scoreRule
	return accept.Decode(b, (*fields)(r))
}

func decode(with json.RawMessage) (*settings, error) {
	var s settings
	if err := accept.Decode(with, &s); err != nil {
		return nil, err
	}
	if d := s.Decision; d != nil {
		if d.Final == nil {
			d.Final = &[]string{"Final", "Revised", "Corrected", "Updated"}
		}
		d.label = newLabel(d.Label)
		for _, word := range *d.Final {
			d.finals = append(d.finals, newLabel(word))
		}
		d.contradicts = sync.OnceValue(func() *contradiction { return newContradiction(d) })
	}
	for _, g := range s.groups() {
		for name, rule := range g.rules {
			rule.label = newLabel(name)
			g.rules[name] = rule
		}
	}
	if s.Fixes != nil && s.Fixes.Most == 0 {
		s.Fixes.Most = 5
	}
	return &s, nil
}

// group is one of the three maps of scores.
type group struct {
	name  string
	rules map[string]scoreRule
}

func (s *settings) groups() []group {
	return []group{{"scores", s.Scores}, {"tiers", s.Tiers}, {"arc", s.Arc}}
}

// describe reads what the compiler must know, from aside.
func (s *settings) describe() nodes.Traits {
	tr := nodes.Traits{Outputs: map[string]string{
		"decision": "string", "reason": "string", "scores": "map", "tiers": "map", "arc": "map",
		"na": "list", "fixes": "list", "gate": "string", "consistent": "bool",
	}}
	if s.About != "" {
		tr.Reads = []string{s.About}
	}
	problem := func(path, format string, args ...any) {
		tr.Problems = append(tr.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	labels := map[string]string{}
	for _, g := range s.groups() {
		for _, label := range slices.Sorted(maps.Keys(g.rules)) {
			r, at := g.rules[label], g.name+"."+label
			if !(r.Max > 0) {
				problem(at, "the maximum must be above 0")
			}
			if strings.TrimSpace(label) == "" {
				problem(at, "the label is empty")
			}
			if before, twice := labels[strings.ToLower(label)]; twice {
				problem(at, "the label is declared twice; first at %s", before)
			}
			labels[strings.ToLower(label)] = at
			if r.As == "" {
				continue
			}
			if _, twice := tr.Outputs[r.As]; twice {
				problem(at+".as", "value %s is recorded twice by this step", r.As)
			}
			tr.Outputs[r.As] = "number"
		}
	}
	if d := s.Decision; d != nil {
		if len(d.Values) == 0 {
			problem("decision.values", "want at least one value")
		}
		if d.Else != "" && !slices.Contains(d.Values, d.Else) {
			problem("decision.else", "%q is none of the values %s", d.Else, strings.Join(d.Values, ", "))
		}
		if d.Else != "" && len(d.Values) > 1 && d.Else == d.Values[0] {
			problem("decision.else", "%q is the most lenient value: doubt would be resolved towards it", d.Else)
		}
	}
	if s.Decision == nil && len(labels) == 0 && s.Fixes == nil {
		problem("", "want at least one of decision, scores, tiers, arc, fixes")
	}
	return tr
}
