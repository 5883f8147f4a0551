package executor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// Adopt returns what run.Run.Resume asks of an attempt that a dead process left under way: its end,
// where the kind had kept its finished result (nodes.SavedName), or can tell it from what had come in
// by then (nodes.Rescuer). So a paid answer is not bought twice. It is nil for all others. Artifacts
// and entries are published on the way. secret is that of Options: what is kept is masked; evaluator
// makes Options.Eval for the plan in force.
func Adopt(r *run.Run, kinds *nodes.Registry, evaluator func(*dag.Plan) (dag.Evaluator, error),
	secret func(name string) (string, error), now time.Time) run.Rescue {
	still := func() (time.Time, time.Duration) { return now, 0 } // what is recorded on the way is no later than the end
	h := &host{o: Options{Run: r, Kinds: kinds, Secret: secret}, run: r, clock: newClock(now, still)}
	h.worker.Kinds = kinds
	h.knowSecrets()
	return func(node string, generation, number int) (*machine.FinishedBody, error) {
		out, err := r.Staging("adopt")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(out)
		view, ok := h.state().NodeByID(node)
		if !ok {
			return nil, nil
		}
		if h.o.Eval == nil {
			if h.o.Eval, err = evaluator(r.Graph().Plan); err != nil {
				return nil, nil
			}
		}
		f := h.flight(view.Node, attempt.Rescue, generation, number)
		f.job.Reserve, f.slot, f.ctx = view.Reserved, &slot{out: out}, context.Background()
		f.job.Fingerprint, _ = h.present(view.Node) // without one its result is not reused after an edit, that is all
		body, err := h.adopt(f)
		if body == nil && err == nil && view.Took != "" && len(view.Node.Writes)+len(view.Node.Outputs) == 0 {
			o := machine.Outcome{Status: dag.StatusCompleted}
			o.Body.Warnings = []string{"it had ended well (" + view.Took + ") when the process died; what it printed is lost"}
			body = h.settled(f, o)
		}
		return body, err
	}
}

// adopt ends an attempt by its finished result, else by what it had received; nil when neither proves
// anything. What counts is published as the attempt would have; the error is that the disk fails that.
func (h *host) adopt(f *flight) (*machine.FinishedBody, error) {
	why := "the result was complete when the process ended; it was read from " + nodes.SavedName
	rep, ok := h.saved(f)
	if !ok {
		f.job.Calling = h.calling(f.job.CallID())
		if f.openSpool() {
			rep, ok = h.worker.Rescue(f.ctx, f.job, f)
		}
		why = "the answer was complete when the process ended; the call was not repeated"
	}
	if !ok {
		return nil, nil
	}
	completed := rep.Outcome.Status == dag.StatusCompleted
	o := h.publish(f, &rep)
	if o.Category == attempt.DiskBroken {
		return nil, &disk.Refused{Err: fmt.Errorf("what attempt %d of %s left cannot be kept: %s",
			f.job.Attempt, f.job.Node.ID, o.Message)}
	}
	if completed {
		if o.Status != dag.StatusCompleted {
			return nil, nil
		}
		o.Body.Warnings = append(o.Body.Warnings, why)
	}
	return h.settled(f, o), nil
}

// saved reports the result that an attempt's kind had finished and kept; false when there is none, it is
// cut or of an earlier attempt.
func (h *host) saved(f *flight) (rep attempt.Report, ok bool) {
	file, err := regular.Open(filepath.Join(h.run.NodeDir(f.job.Node.ID, f.job.Generation), nodes.SavedName))
	if err != nil {
		return rep, false
	}
	defer file.Close()
	res, err := nodes.LoadResult(file, f.job.Node.ID, f.job.Generation, f.job.Attempt, f.slot.out)
	if err != nil {
		return rep, false
	}
	rep, err = h.worker.Adopt(f.job, f, res)
	return rep, err == nil
}

// calling reports whether an attempt's call of a model is recorded as begun and not as ended.
func (h *host) calling(id string) bool {
	return slices.ContainsFunc(h.state().OpenCalls(), func(c machine.LLMCallStartedBody) bool { return c.CallID == id })
}
