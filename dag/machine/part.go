package machine

import (
	"fmt"
	"slices"

	"dagrun.dev/dag"
)

// A part of the plan can be selected. What is left out and has not ended stays as it is: it neither starts nor holds
// up the end of the part, at which the run pauses. Which nodes that are is derived from the names of the selection, so
// that it holds for run-time items and for another plan too.

func (s *State) onSelected(_ Event, b *PartSelectedBody) error {
	if b.SavedPlan != "" {
		if slices.Contains(s.run.SavedPlans, b.SavedPlan) {
			return fmt.Errorf("the saved plan %s was applied before", b.SavedPlan)
		}
		s.run.SavedPlans = append(s.run.SavedPlans, b.SavedPlan)
	}
	s.run.Part, s.run.Rerun = b.Part, b.Rerun
	if len(b.Rerun) > 0 && s.run.Status == RunDone {
		s.run.Status = RunRunning
	}
	s.left = s.run.Part.LeftOut(s.graph)
	for i := range s.recs {
		s.touch(int32(i))
	}
	return nil
}

// rerun sends back what is to run again. It reports whether it has to: that is decided alone.
func (d *decision) rerun() bool {
	s := d.s
	if len(s.run.Rerun) == 0 {
		return false
	}
	all := slices.Contains(s.run.Rerun, dag.All)
	b := &RewoundBody{To: s.run.Rerun[0], Nodes: []string{}, Reason: "restarted by the user", Asked: true}
	for i, reached := range s.graph.Redone(s.graph.Named(s.run.Rerun...), -1) {
		switch {
		case !reached:
		case s.status[i] == Running:
			d.command(Cancel, int32(i))
		case all && s.graph.Node(int32(i)).Costly() && s.recs[i].Phase == ended:
			b.Recheck = append(b.Recheck, s.graph.Node(int32(i)).ID)
		case s.Record(int32(i)).Begun:
			b.Nodes = append(b.Nodes, s.graph.Node(int32(i)).ID)
		}
	}
	if len(b.Nodes) > 0 {
		b.To = b.Nodes[0]
	}
	if len(d.cmds) == 0 {
		d.record(b)
	}
	return true
}

// leftOut reports whether a node that does not run stays as it is, because the selected part leaves it out. What became
// of a lost attempt is found out all the same, and a run that ends cleans up as ever.
func (s *State) leftOut(i int32) bool {
	return s.left != nil && s.left[i] && (s.ending == "" || !s.graph.Node(i).Always) && !s.recs[i].detail().Unresolved
}

// firstOpen returns the first node of the selected part that has not ended; -1 = there is none.
func (s *State) firstOpen() int32 {
	for i := range s.status {
		if s.settled[i] == unsettled && !s.leftOut(int32(i)) {
			return int32(i)
		}
	}
	return -1
}

// waitsForLeftOut returns the node for want of which a node of the selected part cannot run; -1 = there is none.
func (s *State) waitsForLeftOut(i int32) int32 {
	for _, j := range s.graph.Needs(i) {
		if s.settled[j] == unsettled && s.leftOut(j) {
			return j
		}
	}
	return -1
}

// partMessage says how much is left.
func (s *State) partMessage() string {
	nodes := "1 node is"
	if n := len(s.LeftOut()); n > 1 {
		nodes = fmt.Sprint(n, " nodes are")
	}
	return fmt.Sprintf("the selected part (%s) is done; %s left out", s.run.Part, nodes)
}

// LeftOut returns the nodes that have not ended and that the selected part leaves out, in index order.
func (s *State) LeftOut() (ids []string) {
	for i := range s.status {
		if s.settled[i] == unsettled && s.leftOut(int32(i)) {
			ids = append(ids, s.graph.Node(int32(i)).ID)
		}
	}
	return ids
}
