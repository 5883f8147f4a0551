package executor

import (
	"sync"
	"testing"
	"time"
)

// The run's time follows a wall clock that jumps ahead and passes by one that is set back.
func TestClockSteps(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		last time.Time       // of the last event
		wall []time.Duration // readings after noon, one a second
		want []time.Duration
	}{
		{"steady", time.Time{}, []time.Duration{0, 1 * time.Second, 2 * time.Second}, []time.Duration{0, 1 * time.Second, 2 * time.Second}},
		{"jump ahead", time.Time{}, []time.Duration{0, time.Hour, time.Hour + time.Second}, []time.Duration{0, time.Hour, time.Hour + time.Second}},
		{"set back", time.Time{}, []time.Duration{0, -time.Hour, -time.Hour + time.Second}, []time.Duration{0, 1 * time.Second, 2 * time.Second}},
		{"set back and forth", time.Time{}, []time.Duration{0, -time.Hour, 5 * time.Second}, []time.Duration{0, 1 * time.Second, 5 * time.Second}},
		{"last event of the future", noon.Add(time.Hour), []time.Duration{0, time.Second, time.Hour + 9*time.Second},
			[]time.Duration{time.Hour, time.Hour + time.Second, time.Hour + 9*time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reads := 0
			clk := newClockFrom(c.last, func() (time.Time, time.Duration) {
				i := max(0, reads-1) // newClockFrom reads once, at the first reading
				reads++
				return noon.Add(c.wall[i]), time.Duration(i) * time.Second
			})
			for i, want := range c.want {
				if got := clk.now().Sub(noon); got != want {
					t.Errorf("reading %d: %v after noon, want %v", i, got, want)
				}
			}
		})
	}
}

// Attempts that begin read the clock beside the loop, and no reading goes behind one before (the race stage runs it).
func TestClockSideBySide(t *testing.T) {
	clk := newClock(time.Time{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			last := clk.now()
			for range 1000 {
				now := clk.now()
				if now.Before(last) {
					t.Errorf("%v after %v", now, last)
				}
				last = now
			}
		})
	}
	wait.Wait()
}
