package specs_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// S-10: a night in which everything goes wrong ends with a page that is whole, a cost that adds up, a
// question to a person, and one account of what happened; after the login the same run goes on to its end.
func TestBadNight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	out, err := s.dagrun(nil, "apply", corpusSpec(t), "--values", "../examples/bad-night/values.yaml", "--seed", "7", "--quiet")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("the night ended with %v, want status 3\n%s", err, tail(out))
	}
	for _, want := range []string{"person", "dagrun resume", "S4/p4"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary does not tell of %q:\n%s", want, tail(out))
		}
	}
	s.must("replay")
	shownInReadme(t, "status --output-dir build/bad-night", strings.ReplaceAll(s.must("status"), s.out, "build/bad-night"))
	s.must("resume", "--quiet")

	events := s.events()
	ends := finished(events)
	for id, e := range ends {
		if want := map[bool]string{true: "failed", false: "completed"}[id == "S4/p4"]; e.Payload.Status != want {
			t.Errorf("%s %s: %s", id, e.Payload.Status, e.Payload.Category)
		}
	}
	if got := ends["S4/p4"].Payload.Category; got != "truncated" {
		t.Errorf("S4/p4 failed as %s", got)
	}
	done := map[string]bool{}
	for _, e := range events {
		if e.Type == "WORK_ITEM_STARTED" && done[e.Payload.Node] {
			t.Errorf("%s was paid for twice", e.Payload.Node)
		}
		done[e.Payload.Node] = done[e.Payload.Node] || e.Type == "WORK_ITEM_FINISHED" && e.Payload.Status == "completed"
	}
	page := s.read("artifact.html")
	if !strings.HasSuffix(strings.TrimSpace(page), "</html>") || strings.Count(page, `<section class="chapter"`) != 7 {
		t.Error("the page is not whole")
	}
	s.read("_orchestrator/passes/pass-028/raw-output-FAILED-1.txt")
	s.must("verify")
}
