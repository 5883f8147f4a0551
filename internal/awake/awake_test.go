package awake

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A timer calls once its time of work has gone by, to the moment, and not again.
func TestTimer(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, Beat, 90 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			began, calls := time.Now(), make(chan time.Duration, 2)
			AfterFunc(d, func() { calls <- time.Since(began) })
			if took := <-calls; took != d {
				t.Errorf("%v took %v", d, took)
			}
			time.Sleep(2 * time.Hour)
			if len(calls) > 0 {
				t.Error("it was called again")
			}
		})
	}
}

// What went by while nobody could look is taken out: the process was stopped.
func TestTimerOfAProcessThatWasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		timer := AfterFunc(5*time.Second, func() { done.Store(true) })
		defer timer.Stop()
		time.Sleep(1500 * time.Millisecond)
		timer.mu.Lock()
		timer.began = timer.began.Add(-7 * time.Second) // as the timer finds it when it is let go on
		timer.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if done.Load() {
			t.Error("the time in which the process was stopped counted")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !done.Load() {
			t.Error("the timer is not done")
		}
	})
}

// A timer that was stopped calls nothing, one that was reset counts from then.
func TestStopAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		timer := AfterFunc(10*time.Second, func() { calls.Add(1) })
		for range 5 {
			time.Sleep(9 * time.Second)
			timer.Reset(10 * time.Second)
		}
		timer.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := calls.Load(); n != 0 {
			t.Errorf("%d calls", n)
		}
		timer.Reset(time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls after it was reset", n)
		}
	})
}

// The cause of a context's end is the time that is over, or what ended the one above.
func TestWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := WithTimeout(t.Context(), time.Minute)
		<-ctx.Done()
		cancel()
		if context.Cause(ctx) != context.DeadlineExceeded {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		above, end := context.WithCancelCause(t.Context())
		ctx, cancel = WithTimeout(above, time.Minute)
		defer cancel()
		end(context.Canceled)
		<-ctx.Done()
		if context.Cause(ctx) != context.Canceled {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
	})
}

// A busy machine is not asleep.
func TestSlept(t *testing.T) {
	for _, c := range [][3]time.Duration{
		{Beat, Beat, 0}, {Beat + late - 1, Beat, 0}, {Beat + late, Beat, late}, {2 * time.Hour, 0, 2 * time.Hour},
		{8 * time.Second, Beat, 7 * time.Second}, {time.Minute, time.Minute, 0},
	} {
		if got := Slept(c[0], c[1]); got != c[2] {
			t.Errorf("%v went by where %v was waited for: %v", c[0], c[1], got)
		}
	}
}
