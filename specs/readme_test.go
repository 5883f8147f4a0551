package specs_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/dag/report"
)

// D-2: what the README shows of the plan is what the plan prints where nothing has run yet.
func TestReadmeShowsThePlan(t *testing.T) {
	plan, err := os.ReadFile("testdata/corpus-integration.plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	res, short := basePlan(t), &bytes.Buffer{}
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteShort(short); err != nil {
		t.Fatal(err)
	}
	shownInReadme(t, "plan specs/corpus-integration", string(plan)+short.String())
}

// shownInReadme holds what the README shows of a command to what it prints; "..." stands for the rest of a line, or for
// lines.
func shownInReadme(t *testing.T, command, printed string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, ok := strings.Cut(string(readme), "$ dagrun "+command+"\n")
	sample, _, _ = strings.Cut(sample, "\n```")
	sample, _, _ = strings.Cut(sample, "\n\n$ ")
	if !ok || sample == "" {
		t.Fatalf("the README does not show %s", command)
	}
	lines := strings.Split(printed, "\n")
	for line := range strings.SplitSeq(sample, "\n") {
		if strings.HasPrefix(line, "Run:") {
			continue // the folder is the reader's
		}
		start, cut := strings.CutSuffix(line, "...")
		if !slices.ContainsFunc(lines, func(l string) bool { return l == line || cut && strings.HasPrefix(l, start) }) {
			t.Errorf("%s does not print: %s", command, line)
		}
	}
}
