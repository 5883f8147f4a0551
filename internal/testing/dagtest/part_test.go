package dagtest

import (
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// W-9: a run of which a part is selected, then another one with a node of it again, then all, ends as the undisturbed one
// does wherever it is killed, and as the run of the whole plan; nothing that is left out starts (the simulation checks it
// at every start).
func TestPartKilledBeforeEveryEvent(t *testing.T) {
	partly := 0
	seeds(t, func(t *testing.T, seed uint64) {
		nodes := RandomPlan(seed, Options{}).Nodes
		name := func(k uint64) []string { return []string{nodes[(seed*7+k)%uint64(len(nodes))].ID} }
		again := name(3)
		parts := []machine.PartSelectedBody{
			{Part: dag.Selection{Until: name(3)}, By: "apply"},
			{Part: dag.Selection{From: again}, Rerun: again, By: "apply"},
			{By: "resume"},
		}
		set := func(s *Sim) { s.Parts = parts }
		whole := simulate(t, seed, Options{}, set)
		want := outcome(whole)
		for k, e := range whole.Events {
			if b, ok := e.Body.(*machine.RunPausedBody); ok && b.Reason == machine.PausePart {
				partly++
			}
			if k%3 != int(seed)%3 { // a third of them
				continue
			}
			s := simulate(t, seed, Options{}, func(s *Sim) { set(s); s.Kills, s.Snapshots = []int{k + 1}, k%2 == 0 })
			if got := outcome(s); got != want {
				t.Fatalf("seed %d: killed before event %d (%s): %s", seed, k+1, e.Type, firstDifference(got, want))
			}
		}
	})
	if partly < 20 && *seedFlag == 0 {
		t.Errorf("only %d parts were done", partly)
	}
}
