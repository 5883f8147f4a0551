package machine

import (
	"cmp"
	"fmt"
	"time"

	"dagrun.dev/dag"
)

func (s *State) onRunCreated(e Event, b *RunCreatedBody) error {
	switch {
	case s.graph != nil:
		return fmt.Errorf("the run was created before")
	case b.RunID == "":
		return fmt.Errorf("a run needs an id")
	case e.Plan == nil:
		return fmt.Errorf("the plan %s is not attached", b.PlanDigest)
	case b.Schema > Schema:
		return fmt.Errorf("schema version %d is newer than %d, the newest this version reads", b.Schema, Schema)
	}
	s.run = runFacts{ID: b.RunID, Name: b.Name, PlanDigest: b.PlanDigest, Seed: b.Seed, Seq: s.run.Seq,
		Previous: b.Previous, Created: ms(e.Time), Status: RunRunning, ActiveFrom: ms(e.Time)}
	s.observed.State = stateCreated
	s.recs = newRecs(e.Plan.Len())
	s.ledger.limit(e.Plan.Plan.Budget)
	s.build(e.Plan)
	return nil
}

func (s *State) onPaused(e Event, b *RunPausedBody) error {
	if s.run.Status.Ended() {
		return fmt.Errorf("the run has ended")
	}
	if b.Reason == PauseCancel || b.Reason == PauseFailure {
		s.run.UndoAll = s.run.UndoAll || b.Undo
		s.run.Cancelled = s.run.Ending == "" && b.Reason == PauseCancel
		s.end(cmp.Or(b.Message, "cancelled"))
		return nil
	}
	s.run.Status, s.run.Pause = RunPause, *b // what runs may end yet, and is active until then
	return nil
}

// onInterrupted ends the time of activity with the event before: nobody knows when the process died.
func (s *State) onInterrupted(_ Event, _ *RunInterruptedBody) error {
	s.stopClock(s.run.Updated)
	return nil
}

// onSuspended takes time out of the activity of the run and out of the total time of its nodes.
func (s *State) onSuspended(e Event, b *RunSuspendedBody) error {
	if b.IdleMS <= 0 {
		return fmt.Errorf("a run cannot stand still for %d ms", b.IdleMS)
	}
	if s.run.ActiveFrom != 0 {
		s.run.ActiveFrom = min(s.run.ActiveFrom+b.IdleMS, ms(e.Time))
	}
	for i := range s.recs {
		i := int32(i)
		if m := s.recs[i].Detail; m != nil && m.Pooled != 0 {
			m.Pooled = min(m.Pooled+b.IdleMS, ms(e.Time))
		}
		if at := s.deadline(i); at != 0 {
			s.recs[i].edit().Since = min(at-s.timeLimits(i).Total.D().Milliseconds()+b.IdleMS, ms(e.Time))
			s.watchDeadline(i)
		}
	}
	return nil
}

// onResumed goes on. After a pause or a failed end, what failed for good gets new attempts: that
// is what resuming says. Without one, a new process took over after a crash and nothing changes. A run
// that came to its end while it was paused (a fatal failure, an abort) goes on to that end; one that had failed and is
// taken up to be cancelled, with an undo, tries nothing again.
func (s *State) onResumed(e Event, b *RunResumedBody) error {
	broken := s.run.Status == RunBroken
	if broken {
		s.run.goesOn()
	}
	if i, ok := s.graph.Index(s.run.Compensating); ok && !s.undoAction(i).Effect.Repeatable() {
		s.recs[i].edit().UndoLost = true
	}
	again := s.run.Status == RunPause && s.run.Ending == "" || broken && b.By != ByCancel
	s.stopClock(s.run.Updated)
	s.run.ActiveFrom = ms(e.Time)
	if u := s.observed.lastUndo(); s.run.Compensating != "" {
		u.Status, u.Time = dag.StatusLost, e.Time
	}
	s.run.Compensating = ""
	s.run.Resumes++
	if !again {
		if s.run.Status != RunDone {
			s.run.Status = RunRunning
		}
		return nil
	}
	for i := range s.recs {
		r := &s.recs[i]
		r.tidy()
		switch {
		case s.status[i] == Failed && s.settled[i] == unsettled, s.status[i] == Stopped:
			r.fresh(ms(e.Time))
		case s.status[i] == Cancelled:
			r.Phase = idle
		case broken && r.detail().Left: // another undo tries it again
			r.Detail.notUndone()
		case r.Detail != nil:
			r.Detail.Waits, r.Detail.Pooled = 0, 0 // a pause is no wait
			if r.Attempt > 0 && r.Phase != ended {
				r.Detail.Since = ms(e.Time) // a pause does not use up the total time
			}
		}
	}
	s.run.Status = RunRunning
	s.build(s.graph)
	return nil
}

// ByCancel is the command that resumes a run to end it.
const ByCancel = "cancel"

func (s *State) onEnded(e Event, b *RunEndedBody) error {
	if s.run.Status.Ended() {
		return fmt.Errorf("the run has ended already")
	}
	s.stopClock(ms(e.Time))
	s.run.Status = RunDone
	if b.Failed {
		s.run.Status, s.run.Failed = RunBroken, b.Reason
	}
	return nil
}

// reopen makes an ended run one that can go on: nodes were sent back or the plan has changed.
func (s *State) reopen() {
	if s.run.Status == RunDone && s.open > 0 || s.run.Status == RunBroken {
		s.run.Status = RunRunning
		s.run.goesOn()
		s.build(s.graph)
	}
}

// goesOn forgets an end that had begun.
func (r *runFacts) goesOn() {
	r.Ending, r.Failed, r.Cancelled, r.UndoAll, r.UndoGivenUp = "", "", false, false, false
}

// busy reports whether something is under way.
func (s *State) busy() bool { return s.counts[Running] > 0 || s.run.Compensating != "" }

func (s *State) stopClock(now int64) {
	if s.run.ActiveFrom != 0 {
		s.run.Active += max(0, now-s.run.ActiveFrom)
		s.run.ActiveFrom = 0
	}
}

// activeAt is the time of activity up to an instant, in milliseconds.
func (s *State) activeAt(now int64) int64 {
	if s.run.ActiveFrom == 0 {
		return s.run.Active
	}
	return s.run.Active + max(0, now-s.run.ActiveFrom)
}

// Run returns what is known of the run as a whole.
func (s *State) Run() RunView {
	r := &s.run
	v := RunView{ID: r.ID, Name: r.Name, PlanDigest: r.PlanDigest, Seed: r.Seed, Seq: r.Seq,
		Created: at(r.Created), Updated: at(r.Updated), Status: r.Status, Pause: r.Pause,
		State: s.observed.State, Stable: s.observed.Stable,
		Active: time.Duration(s.activeAt(r.Updated)) * time.Millisecond, Ticking: r.ActiveFrom != 0,
		Resumes: r.Resumes, Failed: r.Failed, Part: r.Part, SavedPlans: r.SavedPlans, Previous: r.Previous}
	if s.ending != "" && r.Status != RunBroken {
		v.Failed = s.ending
		if r.Status == RunRunning {
			v.Status = RunEnding
		}
	}
	return v
}

// A RunView is the run as a whole.
type RunView struct {
	ID, Name   string
	PlanDigest string
	Seed       int64
	Seq        int64     // last event folded
	Created    time.Time // of RUN_CREATED
	Updated    time.Time // of the last event
	Status     RunStatus
	Pause      RunPausedBody // the pause in force, or the last one
	State      string        // declared by milestones; CREATED at first
	Stable     string        // last stable state
	Active     time.Duration // time of activity until Updated
	Ticking    bool          // it goes on: a process carries the run on, or did when it died
	Resumes    int
	Failed     string        // why the run failed, or ends, paused or not
	Part       dag.Selection // of the plan that is to run; empty: all of it
	SavedPlans []string      // ids of the saved plans that were applied
	Previous   *Ended        // the tick before this one; nil = none
}

// RunStatus is where a run stands.
type RunStatus string

const (
	RunRunning RunStatus = "running"
	RunPause   RunStatus = "paused"
	RunEnding  RunStatus = "ending" // fatal failure, abort or cancel: only clean-up runs
	RunDone    RunStatus = "completed"
	RunBroken  RunStatus = "failed"
)

// Ended reports whether a run is over, well or not, until something reopens it.
func (s RunStatus) Ended() bool { return s == RunDone || s == RunBroken }
