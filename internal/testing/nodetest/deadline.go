package nodetest

import (
	"context"
	"sync"
	"time"
)

// Deadline returns a context that passes its deadline when pass is called, and not before: a test that waits for
// what a child says needs no limit that a busy machine could fall short of. pass may be called again.
func Deadline() (ctx context.Context, pass func()) {
	d := make(deadline)
	return d, sync.OnceFunc(func() { close(d) })
}

type deadline chan struct{}

func (d deadline) Deadline() (time.Time, bool) { return time.Time{}, false }
func (d deadline) Done() <-chan struct{}       { return d }
func (d deadline) Value(any) any               { return nil }

func (d deadline) Err() error {
	select {
	case <-d:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
