package run

import (
	"encoding/json"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
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
	quiet := o
	quiet.Observe, quiet.Project = nil, nil
	r, _, err := OpenReadOnly(quiet)
	if err != nil {
		return false, err
	}
	v, head, spent, plan := r.State().Run(), r.Head(), r.State().Spent(), r.Graph().Plan
	published := r.State().Published()
	if err := r.Close(); err != nil {
		return false, err
	}
	if v.Status != machine.RunDone && v.Status != machine.RunBroken {
		return false, nil
	}
	idle := v.Status == machine.RunDone && plan.Ticks != nil && v.State == plan.Ticks.Idle
	last, err := w.lastTick()
	if err != nil {
		return false, err
	}
	if last == nil || last.Away != v.ID { // else it was about to be moved when a process died
		next := LastTick{Away: v.ID, Day: day(v.Updated), Spent: last.On(v.Updated) + spent.USD}
		if last != nil {
			next.Ended = last.Ended
		}
		if !idle {
			next.Ended = machine.Ended{RunID: v.ID, Events: head.Seq, Head: head.Hash, Ticks: next.Ticks + 1}
		}
		data, err := json.Marshal(next)
		if err == nil {
			err = disk.WriteFile(w.own, previousFile, data)
		}
		if err != nil {
			return false, err
		}
	}
	to, err := w.archive(v.ID, v.Created, published)
	if err == nil && idle {
		err = w.own.RemoveAll(to[len(Dir)+1:])
	}
	return err == nil, err
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
