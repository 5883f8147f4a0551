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
			clk := newClock(c.last, func() (time.Time, time.Duration) {
				i := max(0, reads-1) // newClock reads once, at the first reading
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

// What goes by without a reading, on either clock, is no activity: the machine slept, the process was stopped, or the
// clock was put ahead. A busy machine that reads it late is at work.
func TestClockIdle(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name       string
		wall, mono time.Duration // at the next reading
		want       time.Duration
	}{
		{"a beat", time.Second, time.Second, 0},
		{"a busy machine", 2900 * time.Millisecond, 2900 * time.Millisecond, 0},
		{"the process was stopped", 8 * time.Second, 8 * time.Second, 7 * time.Second},
		{"the machine slept", 8 * time.Hour, time.Second, 8*time.Hour - time.Second},
		{"two hours ahead", 2 * time.Hour, 0, 2 * time.Hour},
		{"set right by a second", time.Second, 0, 0},
		{"put back", -2 * time.Hour, time.Second, 0},
		{"put back while the process was stopped", -2 * time.Hour, 8 * time.Second, 7 * time.Second},
	} {
		var wall, mono time.Duration
		clk := newClock(time.Time{}, func() (time.Time, time.Duration) { return noon.Add(wall), mono })
		wall, mono = c.wall, c.mono
		clk.now()
		if got := clk.idle(); got != c.want {
			t.Errorf("%s: idle for %v, want %v", c.name, got, c.want)
		}
		if got := clk.idle(); got != 0 {
			t.Errorf("%s: idle for %v a second time", c.name, got)
		}
	}
}

// Attempts that begin read the clock beside the loop, and no reading goes behind one before (the race stage runs it).
func TestClockSideBySide(t *testing.T) {
	clk := newClock(time.Time{}, nil)
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
