package specs_test

import "testing"

// S-6: a lower threshold after a finished run is paid for only where it decides otherwise: here the second cycle ships,
// nobody is asked for anything, and the page is that of a new run with this threshold.
func TestALowerThresholdBuysNothing(t *testing.T) {
	t.Parallel()
	spec := edit(t, bare)
	s := newSite(t)
	s.must("apply", spec, "--seed", "7", "--quiet")
	before := len(s.events())
	if got := decision(finished(s.events()), 2); got != "refine" {
		t.Fatalf("cycle 2 decided %s: this test needs a run that did not ship then", got)
	}
	page := s.read("artifact.html")

	s.must("apply", spec, "--quiet", "--set", "hardening.release=3.0")
	all := s.events()
	reused := 0
	for _, e := range all[before:] {
		switch {
		case e.Type == "LLM_CALL_STARTED":
			t.Errorf("%s is asked again", e.Payload.Node)
		case e.Payload.Reused == true:
			reused++
		}
	}
	if reused < 10 {
		t.Errorf("only %d results were reused", reused)
	}
	if got := decision(finished(all), 2); got != "ship" {
		t.Errorf("cycle 2 decided %s, want ship", got)
	}
	if page == s.read("artifact.html") {
		t.Error("the page still has the refinements of a cycle that did not take place")
	}

	fresh := newSite(t)
	fresh.must("apply", spec, "--seed", "7", "--quiet", "--set", "hardening.release=3.0")
	if s.read("artifact.html") != fresh.read("artifact.html") {
		t.Error("the page is not that of a new run")
	}
	s.must("verify")
}
