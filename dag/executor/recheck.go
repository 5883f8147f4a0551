package executor

import (
	"encoding/json"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// fingerprint says what an attempt is given to read.
func (h *host) fingerprint(a *attempt) string {
	if !a.resolved {
		return h.run.Fingerprint(a.node.ID, nil, a.above)
	}
	return h.run.Fingerprint(a.node.ID, a.with, a.above)
}

// reads notes that an attempt reads an artifact or accumulator: one that its node does not name is in
// no fingerprint.
func (a *attempt) reads(name string) {
	if !slices.Contains(a.node.Reads, name) {
		a.strange.Store(true)
	}
}

// recheck finds out whether the result of a node still holds: it would start, and it would be given
// what it was given. Nil: that is being found out.
func (h *host) recheck(n *dag.Node) machine.Body {
	before := h.state().Holds(n.ID)
	if n.When != "" {
		ok, err := h.o.Eval.Condition(n.When, h.state().ScopeOf(n.ID))
		if err == nil && !ok && before.Status == dag.StatusSkipped {
			return before
		}
		if err != nil || !ok {
			return machine.Changed(n.ID)
		}
	}
	if before.Status == dag.StatusSkipped {
		return machine.Changed(n.ID)
	}
	fingerprint, err := h.present(n)
	if err != nil {
		return machine.Changed(n.ID) // its next attempt says what is wrong
	}
	if digests := h.run.Unread(n.ID, fingerprint, h.sound); len(digests) > 0 {
		h.readAside(digests)
		return nil
	}
	defer clear(h.sound) // what was found serves once
	return h.run.Recheck(n.ID, fingerprint, h.sound)
}

// readAside reads big objects beside the loop, one lot after the other. When they are read the loop goes on, and the
// machine asks again.
func (h *host) readAside(digests []string) {
	if h.reading {
		return
	}
	h.reading = true
	h.readers.Go(func() {
		sound := map[string]bool{}
		for _, d := range digests {
			sound[d] = h.run.Sound(h.readCtx, d)
		}
		_ = h.onLoop(func() { h.reading, h.sound = false, sound }) // fails only when nobody asks any more
	})
}

// present says what a node would be given if it ran now.
func (h *host) present(n *dag.Node) (string, error) {
	switch {
	case n.Kind == "route":
		v, err := h.decide(n)
		if err != nil {
			return "", err
		}
		raw, err := v.raw()
		if err != nil {
			return "", err
		}
		return h.decided(n, raw)
	case n.Dynamic:
		with, err := h.o.Eval.Resolve(n.With, h.state().ScopeOf(n.ID))
		if err != nil {
			return "", err
		}
		return h.run.Fingerprint(n.ID, with, h.run.Above(n.ID)), nil
	}
	return h.run.Fingerprint(n.ID, nil, h.run.Above(n.ID)), nil
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
