package machine

import (
	"cmp"
	"fmt"
	"time"
)

func (s *State) onRunCreated(e *Event, b *RunCreatedBody) error {
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
	s.run = runFacts{id: b.RunID, name: b.Name, planDigest: b.PlanDigest, seed: b.Seed, seq: s.run.seq,
		created: ms(e.Time), status: RunRunning, activeFrom: ms(e.Time)}
	s.world.state = "CREATED"
	s.undoNode, s.undoing = -1, -1
	s.recs = make([]rec, e.Plan.Len())
	for i := range s.recs {
		s.recs[i] = rec{gen: 1, items: notExpanded}
	}
	s.ledger.limit(e.Plan.Plan.Budget)
	s.build(e.Plan)
	return nil
}

func (s *State) onPaused(e *Event, b *RunPausedBody) error {
	if s.run.status == RunDone || s.run.status == RunBroken {
		return fmt.Errorf("the run has ended")
	}
	if b.Reason == PauseCancel {
		s.end(cmp.Or(b.Message, "cancelled"))
		return nil
	}
	s.run.status, s.run.pause = RunPause, *b // what runs may end yet, and is active until then
	return nil
}

// onResumed goes on. After a pause or a failed end, what failed for good gets new attempts: that
// is what resuming says. Without one, a new process took over after a crash and nothing changes. A run
// that came to its end while it was paused (a fatal failure, an abort) goes on to that end.
func (s *State) onResumed(e *Event) error {
	if s.run.status == RunBroken {
		s.run.ending = ""
	}
	again := s.run.status == RunPause && s.run.ending == "" || s.run.status == RunBroken
	s.stopClock(s.run.updated)
	s.run.activeFrom = ms(e.Time)
	s.undoNode = -1
	s.run.resumes++
	if !again {
		if s.run.status != RunDone {
			s.run.status = RunRunning
		}
		return nil
	}
	for i := range s.recs {
		r := &s.recs[i]
		switch {
		case s.status[i] == Failed && s.settled[i] == unsettled, s.status[i] == Stopped:
			r.fresh(ms(e.Time))
		case s.status[i] == Cancelled:
			r.phase = idle
		case r.more != nil:
			r.more.waits = 0
			if r.attempt > 0 && r.phase != ended {
				r.more.since = ms(e.Time) // a pause does not use up the total time
			}
		}
	}
	s.run.status, s.run.failed = RunRunning, ""
	s.build(s.graph)
	s.withdraw()
	return nil
}

func (s *State) onEnded(e *Event, b *RunEndedBody) error {
	if s.run.status == RunDone || s.run.status == RunBroken {
		return fmt.Errorf("the run has ended already")
	}
	s.stopClock(ms(e.Time))
	s.run.status = RunDone
	if b.Failed {
		s.run.status, s.run.failed = RunBroken, b.Reason
	}
	return nil
}

// reopen makes an ended run one that can go on: nodes were sent back or the plan has changed.
func (s *State) reopen() {
	if s.run.status == RunDone && s.open > 0 || s.run.status == RunBroken {
		s.run.status, s.run.ending, s.ending, s.run.failed = RunRunning, "", "", ""
		s.build(s.graph)
	}
}

// busy reports whether something is under way.
func (s *State) busy() bool { return s.counts[Running] > 0 || s.undoNode >= 0 }

func (s *State) stopClock(now int64) {
	if s.run.activeFrom != 0 {
		s.run.active += max(0, now-s.run.activeFrom)
		s.run.activeFrom = 0
	}
}

// activeAt is the time of activity up to an instant, in milliseconds.
func (s *State) activeAt(now int64) int64 {
	if s.run.activeFrom == 0 {
		return s.run.active
	}
	return s.run.active + max(0, now-s.run.activeFrom)
}

// Run returns what is known of the run as a whole.
func (s *State) Run() RunView {
	r := &s.run
	v := RunView{ID: r.id, Name: r.name, PlanDigest: r.planDigest, Seed: r.seed, Seq: r.seq,
		Created: at(r.created), Updated: at(r.updated), Status: r.status, Pause: r.pause,
		State: s.world.state, Stable: s.world.stable,
		Active: time.Duration(s.activeAt(r.updated)) * time.Millisecond, Ticking: r.activeFrom != 0, Resumes: r.resumes, Failed: r.failed}
	if r.status == RunRunning && s.ending != "" {
		v.Status, v.Failed = RunEnding, s.ending
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
	Failed     string // why the run failed, or ends
}

// RunStatus is where a run stands.
type RunStatus string

const (
	RunNone    RunStatus = ""
	RunRunning RunStatus = "running"
	RunPause   RunStatus = "paused"
	RunEnding  RunStatus = "ending" // fatal failure, abort or cancel: only clean-up runs
	RunDone    RunStatus = "completed"
	RunBroken  RunStatus = "failed"
)
