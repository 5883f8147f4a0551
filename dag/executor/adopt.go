package executor

import (
	"os"
	"path/filepath"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes"
)

// Adopt returns what run.Run.Resume asks of an attempt that a dead process left under way: the
// end of one whose kind had kept its finished result (nodes.SavedName), so that a paid answer is
// not bought twice; nil for all others. Its artifacts and entries are published on the way.
func Adopt(r *run.Run, kinds *nodes.Registry, now time.Time) func(node string, generation, number int) *machine.FinishedBody {
	h := &host{o: Options{Run: r, Kinds: kinds}, run: r, clock: newClock(now)}
	return func(node string, generation, number int) *machine.FinishedBody {
		f, err := os.Open(filepath.Join(r.NodeDir(node, generation), nodes.SavedName))
		if err != nil {
			return nil
		}
		defer f.Close()
		out, err := r.Staging("adopt")
		if err != nil {
			return nil
		}
		defer os.RemoveAll(out)
		res, err := nodes.LoadResult(f, node, generation, number, out)
		if err != nil {
			return nil // cut, or of an earlier attempt: this one is lost
		}
		view, ok := h.state().NodeByID(node)
		if !ok {
			return nil
		}
		return h.adopt(&attempt{
			node: view.Node, kind: view.Node.Kind, with: view.Node.With, generation: generation, number: number,
			reserve: view.Reserved, plan: r.Graph().Plan, slot: &slot{out: out},
		}, res)
	}
}

// adopt publishes a result as the attempt would have and returns its end; nil when that fails,
// and the attempt is lost after all.
func (h *host) adopt(a *attempt, res *nodes.Result) *machine.FinishedBody {
	body, err := h.body(a, res)
	if err != nil {
		return nil
	}
	out, err := h.output(a, res, true)
	if err != nil {
		return nil
	}
	if len(out.Writes)+len(out.Entries) > 0 {
		err := h.run.Publish(a.id(), out, func(bodies ...machine.Body) error {
			return h.record(h.clock.now(), bodies...)
		})
		if err != nil {
			return nil
		}
	}
	body.CostUSD, body.CostKind = h.cost(a, res, nil)
	body.Warnings = append(body.Warnings, "the result was complete when the process ended; it was taken from "+nodes.SavedName)
	e := h.state().Settle(a.node.ID, machine.Outcome{Status: machine.StatusCompleted, Body: body}, h.clock.now())
	fin, _ := e.Body.(*machine.FinishedBody)
	return fin
}
