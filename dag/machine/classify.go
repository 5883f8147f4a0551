package machine

import (
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// classify derives a node's status from the facts, and from whether the instant of its next try has come.
func (s *State) classify(i int32) Status { return s.classifyAs(i, s.recs[i].due) }

func (s *State) classifyAs(i int32, due bool) Status {
	r := &s.recs[i]
	switch r.Phase {
	case running:
		return Running
	case ended:
		return s.endedStatus(i)
	}
	if has(s.blocked, i) || s.heldBack(i) || s.leftOut(i) {
		return Blocked
	}
	if m := r.Detail; m != nil && r.Phase != stale {
		switch {
		case m.Unresolved || m.Question != "":
			return Asking
		case m.Stopped:
			return Stopped
		case m.RetryAt != 0 && !due:
			if m.Hold {
				return Holding
			}
			return Retrying
		}
	}
	n := s.graph.Node(i)
	t := &s.tallies[i]
	if t.open > 0 && !s.decided(i, n, t) && !(s.ending != "" && n.Always && s.cleanupReady(i)) {
		return Waiting
	}
	if r.Phase == stale {
		return Checking
	}
	if r.Attempt > 0 {
		return Ready
	}
	return s.entry(i, n, t)
}

// entry is the status of a node whose needs have ended and that has not started.
func (s *State) entry(i int32, n *dag.Node, t *tally) Status {
	r := &s.recs[i]
	if !n.Always && unwanted(n, t) != wanted {
		return Skipping
	}
	if n.When != "" && !r.Cond {
		return Deciding
	}
	if n.Foreach != nil && !r.Expanded {
		return Expanding
	}
	return Ready
}

// decided reports whether what a node needs is known before all its needs have ended: enough of
// them have succeeded, or too few still can. An open foreach may become any number of needs.
func (s *State) decided(i int32, n *dag.Node, t *tally) bool {
	switch {
	case n.AtLeast == 0 || n.WaitAll:
		return false
	case int(t.ok) >= n.AtLeast:
		return true
	case int(t.ok+t.open) >= n.AtLeast || t.skipped == t.counted:
		return false
	}
	return !slices.ContainsFunc(s.graph.Needs(i), func(j int32) bool {
		return s.settled[j] == unsettled && s.graph.Node(j).Foreach != nil
	})
}

// Why a node is not started though its needs have ended.
type unwantedness uint8

const (
	wanted     unwantedness = iota
	byUpstream              // a need failed under onFail: skip, or was itself skipped for that
	byCount                 // fewer needs succeeded than atLeast
	byNeeds                 // all needs were skipped
)

func unwanted(n *dag.Node, t *tally) unwantedness {
	switch joins := n.AtLeast > 0; {
	case t.counted > 0 && t.skipped == t.counted && (joins || n.When == ""):
		return byNeeds // nothing failed: what it needs was not wanted either
	case int(t.ok) < n.AtLeast:
		return byCount
	case t.forced > 0 && !joins:
		return byUpstream
	}
	return wanted
}

// cleanupReady reports whether the clean-up nodes that a clean-up node needs have ended.
func (s *State) cleanupReady(i int32) bool {
	for _, j := range s.graph.Needs(i) {
		if s.graph.Node(j).Always && !s.settled[j].counts() && s.status[j] != Failed {
			return false
		}
	}
	return true
}

func (s *State) touchAlways() {
	for _, i := range s.always {
		s.touch(i)
	}
}

func (s *State) endedStatus(i int32) Status {
	switch s.recs[i].End {
	case reuse.Completed:
		if m := s.recs[i].Detail; m != nil && m.Undone && !m.Left {
			return Undone
		}
		return Completed
	case reuse.Skipped:
		return Skipped
	case reuse.Cancelled:
		return Cancelled
	case reuse.Rejected:
		return Failed
	}
	switch s.disposition(i) {
	case failAsk:
		return Asking
	case failUndo:
		return Undoing
	}
	return Failed
}

// A disposition is what a final failure leads to.
type disposition uint8

const (
	failHard disposition = iota // the run pauses, or ends if the class is fatal
	failSoft
	failSkip
	failAsk
	failUndo
)

// disposition applies the node's policy, or what a user said, to its final failure.
func (s *State) disposition(i int32) disposition {
	n, m := s.graph.Node(i), s.recs[i].detail()
	switch m.Verdict {
	case AnswerContinue:
		return failSoft
	case AnswerSkip:
		return failSkip
	case AnswerFail:
		return failHard
	}
	onFail := n.OnFailFor(m.Last.Category)
	if m.Last.Class == dag.Fatal && (onFail != dag.FailCompensate || n.Back == nil) {
		return failHard
	}
	switch onFail {
	case dag.FailContinue:
		return failSoft
	case dag.FailSkip:
		return failSkip
	case dag.FailEscalate:
		return failAsk
	case dag.FailCompensate:
		return s.undoDisposition(i)
	}
	return failHard
}

func (s *State) settlementOf(i int32, st Status) settlement {
	switch st {
	case Completed:
		if s.recs[i].Items > 0 {
			return replaced
		}
		return succeeded
	case Skipped:
		if s.recs[i].category() == CategoryUpstream {
			return forced
		}
		return skipped
	case Cancelled:
		return soft
	case Undone:
		if s.recs[i].Detail.Passed { // as if it had not been wanted
			return skipped
		}
	case Failed:
		if s.recs[i].End == reuse.Rejected {
			return soft
		}
		switch s.disposition(i) {
		case failSoft:
			return soft
		case failSkip:
			return forced
		}
	}
	return unsettled
}
