package dagtest

import (
	"fmt"
	"testing"

	"dagrun.dev/internal/testing/hosttest"
)

// The simulation passes the suite of the hosts that it stands for, with workers of its own and with a queue.
func TestSuite(t *testing.T) {
	for _, queue := range []bool{false, true} {
		t.Run(fmt.Sprint("queue=", queue), func(t *testing.T) {
			hosttest.Run(t, func(t testing.TB, c *hosttest.Case) *hosttest.Outcome {
				s, err := New(c.Plan)
				if err != nil {
					t.Fatal(err)
				}
				s.Queue = queue
				o, err := s.Outcome(c)
				if err != nil {
					t.Fatal(err)
				}
				return o
			})
		})
	}
}

// B-3, S-2: what kills may do to a run, they may do to attempts that lie in a queue.
func TestKilledWithAQueue(t *testing.T) {
	seeds(t, func(t *testing.T, seed uint64) {
		queue := func(s *Sim) { s.Queue = true }
		whole := simulate(t, seed, Options{}, queue)
		want := outcome(whole)
		for k := 1 + int(seed)%3; k <= len(whole.Events); k += 3 {
			s := simulate(t, seed, Options{}, func(s *Sim) { s.Queue, s.Kills, s.Snapshots = true, []int{k}, k%2 == 0 })
			if got := outcome(s); got != want {
				t.Fatalf("seed %d: killed before event %d: %s", seed, k, firstDifference(got, want))
			}
		}
	})
}
