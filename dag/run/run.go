// Package run opens the directory of a run: it owns the event log, the state folded from it, the artifacts and the
// lock. It does not run anything: it starts no node, evaluates no expression and takes the time of events as an
// argument.
//
// Where to read: run.go has Record, create.go and open.go the beginning, resume.go and drift.go what a killed process
// has left, adopt.go another plan, files.go and publish.go what nodes write, tick.go work that never ends.
package run

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/state"
	"dagrun.dev/internal/disk"
)

// Dir is the run's own folder under the output directory.
const Dir = "_orchestrator"

// Names in the run's own folder.
const (
	logFile       = dag.OwnLog
	snapshotFile  = dag.OwnSnapshot
	stateFile     = dag.OwnState
	lockFile      = dag.OwnLock
	objectsDir    = dag.OwnObjects
	copiesDir     = dag.OwnCopies
	stagingDir    = dag.OwnStaging
	checkpoints   = dag.OwnCheckpoints
	archives      = dag.OwnArchives
	revertsDir    = dag.OwnReverts
	publishedFile = dag.OwnPublished
	manifestFile  = "manifest.json"
	savedState    = "state-snapshot.json"
)

// Options of Create, Open and OpenReadOnly.
type Options struct {
	Dir     string    // output directory; made by Create
	Command string    // shown to whoever finds the lock held, e.g. "dagrun apply"
	Now     time.Time // start of this process's work, for the lock, ids and first events

	// Observe, when set, is called on the owner's goroutine with every event after it was applied,
	// and by Open with those of the log's tail that the snapshot does not hold (replayed = true:
	// nobody acts on them again).
	Observe func(e *machine.Event, replayed bool)

	// Project, when set, is called on the owner's goroutine with every event that Create, Open and
	// Record fold, and the state as of that very event: before later ones of the same Record are applied,
	// and before it is written. What is made of it may be shown once Synced has reached it. It must
	// not keep the state.
	Project func(e *machine.Event, st *machine.State)

	// Salvage has Open go on with the events before a damage of the log. The damaged log, the
	// snapshots and checkpoints made after are moved to archives/damaged-<time>. It is the way back to a
	// checkpoint when the log behind it is broken.
	Salvage bool

	// Plan, when set, is the plan that the command has made of the specification: where the run has lost its own copy
	// of that plan, Open puts it back.
	Plan *dag.Plan

	// Weigh, when set, returns a plan's graph with other weights, by the durations of earlier runs, on any goroutine: the
	// order of starts follows them, and nothing that is recorded does.
	Weigh func(*dag.Graph) *dag.Graph

	// AllSynced makes Record durable before it returns, whatever the event. For measurements.
	AllSynced bool

	// FS takes the place of Dir on the machine's disk. For tests.
	FS disk.FS

	log eventlog.Options
}

// A Run is one run directory. Methods belong to the goroutine that owns the state unless they say
// otherwise.
type Run struct {
	o        Options
	out, own disk.FS   // output directory, and the run's folder in it
	inner    []disk.FS // own, and what was opened in it: they are closed with it
	store    *artifact.Store
	tree     *artifact.Tree
	lock     *eventlog.Lock
	log      *eventlog.Log
	saver    *eventlog.Saver
	project  *projector
	beside   atomic.Pointer[beside]  // the specification's folder; nil = it is not known
	earlier  []machine.PublishedView // what earlier runs have put there, known with beside

	fold
	graph    atomic.Pointer[dag.Graph] // of the state, for other goroutines
	head     eventlog.Head
	readOnly bool
	lowTold  bool

	disturbed []string // artifacts that Disturbed has reported
	orphan    bool     // the process before died at work, and nothing is recorded since
	err       error    // the first error of Record; final
}

// Newer says that a run was written by a newer version of the program.
type Newer = eventlog.Newer

// errReadOnly is the error of writing methods of a run opened by OpenReadOnly.
var errReadOnly = errors.New("run: opened for reading only")

// ID returns the run's id.
func (r *Run) ID() string { return r.state.Run().ID }

// Place tells a run from its copies: it stays what it is when the run is moved on its disk, and is another
// one for each copy. Empty where the disk does not say.
func (r *Run) Place() string { return placeOf(r.own) }

func placeOf(dir disk.FS) string {
	fi, err := dir.Lstat(".")
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x.%x", st.Dev, st.Ino)
}

// State returns the state. Only Record and the methods here change it.
func (r *Run) State() *machine.State { return r.state }

// Graph returns the adopted plan, run-time extensions included. Any goroutine.
func (r *Run) Graph() *dag.Graph { return r.graph.Load() }

// Head returns the last event recorded.
func (r *Run) Head() eventlog.Head { return r.head }

// A fold is what events become: the machine's state, the index of artifacts, and what state.json tells beside both.
type fold struct {
	state *machine.State
	index *index.Index
	told  *state.Told
	plans func(digest string) (*dag.Graph, error)
}

func newFold(plans func(digest string) (*dag.Graph, error)) fold {
	return fold{&machine.State{}, index.New(), &state.Told{}, plans}
}

// source is what state.json is made of.
func (f *fold) source() state.Source {
	return state.Source{State: f.state, Index: f.index, Told: f.told, Dir: Dir}
}

// apply folds one event, attaching the plan that it names.
func (f *fold) apply(e *machine.Event) error {
	digest := ""
	switch b := e.Body.(type) {
	case *machine.RunCreatedBody:
		digest = b.PlanDigest
	case *machine.PlanAdoptedBody:
		digest = b.PlanDigest
	}
	if digest != "" && e.Plan == nil {
		g, err := f.plans(digest)
		if err != nil {
			return err
		}
		e.Plan = g
	}
	if err := f.state.Apply(e); err != nil {
		return err
	}
	f.index.Apply(e, f.state.Graph())
	f.told.Apply(e)
	return nil
}

// A Mark names recorded events for Wait.
type Mark struct {
	Seq  int64
	Sync bool // the policy asks that it be durable before anything acts on it
}

// Record applies one event per body at the instant now and appends them, written with one write call
// before it returns. Events whose loss could repeat cost or an effect (State.Urgent) are synced at once
// and Mark.Sync is set; the rest within 50 ms. Record itself does not wait: whoever carries the effect
// out calls Wait(mark) first, from any goroutine.
//
// A first body that cannot have happened is an error, nothing is written and the run stands as it was.
// On a full disk the events are written from a reserve and RUN_PAUSED{disk} follows by itself. Any
// other error is final: the run takes no more events.
func (r *Run) Record(now time.Time, bodies ...machine.Body) (Mark, error) {
	switch {
	case r.readOnly:
		return Mark{}, errReadOnly
	case r.err != nil:
		return Mark{}, r.err
	case len(bodies) == 0:
		return Mark{Seq: r.head.Seq}, nil
	}
	events := make([]machine.Event, len(bodies))
	now = r.notBefore(now)
	for i, b := range bodies {
		events[i] = machine.New(now, b)
	}
	return r.record(events)
}

// notBefore is a time for an event: a clock that was put back does not take the record back.
func (r *Run) notBefore(now time.Time) time.Time {
	if last := r.state.Run().Updated; now.Before(last) {
		return last
	}
	return now
}

func (r *Run) record(events []machine.Event) (Mark, error) {
	if r.orphan {
		r.orphan = false
		found := machine.New(events[0].Time, &machine.RunInterruptedBody{Running: len(index.InFlight(r.state))})
		if mark, err := r.record([]machine.Event{found}); err != nil {
			return mark, err
		}
	}
	// Applied before written: an impossible event must not reach the log, which could then never be
	// read again. Nobody acts on the state before Record returns.
	for i := 0; i < len(events); i++ {
		events[i].Seq = r.head.Seq + 1 + int64(i)
		moved := r.state.Watch(&events[i])
		if err := r.apply(&events[i]); err != nil {
			err = fmt.Errorf("run: record %s: %w", events[i].Type, err)
			if i > 0 {
				r.err = err // the state is ahead of the log
			}
			return Mark{}, err
		}
		r.projected(&events[i])
		if moved != nil {
			for k, b := range moved() {
				events = slices.Insert(events, i+1+k, machine.New(events[i].Time, b))
			}
		}
	}
	head, err := r.log.Append(events)
	if err != nil {
		r.err = err
		return Mark{}, err
	}
	r.head = head
	r.graph.Store(r.state.Graph())
	mark := Mark{Seq: head.Seq, Sync: r.o.AllSynced}
	save := false
	var strays []string
	for i := range events {
		strays = append(strays, r.strays(&events[i])...)
		mark.Sync = mark.Sync || r.state.Urgent(&events[i])
		save = save || events[i].Type.SaveNow()
		if r.o.Observe != nil {
			r.o.Observe(&events[i], false)
		}
	}
	if err := r.follow(mark, save); err != nil {
		r.err = err
		return mark, err
	}
	if len(strays) > 0 {
		if err := r.restoreLive(events[len(events)-1].Time, strays); err != nil {
			r.err = err
			return mark, err
		}
	}
	if r.log.Low() && !r.lowTold {
		return r.pauseForDisk(events[len(events)-1].Time, mark)
	}
	return mark, nil
}

// follow asks for durability, renews files derived from the state and saves it.
func (r *Run) follow(mark Mark, save bool) error {
	if mark.Sync {
		r.log.SyncNow()
	} else {
		r.log.SyncSoon()
	}
	if r.o.AllSynced {
		if err := r.log.Sync(); err != nil {
			return err
		}
	}
	for _, name := range r.index.Take() {
		if err := r.renew(name); err != nil {
			return err
		}
	}
	if in, due := r.saver.DueIn(r.head.Seq); save || due && in <= 0 {
		r.saver.Save(r.saved)
	}
	return nil
}

// Renew writes the snapshot and state.json where it is time to. Where it is not yet, it returns after how long it is: a
// host that waits longer asks again then. 0 = they hold all that is recorded.
func (r *Run) Renew() (after time.Duration) {
	in, due := r.saver.DueIn(r.head.Seq)
	if due && in <= 0 && r.err == nil {
		r.saver.Save(r.saved)
	}
	return in
}

// pauseForDisk pauses a run whose disk is full while the reserve lasts. A run that is not running
// cannot be paused and needs no pause.
func (r *Run) pauseForDisk(now time.Time, mark Mark) (Mark, error) {
	r.lowTold = true
	if r.state.Run().Status != machine.RunRunning {
		return mark, nil
	}
	return r.Record(now, &machine.RunPausedBody{
		Reason:  machine.PauseDisk,
		Fault:   "full",
		Message: "the disk of " + r.out.Path(".") + " is full: free some space, then resume",
	})
}

// Costly reports whether an attempt of any node spends money or must not be repeated unasked.
func (r *Run) Costly() bool {
	return slices.ContainsFunc(r.Graph().Plan.Nodes, func(n dag.Node) bool { return n.Costly() })
}

// costly reports whether an attempt of a node spends money or must not be repeated unasked. Any
// goroutine.
func (r *Run) costly(id string) bool {
	g := r.Graph()
	i, ok := g.Index(id)
	return ok && g.Node(i).Costly()
}

// saved takes the snapshot and the document of the state as it is now.
func (r *Run) saved() (head int64, write func() error, err error) {
	snap, err := r.snapshot()
	if err != nil {
		return 0, nil, err
	}
	doc := state.Make(r.source())
	return snap.Head.Seq, func() error {
		if err := eventlog.WriteSnapshot(r.own, snapshotFile, snap); err != nil {
			return err
		}
		b, err := doc.Encode()
		if err != nil {
			return err
		}
		return eventlog.WriteTwice(r.own, stateFile, b)
	}, nil
}

// snapshot takes a snapshot of the state as it is now.
func (r *Run) snapshot() (*eventlog.Snapshot, error) {
	facts, err := r.state.AppendSnapshot(nil)
	if err != nil {
		return nil, err
	}
	files, err := r.index.Encode()
	if err != nil {
		return nil, err
	}
	records, err := dag.AppendJSON(nil, r.told)
	if err != nil {
		return nil, err
	}
	v := r.state.Run()
	return &eventlog.Snapshot{
		Head: r.head, Index: files, Plan: v.PlanDigest, Records: records, RunID: v.ID, SavedAt: v.Updated, State: facts,
	}, nil
}

// Wait returns at once unless m.Sync is set; then when the events are durable. Any goroutine.
func (r *Run) Wait(m Mark) error {
	if !m.Sync {
		return nil
	}
	return r.log.Wait(m.Seq)
}

// RecordDurable is Record, then a wait for durability whatever the policy.
func (r *Run) RecordDurable(now time.Time, bodies ...machine.Body) error {
	m, err := r.Record(now, bodies...)
	if err != nil {
		return err
	}
	return r.log.Wait(m.Seq)
}

// Close writes a last snapshot, syncs and closes the log and gives the lock up. The error is that of
// the log, of a file that another program put into its place too: a snapshot that could not be written is no loss.
// Closing twice is allowed.
func (r *Run) Close() error {
	if r.readOnly || r.lock == nil {
		return r.closeTrees()
	}
	if r.err == nil {
		if _, due := r.saver.DueIn(r.head.Seq); due || r.saver.Flush() != nil {
			r.saver.Save(r.saved)
			r.saver.Flush()
		}
	}
	r.project.close()
	r.own.Remove(stagingDir) // if it is empty
	r.own.Remove(spoolDir)   // so too
	var err error
	if r.err == nil {
		err, r.err = r.log.Check(), errClosed
	}
	err = errors.Join(err, r.log.Close(), r.lock.Release())
	r.lock = nil
	return errors.Join(err, r.closeTrees())
}

var errClosed = errors.New("run: closed")

// Abandon releases everything without writing, as a killed process would. For tests.
func (r *Run) Abandon() {
	if r.lock == nil {
		return
	}
	r.project.close()
	r.log.Abandon()
	r.saver.Flush()
	r.lock.Abandon()
	r.lock, r.err = nil, errClosed
	r.closeTrees()
}

func (r *Run) closeTrees() error {
	if b := r.beside.Swap(nil); b != nil {
		defer b.fsys.Close()
	}
	if r.o.FS != nil {
		return nil
	}
	var errs []error
	for _, tree := range append(r.inner, r.out) {
		errs = append(errs, tree.Close())
	}
	return errors.Join(errs...)
}
