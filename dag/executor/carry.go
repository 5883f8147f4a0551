package executor

import (
	"fmt"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/nodes"
)

// carry carries out what the machine asks for: first the facts of all commands are recorded
// with one write, then they are acted on. It reports whether anything was done.
func (h *host) carry(cmds []machine.Command, now time.Time) (bool, error) {
	var bodies []machine.Body
	var act []func() error
	did, paused, expanded := false, false, false // paused: no room to start what costs money
	for i := range cmds {
		c := &cmds[i]
		if paused && c.Op == machine.Start {
			continue
		}
		if expanded && c.Op == machine.Expand {
			continue // each against the graph that the one before has made; it is asked for again
		}
		expanded = expanded || c.Op == machine.Expand
		n, after := h.command(c, now)
		if c.Op == machine.Start {
			_, paused = n.(*machine.RunPausedBody)
		}
		if n != nil {
			bodies = appendBody(bodies, n)
		}
		if after != nil {
			act = append(act, after)
		}
		did = did || n != nil || after != nil
	}
	if err := h.record(now, bodies...); err != nil {
		return did, err
	}
	for _, f := range act {
		if err := f(); err != nil {
			return did, err
		}
	}
	return did, h.joins(now)
}

// appendBody appends a payload; nodes that are queued for one reason share an event, and so do those
// whose results do not hold.
func appendBody(bodies []machine.Body, b machine.Body) []machine.Body {
	if len(bodies) == 0 {
		return append(bodies, b)
	}
	switch b := b.(type) {
	case *machine.QueuedBody:
		if last, ok := bodies[len(bodies)-1].(*machine.QueuedBody); ok && last.Reason == b.Reason {
			last.Nodes = append(last.Nodes, b.Nodes...)
			return bodies
		}
	case *machine.RewoundBody:
		last, ok := bodies[len(bodies)-1].(*machine.RewoundBody)
		if ok && last.Reason == b.Reason && b.Reason == machine.ReasonChanged {
			last.Nodes = append(last.Nodes, b.Nodes...)
			return bodies
		}
	}
	return append(bodies, b)
}

// command returns the fact that a command asks to record and what is to be done once it is
// recorded; both nil when the command is being carried out already.
func (h *host) command(c *machine.Command, now time.Time) (machine.Body, func() error) {
	switch c.Op {
	case machine.Record:
		return c.Body, nil
	case machine.Evaluate:
		return h.evaluate(c, now), nil
	case machine.Expand:
		return h.expand(c, now), nil
	case machine.Count:
		return h.counts(c.Breaker, now), nil
	case machine.Recheck:
		return h.recheck(h.node(c.Node)), nil
	case machine.Start:
		n := h.node(c.Node)
		if n.Paid && h.free() < leastRoom {
			return diskPause(n.ID, fmt.Sprintf("less than %d MiB are free on the disk of the run: "+
				"the answer might not be kept", leastRoom>>20), "full"), nil
		}
		if n.Role().Asks {
			return h.question(n, now), nil
		}
		return &machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve},
			func() error { return h.start(c, n, now) }
	case machine.Adopt:
		return nil, func() error { return h.adoptSubmitted(now) }
	case machine.Compensate:
		if h.running[undoKey(c.Node)] != nil {
			return nil, nil
		}
		body := c.Body
		if body == nil {
			body = &machine.CompensationBody{Node: c.Node}
		}
		return body, func() error { return h.compensate(c, now) }
	case machine.Resolve:
		return h.resolve(c, now)
	case machine.Cancel:
		return nil, h.cancelAttempt(c)
	}
	return nil, nil
}

// leastRoom is how many bytes must be free before a call is paid for.
const leastRoom = 16 << 20

func (h *host) free() int64 {
	if h.o.Free != nil {
		return h.o.Free()
	}
	return h.run.Free()
}

func (h *host) node(id string) *dag.Node {
	i, ok := h.run.Graph().Index(id)
	if !ok {
		panic("executor: the machine names a node that is not in the plan: " + id)
	}
	return h.run.Graph().Node(i)
}

// evaluate finds out whether a node's condition holds.
func (h *host) evaluate(c *machine.Command, now time.Time) machine.Body {
	n := h.node(c.Node)
	ok, err := h.o.Eval.Condition(n.When, h.state().ScopeOf(n.ID))
	switch {
	case err != nil:
		return h.refuse(n, "when: "+err.Error(), now)
	case ok:
		return &machine.QueuedBody{Nodes: []string{n.ID}, Reason: "condition"}
	}
	return &machine.FinishedBody{Node: n.ID, Generation: c.Generation,
		Status: dag.StatusSkipped, Final: true, Message: "when is false"}
}

// expand makes the nodes of a run-time foreach.
func (h *host) expand(c *machine.Command, now time.Time) machine.Body {
	n := h.node(c.Node)
	made, err := h.o.Eval.Expand(n, h.state().ScopeOf(n.ID))
	if err == nil {
		_, err = h.run.Graph().Extend(n.ID, made) // the new nodes may not go with those that there are
	}
	if err != nil {
		return h.refuse(n, "foreach: "+err.Error(), now)
	}
	return &machine.PlanExtendedBody{Node: n.ID, Generation: c.Generation, Nodes: made}
}

// refuse ends a node whose expressions cannot be evaluated: another attempt would not help.
func (h *host) refuse(n *dag.Node, why string, now time.Time) machine.Body {
	o := attempt.Failure("config", h.worker.Line(why))
	o.Permanent = true
	return h.state().Settle(n.ID, o, now).Body
}

// start begins an attempt whose start is recorded.
func (h *host) start(c *machine.Command, n *dag.Node, now time.Time) error {
	if control, ok := controls[n.Kind]; ok {
		return control(h, n, now)
	}
	f := h.flight(n, attempt.Run, c.Generation, c.Attempt)
	f.job.Reserve = c.Reserve
	return h.begin(f)
}

// resolve finds out whether an attempt whose process died took effect: by the kind's probe, or by
// asking a user.
func (h *host) resolve(c *machine.Command, now time.Time) (machine.Body, func() error) {
	n := h.node(c.Node)
	if c.Body != nil || h.running[n.ID] != nil {
		return c.Body, nil
	}
	kind, _ := h.o.Kinds.Kind(n.Kind)
	if _, ok := nodes.Able[nodes.Prober](kind, nil); ok { // n.With may not be filled in yet
		return nil, func() error {
			return h.begin(h.flight(n, attempt.Probe, c.Generation, c.Attempt))
		}
	}
	return h.state().Ask(machine.EscalationOpenedBody{
		ID: fmt.Sprintf("%s/%s/%d.%d", machine.AskLost, n.ID, c.Generation, c.Attempt), Kind: machine.AskLost, Node: n.ID,
		Message: fmt.Sprintf("Attempt %d of %s was interrupted, and nodes of kind %s have no probe. Did it take effect?",
			c.Attempt, n.ID, n.Kind),
		Options: []string{machine.AnswerRerun, machine.AnswerDone, machine.AnswerFail, machine.AnswerAbort},
	}, now), nil
}

func undoKey(node string) string { return "undo " + node }

// compensate runs a node's undo action. What it undoes is archived first: nothing is lost by it.
func (h *host) compensate(c *machine.Command, now time.Time) error {
	n := h.node(c.Node)
	if _, err := h.run.Checkpoint(now, "cp-UNDO-"+strings.ReplaceAll(n.ID, "/", "-"), "", nil); err != nil {
		return err
	}
	f := h.flight(n, attempt.Undo, max(1, c.Generation), max(1, c.Attempt))
	u := n.Undo
	if b, ok := c.Body.(*machine.CompensationBody); ok && b.Own {
		u = n.Trigger().Own
	}
	f.undoes(u)
	return h.begin(f)
}

// begin resolves the settings of an attempt and launches it; settings that cannot be resolved
// end it at once.
func (h *host) begin(f *flight) error {
	f.mark = h.mark
	if err := f.resolve(); err != nil {
		return h.finish(f, nodes.Permanent(nodes.Fail("config", err.Error())))
	}
	var err error
	if f.slot, err = h.takeSlot(); err != nil {
		return h.finish(f, &nodes.Error{Category: "unknown", Message: "no folder to work in", Err: err})
	}
	h.launch(f)
	return nil
}

// finish records the end of an attempt that err kept from beginning.
func (h *host) finish(f *flight, err error) error {
	h.running[f.key] = f
	f.slot = &slot{spoiled: true}
	now := h.clock.now()
	return h.record(now, h.ended(nil, result{f.key, h.worker.Unbegun(h.ctx, f.job, err)}, now)...)
}

// feedback is what the next attempt is told of the last failure, where the category says so.
func (h *host) feedback(v machine.NodeView) string {
	if v.Last == nil || v.Last.Status != dag.StatusFailed {
		return ""
	}
	for _, c := range h.run.Graph().Plan.Categories {
		if c.Name == v.Last.Category && c.Feedback {
			return v.Last.Message
		}
	}
	return ""
}

// cancelAttempt asks a running attempt to stop, once.
func (h *host) cancelAttempt(c *machine.Command) func() error {
	f := h.running[c.Node]
	if f == nil || f.cancelled {
		return nil
	}
	f.cancelled = true
	return func() error { f.cancel(attempt.ErrCancelled); return nil }
}
