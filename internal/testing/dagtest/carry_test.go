package dagtest

import (
	"fmt"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// carry carries out one command. It reports whether anything was done: a cancel of an attempt
// that has been asked already does nothing.
func (s *Sim) carry(c machine.Command) (did bool, err error) {
	switch c.Op {
	case machine.Record:
		return true, s.record(c.Body)
	case machine.Start:
		return true, s.start(c)
	case machine.Evaluate:
		return true, s.evaluate(c)
	case machine.Expand:
		return true, s.expand(c)
	case machine.Recheck:
		return true, s.recheck(c)
	case machine.Count:
		return true, s.record(Count(c.Breaker, s.now))
	case machine.Cancel:
		return s.cancel(c)
	case machine.Resolve:
		return true, s.resolve(c)
	case machine.Adopt:
		return true, s.Adopt(s.Handed)
	case machine.Compensate:
		err := s.record(c.Body)
		if err == nil && !s.killed {
			s.undoing = c.Node
		}
		return true, err
	}
	return false, fmt.Errorf("unknown command")
}

func (s *Sim) node(id string) *dag.Node {
	i, _ := s.State.Graph().Index(id)
	return s.State.Graph().Node(i)
}

func (s *Sim) start(c machine.Command) error {
	if b, _, _ := s.State.BreakerRecord(s.node(c.Node).Breaker); b.State == "open" && s.now.Before(b.Until) {
		return fmt.Errorf("starts %s before an open breaker", c.Node)
	}
	if s.Eval != nil && s.node(c.Node).Role().Asks {
		return s.record(s.asks(c))
	}
	if s.node(c.Node).Kind == "approval" {
		return s.record(s.question(c))
	}
	err := s.record(&machine.StartedBody{
		Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve, Queued: s.Queue,
	})
	if err != nil || s.killed {
		return err
	}
	took := time.Duration(1+s.hash(c.Node, "took")%20) * time.Second
	a := attempt{node: s.node(c.Node), gen: c.Generation, no: c.Attempt, began: s.now, end: s.now.Add(took)}
	if s.Reads {
		a.fingerprint, a.given = s.given(a.node)
	}
	if s.Case != nil {
		a.end = s.now.Add(s.see(a))
	}
	if s.Queue {
		a.queued, a.took, a.end = true, a.end.Sub(s.now), s.now.Add(queuedFor)
	}
	s.running[c.Node] = a
	return nil
}

// queuedFor is how long attempts lie in a queue.
const queuedFor = 3 * time.Second

// begin has a worker take an attempt out of the queue.
func (s *Sim) begin(a attempt) error {
	b := &machine.StartedBody{Node: a.node.ID, Generation: a.gen, Attempt: a.no}
	if err := s.record(b); err != nil || s.killed {
		return err
	}
	a.queued, a.began, a.end = false, s.now, s.now.Add(a.took)
	s.running[a.node.ID] = a
	return nil
}

// Condition evaluates the conditions of random plans.
func Condition(src string, sc dag.Scope) (bool, error) {
	what, id, _ := strings.Cut(src, ":")
	switch what {
	case "true", "false":
		return what == "true", nil
	}
	v, ok := sc.View(id)
	if !ok {
		return false, fmt.Errorf("%s is not in scope", id)
	}
	if what == "odd" {
		return string(v.Out["v"]) == "1", nil
	}
	return what == "settled" || v.Status == dag.StatusCompleted, nil
}

func (s *Sim) evaluate(c machine.Command) error {
	condition := Condition
	if s.Eval != nil {
		condition = s.Eval.Condition
	}
	ok, err := condition(s.node(c.Node).When, s.State.ScopeOf(c.Node))
	if err != nil {
		return err
	}
	if ok {
		return s.record(&machine.QueuedBody{Nodes: []string{c.Node}, Reason: "condition"})
	}
	return s.record(&machine.FinishedBody{Node: c.Node, Generation: c.Generation, Status: dag.StatusSkipped, Final: true})
}

func (s *Sim) expand(c machine.Command) error {
	b := &machine.PlanExtendedBody{Node: c.Node, Generation: c.Generation}
	if s.Reads {
		b.Nodes = s.items(c)
		return s.record(b)
	}
	if s.Eval != nil {
		var err error
		if b.Nodes, err = s.Eval.Expand(s.node(c.Node), s.State.ScopeOf(c.Node)); err != nil {
			return err
		}
		return s.record(b)
	}
	for k := range s.hash(c.Node, "items") % 4 {
		b.Nodes = append(b.Nodes, dag.Node{ID: fmt.Sprintf("%s/i%d", c.Node, k), Kind: "fake", Effect: "pure",
			OnFail: "continue", Needs: []string{c.Node}, Labels: map[string]string{"fate": "0", "category": "transient"}})
	}
	return s.record(b)
}

func (s *Sim) cancel(c machine.Command) (bool, error) {
	a, ok := s.running[c.Node]
	if !ok {
		return false, fmt.Errorf("cancels %s, which does not run", c.Node)
	}
	return true, s.finish(a, machine.Outcome{Status: dag.StatusCancelled})
}

// resolve answers for a lost attempt: by the probe, or by a question.
func (s *Sim) resolve(c machine.Command) error {
	if c.Body != nil {
		return s.record(c.Body)
	}
	b := &machine.FinishedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Status: dag.StatusRejected}
	if s.effects[key(c.Node, c.Generation)] > 0 {
		o := s.fate(attempt{node: s.node(c.Node), gen: c.Generation})
		s.effects[key(c.Node, c.Generation)] = 1
		*b = o.Body
		b.Node, b.Generation, b.Attempt, b.Status, b.Final = c.Node, c.Generation, c.Attempt, dag.StatusCompleted, true
	}
	return s.record(b)
}

// Count plays the part of a host that counts: a breaker opens for a minute at its second failure in a row, and one
// probe decides.
func Count(q *machine.BreakerQuestion, now time.Time) *machine.BreakerChangedBody {
	b := &machine.BreakerChangedBody{Breaker: q.Breaker.Name, State: "closed"}
	switch failures := q.Last.Counts.ConsecBad + 1; {
	case q.Last.State == "open":
		b.State = "half-open"
		return b
	case q.Outcome.Good():
	case q.Last.State == "half-open" || failures >= 2:
		b.State, b.Until = "open", now.Add(time.Minute)
	default:
		b.Counts.ConsecBad = failures
	}
	b.Cause = q.Outcome.Node
	return b
}
