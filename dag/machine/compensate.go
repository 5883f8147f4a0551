package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
)

// Compensation: a node fails under onFail: compensate. Its own undo action runs first, then
// those of the completed nodes that the rewind would run again, the last to complete first. Then
// REWOUND sends them back, or, where there is no rewind, the run goes on without the node.
// Failures are compensated one at a time, in the order they happened.

// undoTries is how often an undo action may fail before a user is asked.
const undoTries = 3

// undoBase is the delay after the first failure of an undo action; it doubles.
const undoBase = 5 * time.Second

// findUndo picks the failure to compensate now and blocks what it will rewind.
func (s *State) findUndo() {
	pick := int32(-1)
	if len(s.lists[Undoing]) > 0 {
		for _, i := range s.list(Undoing) {
			if pick < 0 || s.recs[i].EndSeq < s.recs[pick].EndSeq {
				pick = i
			}
		}
	}
	if pick == s.undoing {
		return
	}
	before := s.blocked
	s.undoing, s.blocked = pick, nil
	if pick >= 0 && s.graph.Node(pick).Undo.Rewind != "" {
		s.blocked = make([]bool, s.graph.Len())
		for _, i := range s.rewindRange(pick) {
			s.blocked[i] = true
		}
	}
	for i := range int32(s.graph.Len()) {
		if int(i) < len(before) && before[i] || s.blocked != nil && s.blocked[i] {
			s.touch(i)
		}
	}
}

// rewindRange returns, in index order, the node to go back to, everything that depends on it,
// and the failed node.
func (s *State) rewindRange(failed int32) []int32 {
	to, ok := s.graph.Index(s.graph.Node(failed).Undo.Rewind)
	if !ok {
		return []int32{failed}
	}
	seen := map[int32]bool{to: true, failed: true}
	list := []int32{to}
	for k := 0; k < len(list); k++ {
		for _, d := range s.graph.Dependents(list[k]) {
			if !seen[d] {
				seen[d] = true
				list = append(list, d)
			}
		}
	}
	if !slices.Contains(list, failed) {
		list = append(list, failed)
	}
	slices.Sort(list)
	return list
}

// begun reports whether a node has a record in its generation.
func (r *rec) begun() bool {
	return r.Attempt > 0 || r.Phase != idle || r.Cond || r.Expanded
}

// undoList returns the nodes whose undo actions belong to a failure, in order.
func (s *State) undoList(failed int32) []int32 {
	list := []int32{}
	if s.graph.Node(failed).Undo.Rewind != "" {
		for _, i := range s.rewindRange(failed) {
			if i != failed && s.recs[i].done() && s.graph.Node(i).Undo != nil {
				list = append(list, i)
			}
		}
		slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(s.recs[b].EndSeq, s.recs[a].EndSeq) })
	}
	return append([]int32{failed}, list...)
}

func (s *State) onCompensation(e Event, b *CompensationBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	if !b.Done {
		if s.run.Compensating != "" {
			return fmt.Errorf("the undo action of %s is in flight", s.run.Compensating)
		}
		if s.graph.Node(i).Undo == nil {
			return fmt.Errorf("node %s has no undo action", b.Node)
		}
		s.run.Compensating = b.Node
		return nil
	}
	if s.run.Compensating != b.Node {
		return fmt.Errorf("no undo action of node %s is in flight", b.Node)
	}
	s.run.Compensating = ""
	s.run.Undos++
	m := s.recs[i].edit()
	if b.Status == dag.StatusCompleted {
		m.Undone, m.UndoTries, m.UndoAt = true, 0, 0
	} else {
		m.UndoAt = ms(e.Time) + (undoBase << m.UndoTries).Milliseconds()
		m.UndoTries++
	}
	s.observed.Compensations = append(s.observed.Compensations,
		CompensationView{Node: b.Node, Reason: b.Reason, Status: b.Status, Time: e.Time})
	s.touch(i)
	s.findUndo()
	return nil
}
