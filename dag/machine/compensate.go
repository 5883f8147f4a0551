package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// Undoing what was done. A node that has completed may have an undo action. What has it run is the failure of another
// node under onFail: compensate (dag.Back says how far back it goes), or a user who cancels the run. Only completed
// work is undone, the last to complete first, each once; what is done about the failed node itself comes before. Then
// the run has failed (COMPENSATION_FINISHED with then: stop, later RUN_FAILED), goes on without (then: continue), or
// what was undone runs again (REWOUND).
//
// While a run goes on, failures are undone one at a time, in the order they happened. In a run that ends, all that is
// to be undone is one list.

// undoTries is how often an undo action may fail before a user is asked.
const undoTries = 3

// undoBase is the delay after the first failure of an undo action; it doubles.
const undoBase = 5 * time.Second

// undoDisposition is what a failure under FailCompensate leads to.
func (s *State) undoDisposition(i int32) disposition {
	n, m := s.graph.Node(i), s.recs[i].detail()
	b := n.Trigger()
	old := n.Back == nil && n.OnFail == dag.FailCompensate // of a plan that says it the old way
	switch {
	case len(b.On) > 0 && !slices.Contains(b.On, m.Last.Category), old && n.Undo == nil:
		return failHard
	case m.UndoOver, old && b.Then == dag.ThenContinue && m.Undone:
		if s.then(i) == dag.ThenContinue {
			return failSoft
		}
		return failHard
	case old && s.then(i) == dag.ThenStop: // it has gone back as often as it may
		return failHard
	}
	return failUndo
}

// then is what follows once the failure of a node has been undone.
func (s *State) then(i int32) dag.Then {
	b, m := s.graph.Node(i).Trigger(), s.recs[i].detail()
	if b.Then == dag.ThenAgain && int(m.Rewinds) >= b.Times || m.Last.Class == dag.Fatal {
		return dag.ThenStop
	}
	return b.Then
}

// goesBack is what begins anew after the failure of a node: what it goes back to, what is undone, the approvals on the
// way, all that depends on these, and the node itself.
func (s *State) goesBack(failed int32) (again, recheck []int32) {
	in := s.graph.UndoReach(failed)
	from := []int32{failed}
	for _, id := range s.graph.Node(failed).Trigger().To {
		if to, ok := s.graph.Index(id); ok {
			from = append(from, to)
		}
	}
	return s.anew(append(from, s.undoableIn(in)...), in)
}

// anew returns nodes with all that depends on them and, of the nodes in a range, the approvals that were given: they
// were given to what does not stand any more. What lies between such an approval and the nodes waits for it; its
// results are rechecked.
func (s *State) anew(from []int32, in []bool) (again, recheck []int32) {
	is := s.graph.Redone(from, none)
	again = indexes(is)
	var asked []int32
	for _, i := range indexes(in) {
		if !is[i] && s.graph.Node(i).Role().Asks && s.recs[i].done() {
			asked, is[i] = append(asked, i), true
		}
	}
	above := s.graph.Above(again...)
	for _, i := range s.below(asked, none) {
		if above[i] && !is[i] && s.recs[i].Phase == ended {
			recheck = append(recheck, i)
		}
	}
	again = append(again, asked...)
	slices.Sort(again)
	return again, recheck
}

// findUndo picks the failure to undo now, and holds back what that will touch.
func (s *State) findUndo() {
	pick := none
	if s.ending == "" {
		pick = s.firstToEnd(s.list(Undoing))
	}
	if pick == s.undoing {
		return
	}
	before := s.blocked
	s.undoing, s.blocked = pick, nil
	if pick != none {
		s.blocked = make([]bool, s.graph.Len())
		for _, i := range s.touchedBy(pick) {
			s.blocked[i] = true
		}
	}
	for i := range int32(s.graph.Len()) {
		if has(before, i) || has(s.blocked, i) {
			s.touch(i)
		}
	}
}

// firstToEnd returns the node of a list that ended before the others, or none.
func (s *State) firstToEnd(list []int32) int32 {
	if len(list) == 0 {
		return none
	}
	return slices.MinFunc(list, s.byEnd)
}

// byEnd orders nodes by when they ended.
func (s *State) byEnd(a, b int32) int { return cmp.Compare(s.recs[a].EndSeq, s.recs[b].EndSeq) }

// lastFirst orders nodes by when they ended, the last first.
func (s *State) lastFirst(a, b int32) int { return s.byEnd(b, a) }

// touchedBy are the nodes that must not start while a failure is being undone: what that undoes, or would if it had
// completed, and what depends on it or runs again.
func (s *State) touchedBy(failed int32) []int32 {
	then := s.then(failed)
	if then == dag.ThenStop {
		return nil
	}
	var list []int32
	for _, i := range indexes(s.graph.UndoReach(failed)) {
		if s.hasUndo(i) {
			list = append(list, i)
		}
	}
	list = s.below(list, failed)
	if then == dag.ThenAgain {
		again, recheck := s.goesBack(failed)
		list = append(append(list, again...), recheck...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// begun reports whether a node has a record in its generation.
func (r *rec) begun() bool {
	return r.Attempt > 0 || r.Phase != idle || r.Cond
}

// hasUndo reports whether a node can be undone. Clean-up cannot: it runs when a run ends, after what is undone.
func (s *State) hasUndo(i int32) bool { return s.graph.Node(i).Undo != nil && !s.graph.Node(i).Always }

// undoable returns the completed nodes that the failure of another undoes, in index order.
func (s *State) undoable(failed int32) (list []int32) {
	in := s.graph.UndoReach(failed)
	if s.then(failed) == dag.ThenAgain { // also what only depends on what runs again
		again, _ := s.goesBack(failed)
		for _, i := range again {
			in[i] = true
		}
	}
	return s.undoableIn(in)
}

// undoableIn returns the completed nodes of a set that can be undone.
func (s *State) undoableIn(in []bool) []int32 {
	return slices.DeleteFunc(indexes(in), func(i int32) bool { return !s.recs[i].done() || !s.hasUndo(i) })
}

// undoes reports whether the run is ending and undoes what a node did, or would if it had.
func (s *State) undoes(i int32) bool {
	if s.ending == "" || !s.hasUndo(i) || s.run.UndoGivenUp {
		return false
	}
	return s.run.UndoAll || slices.ContainsFunc(s.list(Undoing), func(f int32) bool { return s.graph.UndoReach(f)[i] })
}

// steps are the nodes whose undo actions belong to some failures, or to a user who wants all undone, in order: first
// what is done about failed nodes themselves.
func (s *State) steps(failed []int32, all bool) []int32 {
	var own, list []int32
	for _, f := range failed {
		if s.graph.Node(f).Trigger().Own != nil {
			own = append(own, f)
		}
		list = append(list, s.undoable(f)...)
	}
	if all {
		list = s.undoableIn(slices.Repeat([]bool{true}, len(s.recs)))
	}
	slices.SortFunc(list, s.lastFirst)
	return append(own, slices.Compact(list)...)
}

// undoAction is what undoes a node: its action, or the trigger's where it is the node that failed.
func (s *State) undoAction(i int32) *dag.Undo {
	n := s.graph.Node(i)
	if s.recs[i].done() {
		return n.Undo
	}
	return n.Trigger().Own
}

// undo carries the present undo of a run that goes on one step on.
func (d *decision) undo() {
	s, f := d.s, d.s.undoing
	if f == none {
		return
	}
	then := s.then(f)
	if d.stopTouched(f, then) || s.run.Compensating != "" {
		return
	}
	steps := s.steps([]int32{f}, false)
	if d.step(steps, s.failureText(f)) {
		return
	}
	if then != dag.ThenAgain {
		if s.graph.Node(f).Back != nil {
			d.over(f, steps)
		}
		return
	}
	again, recheck := s.goesBack(f)
	b := s.rewound(again, recheck, s.failureText(f))
	b.To = append(slices.Clip(s.graph.Node(f).Trigger().To), b.To)[0]
	b.For = s.graph.Node(f).ID
	d.recordOf(f, b)
}

// undoBeforeEnd undoes what is to be undone in a run that ends. It reports whether something is left to do, or to wait
// for.
func (d *decision) undoBeforeEnd() bool {
	s := d.s
	failed := s.list(Undoing)
	if !s.run.UndoAll && len(failed) == 0 {
		return false
	}
	if s.run.Compensating != "" {
		return true
	}
	slices.SortFunc(failed, s.byEnd)
	if !s.run.UndoGivenUp {
		waits := false
		for _, i := range s.list(Asking) {
			if m := s.recs[i].detail(); !m.Unresolved || !s.undoes(i) {
				continue
			}
			waits = true
			if s.recs[i].detail().Question == "" {
				d.resolve(i, AnswerDone, AnswerFail, AnswerAbort)
			}
		}
		if waits || d.step(s.steps(failed, s.run.UndoAll), s.ending) {
			d.askedBeforeEnd()
			return true
		}
	}
	for _, f := range failed {
		d.over(f, s.steps([]int32{f}, false))
	}
	return len(failed) > 0
}

// askedBeforeEnd pauses a run that ends where only an answer can carry it on, and the host does not stay.
func (d *decision) askedBeforeEnd() {
	s := d.s
	if len(d.cmds) > 0 || s.busy() || d.wake != 0 || s.stays {
		return
	}
	for _, k := range s.openQ {
		if q := &s.questions[k].Question; q.Kind == AskCompensation || q.Kind == AskLost {
			d.pause(PauseEscalation, q.Node, "waits for an answer to %s: %s", q.ID, q.Message)
			return
		}
	}
}

// step runs the next of some undo actions, or waits for it. It reports false when all have run.
func (d *decision) step(list []int32, reason string) bool {
	s := d.s
	for _, i := range list {
		n, m := s.graph.Node(i), s.recs[i].detail()
		switch {
		case m.Undone:
			continue
		case m.Question != "":
		case m.UndoLost:
			d.recordOf(i, d.ask(i, EscalationOpenedBody{Kind: AskCompensation,
				Message: fmt.Sprintf("the undo action of %s was interrupted. Did it take effect?", n.ID),
				Options: []string{AnswerRerun, AnswerDone, AnswerContinue, AnswerAbort}}))
		case m.UndoTries >= undoTries:
			d.recordOf(i, d.ask(i, EscalationOpenedBody{Kind: AskCompensation,
				Message: fmt.Sprintf("the undo action of %s failed %d times%s", n.ID, m.UndoTries, s.undoFailure(i)),
				Options: []string{AnswerRetry, AnswerContinue, AnswerAbort}}))
		case m.UndoAt > d.now:
			d.waitUntil(m.UndoAt)
		default:
			d.cmds = append(d.cmds, Command{Op: Compensate, Node: n.ID, Generation: int(s.recs[i].Gen),
				Attempt: 1 + int(m.UndoTries), Body: &CompensationBody{Node: n.ID, Reason: reason, Own: s.owns(i),
					Action: s.undoAction(i).InShort()}})
		}
		return true
	}
	return false
}

// owns reports whether the undo action of a node is that of its own failure, which old plans did not tell apart.
func (s *State) owns(i int32) bool { return !s.recs[i].done() && s.graph.Node(i).Back != nil }

// over records that the failure of a node has been undone.
func (d *decision) over(f int32, steps []int32) {
	s := d.s
	b := &CompensationBody{Node: s.graph.Node(f).ID, Status: dag.StatusCompleted, Then: s.then(f), Done: true}
	if s.ending != "" {
		b.Then = dag.ThenStop
	}
	for _, i := range steps {
		switch id, m := s.graph.Node(i).ID, s.recs[i].detail(); {
		case i == f:
		case m.Undone && !m.Left:
			b.Undone = append(b.Undone, id)
		default:
			b.Left = append(b.Left, id)
		}
	}
	d.recordOf(f, b)
}

// renew sends back what was undone in a run that goes on again: it is to be done anew.
func (d *decision) renew() bool {
	s := d.s
	if b := s.renewal(); b != nil && s.undoing == none && s.run.Compensating == "" {
		d.record(b)
		return true
	}
	return false
}

// renewal is what begins anew where something was undone and the run goes on, nil = nothing. What runs of it has to end
// first.
func (s *State) renewal() *RewoundBody {
	list := slices.DeleteFunc(s.list(Undone), func(i int32) bool { return s.recs[i].Detail.Passed })
	if len(list) == 0 {
		return nil
	}
	again, recheck := s.anew(list, s.graph.Above(list...))
	if slices.ContainsFunc(again, func(i int32) bool { return s.recs[i].Phase == running }) {
		return nil
	}
	return s.rewound(again, recheck, ReasonUndone)
}

// Renewed returns the nodes that begin anew when the run goes on, because they or what they depend on was undone.
func (s *State) Renewed() []string {
	if b := s.renewal(); b != nil {
		return b.Nodes
	}
	return nil
}

// ReasonUndone is the reason of REWOUND for nodes that are done anew after an undo.
const ReasonUndone = "what was undone is done anew"

// rewound sends nodes back, those of them that have begun.
func (s *State) rewound(again, recheck []int32, reason string) *RewoundBody {
	b := &RewoundBody{Reason: reason}
	for _, i := range again {
		if r := &s.recs[i]; r.begun() || r.approving(s) {
			b.Nodes = append(b.Nodes, s.graph.Node(i).ID)
		}
	}
	for _, i := range recheck {
		b.Recheck = append(b.Recheck, s.graph.Node(i).ID)
	}
	b.To = b.Nodes[0]
	return b
}

// undoFailure says why the undo action of a node failed last.
func (s *State) undoFailure(i int32) (text string) {
	for _, c := range s.observed.Compensations {
		if c.Node == s.graph.Node(i).ID {
			text = strings.TrimSuffix(": "+c.Failure, ": ")
		}
	}
	return text
}

// undoText says, of a run that has failed, what was undone and what was to be and was not.
func (s *State) undoText() (text string) {
	undone := s.list(Undone)
	slices.SortFunc(undone, s.lastFirst)
	var failed, left []int32
	for i := range s.recs {
		if m := s.recs[i].detail(); m.UndoOver {
			failed = append(failed, int32(i))
		}
	}
	for _, i := range s.steps(failed, s.run.UndoAll) {
		if m := s.recs[i].detail(); m.Left || !m.Undone {
			left = append(left, i)
		}
	}
	for _, part := range []struct {
		words string
		list  []int32
	}{{"undone", undone}, {"not undone, as a user said", left}} {
		if len(part.list) > 0 {
			text += "; " + part.words + ": " + s.some(part.list)
		}
	}
	return text
}

// someNames is how many nodes a message names.
const someNames = 5

// some names a few nodes.
func (s *State) some(list []int32) string {
	var names []string
	for _, i := range list[:min(len(list), someNames)] {
		names = append(names, s.graph.Node(i).ID)
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// stopTouched asks what will run again to stop, and waits for what only depends on what is undone.
func (d *decision) stopTouched(f int32, then dag.Then) (running bool) {
	for _, i := range d.s.touchedBy(f) {
		if d.s.status[i] == Running {
			running = true
			if then == dag.ThenAgain {
				d.command(Cancel, i)
			}
		}
	}
	return running
}

func (s *State) onCompensation(e Event, b *CompensationBody) error {
	i, err := s.find(b.Node)
	if err != nil {
		return err
	}
	if b.Then != "" {
		return s.onUndoOver(i, b)
	}
	if !b.Done {
		if s.run.Compensating != "" {
			return fmt.Errorf("the undo action of %s is in flight", s.run.Compensating)
		}
		if s.undoAction(i) == nil {
			return fmt.Errorf("node %s has no undo action", b.Node)
		}
		s.run.Compensating = b.Node
		s.observed.Compensations = append(s.observed.Compensations, CompensationView{Node: b.Node, Reason: b.Reason,
			Action: b.Action, Stage: s.graph.Plan.Stage(s.graph.Node(i)), Started: e.Time})
		return nil
	}
	if s.run.Compensating != b.Node {
		return fmt.Errorf("no undo action of node %s is in flight", b.Node)
	}
	s.run.Compensating = ""
	s.run.Undos++
	m := s.recs[i].edit()
	switch {
	case b.Status == dag.StatusCompleted:
		m.Undone = true
		if s.recs[i].Phase == stale { // whether it still holds is no question any more
			s.recs[i].Phase = ended
		}
	case (b.Status == dag.StatusCancelled || b.Status == dag.StatusLost) && !s.undoAction(i).Effect.Repeatable():
		m.UndoLost = true
	default:
		m.UndoAt = ms(e.Time) + (undoBase << m.UndoTries).Milliseconds()
		m.UndoTries++
	}
	u := s.observed.lastUndo()
	u.Status, u.Failure, u.Time, u.Seq = b.Status, b.Reason, e.Time, s.run.Seq+1
	s.touch(i)
	return nil
}

func (s *State) onUndoOver(i int32, b *CompensationBody) error {
	if s.recs[i].Phase != ended || s.recs[i].End != reuse.Failed {
		return fmt.Errorf("node %s has not failed", b.Node)
	}
	list, err := s.findAll(b.Undone)
	if err != nil {
		return err
	}
	m := s.recs[i].edit()
	m.UndoOver = true
	if b.Then == dag.ThenContinue {
		text := "it failed, and the run went on without it"
		for _, what := range []struct {
			words string
			ids   []string
		}{{"undone", b.Undone}, {"not undone", b.Left}} {
			if len(what.ids) > 0 {
				text += "; " + what.words + ": " + strings.Join(what.ids, ", ")
			}
		}
		m.Last.Warnings = append(slices.Clip(m.Last.Warnings), text)
	}
	for _, k := range list {
		s.recs[k].edit().Passed = b.Then == dag.ThenContinue
		s.touch(k)
	}
	s.touch(i)
	return nil
}

// Pending returns what cancelling the run would run: the clean-up nodes that have not ended, in plan order, and the
// completed nodes that have an undo action, the first to be undone first.
func (s *State) Pending() (cleanup, undo []string) {
	for _, i := range s.always {
		if !s.status[i].Ended() {
			cleanup = append(cleanup, s.graph.Node(i).ID)
		}
	}
	for _, i := range s.steps(nil, true) {
		if !s.recs[i].detail().Undone {
			undo = append(undo, s.graph.Node(i).ID)
		}
	}
	return cleanup, undo
}
