package dagtest

import (
	"bytes"
	"fmt"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// restart drops the state and folds the log again, as a new process does; attempts that were in
// flight are lost, some after they took effect.
func (s *Sim) restart() error {
	live, err := s.State.AppendSnapshot(nil)
	if err != nil {
		return err
	}
	state := new(machine.State)
	if len(s.Events) > 0 && s.Snapshots {
		if state, err = machine.RestoreSnapshot(live, s.Graph); err != nil {
			return err
		}
	} else {
		for i := range s.Events {
			if err := state.Apply(&s.Events[i]); err != nil {
				return err
			}
		}
	}
	if folded, err := state.AppendSnapshot(nil); err != nil || !bytes.Equal(live, folded) {
		return fmt.Errorf("the snapshot differs from the replay (%v):\n%s\n%s", err, live, folded)
	}
	if err := s.same(state); err != nil {
		return err
	}
	s.State = state
	if len(s.Events) == 0 {
		p := s.Graph.Plan
		return s.record(&machine.RunCreatedBody{
			RunID: "sim", Name: p.Name, PlanDigest: "plan", Schema: machine.Schema, Seed: p.Seed})
	}
	s.pass(s.now.Add(time.Minute))
	s.undoing = ""
	if state.Run().Status.Ended() {
		return nil
	}
	before, deaths := state.Run(), len(s.died)
	if before.Ticking {
		if err := s.record(&machine.RunInterruptedBody{}); err != nil || len(s.died) > deaths {
			return err
		}
	}
	for i := range int32(state.Graph().Len()) {
		if v := state.NodeAt(i); v.Status == machine.Running {
			a := s.running[v.Node.ID]
			delete(s.running, v.Node.ID)
			if a.node != nil && !a.done && s.fate(a).Status == dag.StatusCompleted && s.flip(v.Node.ID, "effect") {
				s.effect(a)
			}
			lost := state.Settle(v.Node.ID, machine.Outcome{Status: dag.StatusLost}, s.now)
			if err := s.record(lost.Body); err != nil || len(s.died) > deaths {
				return err // killed again: the next restart has done the rest
			}
		}
	}
	if state.Run().Status == machine.RunPause {
		return nil
	}
	if err := s.record(&machine.RunResumedBody{By: "apply"}); err != nil || len(s.died) > deaths {
		return err
	}
	if after := state.Run(); after.Active != before.Active {
		return fmt.Errorf("the run was active for %s when its process died and is so for %s when the next begins",
			before.Active, after.Active)
	}
	return nil
}

// same holds what is derived in the live state against what a fresh fold derives.
func (s *Sim) same(other *machine.State) error {
	if s.State.Graph() == nil {
		return nil
	}
	s.State.Advance(s.now)
	for i := range int32(s.State.Graph().Len()) { // S-2: what is told of a run does not depend on how far its state has moved
		if x, y := s.State.NodeAt(i), other.NodeAt(i); x.Recorded != y.Recorded {
			return fmt.Errorf("node %s is recorded as %s, in a fresh fold as %s", x.Node.ID, x.Recorded, y.Recorded)
		}
	}
	other.Advance(s.now)
	a, _ := s.State.Decide(s.now, 100)
	b, _ := other.Decide(s.now, 100)
	if !equal(a, b) {
		return fmt.Errorf("a fresh fold decides otherwise:\n%s\n%s", show(a), show(b))
	}
	for i := range int32(s.State.Graph().Len()) {
		if x, y := s.State.NodeAt(i), other.NodeAt(i); x.Status != y.Status || x.Blocked != y.Blocked {
			return fmt.Errorf("node %s is %s, in a fresh fold %s", x.Node.ID, x.Status, y.Status)
		}
	}
	return nil
}
