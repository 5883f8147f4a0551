package dagtest

import (
	"fmt"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// undo gives a node an undo action, a trigger, or neither.
func (g generator) undo(n *dag.Node, before []dag.Node) {
	n.Undo, n.Back = nil, nil
	if n.OnFail == dag.FailCompensate {
		n.OnFail = dag.FailSkip
	}
	if n.Foreach == nil && !n.Always && g.IntN(2) == 0 {
		n.Undo = &dag.Undo{Kind: "fake", Effect: dag.Effect(g.one("pure", "idempotent", "once"))}
	}
	if n.Always || len(before) == 0 || n.AtLeast > 0 || g.IntN(3) > 0 {
		return
	}
	n.OnFail = dag.FailCompensate
	n.Back = &dag.Back{All: true, Then: dag.Then(g.one("stop", "stop", "again", "continue"))}
	if len(n.Needs) > 0 && g.IntN(3) == 0 {
		n.Back.All, n.Back.To = false, []string{n.Needs[g.IntN(len(n.Needs))]}
	}
	if g.IntN(3) == 0 {
		n.Back.Own = &dag.Undo{Kind: "fake"}
	}
	if n.Back.Then == dag.ThenAgain {
		n.Back.Times = g.IntN(3)
	}
	n.Labels["fate"] = g.one("0", "1", "2", "4", "always")
	n.Labels["category"] = "soft"
}

// undos is what a simulation knows of what was undone.
type undos struct {
	on     bool
	ended  map[string]int64    // event that completed a node, in its generation
	last   int64               // event that completed the node undone last, in this undo; 0 = none
	undone map[string]bool     // by node and generation
	left   map[string]bool     // a user went on without the undo action
	owed   map[string][]string // what the failure of a node undoes: completed when it failed
}

// watchUndo checks what must hold of every undo: only what has completed is undone, the last to complete first and each
// once; when it is over, all that the failure was to undo is, or a user went on without it.
func (s *Sim) watchUndo(e *machine.Event) error {
	u := &s.undos
	if !u.on {
		return nil
	}
	if u.ended == nil {
		u.ended, u.undone, u.left, u.owed = map[string]int64{}, map[string]bool{}, map[string]bool{}, map[string][]string{}
	}
	switch b := e.Body.(type) {
	case *machine.FinishedBody:
		if b.Status == dag.StatusCompleted && !b.Reused {
			u.ended[b.Node] = e.Seq
		}
		if v, _ := s.State.NodeByID(b.Node); b.Status == dag.StatusFailed && b.Final && v.Node.Back != nil {
			u.owed[b.Node] = s.owed(b.Node)
		}
	case *machine.StartedBody:
		if s.State.Run().Status == machine.RunEnding && !s.node(b.Node).Always {
			return fmt.Errorf("starts %s in a run that ends", b.Node)
		}
	case *machine.EscalationAnsweredBody:
		if q, _ := s.State.Escalation(b.ID); q.Question.Kind == machine.AskCompensation && b.Answer != machine.AnswerRerun {
			v, _ := s.State.NodeByID(q.Question.Node)
			u.undone[key(v.Node.ID, v.Generation)] = b.Answer == machine.AnswerDone
			u.left[key(v.Node.ID, v.Generation)] = b.Answer == machine.AnswerContinue
		}
	case *machine.RewoundBody:
		u.last = 0
	case *machine.RunPausedBody: // a user, or a failure that ends the run, wants other things undone
		if b.Reason == machine.PauseCancel || b.Reason == machine.PauseFailure {
			u.last = 0
		}
	case *machine.RunEndedBody:
		u.last = 0
		return s.allUndone()
	case *machine.CompensationBody:
		return s.watchStep(b)
	}
	return nil
}

func (s *Sim) watchStep(b *machine.CompensationBody) error {
	u := &s.undos
	v, _ := s.State.NodeByID(b.Node)
	k := key(b.Node, v.Generation)
	switch {
	case b.Then != "":
		u.last = 0
		for _, id := range u.owed[b.Node] {
			other, _ := s.State.NodeByID(id)
			done := slices.Contains(b.Undone, id) && u.undone[key(id, other.Generation)]
			if left := slices.Contains(b.Left, id) && u.left[key(id, other.Generation)]; !done && !left {
				return fmt.Errorf("the failure of %s is said to be undone, and %s is not; %+v", b.Node, id, b)
			}
		}
	case b.Own:
		if v.Status != machine.Undoing {
			return fmt.Errorf("the action of the failed node %s runs, which is %s", b.Node, v.Status)
		}
	case !b.Done && v.Status != machine.Completed:
		return fmt.Errorf("undoes %s, which is %s", b.Node, v.Status)
	case !b.Done && u.last != 0 && u.ended[b.Node] > u.last:
		return fmt.Errorf("undoes %s, completed by event %d, after what event %d completed", b.Node, u.ended[b.Node], u.last)
	case !b.Done:
		u.last = u.ended[b.Node]
	case b.Status == dag.StatusCompleted && v.Status == machine.Undone:
		if u.undone[k] {
			return fmt.Errorf("%s is undone twice", b.Node)
		}
		u.undone[k] = true
	}
	return nil
}

// owed returns the completed nodes with undo actions before a node that failed, as far as its trigger goes back. It
// walks the needs and shares nothing with what the machine does.
func (s *Sim) owed(failed string) (list []string) {
	g, back := s.State.Graph(), s.node(failed).Back
	at, _ := g.Index(failed)
	for i := range int32(g.Len()) {
		v := s.State.NodeAt(i)
		within := back.All
		for _, id := range back.To {
			to, _ := g.Index(id)
			within = within || to == i || g.Ancestor(to, i)
		}
		if within && g.Ancestor(i, at) && v.Node.Undo != nil && v.Status == machine.Completed {
			list = append(list, v.Node.ID)
		}
	}
	return list
}

// allUndone checks, at the end of a run that a user had undone, that nothing of it stands but what a user left.
func (s *Sim) allUndone() error {
	if s.CancelAt == 0 || s.State.Run().Status != machine.RunBroken || len(s.Events) < s.CancelAt {
		return nil
	}
	asked := slices.ContainsFunc(s.Events, func(e machine.Event) bool {
		b, ok := e.Body.(*machine.RunPausedBody)
		return ok && b.Undo
	})
	for i := range int32(s.State.Graph().Len()) {
		v := s.State.NodeAt(i)
		if asked && v.Node.Undo != nil && v.Status == machine.Completed &&
			!s.undos.left[key(v.Node.ID, v.Generation)] {
			return fmt.Errorf("the run is undone, and %s is not", v.Node.ID)
		}
	}
	return nil
}
