package run

import (
	"fmt"
	"path"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
)

// PutAway moves a tick that has ended to the archives, or removes it where it was idle, so that Create begins the next.
// It reports whether it did: a tick that has not ended stays, to be carried on. It takes the lock for the time.
// Errors: those of OpenReadOnly, *eventlog.Locked.
func PutAway(o Options) (done bool, err error) {
	w, err := enter(o)
	if err != nil {
		return false, err
	}
	defer w.leave()
	r, err := quietly(o)
	if err != nil {
		return false, err
	}
	v, head, spent, plan := r.State().Run(), r.Head(), r.State().Spent(), r.Graph().Plan
	published := r.State().Published()
	if err := r.Close(); err != nil {
		return false, err
	}
	if !v.Status.Ended() {
		return false, nil
	}
	idle := v.Status == machine.RunDone && plan.Ticks != nil && v.State == plan.Ticks.Idle
	last, err := w.lastTick()
	if err != nil {
		return false, err
	}
	next := LastTick{}
	if last != nil {
		next = *last
	}
	ended := tick{Ended: machine.Ended{RunID: v.ID, Events: head.Seq, Head: head.Hash, Ticks: 1}, Previous: v.Previous,
		Status: v.Status, Over: v.Updated, Spent: spent}
	if v.Previous != nil {
		ended.Ticks += v.Previous.Ticks
	}
	if next.Away != v.ID { // else it was about to be moved when a process died
		next.Away, next.Day, next.Spent = v.ID, day(v.Updated), last.On(v.Updated)+spent.USD
		switch {
		case !idle:
			next.Ended = ended.Ended
		case v.Previous != nil: // the log knows, whatever has become of the file
			next.Ended = *v.Previous
		}
		if idle {
			next.Garbage++
		}
		if err := writeJSON(w.own, previousFile, &next); err != nil {
			return false, err
		}
	}
	as, moved := goneArchive+"idle", false
	if !idle {
		as = fmt.Sprintf("%s%08d", tickArchive, ended.Ticks)
		if err := writeJSON(w.own, dag.OwnTick, &ended); err != nil {
			return false, err
		}
		ended.archive = path.Join(archives, archiveName(as, v.ID, v.Created))
		// Without power what was moved may be back, and stay where it was moved to as well.
		moved = tickFolder{w.own}.checkTick(ended) == nil
	}
	if moved {
		err = w.leaveArchived()
	} else {
		_, err = w.archive(as, v.ID, v.Created, published)
	}
	if err != nil {
		return false, err
	}
	return true, w.tidyUp(&next, plan.Ticks)
}

// leaveArchived removes a run that stands in the archives already, the log last.
func (r *Run) leaveArchived() error {
	names, err := r.movable()
	for _, name := range names {
		if err == nil {
			err = r.own.RemoveAll(name)
		}
	}
	if err == nil {
		err = r.own.SyncDir(".")
	}
	return err
}

// tidyUp removes the ticks that are not kept, and now and then what only they had in the store.
func (r *Run) tidyUp(last *LastTick, t *dag.Ticks) error {
	keep := dag.Keep{}
	if t != nil {
		keep = t.Keep
	}
	removed, err := tickFolder{r.own}.retain(keep, r.o.Now)
	if err != nil {
		return err
	}
	garbage := last.Garbage + removed
	if garbage >= leastGarbage {
		list, err := r.own.ReadDir(archives)
		if err != nil {
			return err
		}
		if garbage >= len(list) { // so seldom that it costs each tick the same, however many are kept
			if err := (collector{r.own, r.store}).collect(); err != nil {
				return err
			}
			garbage = 0
		}
	}
	if garbage == last.Garbage {
		return nil
	}
	last.Garbage = garbage
	return writeJSON(r.own, previousFile, last)
}

// HoldTicks takes an output directory for one process that carries out ticks and waits between them. Other processes
// may carry out ticks while that waits. Errors: *eventlog.Locked.
func HoldTicks(o Options) (release func(), err error) {
	if err := makeOutput(o.Dir); err != nil {
		return nil, err
	}
	r, err := attach(o, true)
	if err != nil {
		return nil, err
	}
	lock, err := eventlog.AcquireLock(r.own, dag.OwnWatch, o.Command, o.Now)
	if err != nil {
		r.closeTrees()
		return nil, err
	}
	return func() { lock.Release(); r.closeTrees() }, nil
}
