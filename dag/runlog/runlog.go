// Package runlog writes the six logs of a run and compares them with its events.
//
// The logs are projections: what a line says follows from one event and the state as of it (see table), and a log that
// is lost or damaged is made again from the events. Writing them cuts off and overwrites files of the run's folder;
// Rebuild and Update take the run's lock. It decides nothing and reads no log but to compare it.
package runlog

import (
	"sync"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// Logs keeps the six logs of a run up to its events while the run goes on. A goroutine of their own appends lines some
// time after the events are durable, and whatever a crash, a full disk or a queue that is too long left out is made
// good from the events. A log that cannot be written is a warning, never the end of a run.
type Logs struct {
	warn func(string)
	run  *run.Run
	o    run.Options

	mu    sync.Mutex
	queue []entry
	first int64 // Invariant: the queue holds what is worth a line of the events first..last
	last  int64

	wake, quit chan struct{}
	done       chan struct{}

	// The goroutine's own.
	files  *logFiles
	opened int64 // the last event that was there when the run was opened
	failed bool
}

// Entries that wait in memory; more are dropped and later read from the events again.
const mostQueued = 1 << 15

// Lines are written this long after their events at most, unless the disk is slow.
const logEvery = 100 * time.Millisecond

// New returns logs whose Project belongs into the run's options. warn takes one line for the
// user and may be called from any goroutine.
func New(warn func(string)) *Logs {
	return &Logs{warn: warn, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// Project takes in an event; see run.Options.
func (l *Logs) Project(e *machine.Event, st *machine.State) {
	en, worth := newEntry(e, st)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == 0 || e.Seq != l.last+1 || len(l.queue) >= mostQueued {
		l.queue, l.first = nil, e.Seq
	}
	l.last = e.Seq
	if worth {
		l.queue = append(l.queue, en)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Start begins to write the logs of a run that was opened for writing with o, the options that hold
// Project. Stop must follow, on the goroutine that owns the run.
func (l *Logs) Start(r *run.Run, o run.Options) {
	l.run, l.o, l.opened = r, o, r.Head().Seq
	l.o.Observe, l.o.Project = nil, nil
	l.mu.Lock()
	if l.first == 0 { // nothing was folded: the snapshot is the head
		l.first, l.last = r.Head().Seq+1, r.Head().Seq
	}
	l.mu.Unlock()
	go l.write()
}

// Stop writes what is missing and ends. It is called before the run is closed, while nobody else may
// write. What is not durable by then is left to the next start.
func (l *Logs) Stop() {
	if r := l.run; r.Wait(run.Mark{Seq: r.Head().Seq, Sync: true}) != nil {
		l.warn("the last events are not confirmed by the disk; the logs end before them")
	}
	close(l.quit)
	<-l.done
}

func (l *Logs) write() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.quit:
			l.flush(true)
			return
		case <-timer.C:
		}
		more := l.flush(false)
		timer.Reset(logEvery)
		if more {
			continue
		}
		select {
		case <-l.quit:
			l.flush(true)
			return
		case <-l.wake:
		}
	}
}

// flush writes the lines of all durable events and reports whether some must wait. After an error only the last flush
// tries again.
func (l *Logs) flush(final bool) (more bool) {
	ready, first, synced, last := l.take()
	if l.failed && !final {
		return false
	}
	err := l.append(ready, first, synced, last)
	if err == nil && final {
		err = l.files.close()
		l.files = nil
	}
	if err == nil {
		return last > synced
	}
	_ = l.files.close()
	l.files = nil
	if !l.failed {
		l.warn("the logs in " + run.Dir + "/" + run.LogsDir + " cannot be written: " + err.Error() +
			". The run goes on. Fix the cause, then dagrun replay --logs makes them from the events.")
	}
	l.failed = true
	return false
}

// take removes from the queue what is durable: it covers the events first to synced. Those up to last must wait.
func (l *Logs) take() (ready []entry, first, synced, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	synced = min(l.run.Synced(), l.last)
	n := 0
	for n < len(l.queue) && l.queue[n].e.Seq <= synced {
		n++
	}
	ready, first = l.queue[:n:n], l.first
	l.queue = l.queue[n:]
	l.first = max(l.first, synced+1)
	return ready, first, synced, l.last
}

// append writes the lines of the entries, which cover the events first to synced, and before them those of events that
// no entry covers.
func (l *Logs) append(ready []entry, first, synced, last int64) (err error) {
	if l.files == nil {
		if l.files, err = openLogs(l.o); err != nil {
			return err
		}
	}
	if l.files.at.Seq > last {
		l.warn("the logs hold lines of events that are gone; they are written anew")
		if err := l.files.restart(); err != nil {
			return err
		}
	}
	if err := l.files.catchUp(l.o, min(first-1, synced)); err != nil {
		return err
	}
	for i := range ready {
		if ready[i].e.Seq > l.files.at.Seq {
			l.files.add(&ready[i])
		}
	}
	if l.files.at.Seq < synced {
		if err := l.files.flush(synced); err != nil {
			return err
		}
	}
	return l.files.trim(l.opened)
}

// Rebuild makes the six logs of a run from its events anew. It takes the run's lock. They are written over
// what stands there; the result is that of a run that was never disturbed, byte for byte.
func Rebuild(o run.Options) error { return renew(o, true) }

// Update appends to the six logs what the events say and the logs do not, for commands that record something without
// carrying the run on. It takes the run's lock.
func Update(o run.Options) error { return renew(o, false) }

func renew(o run.Options, anew bool) error {
	release, err := run.Hold(o)
	if err != nil {
		return err
	}
	defer release()
	f, err := openLogs(o)
	if err != nil {
		return err
	}
	if anew {
		err = f.restart()
	}
	if err == nil {
		err = f.catchUp(o, toEnd)
	}
	if err == nil {
		err = f.trim(0)
	}
	if err != nil {
		_ = f.close()
		return err
	}
	return f.close()
}
