package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/awake"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/mask"
	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// A Worker carries attempts out: what a process has that does so. Its methods may be called from any
// goroutine, for several jobs at once.
type Worker struct {
	Kinds  *nodes.Registry
	Binary string    // path of the running program
	Cache  string    // see nodes.Task.Cache
	Mask   mask.Mask // of every secret that any attempt here was given: one may show what another has
}

// Do carries out a job and returns when everything that it started is gone. It always reports: a kind
// that panics has failed. A cancelled ctx asks the attempt to stop, its cause says why.
func (w *Worker) Do(ctx context.Context, j *Job, world World) (rep Report) {
	t := w.begin(j, world)
	defer func() {
		if p := recover(); p != nil {
			o := Failure("unknown", fmt.Sprintf("the kind %s panicked: %v", j.Kind, p))
			o.Diagnostics = string(debug.Stack())
			t.rep.Outcome = o
		}
		rep = t.report()
	}()
	if err := t.run(ctx); err != nil {
		t.rep.Outcome = w.Unbegun(ctx, j, err)
	}
	return rep
}

// Preview says in lines what an attempt would find now; nothing where its kind does not only look.
func (w *Worker) Preview(ctx context.Context, j *Job, now time.Time) (lines []string, err error) {
	kind, _ := w.Kinds.Kind(j.Kind)
	p, ok := nodes.Able[nodes.Previewer](kind, j.With)
	if !ok {
		return nil, nil
	}
	lines, err = p.Preview(ctx, &nodes.Task{Kind: j.Kind, With: j.With, SpecDir: j.SpecDir, Cache: w.Cache, Now: now,
		Formulas: j.formulas, Beat: func() {}})
	for i := range lines {
		lines[i] = w.Line(lines[i])
	}
	return lines, err
}

// Adopt reports a result that an attempt had finished and kept when its process died. It errs when the
// result cannot be taken: then nothing is known of the attempt.
func (w *Worker) Adopt(j *Job, world World, res *nodes.Result) (Report, error) {
	t := w.begin(j, world)
	if err := t.take(res); err != nil {
		return Report{}, err
	}
	t.complete(res)
	return t.report(), nil
}

// Rescue has the kind end an attempt by what the dead process had received; ok is false when that proves
// nothing. Whatever was left, it does not panic.
func (w *Worker) Rescue(ctx context.Context, j *Job, world World) (rep Report, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	t := w.begin(j, world)
	kind, _ := w.Kinds.Kind(j.Kind)
	rescuer, able := nodes.Able[nodes.Rescuer](kind, t.task.With)
	if !able {
		return Report{}, false
	}
	var err error
	if t.task.Spool, err = world.Spool(); err != nil {
		return Report{}, false
	}
	res, err := rescuer.Rescue(ctx, t.task)
	switch {
	case res == nil && err == nil:
		return Report{}, false
	case err == nil:
		if err = t.take(res); err == nil {
			t.complete(res)
			return t.report(), true
		}
		if !disk.Broken(err) {
			return Report{}, false
		}
	case res == nil:
		res = &nodes.Result{}
	}
	_ = t.values(res)
	t.fail(ctx, err, res)
	if o := &t.rep.Outcome; o.Category == machine.CategoryLost { // what it used is known, how it ended is not
		o.Status = dag.StatusLost
	}
	return t.report(), true
}

// report masks what the outcome says and hands the report out.
func (t *trial) report() Report {
	o := &t.rep.Outcome
	o.Message, o.Diagnostics = t.line(o.Message), t.diagnostics(o.Diagnostics)
	t.rep.Begun = t.begun.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kept {
		t.rep.Kept = append(t.rep.Kept, *k)
	}
	return t.rep
}

// run has the kind work and takes what it produced. An error says why the kind has not begun to.
func (t *trial) run(ctx context.Context) error {
	kind, ok := t.worker.Kinds.Kind(t.job.Kind)
	if !ok {
		return nodes.Fail("config", "this program has no kind of node named "+t.job.Kind)
	}
	var silent context.CancelCauseFunc
	if t.task.Silence > 0 {
		ctx, silent = context.WithCancelCause(ctx)
		defer silent(nil)
	}
	if d := t.job.timeout(); d > 0 {
		var stop func()
		ctx, stop = awake.WithTimeout(ctx, d)
		defer stop()
	}
	settings, err := kind.Parse(t.task.With)
	switch _, rescuer := settings.(nodes.Rescuer); {
	case t.job.Purpose == Probe:
		t.rep.Outcome = probe(ctx, kind, t.task)
		return nil
	case err == nil && rescuer && t.job.Purpose == Run:
		if t.task.Spool, err = t.world.Spool(); err != nil {
			return &nodes.Error{Category: "unknown", Message: "no folder for what it receives", Err: err}
		}
	}
	var res *nodes.Result
	if err == nil {
		stop := t.watchSilence(silent)
		res, err = settings.Run(ctx, t.task)
		stop()
	}
	if res == nil {
		res = &nodes.Result{}
	}
	t.rep.Unclean = len(res.Survivors) > 0
	if err == nil {
		err = t.take(res)
	} else {
		_ = t.values(res) // usage, warnings and notes count; what its values are does not matter any more
	}
	if err != nil {
		t.fail(ctx, err, res)
		return nil
	}
	t.complete(res)
	return nil
}

// probe has a kind find out what became of a lost attempt. Without an answer the attempt stays
// unresolved, and the user is asked.
func probe(ctx context.Context, kind nodes.Kind, t *nodes.Task) machine.Outcome {
	p, ok := nodes.Able[nodes.Prober](kind, t.With)
	if !ok {
		return Failure("config", "nodes of kind "+kind.Name+" have no probe")
	}
	took, err := p.Probe(ctx, t)
	switch {
	case err != nil:
		return Failure("unknown", "the probe failed: "+err.Error())
	case took:
		return machine.Outcome{Status: dag.StatusCompleted, Message: "its probe says that it took effect; outputs unknown"}
	}
	return machine.Outcome{Status: dag.StatusRejected, Message: "its probe says that it took no effect"}
}

// watchSilence stops an attempt that shows no sign of life. Kinds that know their streams do so
// themselves; this is for what they overlook, hence the grace on top.
func (t *trial) watchSilence(cancel context.CancelCauseFunc) (stop func()) {
	if t.task.Silence == 0 {
		return func() {}
	}
	limit := t.task.Silence + t.task.Grace
	timer := awake.AfterFunc(limit, func() { cancel(errSilent) })
	t.task.Beat = func() { timer.Reset(limit) }
	return func() { timer.Stop() }
}

// complete reports an attempt that ended well.
func (t *trial) complete(res *nodes.Result) {
	o := &t.rep.Outcome
	o.Body.CostUSD, o.Body.CostKind = t.cost(res, nil)
	o.Status = dag.StatusCompleted
}

// fail reports an attempt's error. Its artifacts do not count; what a stopped one had staged is kept, as
// that may be the work of hours.
func (t *trial) fail(ctx context.Context, err error, res *nodes.Result) {
	o := Classify(ctx, t.job.timeout(), err)
	o.Body = t.rep.Outcome.Body
	o.Body.CostUSD, o.Body.CostKind = t.cost(res, err)
	o.Body.Values = nil
	e, told := errors.AsType[*nodes.Error](err)
	once := !t.job.Node.Effect.Repeatable()
	if o.Status == dag.StatusFailed && once && (told && e.Unknown || t.took.Load()) {
		o.Status = dag.StatusLost // to be found out, not to be done twice
	}
	t.rep.Artifacts, t.rep.Outcome = nil, o
	// A host that stops an attempt may do so because the time of all attempts is over: it says so when it records that.
	category := o.Category
	if o.Status == dag.StatusCancelled && errors.Is(context.Cause(ctx), ErrCancelled) {
		category = machine.CategoryDeadline
	}
	if o.Status != dag.StatusLost && t.job.Node.Salvage.Of(category) {
		t.salvage()
	}
	switch {
	case o.Status == dag.StatusFailed && t.rep.Entries == nil:
		if err := t.storeEntries(res); err != nil {
			t.rep.Outcome.Body.Warnings = append(o.Body.Warnings, t.line("entries are lost: "+err.Error()))
		}
	case o.Status == dag.StatusCancelled && !errors.Is(context.Cause(ctx), nodes.ErrAtOnce):
		t.keepStaged()
	}
}

// Classify turns an error of an attempt into an outcome. limit is the attempt's time limit, for the message.
func Classify(ctx context.Context, limit time.Duration, err error) machine.Outcome {
	cause := context.Cause(ctx)
	var e *nodes.Error
	switch {
	case errors.Is(cause, ErrStopped), errors.Is(cause, ErrCancelled), errors.Is(cause, nodes.ErrAtOnce):
		return machine.Outcome{Status: dag.StatusCancelled, Message: cause.Error()}
	case disk.Broken(err):
		o := Failure(DiskBroken, err.Error())
		o.Fault = disk.Fault(err)
		return o
	case errors.As(err, &e):
		return machine.Outcome{
			Status: dag.StatusFailed, Category: e.Category, Message: e.Error(), Diagnostics: e.Diagnostics,
			RetryAfter: e.RetryAfter, WaitUntil: e.WaitUntil, Permanent: e.Permanent,
		}
	case errors.Is(cause, errSilent):
		return Failure("stalled", errSilent.Error())
	case errors.Is(cause, context.DeadlineExceeded):
		return Failure("stalled", fmt.Sprintf("took longer than %v", limit))
	}
	o := Failure("unknown", err.Error())
	if p := (*fs.PathError)(nil); errors.As(err, &p) { // what stands in the way does so next time
		o.Category, o.Permanent = "file_io", true
	}
	return o
}

// Unbegun is how the attempt of a job ends that err kept from beginning: it has cost nothing.
func (w *Worker) Unbegun(ctx context.Context, j *Job, err error) machine.Outcome {
	o := Classify(ctx, 0, err)
	o.Message = w.Line(o.Message)
	if j.Reserve != (dag.Amount{}) {
		o.Body.CostKind = dag.CostFree
	}
	return o
}

// DiskBroken is the category of an attempt that the run's own disk failed; the run pauses.
const DiskBroken = "disk"

// Failure is how an attempt has failed.
func Failure(category, message string) machine.Outcome {
	return machine.Outcome{Status: dag.StatusFailed, Category: category, Message: message}
}

// Line is text from an attempt as it may be recorded and shown: without secrets, without anything that
// could break a display, on one line.
func (w *Worker) Line(s string) string { return printable.Line(w.Mask.Message(s)) }

func (t *trial) line(s string) string { return t.worker.Line(s) }

// diagnostics is text as line has it, but of many lines; at most 2,000 bytes.
func (t *trial) diagnostics(s string) string {
	const most = 2000
	s = printable.Text(t.worker.Mask.Message(s))
	if len(s) <= most {
		return s
	}
	s = s[len(s)-most:] // the end, where errors stand
	for len(s) > 0 && s[0]&0xC0 == 0x80 {
		s = s[1:]
	}
	return s
}
