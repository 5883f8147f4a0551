package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// An attempt is one attempt of a node, or of its undo action, under way.
type attempt struct {
	key         string // in host.running
	node        *dag.Node
	undo        bool            // of the node's undo action
	probe       bool            // finds out what became of a lost attempt
	kind        string          // of the node or of its undo action
	with        json.RawMessage // every ${...} resolved
	resolved    bool            // there was one
	above       []reuse.Reading // what its needs left, if it sees that
	fingerprint string          // of what it is given to read; empty when that is not known
	generation  int
	number      int
	failures    int // since the node was last given a fresh start
	allFailures int // of the generation
	failedWith  map[string]int
	reserve     dag.Amount
	feedback    string
	began       time.Time
	mark        run.Mark // to wait for before anything is done
	slot        *slot

	ctx    context.Context
	cancel context.CancelCauseFunc

	plan      *dag.Plan // as it was at the start; not to be changed
	seed      int64
	cancelled bool // asked to stop: the loop asks once
	spooled   bool // has a folder that outlives this process

	handsOn atomic.Bool // it has a folder for the attempts after it
	strange atomic.Bool // it read what its node does not declare: no fingerprint says what

	mu   sync.Mutex
	kept []string // files made by Task.Keep
}

// A result is an attempt's end on its way to the loop.
type result struct {
	key     string
	outcome machine.Outcome
}

// Why an attempt is stopped by its host.
var (
	errStopped = errors.New("stopped by the user")
	errCancel  = errors.New("cancelled")
	errSilent  = errors.New("gave no sign of life")
)

// defaultGrace is the time between the polite and the hard signal where the spec names none.
const defaultGrace = 5 * time.Second

func (a *attempt) grace() time.Duration {
	if g := a.node.Timeout.Grace.D(); g > 0 {
		return g
	}
	return defaultGrace
}

// timeout is the time limit of this attempt: from the third on it grows. 0 = none.
func (a *attempt) timeout() time.Duration {
	d := a.node.Timeout.Attempt.D()
	if g := a.node.Timeout.Growth; g > 1 && a.failures >= 2 {
		return time.Duration(float64(d) * g)
	}
	return d
}

func (a *attempt) id() run.Attempt {
	return run.Attempt{Node: a.node.ID, Generation: a.generation, Attempt: a.number}
}

// launch starts an attempt in the goroutine of its slot.
func (h *host) launch(a *attempt) {
	a.ctx, a.cancel = context.WithCancelCause(h.ctx)
	h.running[a.key] = a
	a.slot.work <- a
}

// attempt carries one attempt out and sends its result, whatever the kind does.
func (h *host) attempt(a *attempt) {
	r := result{key: a.key, outcome: failure("unknown", "the kind ended its own goroutine")}
	returned := false
	defer func() {
		if p := recover(); p != nil {
			r.outcome = failure("unknown", fmt.Sprintf("the kind %s panicked: %v", a.kind, p))
			r.outcome.Diagnostics = string(debug.Stack())
		} else if !returned {
			a.slot.spoiled = true // its goroutine is no more
		}
		a.cancel(nil)
		a.slot.reset()
		h.results <- r
	}()
	if err := h.run.Wait(a.mark); err != nil {
		r.outcome = failure("unknown", err.Error())
	} else {
		r.outcome = h.try(a)
	}
	r.outcome.Message = h.line(r.outcome.Message)
	r.outcome.Diagnostics = h.diagnostics(r.outcome.Diagnostics)
	returned = true
}

// try runs the kind and publishes what it produced.
func (h *host) try(a *attempt) machine.Outcome {
	ctx := a.ctx
	if d := a.timeout(); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	kind, ok := h.o.Kinds.Kind(a.kind)
	if !ok {
		return failure("config", "this program has no kind of node named "+a.kind)
	}
	t, err := h.task(a)
	if err == nil {
		err = h.spool(a, kind, t)
	}
	if err != nil {
		return failure("unknown", err.Error())
	}
	if a.probe {
		return h.ask(ctx, kind.(nodes.Prober), t)
	}
	if !a.undo {
		a.fingerprint = h.fingerprint(a) // before it publishes: it may read what it writes
	}
	stop := h.watchSilence(a, t)
	res, err := kind.Run(ctx, t)
	stop()
	if res == nil {
		res = &nodes.Result{}
	}
	body, bad := h.body(a, res)
	if len(res.Survivors) > 0 {
		a.slot.spoiled = true // something may still write there
	}
	if err == nil {
		err = bad
	}
	if err == nil {
		err = h.publish(a, res, true)
	}
	body.CostUSD, body.CostKind = h.cost(a, res, err)
	if err == nil {
		return machine.Outcome{Status: dag.StatusCompleted, Body: body}
	}
	return h.failed(a, ctx, err, res, body)
}

// ask has a kind find out what became of a lost attempt. Without an answer the attempt stays
// unresolved, and a person is asked.
func (h *host) ask(ctx context.Context, kind nodes.Prober, t *nodes.Task) machine.Outcome {
	took, err := kind.Probe(ctx, t)
	switch {
	case err != nil:
		return failure("unknown", "the probe failed: "+err.Error())
	case took:
		return machine.Outcome{Status: dag.StatusCompleted, Message: "its probe says that it took effect"}
	}
	return machine.Outcome{Status: dag.StatusRejected, Message: "its probe says that it took no effect"}
}

// watchSilence stops an attempt that shows no sign of life. Kinds that know their streams do so
// themselves; this is for what they overlook, hence the grace on top.
func (h *host) watchSilence(a *attempt, t *nodes.Task) (stop func()) {
	if t.Silence == 0 {
		return func() {}
	}
	limit := t.Silence + t.Grace
	timer := time.AfterFunc(limit, func() { a.cancel(errSilent) })
	beat := t.Beat
	t.Beat = func(note string) { timer.Reset(limit); beat(note) }
	return func() { timer.Stop() }
}

// failed says what an attempt's error means. The files that it kept are renamed, so that the
// next attempt's stand under their own names, and entries of a last attempt count.
func (h *host) failed(a *attempt, ctx context.Context, err error, res *nodes.Result, body machine.FinishedBody) machine.Outcome {
	o := classify(ctx, a.timeout(), err)
	if e := (*nodes.Error)(nil); o.Status == dag.StatusFailed && errors.As(err, &e) && e.Unknown && !a.node.Effect.Repeatable() && !a.undo {
		o.Status = dag.StatusLost // to be found out, not to be done twice
	}
	o.Body = body
	o.Body.Values = nil
	kept := h.aside(a)
	if o.Status == dag.StatusCancelled {
		o.Message += ": PARTIAL, " + partial(kept)
	}
	if len(res.Entries) > 0 && o.Status == dag.StatusFailed && h.last(a, o) {
		if err := h.publish(a, res, false); err != nil {
			o.Body.Warnings = append(o.Body.Warnings, h.line("entries are lost: "+err.Error()))
		}
	}
	return o
}

// last reports whether no attempt would follow an outcome.
func (h *host) last(a *attempt, o machine.Outcome) (final bool) {
	_ = h.onLoop(func() { final = h.settled(a, o).Final }) // false when the host has stopped: then nothing is published
	return final
}

// again reports whether a failure of a category now would be followed by another attempt without a user.
func (h *host) again(a *attempt, category string) (follows bool) {
	if context.Cause(a.ctx) != nil {
		return false // it is being stopped
	}
	_ = h.onLoop(func() {
		end := h.settled(a, failure(category, ""))
		follows = !end.Final && !end.Stop
	})
	return follows
}

// settled is the end that an outcome would be recorded as now.
func (h *host) settled(a *attempt, o machine.Outcome) *machine.FinishedBody {
	return h.state().Settle(a.node.ID, o, h.clock.now()).Body.(*machine.FinishedBody)
}

// classify turns an error of a kind into an outcome.
func classify(ctx context.Context, limit time.Duration, err error) machine.Outcome {
	cause := context.Cause(ctx)
	var e *nodes.Error
	switch {
	case errors.Is(cause, errStopped), errors.Is(cause, errCancel), errors.Is(cause, ErrHard):
		return machine.Outcome{Status: dag.StatusCancelled, Message: cause.Error()}
	case disk.Broken(err):
		return failure(diskBroken, err.Error())
	case errors.As(err, &e):
		return machine.Outcome{
			Status: dag.StatusFailed, Category: e.Category, Message: e.Error(), Diagnostics: e.Diagnostics,
			RetryAfter: e.RetryAfter, WaitUntil: e.WaitUntil, Permanent: e.Permanent,
		}
	case errors.Is(cause, errSilent):
		return failure("stalled", errSilent.Error())
	case errors.Is(cause, context.DeadlineExceeded):
		return failure("stalled", fmt.Sprintf("took longer than %v", limit))
	}
	o := failure("unknown", err.Error())
	if p := (*fs.PathError)(nil); errors.As(err, &p) { // what stands in the way does so next time
		o.Category, o.Permanent = "file_io", true
	}
	return o
}

// diskBroken is the category of an attempt that the run's own disk failed; the run pauses.
const diskBroken = "disk"

func failure(category, message string) machine.Outcome {
	return machine.Outcome{Status: dag.StatusFailed, Category: category, Message: message}
}

// publish makes an attempt's artifacts (unless it failed) and entries part of the run.
func (h *host) publish(a *attempt, res *nodes.Result, artifacts bool) error {
	out, err := h.output(a, res, artifacts)
	if err != nil || len(out.Writes)+len(out.Entries) == 0 {
		return err
	}
	return h.run.Publish(a.id(), out, func(bodies ...machine.Body) error {
		var err error
		if gone := h.onLoop(func() { err = h.record(h.clock.now(), bodies...) }); gone != nil {
			return gone
		}
		return err
	})
}

// output is what of a result is published, checked and masked.
func (h *host) output(a *attempt, res *nodes.Result, artifacts bool) (run.Output, error) {
	var out run.Output
	for _, e := range res.Entries {
		out.Entries = append(out.Entries, run.Entry{Accumulator: e.Accumulator, Text: h.mask.Text(e.Text), Meta: h.mask.Texts(e.Meta)})
	}
	if !artifacts || len(res.Writes) == 0 {
		return out, nil
	}
	out.Writes = make(map[string]string, len(res.Writes))
	for name, path := range res.Writes {
		abs, err := h.staged(a, name, path)
		if err != nil {
			return out, err
		}
		out.Writes[name] = abs
	}
	return out, nil
}

// staged returns the absolute path of a staged artifact after checking that the node may write
// it and that it is a regular file of this attempt.
func (h *host) staged(a *attempt, name, path string) (string, error) {
	if !a.undo && !slices.Contains(a.node.Writes, name) {
		return "", nodes.Permanent(nodes.Fail("config", "the node wrote "+name+", which its writes do not name"))
	}
	if !filepath.IsLocal(path) {
		return "", nodes.Permanent(nodes.Fail("config", "the file of "+name+" lies outside the staging folder: "+path))
	}
	abs := filepath.Join(a.slot.out, path)
	st, err := os.Lstat(abs)
	if err != nil {
		return "", nodes.Fail("no_artifact", "the node did not leave "+name)
	}
	if !st.Mode().IsRegular() {
		return "", nodes.Permanent(nodes.Fail("config", name+" is not a regular file"))
	}
	return abs, h.mask.File(abs)
}

// line is text from an attempt as it may be recorded and shown: without secrets, without
// anything that could break a display, on one line (B-10).
func (h *host) line(s string) string { return printable.Line(h.mask.Message(s)) }

// diagnostics is text as line has it, but of many lines; at most 2,000 bytes.
func (h *host) diagnostics(s string) string { return clip(printable.Text(h.mask.Message(s)), 2000) }

// clip returns at most n bytes of s, cut between characters: the end, where errors stand.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && s[0]&0xC0 == 0x80 {
		s = s[1:]
	}
	return s
}
