package executor

import (
	"sync"
	"time"

	"dagrun.dev/internal/awake"
)

// A clock tells the time of a run: wall time that never goes backward.
//
// Instants in the log are wall time, because they must mean something after a restart. When
// the wall clock jumps ahead (corrected, or the machine slept) the run's time follows at once,
// so that a quota reset is not missed by a night; when it is set back, the run's time goes on
// by the monotonic clock, so that a delay of five seconds takes five seconds.
//
// It is read at least once in a beat (awake.Beat) while a run is carried on. Where far more than that has gone by, on
// either clock, the machine slept, the process was stopped, or the clock was put ahead: that is no activity (see idle).
//
// It may be read from any goroutine: attempts begin beside the loop.
type clock struct {
	mu     sync.Mutex
	wall   time.Time     // the run's time at the anchor
	mono   time.Duration // of the monotonic clock at the same moment
	seen   time.Time     // the run's time at the last reading
	seenAt time.Duration // of the monotonic clock at the same moment
	slept  time.Duration // what idle has not returned yet
	read   func() (wall time.Time, mono time.Duration)
}

// newClock starts a clock that reads no earlier than last, the time of the last recorded event. A nil read reads the
// machine's clocks.
func newClock(last time.Time, read func() (time.Time, time.Duration)) *clock {
	if read == nil {
		start := time.Now()
		read = func() (time.Time, time.Duration) {
			t := time.Now()
			return t.Round(0), t.Sub(start)
		}
	}
	c := &clock{read: read}
	c.wall, c.mono = read()
	if c.wall.Before(last) {
		c.wall = last.Round(0)
	}
	c.seen, c.seenAt = c.wall, c.mono
	return c
}

// now returns the run's time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, mono := c.read()
	now := c.wall.Add(mono - c.mono)
	if wall.After(now) {
		c.wall, c.mono, now = wall, mono, wall
	}
	c.slept += awake.Slept(now.Sub(c.seen), min(awake.Beat, mono-c.seenAt))
	c.seen, c.seenAt = now, mono
	return now
}

// idle returns how long the run has stood still since it was asked last.
func (c *clock) idle() (slept time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slept, c.slept = c.slept, 0
	return slept
}

// keepBeat reads the clock in every beat until gone is closed.
func (c *clock) keepBeat(gone <-chan struct{}) {
	tick := time.NewTicker(awake.Beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.now()
		case <-gone:
			return
		}
	}
}
