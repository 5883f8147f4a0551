package machine

import (
	"fmt"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// Apply folds one fact into the state. It accepts whatever the log may lawfully hold and never
// depends on a rule of Decide; an event that cannot have happened (a start of a node that is
// not in the plan, a second end of an attempt) is an *EventError and leaves the state as it
// was. An event with Seq 0 is taken as the next one. Cost: proportional to what the event
// changes; RUN_RESUMED, REWOUND, PLAN_ADOPTED, REVERTED, WORK_ITEM_FINISHED and COMPENSATION_FINISHED may look
// at every node.
func (s *State) Apply(e *Event) error {
	seq := s.run.Seq + 1
	if e.Seq != 0 && e.Seq != seq {
		return &EventError{e.Seq, e.Type, fmt.Sprintf("is not the next one: %d is", seq)}
	}
	if err := s.apply(e); err != nil {
		return &EventError{seq, e.Type, err.Error()}
	}
	s.notice(e)
	if s.run.Status == RunPause && !s.busy() {
		s.stopClock(ms(e.Time))
	}
	s.run.Seq = seq
	s.run.Updated = max(s.run.Updated, ms(e.Time))
	return nil
}

func (s *State) apply(e *Event) error {
	d, ok := byType[e.Type]
	switch {
	case !ok:
		return fmt.Errorf("unknown event: a newer version wrote it")
	case s.graph == nil && e.Type != RunCreated:
		return fmt.Errorf("comes before %s", RunCreated)
	}
	if err := d.fold(s, *e); err != nil {
		return err
	}
	s.withdraw()
	s.findUndo()
	return nil
}

// find returns a node's index.
func (s *State) find(id string) (int32, error) {
	i, ok := s.graph.Index(id)
	if !ok {
		return none, fmt.Errorf("node %s is not in the plan", id)
	}
	return i, nil
}

// underWay returns the node of an attempt that is in flight.
func (s *State) underWay(node string, generation, attempt int) (int32, error) {
	i, err := s.find(node)
	if err != nil {
		return i, err
	}
	if r := &s.recs[i]; r.Phase != running || int(r.Gen) != generation || int(r.Attempt) != attempt {
		return i, fmt.Errorf("attempt %d of node %s, generation %d, is not under way", attempt, node, generation)
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
		if s.recs[i].Phase == running {
			return nil, fmt.Errorf("node %s has an attempt in flight", id)
		}
		list[k] = i
	}
	return list, nil
}

func (s *State) onStarted(e Event, b *StartedBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	r := &s.recs[i]
	if began(r, b) {
		r.Detail.Queued, r.Started = false, ms(e.Time)
		s.watchDeadline(i)
		return nil
	}
	switch {
	case int(r.Gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.Gen, b.Generation)
	case r.Phase == running:
		return fmt.Errorf("node %s has an attempt in flight", b.Node)
	case r.Phase == ended || r.Phase == stale:
		return fmt.Errorf("node %s has ended", b.Node)
	case b.Attempt != int(r.Attempt)+1:
		return fmt.Errorf("the next attempt of node %s is %d, not %d", b.Node, r.Attempt+1, b.Attempt)
	}
	if r.Attempt == 1 {
		r.edit().First = r.Started
	}
	r.Phase, r.Attempt, r.Started, r.due = running, int32(b.Attempt), ms(e.Time), false
	if m := r.Detail; m != nil {
		m.between()
		m.Took = ""
	}
	if b.Reserve != (dag.Amount{}) {
		r.edit().Reserved = b.Reserve
		s.ledger.reserve(b.Reserve, 1)
	}
	if b.Queued {
		r.edit().Queued = true
	}
	s.take(i)
	s.watchDeadline(i)
	s.touch(i)
	return nil
}

// began reports whether a start says that a worker has begun the attempt that was handed over.
func began(r *rec, b *StartedBody) bool {
	return r.Phase == running && r.detail().Queued && !b.Queued &&
		int(r.Gen) == b.Generation && int(r.Attempt) == b.Attempt
}

// take occupies a place in the node's pool, and makes its attempt a probe where a breaker is
// not closed.
func (s *State) take(i int32) {
	for g, k := range s.classes[s.class[i]].gates {
		if k == none {
			continue
		}
		b := &s.breakers[k]
		if b.State != breakerClosed {
			*s.recs[i].edit().probe(g) = b.Epoch + 1
		}
		b.Started = s.recs[i].Started
	}
	s.occupy(i, 1)
}

// occupy counts the places that a running attempt occupies, and with -1 gives them back.
func (s *State) occupy(i, by int32) {
	c := &s.classes[s.class[i]]
	if c.pool != none {
		s.pools[c.pool].used += by
	}
	for g, k := range c.gates {
		if m := s.recs[i].Detail; k != none && m != nil && *m.probe(g) == s.breakers[k].Epoch+1 {
			s.breakers[k].probing += by
		}
	}
}

func (s *State) onQueued(e Event, b *QueuedBody) error {
	list, err := s.findAll(b.Nodes)
	if err != nil {
		return err
	}
	for _, i := range list {
		switch b.Reason {
		case "condition":
			s.recs[i].Cond = true
			s.touch(i)
		case queuedPool:
			s.recs[i].edit().Pooled = ms(e.Time)
		}
	}
	return nil
}

func (s *State) onPlanExtended(e Event, b *PlanExtendedBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	r := &s.recs[i]
	switch {
	case int(r.Gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.Gen, b.Generation)
	case r.Phase != idle:
		return fmt.Errorf("node %s has ended, runs, or was expanded", b.Node)
	}
	g, err := s.graph.Extend(b.Node, b.Nodes)
	if err != nil {
		return err
	}
	s.expansions = append(s.expansions, b)
	s.finish(r, reuse.Completed)
	r.Expanded, r.Items = true, int32(len(b.Nodes))
	r.Started, r.Finished = ms(e.Time), ms(e.Time)
	before := s.detachedFrom(b.Node)
	s.extend(g)
	kept := before - s.detachedFrom(b.Node)
	if r = &s.recs[i]; r.Gen > 1 && (kept < before || kept < len(b.Nodes)) {
		r.edit().Reshaped = true
	}
	s.dropDetached(func(x *detached) bool { return x.Of == b.Node })
	s.touch(i)
	s.undoing = none // the new nodes may be among those that will be rewound
	return nil
}

func (s *State) onPlanAdopted(e Event, b *PlanAdoptedBody) error {
	if e.Plan == nil {
		return fmt.Errorf("the plan %s is not attached", b.PlanDigest)
	}
	if b.Previous != "" && b.Previous != s.run.PlanDigest {
		return fmt.Errorf("the plan in force is %s, not %s", s.run.PlanDigest, b.Previous)
	}
	ch := change{again: make(map[string]bool, len(b.Invalidated)), recheck: make(map[string]bool, len(b.Recheck))}
	for _, id := range b.Invalidated {
		ch.again[id] = true
		if i, ok := s.graph.Index(id); ok && s.recs[i].Phase == running {
			return fmt.Errorf("node %s has an attempt in flight", id)
		}
	}
	for _, id := range b.Recheck {
		ch.recheck[id] = true
		if i, ok := s.graph.Index(id); ok && s.recs[i].Phase != ended && s.recs[i].Phase != stale {
			return fmt.Errorf("node %s has not ended", id)
		}
	}
	for _, i := range s.list(Running) {
		if s.leaves(i, e.Plan, ch.again) {
			return fmt.Errorf("node %s, which is not in the new plan, has an attempt in flight", s.graph.Node(i).ID)
		}
	}
	budgeted := e.Plan.Plan.Budget != s.graph.Plan.Budget // otherwise limits that were raised for this run stay
	declared := s.undeclared(e.Plan, ch.again)
	g, err := s.expanded(e.Plan, ch.again)
	if err != nil {
		return err
	}
	s.run.Submitted = nil // whichever plan it is
	s.regraph(g, ch)
	if declared {
		s.redeclare()
	}
	s.observed.Gates = slices.DeleteFunc(s.observed.Gates, func(v GateView) bool {
		_, stays := s.graph.Index(v.Node)
		return !stays
	})
	s.run.PlanDigest, s.run.Name = b.PlanDigest, e.Plan.Plan.Name
	if budgeted {
		s.ledger.limit(e.Plan.Plan.Budget)
	}
	s.reopen()
	return nil
}

func (s *State) onRewound(_ Event, b *RewoundBody) error {
	i, err := s.find(b.For)
	if b.For != "" && err != nil {
		return err
	}
	failed := err == nil && s.recs[i].Phase == ended // a failure asked for it, not a join that has not ended
	if err := s.sendBack(b.Nodes, b.Recheck); err != nil {
		return err
	}
	if b.Asked {
		s.run.Rerun = nil
	}
	if i, ok := s.graph.Index(b.For); ok && failed {
		s.recs[i].edit().Rewinds++
	} else if ok {
		s.recs[i].edit().Requeues++
	}
	s.reopen()
	return nil
}

func (s *State) onReverted(e Event, b *RevertedBody) error {
	for _, f := range b.Published {
		if s.publishedAt(f.Path) == nil {
			return fmt.Errorf("%s was not put beside the specification", f.Path)
		}
	}
	if err := s.sendBack(b.Nodes, nil); err != nil {
		return err
	}
	s.takeBack(b.Published)
	s.reopen()
	s.observed.Reverts = append(s.observed.Reverts, RevertView{Checkpoint: b.Checkpoint, Seq: s.run.Seq + 1, Time: e.Time})
	return nil
}
