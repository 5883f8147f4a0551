package executor

import (
	"encoding/json"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
)

// recheck finds out whether the stale result of a node is valid. Nil: that is being found out.
func (h *host) recheck(n *dag.Node) machine.Body {
	i, _ := h.run.Graph().Index(n.ID)
	r := h.state().Record(i)
	verdict := reuse.ByInputs(n, &r, inputs{h, n})
	if verdict != reuse.Unknown {
		clear(h.sound) // what was found serves once
	}
	return h.state().Judged(n.ID, verdict)
}

// inputs finds out what a node would be given now, and whether what it made is there.
type inputs struct {
	h *host
	n *dag.Node
}

func (in inputs) Condition() (bool, error) {
	return in.h.o.Eval.Condition(in.n.When, in.h.state().ScopeOf(in.n.ID))
}

func (in inputs) Fingerprint() (string, error) { return in.h.present(in.n) }

func (in inputs) Intact() (intact, known bool) {
	intact, unread := in.h.run.Intact(in.n.ID, in.h.sound)
	if len(unread) > 0 {
		in.h.readAside(unread)
	}
	return intact, len(unread) == 0
}

// readAside reads big objects beside the loop, one lot after the other. When they are read the loop goes on, and the
// machine asks again.
func (h *host) readAside(digests []string) {
	if h.reading {
		return
	}
	h.reading = true
	h.aside.Go(func() {
		sound := map[string]bool{}
		for _, d := range digests {
			sound[d] = h.run.Sound(h.asideCtx, d)
		}
		_ = h.onLoop(func() { h.reading, h.sound = false, sound }) // fails only when nobody asks any more
	})
}

// present says what a node would be given if it ran now.
func (h *host) present(n *dag.Node) (string, error) {
	var with json.RawMessage
	var err error
	switch {
	case n.Role().Decides:
		v, err := h.decide(n)
		if err != nil {
			return "", err
		}
		return h.decided(n, v)
	case n.Dynamic:
		with, err = h.o.Eval.Resolve(n.With, h.state().ScopeOf(n.ID))
	}
	if err != nil {
		return "", err
	}
	return h.run.Fingerprint(n.ID, with, h.run.Above(n.ID)), nil
}

// decided is the fingerprint of a control node: what it makes of all it reads are its values.
func (h *host) decided(n *dag.Node, v map[string]json.RawMessage) (string, error) {
	var with json.RawMessage
	if len(v) > 0 {
		var err error
		if with, err = dag.AppendJSON(nil, v); err != nil {
			return "", err
		}
	}
	return h.run.Fingerprint(n.ID, with, h.run.Above(n.ID)), nil
}
