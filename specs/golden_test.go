package specs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/report"
)

// TestGolden compares the plan and the graph with those that were last looked at. D-2
func TestGolden(t *testing.T) {
	res := basePlan(t)
	var plan, graph bytes.Buffer
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteText(&plan); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDOT(&graph, res.Graph, res.Notes); err != nil {
		t.Fatal(err)
	}
	// The digest changes with each letter of a prompt.
	plain := func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(res.Plan.Digest()[:12]), []byte("DIGEST"))
	}
	golden(t, corpus+".plan.txt", plain(plan.Bytes()))
	golden(t, corpus+".graph.dot", plain(graph.Bytes()))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if bytes.Equal(got, want) {
		return
	}
	a, b := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			t.Fatalf("%s:%d differs; make golden, then read the diff\nwant %s\ngot  %s", name, i+1, a[i], b[i])
		}
	}
	t.Fatalf("%s has %d lines, got %d", name, len(a), len(b))
}

// M4: what the plan costs goes by the model that is asked, not by the estimates that the specification writes down.
func TestCorpusIsPricedByModel(t *testing.T) {
	t.Parallel()
	var cost []float64
	for _, model := range []string{"claude-haiku-4-5", "claude-opus-4-8"} {
		res := compiled(t, filepath.Join(corpus, "spec.cue"), "agent.provider=claude", "agent.model="+model)
		p := report.BuildPlan(report.PlanInput{Graph: res.Graph})
		for _, n := range p.Nodes {
			if n.Kind == "agent" && (n.CostFrom != "priced" || n.Unknown) {
				t.Errorf("%s: %s: the cost is from %s, unknown: %v", model, n.ID, n.CostFrom, n.Unknown)
			}
		}
		cost = append(cost, p.Totals.USD[1].Float())
	}
	if ratio := cost[1] / cost[0]; ratio < 4 || ratio > 6 { // by the list: five times
		t.Errorf("the corpus costs $%.2f with haiku and $%.2f with opus", cost[0], cost[1])
	}
}
