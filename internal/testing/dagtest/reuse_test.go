package dagtest

import (
	"slices"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// edited runs a plan to its end, then plans that follow it, each to its end.
func edited(t *testing.T, seed uint64, kills []int, plans ...*dag.Plan) *Sim {
	t.Helper()
	s, err := New(plans[0])
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	s.Reads, s.Frugal, s.Kills, s.Snapshots = true, len(plans) <= 2, kills, len(kills) > 0 && kills[0]%2 == 0
	for k, p := range plans {
		if k == 0 {
			err = s.Run()
		} else {
			for err = s.Adopt(p); err == nil && s.State.Run().PlanDigest != p.Digest(); err = s.Adopt(p) { // killed before it was recorded
			}
			if err == nil {
				err = s.GoOn()
			}
		}
		if err != nil {
			t.Fatalf("seed %d, kills %v, plan %d, event %d: %v\n%s", seed, kills, k, len(s.Events), err, s.Dump())
		}
	}
	return s
}

// S-6, S-7: after an edit a run ends as a new run of the edited plan does, in what has become of every node
// and in every value, wherever it is killed; and nothing was started that had been given the same before.
func TestEditedRunEndsAsANewOne(t *testing.T) {
	var reused, started, killed int
	seeds(t, func(t *testing.T, seed uint64) {
		plans := []*dag.Plan{RandomReaders(seed)}
		if _, err := dag.NewGraph(plans[0]); err != nil {
			t.Fatal(err)
		}
		for k := range uint64(1 + seed%3) {
			plans = append(plans, Edit(plans[len(plans)-1], seed*7+k))
		}
		last := plans[len(plans)-1]
		want := outcome(edited(t, seed, nil, last))
		whole := edited(t, seed, nil, plans...)
		if got := outcome(whole); got != want {
			t.Fatalf("seed %d: %s", seed, firstDifference(got, want))
		}
		first := slices.IndexFunc(whole.Events, func(e machine.Event) bool { return e.Type == machine.PlanAdopted })
		for _, e := range whole.Events[first:] {
			switch b := e.Body.(type) {
			case *machine.StartedBody:
				started++
			case *machine.FinishedBody:
				if b.Reused {
					reused++
				}
			}
		}
		for k := first; k <= len(whole.Events); k += 1 + len(whole.Events)/40 {
			killed++
			if got := outcome(edited(t, seed, []int{k + 1}, plans...)); got != want {
				t.Fatalf("seed %d: killed before event %d: %s", seed, k+1, firstDifference(got, want))
			}
		}
	})
	t.Logf("%d results reused, %d attempts started after edits, killed %d times", reused, started, killed)
	if *seedFlag == 0 && reused < started/4 {
		t.Errorf("only %d results reused beside %d attempts", reused, started)
	}
}
