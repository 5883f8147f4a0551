package machine

import (
	"cmp"
	"fmt"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

func (s *State) onFinished(e Event, b *FinishedBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	if b.Reused {
		return s.onReused(i, b)
	}
	if err := s.mayFinish(i, b); err != nil {
		return err
	}
	r := &s.recs[i]
	s.book(i, b)
	if r.Phase == running {
		s.onAccount(e, i, b)
		s.occupy(i, -1)
		s.count(i, b)
		r.Phase, r.Finished = idle, ms(e.Time)
	} else if b.Attempt == 0 {
		r.Finished = ms(e.Time)
	}
	s.observed.over(func(o LLMCallStartedBody) bool { return o.Node == b.Node })
	s.publishedBy(b)
	s.keepEnd(e, i, b)
	s.close(r, b)
	s.reached(i)
	if n := s.graph.Node(i); b.Status == dag.StatusCancelled && !n.Effect.Repeatable() {
		r.edit().Unresolved = true // it was stopped half-way, and may go on some day
	}
	if b.Status == dag.StatusFailed || b.Status == dag.StatusLost {
		s.failed(e, i, b)
	}
	s.touch(i)
	return nil
}

// onTookEffect notes that the work of a running attempt has ended well.
func (s *State) onTookEffect(_ Event, b *TookEffectBody) error {
	i, err := s.underWay(b.Node, b.Generation, b.Attempt)
	if err != nil {
		return err
	}
	s.recs[i].edit().Took = b.How
	return nil
}

// mayFinish refuses ends that cannot have happened.
func (s *State) mayFinish(i int32, b *FinishedBody) error {
	r := &s.recs[i]
	late := r.Phase == idle && r.Detail != nil && r.Detail.Unresolved // the lost attempt is resolved
	switch {
	case int(r.Gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.Gen, b.Generation)
	case r.Phase == ended || r.Phase == stale:
		return fmt.Errorf("node %s has ended already", b.Node)
	case b.Attempt == 0 && r.Phase == running:
		return fmt.Errorf("node %s has attempt %d in flight", b.Node, r.Attempt)
	case b.Attempt != 0 && r.Phase != running && !late:
		return fmt.Errorf("node %s has no attempt in flight", b.Node)
	case b.Attempt != 0 && b.Attempt != int(r.Attempt):
		return fmt.Errorf("the attempt of node %s is %d, not %d", b.Node, r.Attempt, b.Attempt)
	case b.Status == dag.StatusFailed && b.Attempt == 0 && !b.Final:
		return fmt.Errorf("node %s has no attempt that could be tried again", b.Node)
	case b.Status == dag.StatusLost && (b.Attempt == 0 || late):
		return fmt.Errorf("node %s has no attempt that could be lost", b.Node)
	case len(b.Salvaged) > 0 && (b.Status != dag.StatusFailed || !b.Final):
		return fmt.Errorf("node %s has not failed for good: nothing of it is salvaged", b.Node)
	}
	switch b.Status {
	case dag.StatusCompleted, dag.StatusFailed, dag.StatusLost, dag.StatusRejected, dag.StatusSkipped, dag.StatusCancelled:
		return nil
	}
	return fmt.Errorf("unknown status %q", b.Status)
}

// keepEnd keeps of an end what a reader or a decision may need.
func (s *State) keepEnd(e Event, i int32, b *FinishedBody) {
	r := &s.recs[i]
	r.Fingerprint = b.Fingerprint
	notes := checks(b.Notes)
	silent := b.Status == dag.StatusCompleted && b.Message == "" && len(b.Values) == 0 && len(b.Warnings) == 0 &&
		b.CostUSD == 0 && b.CostKind == "" && b.Usage == Usage{} && len(notes) == 0
	if !silent {
		last := *b
		last.Notes, last.Diagnostics, last.Fingerprint, last.Kept = notes, "", "", nil
		r.edit().Last = &last
	} else if r.Detail != nil {
		r.Detail.Last = nil
	}
	if b.Status == dag.StatusFailed || b.Status == dag.StatusLost {
		s.remember(ErrorView{Seq: s.run.Seq + 1, Time: e.Time, Node: b.Node, Generation: b.Generation, Attempt: b.Attempt,
			Category: b.Category, Class: b.Class, Message: b.Message, Final: b.Final})
	}
}

// checks are the notes of an end that tell how its checks went.
func checks(notes []LogLine) (kept []LogLine) {
	for _, n := range notes {
		if n.Type == NoteValidation {
			kept = append(kept, n)
		}
	}
	return kept
}

// close ends the node, or leaves it open for another attempt.
func (s *State) close(r *rec, b *FinishedBody) {
	if m := r.Detail; m != nil {
		m.between()
		if b.Status != dag.StatusLost { // the question of a lost attempt, or of its node, stays
			m.Question, m.Took = "", ""
		}
	}
	if !b.Final {
		return
	}
	with, known := endsWith[b.Status]
	if !known {
		with = reuse.Failed
		r.edit().Rounds++
	}
	s.finish(r, with)
}

// endsWith says how a node has ended whose last attempt has ended in other ways than failed or lost.
var endsWith = map[dag.Status]reuse.End{dag.StatusCompleted: reuse.Completed, dag.StatusSkipped: reuse.Skipped,
	dag.StatusRejected: reuse.Rejected, dag.StatusCancelled: reuse.Cancelled}

// finish notes that a node has ended, with the event that is being folded.
func (s *State) finish(r *rec, with reuse.End) { r.Phase, r.End, r.EndSeq = ended, with, s.run.Seq+1 }

// failed keeps count of failures and of what is to be waited for.
func (s *State) failed(e Event, i int32, b *FinishedBody) {
	r, n := &s.recs[i], s.graph.Node(i)
	m := r.edit()
	if b.Final && b.Class == dag.Fatal {
		s.end(fmt.Sprintf("node %s: %s", b.Node, cmp.Or(b.Message, b.Category)))
	}
	if b.Status == dag.StatusLost {
		if m.Question == "" {
			m.Lost++
		}
		m.Unresolved = !b.Final && m.Question == "" && !n.Effect.Repeatable()
		return
	}
	switch {
	case b.Stop:
		m.Stopped = !b.Final
		m.Before++ // a failure like any other, but it uses up no attempt
		return
	case !b.WaitUntil.IsZero() && !b.Final:
		m.Waits++
		m.Before++
		m.RetryAt, m.Hold = ms(b.WaitUntil), true
		// without an account the others would be told the same
		if g := s.classes[s.class[i]].gates; g[breakerGate] != none && g[accountGate] == none {
			k := &s.breakers[g[breakerGate]]
			k.Hold = max(k.Hold, m.RetryAt)
		}
	default:
		m.Waits = 0
		m.countFailure(b.Category)
		if !b.Final {
			m.RetryAt = ms(b.RetryAt)
		}
	}
	s.watchRetry(i)
}

// end turns the run to its end: clean-up nodes run, then it has failed.
func (s *State) end(reason string) {
	if s.run.Ending != "" {
		return
	}
	s.run.Ending, s.ending = reason, reason
	s.touchAlways()
}

// ErrorsKept bounds the error history in the state; the log has all of them.
const ErrorsKept = 50

func (s *State) remember(v ErrorView) {
	if len(s.errors) == ErrorsKept {
		s.errors = slices.Delete(s.errors, 0, 1)
	}
	s.errors = append(s.errors, v)
}
