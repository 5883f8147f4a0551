package dagtest

import (
	"testing"

	"dagrun.dev/dag/machine"
)

// W-3: whatever fails, is killed or is cancelled, what was done is undone once, the last to complete first, or the run
// says that a user went on without (the simulation checks it at every event); and what must not be repeated is not.
func TestUndo(t *testing.T) {
	count := map[machine.Type]int{}
	seeds(t, func(t *testing.T, seed uint64) {
		o := Options{Nodes: 14, Undo: true, Fatal: seed%4 == 0}
		undo := func(s *Sim) { s.undos.on, s.Resumes = true, int(seed%3) }
		whole := simulate(t, seed, o, undo)
		for _, e := range whole.Events {
			count[e.Type]++
		}
		for k := 1; k <= len(whole.Events); k++ {
			for _, cancelled := range []bool{false, true} {
				s := simulate(t, seed, o, func(s *Sim) {
					undo(s)
					s.Kills, s.Snapshots = []int{k, k + 3 + int(seed)%5}, k%2 == 0
					if cancelled {
						s.CancelAt = k / 2
					}
				})
				if twice := s.TwiceDone(); len(twice) > 0 {
					t.Fatalf("seed %d: killed before event %d: done twice: %v", seed, k, twice)
				}
				for i := range int32(s.State.Graph().Len()) {
					v := s.State.NodeAt(i)
					n := s.undid[key(v.Node.ID, v.Generation)]
					if n > 1 && v.Status == machine.Undone && v.Node.Undo.Effect == "once" {
						t.Fatalf("seed %d: killed before event %d: %s is undone %d times", seed, k, v.Node.ID, n)
					}
				}
			}
		}
	})
	for _, typ := range []machine.Type{machine.CompStarted, machine.CompFinished, machine.Rewound, machine.RunFailed} {
		if count[typ] == 0 && *seedFlag == 0 {
			t.Errorf("no run has a %s", typ)
		}
	}
	t.Logf("events: %v", count)
}
