package proc

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"dagrun.dev/internal/awake"
	"dagrun.dev/internal/disk"
)

const (
	pollMost  = 100 * time.Millisecond
	pollLeast = 5 * time.Millisecond
)

// watch calls end when ctx is cancelled, and follows the two files, until over is called once the child has
// ended; that looks once more, to their end, and returns when it is done. A child that ends at once is not worth a
// goroutine, nor a place in a context: it is not ended earlier than pollLeast after its start.
//
// It asks for their size a few times a second: that costs a system call, works on every file
// system, and no writer can be blocked by it.
func watch(ctx context.Context, end func(), s *Spec, c *child, r *Result) (over func()) {
	f := follower{spec: s, child: c, result: r, out: r.Stdout, errs: r.Stderr, fresh: time.Now()}
	f.seen, f.most, f.begun = f.fresh, pollMost, f.fresh
	follows := s.Watch != nil || s.Silence > 0 || s.Beat != nil || s.MostOutput > 0 || s.Follow != nil
	stop, done := make(chan struct{}), make(chan struct{})
	first := time.AfterFunc(pollLeast, func() {
		defer close(done)
		defer context.AfterFunc(ctx, end)()
		if follows {
			f.follow(stop)
		}
		<-stop
	})
	return func() {
		if close(stop); !first.Stop() {
			<-done
		}
		if follows && r.Stdout.exited+r.Stderr.exited > 0 { // most print nothing
			f.look(time.Now())
		}
	}
}

// follow looks more and more seldom while nothing comes.
func (f *follower) follow(stop <-chan struct{}) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for pause := pollLeast; ; {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			pause = min(2*pause, pollMost)
			if f.look(now) {
				pause = pollLeast
			}
			tick.Reset(max(pollLeast, min(pause, f.most)))
		}
	}
}

// A follower reads what is new in a child's output.
type follower struct {
	spec      *Spec
	child     *child
	result    *Result
	out, errs *Capture      // its streams
	most      time.Duration // until the next look

	buf             []byte
	read            int64 // bytes of stdout that Watch has seen
	outLen, errsLen int64
	fresh           time.Time // when output grew last
	beat            time.Time
	resultAt        time.Time // when Watch said that the result is there
	seen            time.Time // when it looked last
	begun           time.Time
	told            [2]int64 // bytes of each stream that Follow has seen
}

// followAfter is when a child has run for so long that somebody may be looking, followMost how much of a stream is
// worth it.
const (
	followAfter = 300 * time.Millisecond
	followMost  = 16 << 20
)

// tell gives Follow what is new of a stream and returns how much of it is known then.
func (f *follower) tell(errs bool, c *Capture, from, to int64) int64 {
	if f.buf == nil {
		f.buf = make([]byte, 64<<10)
	}
	if most := f.spec.MostOutput; most > 0 {
		to = min(to, most)
	}
	for to = min(to, followMost); from < to; {
		n, _ := c.f.ReadAt(f.buf[:min(int64(len(f.buf)), to-from)], from)
		if n == 0 {
			break // the child truncated its own output
		}
		f.spec.Follow(errs, f.buf[:n])
		from += int64(n)
	}
	return from
}

// look says whether output grew since the last look.
func (f *follower) look(now time.Time) bool {
	if slept := awake.Slept(now.Sub(f.seen), pollMost); slept > 0 { // as if it had not been
		f.fresh = f.fresh.Add(slept)
		if !f.resultAt.IsZero() {
			f.resultAt = f.resultAt.Add(slept)
		}
	}
	f.seen = now
	outLen, errsLen := f.out.grown(), f.errs.grown()
	grew := outLen != f.outLen || errsLen != f.errsLen
	f.outLen, f.errsLen = outLen, errsLen
	if grew {
		f.fresh = now
		if f.spec.Beat != nil && now.Sub(f.beat) >= pollMost {
			f.beat = now
			f.spec.Beat()
		}
	}
	if grew && f.spec.MostOutput > 0 {
		f.limit()
	}
	f.feed(now)
	if f.spec.Follow != nil && now.Sub(f.begun) >= followAfter {
		f.told[0] = f.tell(false, f.out, f.told[0], f.outLen)
		f.told[1] = f.tell(true, f.errs, f.told[1], f.errsLen)
	}
	switch {
	case !f.resultAt.IsZero():
		if now.Sub(f.resultAt) >= cmp.Or(f.spec.ExitGrace, defaultExitGrace) {
			f.child.end(Lingered)
		}
	case f.spec.Silence > 0 && now.Sub(f.fresh) >= f.spec.Silence:
		f.child.end(Silent)
	}
	return grew
}

// printed counts the bytes that children of this process have printed and that may have to be copied yet.
var printed atomic.Int64

const (
	smallOutput = 16 << 20 // bytes that a child may print however full the disk is
	leastFree   = 64 << 20 // bytes that no child's output takes from the rest of the run
	fastest     = 2 << 30  // bytes a second: as fast as a child may well print
)

// limit ends a child that has printed more than can be accepted, and kills one that goes on printing. Otherwise it
// sets the time until the next look by how soon that could be so.
func (f *follower) limit() {
	size := f.outLen + f.errsLen
	printed.Add(size - f.result.counted)
	f.result.counted = size
	room := f.spec.MostOutput - size
	if size > smallOutput {
		room = min(room, disk.Free(f.spec.folder())-leastFree-printed.Load())
	}
	switch {
	case room >= 0:
		f.most = time.Duration(float64(room) / fastest * float64(time.Second))
	case f.child.why() == Limited:
		f.child.kill()
	default:
		f.child.end(Limited)
	}
}

func (f *follower) feed(now time.Time) {
	if f.spec.Watch == nil {
		return
	}
	if f.buf == nil {
		f.buf = make([]byte, 64<<10)
	}
	for f.read < f.outLen {
		n, err := f.out.f.ReadAt(f.buf, f.read)
		if n == 0 {
			_ = err // the file shrank: the child truncated its own output
			return
		}
		f.read += int64(n)
		switch done := f.spec.Watch(f.buf[:n]); {
		case !done:
			f.resultAt = time.Time{}
		case f.resultAt.IsZero():
			f.resultAt = now
		}
	}
}
