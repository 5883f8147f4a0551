package specs_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/dag/report"
)

// D-2: what the README shows of the plan is what the plan prints where nothing has run yet; "..." stands for
// the rest of a line, or for lines.
func TestReadmeShowsThePlan(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := os.ReadFile("testdata/corpus-integration.plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, ok := strings.Cut(string(readme), "$ dagrun plan specs/corpus-integration\n")
	sample, _, end := strings.Cut(sample, "\n\n$ ")
	if !ok || !end {
		t.Fatal("the README shows no plan")
	}
	res, short := basePlan(t), &bytes.Buffer{}
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteShort(short); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(plan)+short.String(), "\n")
	for line := range strings.SplitSeq(sample, "\n") {
		if strings.HasPrefix(line, "Run:") {
			continue // the folder is the reader's
		}
		start, cut := strings.CutSuffix(line, "...")
		if !slices.ContainsFunc(lines, func(l string) bool { return l == line || cut && strings.HasPrefix(l, start) }) {
			t.Errorf("the plan does not print: %s", line)
		}
	}
}
