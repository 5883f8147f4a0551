package report

import (
	"fmt"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/run/statedir"
)

// T-4: the least that a plan costs is without what stands under a condition; equal ends are one number; a cap
// is spoken of only where something is to be paid.
func TestTotalsOfAPlan(t *testing.T) {
	sure := PlanNode{USD: [3]dag.USD{1e6, 2e6, 9e6}}
	for _, x := range []struct {
		what  string
		nodes []PlanNode
		spent dag.USD
		want  string
	}{
		{"sure", []PlanNode{sure}, 0, "low $1.00, expected $2.00, high $9.00"},
		{"under a condition", []PlanNode{sure, {When: "x", USD: sure.USD}}, 0, "low $1.00, expected $4.00, high $18.00"},
		{"below one", []PlanNode{{RunsWith: []string{"a"}, USD: sure.USD}}, 0, "low $0.00, expected $2.00, high $9.00"},
		{"perhaps", []PlanNode{{Maybe: true, USD: sure.USD}}, 0, "low $0.00, expected $2.00, high $9.00"},
		{"equal as printed", []PlanNode{{USD: [3]dag.USD{51204, 51210, 51211}}}, 0, "Cost:   $0.0512\n"},
		{"beyond the cap", []PlanNode{{USD: [3]dag.USD{8e6, 8e6, 8e6}}}, 3e6, "exceeds the cap"},
	} {
		p := Plan{Budget: dag.Budget{CapUSD: 10e6}, SpentUSD: x.spent}
		for k := range x.nodes {
			p.Totals.add(&x.nodes[k])
		}
		if got := totals(&p); !strings.Contains(got, x.want) {
			t.Errorf("%s: %q is not in\n%s", x.what, x.want, got)
		}
	}
	if got := totals(&Plan{Budget: dag.Budget{CapUSD: 1e6}, SpentUSD: 3e6}); strings.Contains(got, "exceeds") {
		t.Errorf("nothing is to run:\n%s", got)
	}
}

func totals(p *Plan) string {
	var b strings.Builder
	if err := write(&b, "plan-totals", p); err != nil {
		return err.Error()
	}
	return b.String()
}

// B-10: what a specification says reaches the terminal without control characters, on its own line.
func TestPlanTextIsPlain(t *testing.T) {
	evil := "a\nb\x1b[31mred\u202e"
	p := Plan{Name: "p", Title: evil, Limits: []string{evil}, Warnings: []string{evil}, Nodes: []PlanNode{{ID: "n", Do: "run", Title: evil,
		When: evil, Why: []string{evil}, Reads: []string{evil}, Writes: []string{evil}, Appends: []string{evil}, Notes: []string{evil}, Items: evil}}}
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "\nb") || strings.Count(got, `a b\x1b[31mred\u202e`) != 11 {
		t.Errorf("%d times in\n%s", strings.Count(got, `a b\x1b[31mred\u202e`), got)
	}
}

// T-4: a node that never ran takes what nodes took that have the same estimate, kind and model; its own past
// goes before that, and without a past the estimate holds.
func TestPlanLearnsFromSimilarNodes(t *testing.T) {
	guess := dag.Estimate{Seconds: 600, USD: 5e6}
	call := func(model string) *dag.Call { return &dag.Call{Provider: "claude", Model: model} }
	g, err := dag.NewGraph(&dag.Plan{Format: dag.Format, Name: "x", Nodes: []dag.Node{
		{ID: "read/1", Kind: "agent", Paid: true, Call: call("m"), Estimate: guess},
		{ID: "read/2", Kind: "agent", Paid: true, Call: call("m"), Estimate: guess},
		{ID: "read/3", Kind: "agent", Paid: true, Call: call("m"), Estimate: guess},
		{ID: "other-model", Kind: "agent", Paid: true, Call: call("n"), Estimate: guess},
		{ID: "other-guess", Kind: "agent", Paid: true, Call: call("m"), Estimate: dag.Estimate{Seconds: 60, USD: 5e6}},
		{ID: "other-kind", Kind: "exec", Estimate: guess},
		{ID: "no-guess", Kind: "exec"},
		{ID: "no-guess-too", Kind: "exec"},
		{ID: "was-free", Kind: "exec", Estimate: dag.Estimate{Seconds: 9, USD: 7e6}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := BuildPlan(PlanInput{Graph: g, History: map[string][]statedir.Sample{
		"read/1 claude/m": {{Seconds: 10, USD: 1e6}, {Seconds: 30, USD: 3e6}}, "read/2 claude/m": {{Seconds: 20, USD: 2e6}}, "no-guess": {{Seconds: 7}}, "was-free": {{Seconds: 1}}}})
	for i, want := range []string{
		"history [1.00 2.00 9.00] [10 20 90]", "history [2.00 2.00 6.00] [20 20 60]", "similar [1.00 2.00 9.00] [10 20 90]",
		"estimate [5.00 5.00 15.00] [600 600 1800]", "estimate [5.00 5.00 15.00] [60 60 180]", "estimate [5.00 5.00 15.00] [600 600 1800]",
		"history [0.00 0.00 0.00] [7 7 21]", "free [0.00 0.00 0.00] [0 0 0]",
		"estimate [7.00 7.00 21.00] [9 9 27]", // what took nothing under its name was something else
	} {
		n := p.Nodes[i]
		if got := fmt.Sprint(n.CostFrom, " ", n.USD, " ", n.Seconds); got != want {
			t.Errorf("%s: %s, want %s", n.ID, got, want)
		}
	}
}

// What no node reserves is in no total, and the plan says so. T-4
func TestPlanSaysWhatItsCostLacks(t *testing.T) {
	known := PlanNode{ID: "known", USD: [3]dag.USD{1e6, 2e6, 3e6}}
	reserved := PlanNode{ID: "reserved", USD: [3]dag.USD{0, 5e6, 5e6}, Unknown: true}
	missing := PlanNode{ID: "missing", Unknown: true}
	for _, c := range []struct {
		nodes []PlanNode
		want  string
	}{
		{[]PlanNode{missing}, "1 node of unknown cost, not counted"},
		{[]PlanNode{known, missing, missing}, "low $1.00, expected $2.00, high $3.00; 2 nodes of unknown cost, not counted"},
		{[]PlanNode{reserved}, "low $0.00, expected $5.00, high $5.00; 1 node of unknown cost, counted at what is reserved"},
		{[]PlanNode{known, reserved, missing}, "low $1.00, expected $7.00, high $8.00; 1 node of unknown cost, counted at what is reserved; 1 node of unknown cost, not counted"},
	} {
		var totals PlanTotals
		for i := range c.nodes {
			totals.add(&c.nodes[i])
		}
		if got := totals.Cost(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
