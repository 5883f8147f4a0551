package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/nodes"
)

// Options of Run. Run, Kinds and Eval are required.
type Options struct {
	Run   *run.Run
	Kinds *nodes.Registry
	Eval  dag.Evaluator
	// Evaluator makes Eval for another plan; nil: none is taken.
	Evaluator func(*dag.Plan) (dag.Evaluator, error)
	// Jobs bounds the attempts under way at once; 0 = DefaultJobs.
	Jobs int
	// SpecDir is the absolute folder of the spec, Binary the path of the running program.
	SpecDir, Binary string
	// Scratch is the folder for what attempts need outside the run; empty = os.TempDir.
	Scratch string
	// Cache is the folder for what can be had again and outlives runs; see nodes.Task. Empty: there is none.
	Cache string

	// Interrupt asks for a pause: nothing new is started, what runs may end within StopGrace
	// (0 = without limit) and is then stopped politely. A second value within HardWithin ends
	// what runs at once: Run then returns ErrHard. The values are when it was asked, which may be a while
	// before the host gets to it.
	Interrupt <-chan time.Time
	StopGrace time.Duration
	// Requests are what other processes ask for: cancel, answers, another plan.
	Requests <-chan Request
	// Looks are called between two events. They may read the run's state, and must not keep or change it.
	Looks <-chan func()

	// Stays has Run wait for the answer where only one to a question can carry the run on; without it the run
	// pauses. Answers come by Requests, and so does that nobody is there any more to give one.
	Stays bool

	// Breakers keeps the state of breakers across runs; nil keeps none.
	Breakers *statedir.Dir
	// Secret returns the value of a named secret; nil has none.
	Secret func(name string) (string, error)
	// Warn tells the user something of a node, and nothing keeps it. It is called from the attempts' goroutines; nil
	// discards.
	Warn func(node, msg string)
	// Free says how many bytes the run's disk has room for; nil asks the disk. For tests.
	Free func() int64
	// readClock reads the clocks of the machine; nil reads them. For tests.
	readClock func() (wall time.Time, mono time.Duration)
	// OneByOne writes every event by itself: for tests that stop a process after each one.
	OneByOne bool
}

// HardWithin is how soon a second interrupt must follow the first to end what runs at once.
const HardWithin = 5 * time.Second

// ErrHard says that a second interrupt ended the attempts that were under way. What they did
// is resolved when the run is resumed.
var ErrHard = fmt.Errorf("interrupted twice: %w", nodes.ErrAtOnce)

// DefaultJobs is how many attempts are under way at once when nothing is said: as many as there
// are processors, and at least 8 where paid nodes spend their time waiting for an answer from
// elsewhere. Pools bound those more closely.
func DefaultJobs(p *dag.Plan) int {
	if slices.ContainsFunc(p.Nodes, func(n dag.Node) bool { return n.Paid || n.Reserve.USD > 0 }) {
		return max(runtime.NumCPU(), 8)
	}
	return runtime.NumCPU()
}

// Run carries a run on until it ends or pauses; State().Run() of the run then says which. The
// run is ready for it after run.Create, or run.Open and Resume. An error is ErrHard, or says that
// the run cannot be recorded any more (see run.Run.Record). Every process that was started is
// gone when Run returns.
func Run(ctx context.Context, o Options) error {
	if o.Run.Graph().Plan.Outdated() {
		return errors.New("executor: the run's plan was made by an earlier version")
	}
	if o.Jobs == 0 {
		o.Jobs = DefaultJobs(o.Run.Graph().Plan)
	}
	h := &host{
		o:       o,
		run:     o.Run,
		scratch: scratchOf(o.Run, o.Scratch),
		clock:   newClock(o.Run.State().Run().Updated, o.readClock),
		running: map[string]*flight{},
		results: make(chan result, o.Jobs),
		calls:   make(chan func()),
		woken:   make(chan struct{}, 1),
		gone:    make(chan struct{}),
	}
	h.turn.Lock() // it is given away while the loop sleeps only
	h.worker.Kinds, h.worker.Binary, h.worker.Cache = o.Kinds, o.Binary, o.Cache
	h.state().HostStays(o.Stays)
	h.knowSecrets()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.ctx, h.cancel = ctx, cancel
	aside, stopAside := context.WithCancel(ctx)
	defer stopAside()
	h.asideCtx = aside
	if err := Sweep(h.run, o.Scratch); err != nil {
		return err
	}
	defer h.sweep()
	if err := h.inherit(h.clock.now()); err != nil {
		return err
	}
	if o.SpecDir != "" {
		if err := h.run.Beside(h.clock.now(), o.SpecDir); err != nil {
			return err
		}
	}
	go h.clock.keepBeat(h.gone)
	err := h.loop()
	if err == nil {
		err = h.run.SettleBeside(h.clock.now())
	}
	if err == nil {
		err = h.tellRest()
	}
	close(h.gone)
	stopAside()
	h.aside.Wait()
	if err != nil {
		h.killAll()
	}
	return err
}

// A host carries out one run. Its fields belong to who has the turn: the goroutine of loop, or while that sleeps the
// one of an attempt that has ended. Attempts under way reach them by calls only.
type host struct {
	o       Options
	run     *run.Run
	scratch string // holds the scratch folders; made when needed
	clock   *clock
	worker  attempt.Worker
	mark    run.Mark // of the last events recorded
	nextDir string   // SpecDir of the plan that waits to be adopted; empty = as now

	ctx    context.Context // of all attempts
	cancel context.CancelCauseFunc

	running map[string]*flight // attempts under way, by node
	idle    []*slot            // folders of attempts that have ended, for the next ones
	slots   int                // slots made so far
	spooled []run.Attempt      // whose spool is not needed once their end is recorded
	handing []*flight          // whose node may have ended, with what its attempts handed on
	joined  []machine.Body     // ends of joins that are still to be recorded
	results chan result        // see takeTurn
	calls   chan func()        // from attempts, to be called by the loop
	gone    chan struct{}

	turn   sync.Mutex
	woken  chan struct{} // the loop is needed
	alarm  time.Time     // when it wakes by itself, by the monotonic clock: no run's time, which may jump ahead
	failed error         // why nothing more is carried out, for the loop

	aside     sync.WaitGroup // of who tells and reads beside the loop
	asideCtx  context.Context
	reading   bool            // big objects are read
	sound     map[string]bool // what was found of them, by digest
	telling   map[int]bool    // who of the plan's notify is being told something
	unreached map[int]bool    // whoever could not be told the last time

	interrupted time.Time // of the first interrupt; zero = none
	stopAt      time.Time // when what runs is stopped politely; zero = never
}

// longestWait bounds how long the loop sleeps without asking again, so that a wall clock that
// jumped ahead is noticed.
const longestWait = 30 * time.Second

// longestTurn bounds how long the loop goes on carrying out what needs no worker before it looks whether a user or an
// attempt wants something.
const longestTurn = 100 * time.Millisecond

// loop asks, records, acts and waits until the run ends or pauses with nothing under way.
func (h *host) loop() error {
	for {
		wake, err := h.advance()
		if err != nil {
			return err
		}
		if len(h.running) == 0 {
			over, err := h.over()
			if over || err != nil {
				return err
			}
		}
		if err := h.wait(wake); err != nil {
			return err
		}
	}
}

// advance carries out everything that the machine asks for now, or what there is time for, and returns the instant at
// which to ask again.
func (h *host) advance() (time.Time, error) {
	for began := h.clock.now(); ; {
		now := h.clock.now()
		if now.Sub(began) > longestTurn && h.state().Run().Status == machine.RunRunning {
			return now, nil
		}
		h.state().Advance(now)
		cmds, wake := h.state().Decide(now, h.o.Jobs-len(h.running))
		did, err := h.carry(cmds, now)
		if err != nil || !did {
			h.tell()
			return wake, err
		}
		if err := h.takeIn(nil); err != nil { // a worker is not to wait for all that needs none
			return wake, err
		}
	}
}

// over reports whether the run has ended or paused.
func (h *host) over() (bool, error) {
	switch h.state().Run().Status {
	case machine.RunDone, machine.RunBroken:
		return true, h.run.Wait(h.mark)
	case machine.RunPause:
		return true, h.pauseCheckpoint()
	}
	return false, nil
}

// wait sleeps until something happens that no attempt takes in by itself, and takes it in.
func (h *host) wait(wake time.Time) error {
	d := h.nextLook(wake)
	h.alarm = time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	h.giveTurn(false)
	var then func() error
	select {
	case <-h.woken:
	case call := <-h.calls:
		then = func() error { call(); return nil }
	case at := <-h.o.Interrupt:
		then = func() error { return h.interrupt(at) }
	case req := <-h.o.Requests:
		then = func() error { return h.request(req) }
	case look := <-h.o.Looks:
		then = func() error { look(); return nil }
	case <-timer.C:
		then = func() error { h.stopIfDue(); return nil }
	case <-h.ctx.Done():
		then = func() error { return context.Cause(h.ctx) }
	}
	h.turn.Lock()
	return h.takeIn(then)
}

// nextLook is how long it is until it is time to ask again if nothing happens before.
func (h *host) nextLook(wake time.Time) time.Duration {
	now := h.clock.now()
	d := longestWait
	for _, t := range []time.Time{wake, h.stopAt} {
		if !t.IsZero() {
			d = min(d, max(0, t.Sub(now)))
		}
	}
	if after := h.run.Renew(); after > 0 {
		d = min(d, after)
	}
	return d
}

// takeIn takes in what woke the loop, nil for nothing, and all attempts that have ended.
func (h *host) takeIn(what func() error) error {
	err := h.failed
	if err == nil {
		err = h.awake()
	}
	if what != nil {
		err = cmp.Or(err, what())
	}
	switch {
	case err != nil || len(h.results) == 0:
		return err
	case h.ctx.Err() != nil: // their end is that of the host: the next process finds out what became of them
		return context.Cause(h.ctx)
	}
	return h.recordEnds()
}

// takeTurn has the goroutine of an attempt that has ended take it in and begin the next, if nobody is about to: the
// loop sleeps on, and no thread is woken for each of many short commands.
func (h *host) takeTurn() {
	if !h.turn.TryLock() {
		return // who has it looks for results after giving it away
	}
	var wake time.Time
	err := h.takeIn(nil)
	if err == nil {
		wake, err = h.advance()
	}
	h.failed = err
	// The clocks are not read at the same moment: what is due as before may seem to be so a little earlier.
	sooner := h.nextLook(wake)+time.Millisecond < time.Until(h.alarm)
	h.giveTurn(err != nil || len(h.running) == 0 || sooner)
}

// giveTurn lets others take the turn. The loop is woken if it is needed, and if an attempt may have ended meanwhile.
func (h *host) giveTurn(needed bool) {
	h.turn.Unlock()
	if needed || len(h.results) > 0 {
		select {
		case h.woken <- struct{}{}:
		default: // it is awake
		}
	}
}

// awake records that the run stood still, before anything is decided by the time that has gone by.
func (h *host) awake() error {
	now := h.clock.now()
	if idle := h.clock.idle(); idle > 0 {
		return h.record(now, &machine.RunSuspendedBody{IdleMS: idle.Milliseconds()})
	}
	return nil
}

// recordEnds records how all attempts ended that have ended by now, with one write.
func (h *host) recordEnds() error {
	now := h.clock.now()
	var bodies []machine.Body
	for len(h.results) > 0 {
		r := <-h.results
		if err := h.disturbed(&r); err != nil {
			return err
		}
		bodies = h.ended(bodies, r, now)
		if r.outcome.Status != dag.StatusCompleted { // what it says of an account decides how the next one is classified
			if err := h.record(now, bodies...); err != nil {
				return err
			}
			bodies = nil
		}
	}
	if err := h.record(now, bodies...); err != nil {
		return err
	}
	for _, id := range h.spooled {
		h.run.Unspool(id)
	}
	h.spooled = h.spooled[:0]
	h.dropHandedOn()
	return nil
}

// disturbed looks for what the tools of an agent have done to the run's own files, as soon as its attempt has ended: an
// artifact is named, a changed log ends the program before anything is written behind it.
func (h *host) disturbed(r *result) error {
	j := h.running[r.key].job
	if j.Node.Call == nil || !h.worker.Kinds.Traits(j.Kind, j.With).Reaches {
		return nil
	}
	list, err := h.run.Disturbed()
	for _, name := range list {
		line := h.worker.Line(fmt.Sprintf("%s was changed while this agent, which has tools, was at work, "+
			"and not by dagrun; the version on record still counts in this process, "+
			"the next start takes the file as edited", name))
		r.outcome.Body.Warnings = append(r.outcome.Body.Warnings, line)
	}
	return err
}

// ended appends what an attempt's end leaves to record.
func (h *host) ended(bodies []machine.Body, r result, now time.Time) []machine.Body {
	f := h.running[r.key]
	if f.stranded {
		h.forget(r)
		if h.state().Run().Status != machine.RunRunning {
			return bodies
		}
		return append(bodies, diskPause(f.job.Node.ID, r.outcome.Message, r.outcome.Fault))
	}
	delete(h.running, r.key)
	h.idle = append(h.idle, f.slot)
	if f.spooled.Load() {
		h.spooled = append(h.spooled, f.id())
	}
	if f.handsOn.Load() {
		h.handing = append(h.handing, f)
	}
	id, o := f.job.Node.ID, &r.outcome
	if f.job.Purpose == attempt.Undo {
		return append(bodies, &machine.CompensationBody{Node: id, Status: o.Status, Reason: o.Message, Done: true})
	}
	e := h.state().Settle(id, r.outcome, now)
	bodies = append(bodies, e.Body)
	if fin, ok := e.Body.(*machine.FinishedBody); ok {
		asks := fin.Status == dag.StatusLost
		if fin.Category == attempt.DiskBroken && !asks && h.state().Run().Status == machine.RunRunning {
			bodies = append(bodies, diskPause(fin.Node, fin.Message, r.outcome.Fault))
		}
	}
	return bodies
}

func diskPause(node, message, fault string) *machine.RunPausedBody {
	return &machine.RunPausedBody{Reason: machine.PauseDisk, Node: node, Message: message, Fault: fault}
}

// record makes facts of bodies. They are written when it returns; whoever acts on them in a way
// that cannot be repeated waits for h.mark first.
func (h *host) record(now time.Time, bodies ...machine.Body) error {
	if len(bodies) == 0 {
		return nil
	}
	if !h.o.OneByOne {
		mark, err := h.run.Record(now, bodies...)
		h.mark = mark
		return err
	}
	sync := false
	for _, b := range bodies {
		mark, err := h.run.Record(now, b)
		if err != nil {
			return err
		}
		sync = sync || mark.Sync
		h.mark = run.Mark{Seq: mark.Seq, Sync: sync}
	}
	return nil
}

// onLoop has the loop call f and returns when it has. Attempts use it for everything that the
// owner of the run must do. It fails when the loop has ended. A host without a loop (Adopt) is
// alone with the run.
func (h *host) onLoop(f func()) error {
	if h.calls == nil {
		f()
		return nil
	}
	done := make(chan struct{})
	select {
	case h.calls <- func() { f(); close(done) }:
		<-done // a call that was taken is called
		return nil
	case <-h.gone:
		return errors.New("the host has stopped")
	}
}

func (h *host) state() *machine.State { return h.run.State() }
