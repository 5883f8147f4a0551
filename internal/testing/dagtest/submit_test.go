package dagtest

import (
	"fmt"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// handed runs a plan that gives way to another one after some events, killed before some.
func handed(t *testing.T, seed uint64, was, now *dag.Plan, after int, kills ...int) *Sim {
	t.Helper()
	s, err := New(was)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	s.Reads, s.Handed, s.HandedAt, s.Kills = true, now, after, kills
	s.Snapshots = len(kills) > 0 && kills[0]%2 == 0
	err = s.Run()
	if err == nil && s.State.PlanDigest() != now.Digest() { // it had ended before
		for err = s.Adopt(now); err == nil && s.State.PlanDigest() != now.Digest(); err = s.Adopt(now) {
		}
		if err == nil {
			err = s.GoOn()
		}
	}
	if err != nil {
		t.Fatalf("seed %d, handed over after %d, kills %v: %v\n%s", seed, after, kills, err, s.Dump())
	}
	return s
}

// mixed has some nodes cost money, so that their attempts are waited for.
func mixed(p *dag.Plan, seed uint64) *dag.Plan {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; len(n.ID)%2 == int(seed)%2 && n.Kind == "fake" {
			n.Paid, n.Reserve.Tokens = true, 1
		}
	}
	return p
}

// S-6, S-7, S-12: a plan that is handed over while nodes run is adopted in the end, wherever it comes and wherever the
// process is killed, and the run ends as a new run of that plan does. No attempt that costs money is stopped for it, and
// no event stands between the handover and the adoption that starts what the plan touches.
func TestRunTakesAnotherPlanWhileNodesRun(t *testing.T) {
	var waited, stopped, went, killed int
	seeds(t, func(t *testing.T, seed uint64) {
		was := mixed(RandomReaders(seed), seed)
		now := mixed(Edit(was, seed*5), seed)
		if _, err := dag.NewGraph(was); err != nil {
			t.Fatal(err)
		}
		want := outcome(edited(t, seed, nil, now))
		whole := len(edited(t, seed, nil, was).Events)
		for after := 2; after < whole; after += 1 + whole/4 {
			s := handed(t, seed, was, now, after)
			if got := outcome(s); got != want {
				t.Fatalf("seed %d: handed over after %d: %s", seed, after, firstDifference(got, want))
			}
			first := len(s.Events)
			touched := map[string]bool{}
			for k, e := range s.Events {
				switch b := e.Body.(type) {
				case *machine.PlanSubmittedBody:
					first = k
					for _, id := range append(b.Touched, b.Removed...) {
						touched[id] = true
					}
				case *machine.PlanAdoptedBody:
					clear(touched)
					if k > first+1 {
						waited++
					}
				case *machine.StartedBody:
					if touched[b.Node] {
						t.Fatalf("seed %d: handed over after %d: %s starts before the plan is adopted", seed, after, b.Node)
					}
					if len(touched) > 0 {
						went++
					}
				case *machine.FinishedBody:
					if b.Status != dag.StatusCancelled {
						continue
					}
					stopped++
					if !touched[b.Node] {
						t.Fatalf("seed %d: handed over after %d: %s was stopped", seed, after, b.Node)
					}
				}
			}
			for k := first; k < len(s.Events); k += 1 + (len(s.Events)-first)/6 {
				killed++
				if got := outcome(handed(t, seed, was, now, after, k+1)); got != want {
					t.Fatalf("seed %d: handed over after %d, killed before event %d: %s", seed, after, k+1, firstDifference(got, want))
				}
			}
		}
	})
	what := fmt.Sprintf("%d attempts stopped, %d adoptions waited, %d nodes started meanwhile, killed %d times", stopped, waited, went, killed)
	t.Log(what)
	if *seedFlag == 0 && (waited == 0 || stopped == 0 || went == 0) {
		t.Error(what)
	}
}
