package executor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// Adopt returns what run.Run.Resume asks of an attempt that a dead process left under way: its end,
// where the kind had kept its finished result (nodes.SavedName), or can tell it from what had come in
// by then (nodes.Rescuer). So a paid answer is not bought twice. It is nil for all others. Artifacts
// and entries are published on the way. secret is that of Options: what is kept is masked; evaluator
// makes Options.Eval for the plan in force.
func Adopt(r *run.Run, kinds *nodes.Registry, evaluator func(*dag.Plan) (dag.Evaluator, error), secret func(name string) (string, error), now time.Time) run.Rescue {
	still := func() (time.Time, time.Duration) { return now, 0 } // what is recorded on the way is no later than the end
	h := &host{o: Options{Run: r, Kinds: kinds, Secret: secret}, run: r, clock: newClockFrom(now, still)}
	h.knowSecrets()
	return func(node string, generation, number int) *machine.FinishedBody {
		out, err := r.Staging("adopt")
		if err != nil {
			return nil
		}
		defer os.RemoveAll(out)
		view, ok := h.state().NodeByID(node)
		if !ok {
			return nil
		}
		a := &attempt{
			key: node, node: view.Node, kind: view.Node.Kind, with: view.Node.With, generation: generation, number: number,
			failures: view.Failures, allFailures: view.AllFailures, reserve: view.Reserved,
			plan: r.Graph().Plan, seed: h.state().Run().Seed, slot: &slot{out: out}, ctx: context.Background(),
		}
		if h.o.Eval == nil {
			if h.o.Eval, err = evaluator(a.plan); err != nil {
				return nil
			}
		}
		a.fingerprint, _ = h.present(a.node) // without one its result is not reused after an edit, that is all
		if res := h.saved(a); res != nil {
			return h.adopt(a, res, "the result was complete when the process ended; it was taken from "+nodes.SavedName)
		}
		return h.rescue(a)
	}
}

// saved returns the result that an attempt's kind had finished and kept; nil when there is none, it is
// cut or of an earlier attempt.
func (h *host) saved(a *attempt) *nodes.Result {
	f, err := regular.Open(filepath.Join(h.run.NodeDir(a.node.ID, a.generation), nodes.SavedName))
	if err != nil {
		return nil
	}
	defer f.Close()
	res, err := nodes.LoadResult(f, a.node.ID, a.generation, a.number, a.slot.out)
	if err != nil {
		return nil
	}
	return res
}

// rescue has the kind end an attempt by what it had received; nil when that proves nothing. Whatever a
// dead process left, the run goes on.
func (h *host) rescue(a *attempt) (fin *machine.FinishedBody) {
	defer func() {
		if recover() != nil {
			fin = nil
		}
	}()
	kind, ok := h.o.Kinds.Kind(a.kind)
	rescuer, able := kind.(nodes.Rescuer)
	if dir := h.run.Spooled(a.id()); !ok || !able || dir == "" || a.openSpool(dir) != nil {
		return nil
	}
	t, err := h.task(a)
	if err != nil {
		return nil
	}
	t.Spool = h.run.Spooled(a.id())
	t.Emit = func(typ string, body any) error {
		if !h.calling(a) {
			return nil // the dead process had recorded the end of the call
		}
		return h.emit(a, typ, body)
	}
	res, err := rescuer.Rescue(a.ctx, t)
	switch {
	case res == nil && err == nil:
		return nil
	case err == nil:
		return h.adopt(a, res, "the answer was there when the process ended; nothing was asked again")
	case res == nil:
		res = &nodes.Result{}
	}
	body, _ := h.body(a, res)
	body.CostUSD, body.CostKind = h.cost(a, res, err)
	o := h.failed(a, a.ctx, err, res, body)
	if o.Category == machine.CategoryLost { // what it used is known, how it ended is not
		o.Status = dag.StatusLost
	}
	o.Message = h.line(o.Message)
	o.Diagnostics = h.diagnostics(o.Diagnostics)
	return h.end(a, o)
}

// calling reports whether the attempt's call of a model is recorded as begun and not as ended.
func (h *host) calling(a *attempt) bool {
	return slices.ContainsFunc(h.state().Calls().Open, func(c machine.LLMCallStartedBody) bool { return c.CallID == a.callID() })
}

// adopt publishes a result as the attempt would have and returns its end; nil when that fails,
// and the attempt is lost after all.
func (h *host) adopt(a *attempt, res *nodes.Result, why string) *machine.FinishedBody {
	body, err := h.body(a, res)
	if err != nil {
		return nil
	}
	if h.publish(a, res, true) != nil {
		return nil
	}
	body.CostUSD, body.CostKind = h.cost(a, res, nil)
	body.Warnings = append(body.Warnings, why)
	return h.end(a, machine.Outcome{Status: dag.StatusCompleted, Body: body})
}

func (h *host) end(a *attempt, o machine.Outcome) *machine.FinishedBody {
	fin, _ := h.state().Settle(a.node.ID, o, h.clock.now()).Body.(*machine.FinishedBody)
	return fin
}
