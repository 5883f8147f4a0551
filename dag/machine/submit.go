package machine

import (
	"fmt"

	"dagrun.dev/dag/reuse"
)

// Another plan is adopted while attempts are under way. PLAN_SUBMITTED holds back what the plan touches: nothing of it
// starts, and of what runs, attempts that are free and may be repeated are stopped as by an interrupt. A paid attempt,
// and one whose effect must not be repeated, ends by itself. When none is under way any more, the host is asked to
// compare again and to adopt the plan. All else goes on meanwhile.
//
// That the plan is wanted is a fact, so that a process that dies in between changes nothing: the next one adopts it, or
// another one in its place.

// A PlanSubmittedBody hands another plan to a run that is being carried on. It takes the place of one that was
// submitted before; the plan in force takes that back.
type PlanSubmittedBody struct {
	fact
	PlanDigest string   `json:"plan_digest"`
	By         string   `json:"by"`                // command
	Touched    []string `json:"touched,omitempty"` // nodes that the plan changes, or that lie below one; plan order
	Removed    []string `json:"removed,omitempty"` // nodes that it does not have
}

// Submission is the fact that a compared plan is handed to a run.
func Submission(d *reuse.Diff, by string) *PlanSubmittedBody {
	removed := func(n *reuse.NodeDiff) bool { return n.Do == reuse.DoRemoved }
	return &PlanSubmittedBody{PlanDigest: d.PlanDigest, By: by, Removed: d.IDs(removed),
		Touched: d.IDs(func(n *reuse.NodeDiff) bool { return n.Touched && !removed(n) && n.Do != reuse.DoAdded })}
}

// Submitted returns the plan that waits to be adopted; nil = none does.
func (s *State) Submitted() *PlanSubmittedBody { return s.run.Submitted }

// Holdup returns the nodes, in index order, whose attempts the submitted plan waits for: those that end by themselves.
func (s *State) Holdup() (ids []string) {
	for _, i := range s.list(Running) {
		if has(s.held, i) && s.graph.Node(i).Costly() {
			ids = append(ids, s.graph.Node(i).ID)
		}
	}
	return ids
}

func (s *State) onPlanSubmitted(_ Event, b *PlanSubmittedBody) error {
	if s.run.Status.Ended() {
		return fmt.Errorf("the run has ended")
	}
	s.run.Submitted = b
	if b.PlanDigest == s.run.PlanDigest {
		s.run.Submitted = nil
	}
	s.holdBack()
	for i := range s.recs {
		s.touch(int32(i))
	}
	return nil
}

// holdBack derives which nodes the submitted plan holds back.
func (s *State) holdBack() {
	s.held = nil
	if s.run.Submitted == nil {
		return
	}
	s.held = make([]bool, s.graph.Len())
	for _, ids := range [][]string{s.run.Submitted.Touched, s.run.Submitted.Removed} {
		for _, id := range ids {
			if i, ok := s.graph.Index(id); ok { // an item may be gone
				s.held[i] = true
			}
		}
	}
}

// heldBack reports whether a node that does not run has to wait for the submitted plan. Of an attempt whose outcome is
// not known it is found out first whether it took effect: the new plan may not have the node. A run that ends cleans up
// under the plan that it has.
func (s *State) heldBack(i int32) bool {
	return has(s.held, i) && s.ending == "" && !s.recs[i].detail().Unresolved
}

// adopt asks for the submitted plan when nothing that it touches is under way, and stops what may be stopped until
// then. It reports whether it asks: that is decided alone, as all else may look different then.
func (d *decision) adopt() bool {
	s := d.s
	if s.run.Submitted == nil {
		return false
	}
	waits := s.run.Compensating != ""
	for _, i := range s.list(Running) {
		if !has(s.held, i) {
			continue
		}
		waits = true
		if !s.graph.Node(i).Costly() {
			d.command(Cancel, i)
		}
	}
	for _, id := range s.run.Submitted.Removed {
		i, ok := s.graph.Index(id)
		waits = waits || ok && s.recs[i].detail().Unresolved
	}
	if !waits {
		d.cmds = append(d.cmds[:0], Command{Op: Adopt})
	}
	return !waits
}
