package executor

import (
	"sync"
	"time"
)

// A clock tells the time of a run: wall time that never goes backward.
//
// Instants in the log are wall time, because they must mean something after a restart. When
// the wall clock jumps ahead (corrected, or the machine slept) the run's time follows at once,
// so that a quota reset is not missed by a night; when it is set back, the run's time goes on
// by the monotonic clock, so that a delay of five seconds takes five seconds.
//
// It may be read from any goroutine: attempts begin beside the loop.
type clock struct {
	mu   sync.Mutex
	wall time.Time     // the run's time at the anchor
	mono time.Duration // of the monotonic clock at the same moment
	read func() (wall time.Time, mono time.Duration)
}

// newClock starts a clock that reads no earlier than last, the time of the last recorded event.
func newClock(last time.Time) *clock {
	start := time.Now()
	return newClockFrom(last, func() (time.Time, time.Duration) {
		t := time.Now()
		return t.Round(0), t.Sub(start)
	})
}

func newClockFrom(last time.Time, read func() (time.Time, time.Duration)) *clock {
	c := &clock{read: read}
	c.wall, c.mono = read()
	if c.wall.Before(last) {
		c.wall = last.Round(0)
	}
	return c
}

// now returns the run's time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, mono := c.read()
	if steady := c.wall.Add(mono - c.mono); !wall.After(steady) {
		return steady
	}
	c.wall, c.mono = wall, mono
	return wall
}
