package executor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"dagrun.dev/dag"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// A flight is an attempt under way in this process: its job, and what the host knows beside it. To the
// attempt it is the World, see world.go.
type flight struct {
	host *host
	key  string // in host.running
	job  *attempt.Job
	slot *slot
	mark run.Mark // to wait for before anything is done

	missing string          // a pattern that it reads and that nothing matches
	filled  json.RawMessage // the settings, where they held ${...}
	above   []reuse.Reading // what its needs left, if it sees that
	beside  []run.Target    // what it is to put beside the specification
	left    []string        // warnings of files there that were not replaced

	ctx       context.Context
	cancel    context.CancelCauseFunc
	cancelled bool // asked to stop: the loop asks once

	handsOn atomic.Bool // it has a folder for the attempts after it
	spooled atomic.Bool // it has a folder that outlives this process
	// stranded: the disk fails what the work has left, which stays where the next process finds it. Its end is not
	// recorded.
	stranded bool
}

// A result is an attempt's end on its way to the loop.
type result struct {
	key     string
	outcome machine.Outcome
}

func (f *flight) id() run.Attempt {
	return run.Attempt{Node: f.job.Node.ID, Generation: f.job.Generation, Attempt: f.job.Attempt}
}

// flight makes the job of an attempt. with are the settings before they are resolved.
func (h *host) flight(n *dag.Node, p attempt.Purpose, generation, number int) *flight {
	view, _ := h.state().NodeByID(n.ID)
	plan := h.run.Graph().Plan
	j := &attempt.Job{
		Format: attempt.Format, Purpose: p, Node: n, Kind: n.Kind, With: n.With, Generation: generation, Attempt: number,
		Failures: view.Failures, AllFailures: view.AllFailures, Feedback: h.feedback(view),
		Seed: h.state().Run().Seed, SpecDir: h.o.SpecDir, Prices: plan.Prices,
	}
	if i, ok := h.run.Graph().Index(n.ID); ok {
		j.FailedWith = h.state().FailedWith(i)
	}
	if view.Limits != n.Timeout {
		longer := *n
		longer.Timeout = view.Limits
		j.Node = &longer
	}
	f := &flight{host: h, key: n.ID, job: j}
	for _, name := range n.Reads {
		found := h.run.FindAll(n.ID, name)
		if len(found) == 0 && p == attempt.Run && !slices.Contains(n.Optional, name) && f.missing == "" {
			f.missing = name
		}
		j.Reads = append(j.Reads, found...)
	}
	if p == attempt.Undo {
		f.key, j.Files = undoKey(n.ID), plan.Files
		return f
	}
	j.Params = reuse.ParamsIn(plan, string(n.With))
	for k := range plan.Files {
		if len(n.Files) > 0 && slices.Contains(n.Files, plan.Files[k].Path) {
			j.Files = append(j.Files, plan.Files[k])
		}
	}
	f.above = h.run.Above(n.ID)
	if p == attempt.Run || p == attempt.Rescue {
		f.beside = h.run.Targets(n, f.id())
	}
	return f
}

// undoes makes the flight a try of an undo action: under the node's name, by the action's settings and policies.
func (f *flight) undoes(u *dag.Undo) {
	n := *f.job.Node
	n.Effect, n.Dynamic = u.Effect, u.Dynamic
	if u.Timeout > 0 {
		n.Timeout.Attempt = u.Timeout
	}
	n.Timeout.Growth = 0
	f.job.Node, f.job.Kind, f.job.With = &n, u.Kind, u.With
}

// resolve fills in what the settings of a job read of the run.
func (f *flight) resolve() error {
	j := f.job
	if f.missing != "" {
		return fmt.Errorf("reads: no artifact that a node before this one has written matches %s; where there need be "+
			"none, write {path: %q, optional: true}", f.missing, f.missing)
	}
	if j.Node.Dynamic {
		scope := f.host.state().ScopeOf
		if j.Purpose == attempt.Undo {
			scope = f.host.state().UndoScopeOf
		}
		with, err := f.host.o.Eval.Resolve(j.With, scope(j.Node.ID))
		if err != nil {
			return fmt.Errorf("with: %w", err)
		}
		j.With, f.filled = with, with
	}
	if len(j.With) == 0 {
		j.With = json.RawMessage("{}")
	}
	return nil
}

// launch starts an attempt in the goroutine of its slot.
func (h *host) launch(f *flight) {
	f.ctx, f.cancel = context.WithCancelCause(h.ctx)
	h.running[f.key] = f
	f.slot.work <- f
}

// attempt carries an attempt out and has its result taken in, whatever the kind does.
func (h *host) attempt(f *flight) {
	r := result{key: f.key, outcome: attempt.Failure("unknown", "the kind ended its own goroutine")}
	returned := false
	defer func() {
		if !returned {
			f.slot.spoiled = true // its goroutine is no more
		}
		f.cancel(nil)
		if !f.stranded {
			f.slot.reset()
		}
		h.results <- r
		h.takeTurn()
	}()
	r.outcome = h.outcome(f)
	returned = true
}

// outcome carries one attempt out.
func (h *host) outcome(f *flight) machine.Outcome {
	if err := h.run.Wait(f.mark); err != nil {
		return h.worker.Unbegun(f.ctx, f.job, err)
	}
	if f.job.Purpose == attempt.Run {
		// Before it publishes: it may read what it writes.
		f.job.Fingerprint = h.run.Fingerprint(f.job.Node.ID, f.filled, f.above)
	}
	if err := h.run.CheckTargets(f.beside); err != nil {
		return h.worker.Unbegun(f.ctx, f.job, err)
	}
	if text := f.changedInput(); text != "" {
		return h.worker.Unbegun(f.ctx, f.job, nodes.Fail("input_changed", text))
	}
	rep := h.worker.Do(f.ctx, f.job, f)
	f.slot.spoiled = f.slot.spoiled || rep.Unclean
	return h.publish(f, &rep)
}

// publish makes what a report names part of the run and returns the outcome that is to be recorded.
func (h *host) publish(f *flight, rep *attempt.Report) machine.Outcome {
	o := rep.Outcome
	if o.Status == dag.StatusCompleted {
		err := h.makeLive(f, run.Output{Artifacts: rep.Artifacts, Entries: rep.Entries, Beside: f.beside})
		if err == nil {
			o.Body.Kept = rep.Kept
			o.Body.Warnings = append(o.Body.Warnings, f.left...)
			return o
		}
		body := o.Body
		body.Values = nil
		o = attempt.Classify(f.ctx, 0, err)
		once := !f.job.Node.Effect.Repeatable() && f.job.Purpose != attempt.Undo
		switch {
		case o.Status != dag.StatusFailed:
		case once:
			o.Status = dag.StatusLost // it has taken effect
		case o.Category == dag.OverCategory:
		case f.job.Node.Costly(): // whatever stands in the way, the answer is there
			o = attempt.Classify(f.ctx, 0, &disk.Refused{Err: err})
		}
		o.Message, o.Body = h.worker.Line(o.Message), body
	}
	if f.stranded = h.strands(f, rep, &o); f.stranded {
		return o
	}
	kept, paths := h.setAside(f, rep.Kept)
	o.Body.Kept = kept
	if o.Status == dag.StatusCancelled {
		o.Message += ": PARTIAL, " + partial(paths)
	}
	h.remains(f, rep, &o)
	return o
}

// remains makes part of the run what counts of an attempt after which the node has failed for good.
func (h *host) remains(f *flight, rep *attempt.Report, o *machine.Outcome) {
	saved := rep.Salvaged
	if len(rep.Entries) == 0 && saved == nil {
		return
	}
	end := &machine.FinishedBody{} // it stays so when the host has stopped: then nothing is published
	outcome := *o                  // so that o itself is no garbage where nothing remains
	_ = h.onLoop(func() { end = h.settled(f, outcome) })
	if !end.Final || end.Status != dag.StatusFailed {
		return
	}
	out := run.Output{Entries: rep.Entries}
	if saved == nil || !f.job.Node.Salvage.Of(end.Category) {
		saved = &attempt.Salvaged{}
	}
	out.Artifacts = saved.Artifacts
	for _, why := range saved.Left {
		o.Body.Warnings = append(o.Body.Warnings, "not salvaged: "+why)
	}
	if err := h.makeLive(f, out); err != nil {
		o.Body.Warnings = append(o.Body.Warnings, h.worker.Line("what is left of the attempt is lost: "+err.Error()))
		return
	}
	for _, a := range saved.Artifacts {
		o.Body.Salvaged = append(o.Body.Salvaged, a.Name)
	}
	o.Body.Salvaged = append(o.Body.Salvaged, slices.Sorted(maps.Keys(saved.Values))...)
	if len(o.Body.Salvaged) > 0 {
		o.Body.Values = saved.Values
		o.Message += "; salvaged: " + strings.Join(o.Body.Salvaged, ", ")
	}
}

// strands reports whether an attempt whose answer has come is left under way because the disk fails what it left: it is
// not to be paid for again. The run pauses, and the next process ends the attempt by its spool.
func (h *host) strands(f *flight, rep *attempt.Report, o *machine.Outcome) (stays bool) {
	if o.Status != dag.StatusFailed || o.Category != attempt.DiskBroken || !rep.Begun || !f.spooled.Load() {
		return false
	}
	_ = h.onLoop(func() {
		status := h.state().Run().Status
		stays = status == machine.RunRunning || status == machine.RunPause
	})
	return stays
}

// makeLive records artifacts and entries and makes them live.
func (h *host) makeLive(f *flight, out run.Output) error {
	if len(out.Artifacts)+len(out.Entries) == 0 {
		return nil
	}
	return h.run.Publish(f.id(), out, func(bodies ...machine.Body) error {
		f.tellLeft(bodies)
		var err error
		gone := h.onLoop(func() { err = h.record(h.clock.now(), bodies...) })
		return cmp.Or(gone, err)
	})
}

// tellLeft makes warnings of the files beside the specification that stay as they are.
func (f *flight) tellLeft(bodies []machine.Body) {
	for _, b := range bodies {
		p, ok := b.(*machine.PublishedBody)
		for i := 0; ok && i < len(p.Files); i++ {
			if p.Files[i].Left {
				f.left = append(f.left, p.Files[i].Path+" beside the specification is not the expected file: it was left as it is")
			}
		}
	}
}

// setAside renames the files that a failed attempt kept, so that the next attempt's stand under their own
// names. It returns them as they are now, and their paths in the output folder.
func (h *host) setAside(f *flight, list []machine.KeptFile) (kept []machine.KeptFile, paths []string) {
	if errors.Is(context.Cause(f.ctx), ErrHard) {
		return list, nil // its end is not recorded: a finished result must stay where Adopt finds it
	}
	for _, k := range list {
		name, path, err := h.run.Failed(f.id(), k.Name)
		if err != nil {
			f.Warn(h.worker.Line("keep " + k.Name + ": " + err.Error()))
		} else if path != "" {
			k.Name = name
			paths = append(paths, run.Dir+"/"+path)
		}
		kept = append(kept, k)
	}
	return kept, paths
}

// partial says what is there of an attempt that was stopped.
func partial(kept []string) string {
	if len(kept) == 0 {
		return "it left nothing"
	}
	return "kept in " + printable.Some(kept, 5)
}

// settled is the end that an outcome would be recorded as now.
func (h *host) settled(f *flight, o machine.Outcome) *machine.FinishedBody {
	return h.state().Settle(f.job.Node.ID, o, h.clock.now()).Body.(*machine.FinishedBody)
}

// changedInput names an input file beside the specification that is not as it was when the plan was made: what an
// attempt makes of it would be taken for what it makes of the other one.
func (f *flight) changedInput() string {
	list := f.host.run.Graph().Plan.InputsOf(f.job.Node)
	if f.job.Purpose != attempt.Run || len(list) == 0 || f.job.Node.Foreach != nil {
		return ""
	}
	root, err := os.OpenRoot(f.job.SpecDir)
	if err != nil {
		return err.Error()
	}
	defer root.Close()
	for _, in := range list {
		digest, err := digestIn(root, in.Path)
		if err != nil {
			return "the input " + in.Path + " cannot be read: " + err.Error()
		}
		if digest != in.Digest {
			return "the input " + in.Path + " has changed since the plan was made; to run with it as it is now: dagrun apply"
		}
	}
	return ""
}

func digestIn(root *os.Root, name string) (string, error) {
	from, err := regular.OpenIn(root, name)
	if err != nil {
		return "", err
	}
	defer from.Close()
	h := sha256.New()
	if _, err := io.Copy(h, from); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
