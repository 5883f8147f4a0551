package report

import (
	"testing"
	"time"

	"dagrun.dev/internal/testing/night"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// What a run has waited is time that has passed: not what was left of a wait when it paused, nor the
// pause, nor a retry that is still to come.
func TestWaited(t *testing.T) {
	h := newHistory()
	at := func(d time.Duration, b machine.Body) {
		e := machine.New(night.Start.Add(d), b)
		if err := h.event(&e, nil); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(node string, until time.Duration) *machine.FinishedBody {
		return &machine.FinishedBody{Node: node, Generation: 1, Attempt: 1, Status: dag.StatusFailed, WaitUntil: night.Start.Add(until)}
	}
	at(0, fail("a", 24*time.Hour))
	at(3*time.Second, &machine.RunPausedBody{Reason: "user"})
	if h.Waited != 3*time.Second {
		t.Errorf("waited %s before the pause, want 3s", h.Waited)
	}
	at(time.Hour, &machine.RunResumedBody{By: "resume"})
	at(time.Hour+2*time.Second, &machine.StartedBody{Node: "a", Generation: 1, Attempt: 2})
	at(time.Hour+9*time.Second, fail("a", 48*time.Hour))
	at(time.Hour+10*time.Second, &machine.RunPausedBody{Reason: "user"})
	h.pause(h.last)
	if h.Waited != 6*time.Second || h.Waits != 2 {
		t.Errorf("waited %s in %d waits, want 6s in 2", h.Waited, h.Waits)
	}
}
