package specs_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"dagrun.dev/dag/report"
)

const lit = "lit-pm"

// D-2, D-5: the plan and the graph of the literature pipeline are those that were last looked at.
func TestLiteraturePlan(t *testing.T) {
	t.Parallel()
	res := compiled(t, lit)
	var plan, graph bytes.Buffer
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteText(&plan); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDOT(&graph, res.Graph, res.Notes); err != nil {
		t.Fatal(err)
	}
	golden(t, lit+".plan.txt", bytes.ReplaceAll(plan.Bytes(), []byte(res.Plan.Digest()[:12]), []byte("DIGEST")))
	golden(t, lit+".graph.dot", graph.Bytes())
}

// D-5: the whole pipeline, offline: it asks about its outline, and ends with a text that holds every section and cites
// nothing that is not in its library.
func TestLiterature(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.ends(3, "apply", lit, "--quiet")
	s.must("respond", "approval/outline/first/1", "approve")
	s.must("resume", "--quiet")
	text := s.read("review.md")
	for _, want := range []string{"# Surviving the process", "## What can fail", "## Durable execution", "## What follows", "- [garcia87] H. Garcia-Molina, K. Salem: Sagas."} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
	s.must("verify")
}

// ends runs the program, which must end with a status.
func (s *site) ends(status int, args ...string) string {
	s.t.Helper()
	out, err := s.dagrun(nil, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == status || err == nil && status == 0 {
		return out
	}
	s.t.Fatalf("dagrun %s: %v, want status %d\n%s", strings.Join(args, " "), err, status, tail(out))
	return ""
}
