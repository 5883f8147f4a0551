package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A Quality is how the quality of a run's work went.
type Quality struct {
	Types   []QualityType  `json:"types"` // in order of first appearance
	Series  []Series       `json:"series,omitempty"`
	Entries []QualityEntry `json:"entries"`
}

// A QualityType sums up the entries of one type.
type QualityType struct {
	Type    string         `json:"type"`
	Entries int            `json:"entries"`
	Results map[string]int `json:"results,omitempty"` // by the entries' result
	Numbers []Numbers      `json:"numbers,omitempty"`
}

// Numbers are the values of one numeric field, oldest first.
type Numbers struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Mean   float64   `json:"mean"`
}

// NewQuality sums up what a history says of quality.
func NewQuality(st *machine.State, h *History) *Quality {
	q := &Quality{Entries: h.Quality, Series: seriesOf(st)}
	if q.Entries == nil {
		q.Entries = []QualityEntry{}
	}
	for i := range h.Quality {
		e := &h.Quality[i]
		fresh := QualityType{Type: e.Type, Results: map[string]int{}}
		entryOf(&q.Types, func(t *QualityType) bool { return t.Type == e.Type }, fresh).add(e)
	}
	for i := range q.Types {
		for k := range q.Types[i].Numbers {
			n := &q.Types[i].Numbers[k]
			sum := 0.0
			for _, v := range n.Values {
				sum += v
			}
			n.Mean = sum / float64(len(n.Values))
		}
	}
	return q
}

func (t *QualityType) add(e *QualityEntry) {
	t.Entries++
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Fields, &fields) != nil {
		return
	}
	for _, name := range sortedNames(fields) {
		if name == "result" {
			t.Results[ValueText(fields[name])]++
			continue
		}
		if v, err := strconv.ParseFloat(string(fields[name]), 64); err == nil {
			n := entryOf(&t.Numbers, func(n *Numbers) bool { return n.Name == name }, Numbers{Name: name})
			n.Values = append(n.Values, v)
		}
	}
}

// shownValues is how many of the last values a line shows.
const shownValues = 12

// Last are the last values.
func (n *Numbers) Last() []float64 { return n.Values[max(0, len(n.Values)-shownValues):] }

// A Budget is how a run stands with its limits.
type Budget struct {
	CapUSD    dag.USD    `json:"cap_usd"` // 0 = none
	WarnUSD   dag.USD    `json:"warn_usd"`
	CapTokens int64      `json:"cap_tokens"`
	SpentUSD  dag.USD    `json:"spent_usd"`
	Tokens    int64      `json:"tokens"`
	Reserved  dag.USD    `json:"reserved_usd"`
	Assumed   dag.USD    `json:"assumed_usd"` // part of spent that nobody has confirmed
	Kinds     []CostKind `json:"by_cost_kind"`
	Shares    []Share    `json:"by_label,omitempty"`
}

// NewBudget reads how a run stands with its limits.
func NewBudget(st *machine.State, h *History) *Budget {
	l := st.Ledger()
	return &Budget{
		CapUSD: l.Budget.CapUSD, WarnUSD: l.WarnUSD, CapTokens: l.Budget.CapTokens,
		SpentUSD: l.Spent.USD, Tokens: l.Spent.Tokens,
		Reserved: l.Reserved.USD, Assumed: l.Assumed, Kinds: append([]CostKind{}, h.CostKinds...), Shares: Shares(st),
	}
}

// What is what went wrong.
func (e ErrorEntry) What() string {
	kind := e.Category
	if e.Class != "" {
		kind += " (" + string(e.Class) + ")"
	}
	return Reason(kind, e.Message)
}

// Became is what became of it.
func (e ErrorEntry) Became() string {
	switch {
	case e.Recovered:
		return fmt.Sprintf("recovered at attempt %d", e.At)
	case e.Open:
		return "not settled yet"
	}
	return "not recovered"
}

// Lines are the diagnostics for people: JSON, which programs print for programs, is in the JSON view.
func (e ErrorEntry) Lines() (list []string) {
	for line := range strings.Lines(e.Diagnostics) {
		if !strings.Contains(line, `":`) || !strings.ContainsAny(line, "{}") {
			list = append(list, strings.TrimRight(line, "\r\n"))
		}
	}
	return list
}
