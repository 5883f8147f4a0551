package dagtest

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag/machine"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run one seed only")
	seedsFlag = flag.Uint64("seeds", 60, "how many random plans")
)

func seeds(t *testing.T, f func(t *testing.T, seed uint64)) {
	first, last := uint64(1), *seedsFlag
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	list := []uint64{}
	for seed := first; seed <= last; seed++ {
		list = append(list, seed)
	}
	if *seedFlag == 0 { // found mistakes once
		list = append(list, 72, 156, 176, 187, 333, 341, 399, 874, 1329, 2326)
	}
	for _, seed := range list {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, seed) })
	}
}

// all is a plan with everything that can happen.
var all = Options{Nodes: 24, Budget: true, Breakers: true, Fatal: true, Deadline: true}

func simulate(t *testing.T, seed uint64, o Options, setup func(*Sim)) *Sim {
	t.Helper()
	s, err := New(RandomPlan(seed, o))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if setup != nil {
		setup(s)
	}
	if err := s.Run(); err != nil {
		t.Fatalf("seed %d, kills %v, event %d: %v", seed, s.Kills, len(s.Events), err)
	}
	return s
}

// outcome is how a run has ended, as far as it must not depend on where it was killed.
func outcome(s *Sim) string {
	st := s.State
	lines := []string{string(st.Run().Status)}
	for i := range int32(st.Graph().Len()) {
		v := st.NodeAt(i)
		line := fmt.Sprint(v.Node.ID, " ", v.Status)
		if v.Status == machine.Completed && v.Node.Effect != "once" {
			line += fmt.Sprintf(" %s", v.Values["v"])
		}
		lines = append(lines, line)
	}
	slices.Sort(lines) // expanded nodes stand in the order of their expansion
	return strings.Join(lines, "\n")
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("ends with %q, undisturbed with %q", g[max(0, i-1):], w[max(0, i-1):])
		}
	}
	return fmt.Sprintf("lacks %q", w[len(g):])
}

// Asking Decide about any instant, for any number of workers and as often as one likes, changes nothing that
// follows; and what it says of a later instant is what it says when that has come and nothing has happened.
func TestDecideOnlyReads(t *testing.T) {
	seeds(t, func(t *testing.T, seed uint64) {
		setup := func(s *Sim) { s.Kills, s.Resumes = []int{int(seed%37) + 2}, 3 }
		quiet := simulate(t, seed, all, setup)
		asked := simulate(t, seed, all, func(s *Sim) {
			setup(s)
			s.Check = func(s *Sim) error {
				later := s.now.Add([]time.Duration{0, time.Second, time.Minute, 30 * time.Hour}[len(s.Events)%4])
				foretold, wake := s.State.Decide(later, len(s.Events)%7)
				s.State.Decide(later.Add(1000*time.Hour), 5)
				raw, err := s.State.AppendSnapshot(nil)
				if err != nil {
					return err
				}
				then, err := machine.RestoreSnapshot(raw, s.Graph)
				if err != nil {
					return err
				}
				then.Advance(later)
				told, w := then.Decide(later, len(s.Events)%7)
				if !equal(foretold, told) || !wake.Equal(w) {
					return fmt.Errorf("foretold\n%s until %s, then\n%s until %s", show(foretold), wake, show(told), w)
				}
				return nil
			}
		})
		if a, b := log(t, quiet), log(t, asked); a != b {
			t.Fatalf("seed %d: %s", seed, firstDifference(b, a))
		}
	})
}

// log is the events of a simulated run, a line each.
func log(t *testing.T, s *Sim) string {
	t.Helper()
	var b strings.Builder
	for _, e := range s.Events {
		raw, err := machine.AppendPayload(nil, e.Body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %s\n", e.Time, e.Type, raw)
	}
	return b.String()
}

// S-2, S-7, B-3: a run that is killed before any one of its events ends as the undisturbed run
// does, with the same values, and no effect happens twice. The state folded again equals the live
// one, and so does the one restored from its snapshot.
func TestKilledBeforeEveryEvent(t *testing.T) {
	seeds(t, func(t *testing.T, seed uint64) {
		whole := simulate(t, seed, Options{}, nil)
		want := outcome(whole)
		for k := 1; k <= len(whole.Events); k++ {
			kills := []int{k}
			if k%3 == 0 { // and once more soon after
				kills = append(kills, k+1+int(seed)%7)
			}
			s := simulate(t, seed, Options{}, func(s *Sim) { s.Kills, s.Snapshots = kills, k%2 == 0 })
			if got := outcome(s); got != want {
				t.Fatalf("seed %d: killed before event %d (%s): %s", seed, k, whole.Events[k-1].Type, firstDifference(got, want))
			}
			if twice := s.TwiceDone(); len(twice) > 0 {
				t.Fatalf("seed %d: killed before event %d: done twice: %v", seed, k, twice)
			}
		}
	})
}

// L-2, B-2: whatever fails, whatever is killed, a run ends or pauses with a name; it
// never pays twice for a recorded success and never starts what could pass the cap (the
// simulation checks both at every start).
func TestAlwaysEnds(t *testing.T) {
	ends := map[string]int{}
	seeds(t, func(t *testing.T, seed uint64) {
		for _, kills := range [][]int{nil, {int(seed%37) + 2}, {5, int(seed%11) + 9, int(seed%53) + 30}} {
			s := simulate(t, seed, all, func(s *Sim) { s.Kills, s.Resumes = kills, int(seed%4) })
			run := s.State.Run()
			switch run.Status {
			case machine.RunDone, machine.RunBroken:
				ends[string(run.Status)]++
			case machine.RunPause:
				ends[string(run.Pause.Reason)]++
				if run.Pause.Reason == "stuck" {
					t.Errorf("seed %d: %+v", seed, run.Pause)
				}
			default:
				t.Errorf("seed %d ends as %s", seed, run.Status)
			}
			if twice := s.TwiceDone(); len(twice) > 0 {
				t.Errorf("seed %d, kills %v: done twice: %v", seed, kills, twice)
			}
		}
	})
	t.Logf("ends: %v", ends)
}
