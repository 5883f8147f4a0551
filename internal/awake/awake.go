// Package awake tells time in which this process was at work from time in which it stood still: its machine slept, or
// it was stopped (SIGSTOP, Ctrl-Z). Limits of time are about the former. Go's timers leave a machine's sleep out by
// themselves, as Linux's monotonic clock does; a process that was stopped finds them all fired.
//
// It knows nothing of what is waited for.
package awake

import (
	"context"
	"sync"
	"time"
)

// Beat is how often a process that is at work looks at the clock at least.
const Beat = time.Second

// late is by how much a busy machine may miss a beat.
const late = 2 * time.Second

// Slept returns how much of the time that has gone by was none of work, for who meant to wait for no more than waited.
func Slept(gone, waited time.Duration) time.Duration {
	if gone < waited+late {
		return 0
	}
	return gone - waited
}

// A Timer calls a function once a time has gone by in which the process was at work. Its methods may be called from any
// goroutine.
type Timer struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration // of the time, when the slice began
	slice time.Duration // until the timer looks at the clock again
	began time.Time
	f     func()
}

// AfterFunc returns a timer that calls f in its own goroutine after d of work.
func AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{f: f}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(d)
	return t
}

func (t *Timer) begin(d time.Duration) {
	t.left, t.slice, t.began = d, min(d, max(Beat, d/32)), time.Now() // the slices of an hour are minutes, then seconds
	if t.timer == nil {
		t.timer = time.AfterFunc(t.slice, t.look)
	} else {
		t.timer.Reset(t.slice)
	}
}

func (t *Timer) look() {
	t.mu.Lock()
	gone := time.Since(t.began)
	gone -= Slept(gone, t.slice)
	switch {
	case gone < t.slice: // it was reset or stopped as it fired
	case gone < t.left:
		t.begin(t.left - gone)
	default:
		t.mu.Unlock()
		t.f()
		return
	}
	t.mu.Unlock()
}

// Stop keeps the timer from calling its function, unless it is doing so already.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slice = 1 << 62 // for a look that is under way
	t.timer.Stop()
}

// Reset has the timer begin anew with d of work.
func (t *Timer) Reset(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(d)
}

// WithTimeout returns a context that is cancelled after d of work, with the cause context.DeadlineExceeded. Call cancel
// when it is not needed any more.
func WithTimeout(parent context.Context, d time.Duration) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(parent)
	timer := AfterFunc(d, func() { end(context.DeadlineExceeded) })
	return ctx, func() { timer.Stop(); end(nil) }
}
