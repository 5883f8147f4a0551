package machine

import (
	"fmt"
	"slices"

	"dagrun.dev/dag"
)

// Apply folds one fact into the state. It accepts whatever the log may lawfully hold and never
// depends on a rule of Decide; an event that cannot have happened (a start of a node that is
// not in the plan, a second end of an attempt) is an *EventError and leaves the state as it
// was. An event with Seq 0 is taken as the next one. Cost: proportional to what the event
// changes; RUN_RESUMED, REWOUND, PLAN_ADOPTED and REVERTED may look at every node.
func (s *State) Apply(e *Event) error {
	if e.Seq != 0 && e.Seq != s.run.seq+1 {
		return &EventError{e.Seq, e.Type, fmt.Sprintf("is not the next one: %d is", s.run.seq+1)}
	}
	if err := s.apply(e); err != nil {
		return &EventError{s.run.seq + 1, e.Type, err.Error()}
	}
	if s.run.status == RunPause && !s.busy() {
		s.stopClock(ms(e.Time))
	}
	s.run.seq++
	s.run.updated = max(s.run.updated, ms(e.Time))
	return nil
}

func (s *State) apply(e *Event) error {
	if b, ok := e.Body.(*RunCreatedBody); ok {
		return s.onRunCreated(e, b)
	}
	if s.graph == nil {
		return fmt.Errorf("comes before %s", RunCreated)
	}
	switch b := e.Body.(type) {
	case *StartedBody:
		return s.onStarted(e, b)
	case *FinishedBody:
		return s.onFinished(e, b)
	case *QueuedBody:
		return s.onQueued(b)
	case *PlanExtendedBody:
		return s.onPlanExtended(e, b)
	case *PlanAdoptedBody:
		return s.onPlanAdopted(e, b)
	case *RewoundBody:
		return s.onRewound(b)
	case *RevertedBody:
		return s.onReverted(e, b)
	case *RunPausedBody:
		return s.onPaused(e, b)
	case *RunInterruptedBody:
		s.stopClock(s.run.updated)
		return nil
	case *RunResumedBody:
		return s.onResumed(e)
	case *RunEndedBody:
		return s.onEnded(e, b)
	case *LimitsChangedBody:
		return s.onLimits(b)
	case *BudgetWarnedBody:
		return s.onWarned(b)
	case *BreakerChangedBody:
		return s.onBreaker(e, b)
	case *CompensationBody:
		return s.onCompensation(e, b)
	case *EscalationOpenedBody:
		return s.onEscalation(e, b)
	case *EscalationAnsweredBody:
		return s.onAnswer(e, b)
	default:
		return s.world.apply(s, e)
	}
}

// find returns a node's index.
func (s *State) find(id string) (int32, error) {
	i, ok := s.graph.Index(id)
	if !ok {
		return -1, fmt.Errorf("node %s is not in the plan", id)
	}
	return i, nil
}

// findAll returns the indexes of nodes none of which has an attempt in flight.
func (s *State) findAll(ids []string) ([]int32, error) {
	list := make([]int32, len(ids))
	for k, id := range ids {
		i, err := s.find(id)
		if err != nil {
			return nil, err
		}
		if s.recs[i].phase == running {
			return nil, fmt.Errorf("node %s has an attempt in flight", id)
		}
		list[k] = i
	}
	return list, nil
}

func (s *State) onStarted(e *Event, b *StartedBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	r := &s.recs[i]
	switch {
	case int(r.gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.gen, b.Generation)
	case r.phase == running:
		return fmt.Errorf("node %s has an attempt in flight", b.Node)
	case r.phase == ended || r.phase == stale:
		return fmt.Errorf("node %s has ended", b.Node)
	case b.Attempt != int(r.attempt)+1:
		return fmt.Errorf("the next attempt of node %s is %d, not %d", b.Node, r.attempt+1, b.Attempt)
	}
	if r.attempt == 1 && r.more != nil && r.more.first == 0 {
		r.more.first = r.started
	}
	r.phase, r.attempt, r.started, r.due = running, int32(b.Attempt), ms(e.Time), false
	if m := r.more; m != nil {
		m.retryAt, m.hold, m.stopped, m.unresolved = 0, false, false, false
	}
	if b.Reserve != (dag.Amount{}) {
		r.m().reserved = b.Reserve
		s.ledger.reserve(b.Reserve, 1)
	}
	s.take(i)
	if b.Attempt == 1 {
		s.watchDeadline(i)
	}
	s.touch(i)
	return nil
}

// take occupies a place in the node's pool, and makes its attempt a probe where a breaker is
// not closed.
func (s *State) take(i int32) {
	for g, k := range s.classes[s.class[i]].gates {
		if k < 0 {
			continue
		}
		b := &s.breakers[k]
		if b.state != breakerClosed {
			s.recs[i].m().probe[g] = b.epoch + 1
		}
		if b.opened != 0 {
			b.started = s.recs[i].started
		}
	}
	s.regain(i)
}

// regain counts the places that a running attempt occupies.
func (s *State) regain(i int32) { s.occupy(i, 1) }

// release gives back what take took.
func (s *State) release(i int32) {
	s.occupy(i, -1)
	if m := s.recs[i].more; m != nil {
		m.probe = [2]int32{}
	}
}

func (s *State) occupy(i, by int32) {
	c := &s.classes[s.class[i]]
	if c.pool >= 0 {
		s.pools[c.pool].used += by
	}
	for g, k := range c.gates {
		if m := s.recs[i].more; k >= 0 && m != nil && m.probe[g] == s.breakers[k].epoch+1 {
			s.breakers[k].probing += by
		}
	}
}

func (s *State) watchDeadline(i int32) {
	if d := s.recs[i].deadline(s.graph.Node(i)); d != 0 {
		s.pushTimer(timer{d, i, timerDeadline})
	}
}

func (s *State) onQueued(b *QueuedBody) error {
	list, err := s.findAll(b.Nodes)
	if err != nil {
		return err
	}
	for _, i := range list {
		if b.Reason == "condition" {
			s.recs[i].cond = true
			s.touch(i)
		}
	}
	return nil
}

func (s *State) onPlanExtended(e *Event, b *PlanExtendedBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	r := &s.recs[i]
	switch {
	case int(r.gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.gen, b.Generation)
	case r.phase != idle || r.items != notExpanded:
		return fmt.Errorf("node %s has ended, runs, or was expanded", b.Node)
	}
	g, err := s.graph.Extend(b.Node, b.Nodes)
	if err != nil {
		return err
	}
	s.expansions = append(s.expansions, b)
	r.phase, r.end, r.items, r.endSeq = ended, endCompleted, int32(len(b.Nodes)), s.run.seq+1
	r.started, r.finished = ms(e.Time), ms(e.Time)
	before := s.detachedFrom(b.Node)
	s.extend(g)
	kept := before - s.detachedFrom(b.Node)
	if r = &s.recs[i]; r.gen > 1 && (kept < before || kept < len(b.Nodes)) {
		r.m().reshaped = true
	}
	s.dropDetached(func(x *detached) bool { return x.Of == b.Node })
	s.touch(i)
	if s.undoing >= 0 { // the new nodes may be among those that will be rewound
		s.undoing = -1
		s.findUndo()
	}
	return nil
}

func (s *State) onPlanAdopted(e *Event, b *PlanAdoptedBody) error {
	if e.Plan == nil {
		return fmt.Errorf("the plan %s is not attached", b.PlanDigest)
	}
	if b.Previous != "" && b.Previous != s.run.planDigest {
		return fmt.Errorf("the plan in force is %s, not %s", s.run.planDigest, b.Previous)
	}
	for _, i := range s.list(Running) {
		if _, ok := e.Plan.Index(s.graph.Node(i).ID); !ok {
			return fmt.Errorf("node %s, which is not in the new plan, has an attempt in flight", s.graph.Node(i).ID)
		}
	}
	ch := change{again: make(map[string]bool, len(b.Invalidated)), recheck: make(map[string]bool, len(b.Recheck))}
	for _, id := range b.Invalidated {
		ch.again[id] = true
		if i, ok := s.graph.Index(id); ok && s.recs[i].phase == running {
			return fmt.Errorf("node %s has an attempt in flight", id)
		}
	}
	for _, id := range b.Recheck {
		ch.recheck[id] = true
		if i, ok := s.graph.Index(id); ok && s.recs[i].phase != ended && s.recs[i].phase != stale {
			return fmt.Errorf("node %s has not ended", id)
		}
	}
	budgeted := e.Plan.Plan.Budget != s.graph.Plan.Budget // otherwise limits that were raised for this run stay
	declared := s.undeclared(e.Plan, ch.again)
	if err := s.regraph(e.Plan, ch); err != nil {
		return err
	}
	if declared {
		s.redeclare()
	}
	s.world.gates = slices.DeleteFunc(s.world.gates, func(v GateView) bool {
		_, stays := s.graph.Index(v.Node)
		return !stays
	})
	s.run.planDigest, s.run.name = b.PlanDigest, e.Plan.Plan.Name
	if budgeted {
		s.ledger.limit(e.Plan.Plan.Budget)
	}
	s.reopen()
	return nil
}

func (s *State) onRewound(b *RewoundBody) error {
	failed := false // a failure asked for it, not a join that has not ended
	if b.For != "" {
		i, err := s.find(b.For)
		if err != nil {
			return err
		}
		failed = s.recs[i].phase == ended
	}
	if err := s.sendBack(b.Nodes); err != nil {
		return err
	}
	if i, ok := s.graph.Index(b.For); ok && failed {
		s.recs[i].m().rewinds++
	} else if ok {
		s.recs[i].m().agains++
	}
	s.reopen()
	return nil
}

func (s *State) onReverted(e *Event, b *RevertedBody) error {
	if err := s.sendBack(b.Nodes); err != nil {
		return err
	}
	s.reopen()
	s.world.reverts = append(s.world.reverts, RevertView{Checkpoint: b.Checkpoint, Seq: s.run.seq + 1, Time: e.Time})
	return nil
}
