package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// task builds what an attempt may see.
func (h *host) task(a *attempt) (*nodes.Task, error) {
	n := a.node
	writes, outputs := n.Writes, n.Outputs
	if a.undo { // it makes what its own settings name, not what the node makes
		writes, outputs = h.traits(a).Writes, nil
	}
	again := func(category string) bool { return h.again(a, category) }
	handOn := a.handOn
	if a.undo || a.probe {
		again, handOn = nil, nil
	}
	return &nodes.Task{
		Node: n.ID, Generation: a.generation, Attempt: a.number, Failures: a.allFailures, FailedWith: a.failedWith,
		Again: again,
		Kind:  a.kind, With: a.with, Labels: n.Labels, Seed: a.seed, Effect: string(n.Effect),
		Reads: n.Reads, Writes: writes, Outputs: outputs,
		Timeout: a.timeout(), Silence: n.Timeout.Silence.D(), Grace: a.grace(),
		Reserve: a.reserve.USD.Float(), Feedback: a.feedback,
		SpecDir: h.o.SpecDir, Out: a.slot.out, Scratch: a.slot.scratch, Carry: handOn, Binary: h.o.Binary,

		File: h.run.File,
		Artifact: func(name string) (rc io.ReadCloser, err error) {
			a.reads(name)
			if gone := h.onLoop(func() { rc, err = h.run.Artifact(n.ID, name) }); gone != nil {
				return nil, gone
			}
			if gone := new(run.Gone); errors.As(err, &gone) {
				return nil, &nodes.Error{Category: "file_io", Message: gone.Error(), Permanent: true}
			}
			return rc, err
		},
		Entries: func(name string) (out []nodes.Entry, err error) {
			a.reads(name)
			gone := h.onLoop(func() {
				entries, e := h.run.Entries(n.ID, name)
				err = e
				for _, e := range entries {
					out = append(out, nodes.Entry(e))
				}
			})
			return out, errors.Join(gone, err)
		},
		Values: func(node string) (out map[string]json.RawMessage, ok bool) {
			a.strange.Store(true)
			_ = h.onLoop(func() { // a host that has stopped has no values
				var v dag.View
				if v, ok = h.state().ScopeOf(n.ID).View(node); ok {
					out = v.Out
				}
			})
			return out, ok
		},
		Secret: h.secret,
		Mask:   h.mask.Add,
		Keep:   func(name string) (io.WriteCloser, error) { return h.keep(a, name) },
		Emit:   func(typ string, body any) error { return h.emit(a, typ, body) },
		Log:    func(level, msg string) { h.log(n.ID, level, msg) },
		Beat: func(note string) {
			if h.o.Beat != nil {
				h.o.Beat(n.ID, h.line(note))
			}
		},
	}, nil
}

// knowSecrets makes the secrets that a plan names known before anything is kept: one node may show what another was
// given. One that is not set is the failure of the node that asks for it.
func (h *host) knowSecrets() {
	for _, n := range h.run.Graph().Plan.Nodes {
		for _, name := range n.Secrets {
			_, _ = h.secret(name)
		}
	}
}

func (h *host) secret(name string) (string, error) {
	if h.o.Secret == nil {
		return "", nodes.Permanent(nodes.Fail("config", "no secret named "+name))
	}
	v, err := h.o.Secret(name)
	if err == nil {
		h.mask.Add(v)
	}
	return v, err
}

func (h *host) keep(a *attempt, name string) (io.WriteCloser, error) {
	w, err := h.run.Keep(a.id(), name)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.kept = append(a.kept, name)
	a.mu.Unlock()
	return h.mask.Writer(w), nil
}

// body is what of a result goes into the event, masked. The error says that the values are not
// what the node declares.
func (h *host) body(a *attempt, res *nodes.Result) (machine.FinishedBody, error) {
	b := machine.FinishedBody{
		Usage: machine.Usage(res.Usage),
	}
	if !a.strange.Load() {
		b.Fingerprint = a.fingerprint
	}
	for _, w := range res.Warnings {
		b.Warnings = append(b.Warnings, h.line(w))
	}
	for _, s := range res.Survivors {
		b.Warnings = append(b.Warnings, h.line("still running after everything was tried: "+s))
	}
	for _, n := range res.Notes {
		raw, err := json.Marshal(n.Fields)
		if err != nil {
			return b, nodes.Fail("protocol", "note "+n.Type+": "+err.Error())
		}
		b.Notes = append(b.Notes, machine.Note{Log: n.Log, Type: n.Type, Fields: h.mask.JSON(raw)})
	}
	if a.undo {
		return b, nil // nobody reads its values
	}
	names := make([]string, 0, len(res.Values))
	for name := range res.Values {
		names = append(names, name)
	}
	sort.Strings(names) // for the order of warnings
	for _, name := range names {
		want, declared := a.node.Outputs[name]
		if !declared {
			b.Warnings = append(b.Warnings, h.line("value "+name+" is not declared in outputs and was dropped"))
			continue
		}
		raw, err := json.Marshal(res.Values[name])
		if err != nil {
			return b, nodes.Fail("protocol", "value "+name+": "+err.Error())
		}
		want, _ = dag.OutputType(want)
		if raw = h.mask.JSON(raw); !hasType(raw, want) {
			return b, nodes.Fail("protocol", fmt.Sprintf("value %s is declared as %s and is %s", name, want, printable.Clip(string(raw), 40)))
		}
		if b.Values == nil {
			b.Values = make(map[string]json.RawMessage, len(names))
		}
		b.Values[name] = dag.KeptValue(raw)
	}
	return b, nil
}

// hasType reports whether a JSON value is of a declared type.
func hasType(raw json.RawMessage, want string) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return want == "string"
	case bool:
		return want == "bool"
	case float64:
		return want == "number" || want == "int" && v == math.Trunc(v)
	case []any:
		return want == "list"
	case map[string]any:
		return want == "map"
	}
	return false
}

// cost says what an attempt cost and how that is known: as the kind reports, else by the price
// table, else the reservation stands, but no less than the part that was reported. What never started, and
// what a service refused, costs nothing. Of an attempt that is lost the usage is what is known of it: there may
// have been more.
func (h *host) cost(a *attempt, res *nodes.Result, err error) (dag.USD, dag.CostKind) {
	var e *nodes.Error
	failed := errors.As(err, &e)
	if res.CostUSD != nil {
		usd, bad := dag.Dollars(*res.CostUSD)
		switch {
		case bad == nil && usd == 0 && err != nil && res.Usage == (nodes.Usage{}):
			return 0, dag.CostFree
		case bad == nil && usd >= 0:
			return usd, dag.CostReported
		}
	}
	least, bad := dag.Dollars(res.LeastUSD)
	if bad != nil {
		least = 0
	}
	if res.Usage != (nodes.Usage{}) {
		usd, ok := h.priced(a, res)
		usd = max(usd, least)
		switch {
		case ok && failed && e.Category == machine.CategoryLost:
			return usd, dag.CostAssumed
		case ok:
			return usd, dag.CostPriced
		}
	}
	switch {
	case a.reserve == (dag.Amount{}):
		return 0, ""
	case failed && (e.Category == "config" || e.Category == "spawn_failed"):
		return 0, dag.CostFree
	}
	return max(a.reserve.USD, least), dag.CostAssumed
}

// priced applies the plan's price table to the model that answered, else to the one that the
// node's settings name.
func (h *host) priced(a *attempt, res *nodes.Result) (dag.USD, bool) {
	model := res.Model
	if model == "" {
		model = h.model(a)
	}
	p, ok := dag.PriceOf(a.plan, model)
	if !ok && res.Model != "" { // a name that only the provider uses
		p, ok = dag.PriceOf(a.plan, h.model(a))
	}
	return p.Cost(dag.Usage(res.Usage)), ok
}

// model is the model that an attempt's settings name; empty when they name none.
func (h *host) model(a *attempt) string {
	if p := h.traits(a).Prompt; p != nil {
		return p.Model
	}
	return ""
}

// traits are those of an attempt's settings; empty when its kind does not know them.
func (h *host) traits(a *attempt) nodes.Traits {
	if kind, ok := h.o.Kinds.Kind(a.kind); ok {
		if t, err := kind.Describe(a.with); err == nil {
			return t
		}
	}
	return nodes.Traits{}
}
