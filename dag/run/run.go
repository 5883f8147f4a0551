// Package run opens the directory of a run: it owns the event log, the state folded from it, the
// artifacts and the lock, compares a run with a plan, adopts plans, makes and restores checkpoints
// and verifies everything that is on disk.
//
// It does not run anything: it starts no node, evaluates no expression and reads no clock.
package run

import (
	"io"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Dir is the run's own folder under the output directory.
const Dir = "_orchestrator"

// A Run is one run directory. Methods belong to the goroutine that owns the state unless they say
// otherwise.
type Run struct{ run }
type run struct{}

// Options of Create, Open and OpenReadOnly.
type Options struct {
	Dir     string    // output directory; made by Create
	Command string    // shown to whoever finds the lock held, e.g. "dagrun apply"
	Now     time.Time // start of this process's work, for the lock, ids and first events

	// Observe, when set, is called on the owner's goroutine with every event after it was applied,
	// those folded by Open included (replayed = true: nobody acts on them again).
	Observe func(e *machine.Event, replayed bool)

	// AllSynced makes Record durable before it returns, whatever the event. For measurements.
	AllSynced bool
}

// New is what Create needs beside Options.
type New struct {
	Graph *dag.Graph
	RunID string // empty: a random UUID
	Seed  int64
	// File opens a declared input file as it is now. Its content must match the digest in the plan.
	File func(path string) (io.ReadCloser, error)
}

// Create begins a run in an output directory without one: it takes the lock, copies plan and
// declared input files into the object store and records RUN_CREATED and INPUTS_CLONED, durable.
// A crash before RUN_CREATED leaves a directory in which Create works again.
// Errors: fs.ErrExist when the directory holds a run, *eventlog.Locked.
func Create(o Options, n New) (*Run, error) { panic("contract") }

// Open continues a run: it takes the lock, folds snapshot and log, removes a torn tail and staging
// leftovers, brings the working tree to what is recorded (see Report) and returns the run ready for
// Decide. It records user edits (ARTIFACT_WRITTEN) but neither lost attempts nor RUN_RESUMED: call
// Resume when the run is to go on.
// Errors: fs.ErrNotExist when there is no run, *eventlog.Locked, *eventlog.Damaged, *Newer.
func Open(o Options) (*Run, *Report, error) { panic("contract") }

// OpenReadOnly folds the log without lock and without writing anything; it works beside a writer.
// Record and every other method that writes return an error.
func OpenReadOnly(o Options) (*Run, *Report, error) { panic("contract") }

// Exists reports whether an output directory holds a run.
func Exists(dir string) bool { panic("contract") }

// A Report says what Open found.
type Report struct {
	Source   string   // what the state was folded from: snapshot | backup | log | checkpoint <id>
	Folded   int64    // events folded from the log
	Cut      string   // not empty: a torn tail was removed (read-only: left), and what it was
	InFlight []string // nodes whose attempts were under way, in plan order
	Edited   []string // artifacts that a user changed: kept aside and adopted
	Restored []string // live files brought back to the recorded version
	Warnings []string // everything above and more as lines for the user
}

// Newer says that a run was written by a newer version of the program.
type Newer struct{ What string }

func (n *Newer) Error() string { return n.What + "; use the newer dagrun that wrote it" }

// ID returns the run's id.
func (r *Run) ID() string { panic("contract") }

// State returns the state. Only Record and the methods here change it.
func (r *Run) State() *machine.State { panic("contract") }

// Graph returns the adopted plan, run-time extensions included.
func (r *Run) Graph() *dag.Graph { panic("contract") }

// A Mark names recorded events for Wait.
type Mark struct {
	Seq  int64
	Sync bool // the policy asks that it be durable before anything acts on it
}

// Record appends one event per body at the instant now, written with one write call before it
// returns, and applies them. The policy of durability is the run's: events whose loss could repeat
// cost or a once or probe effect (starts and ends of paid, once and probe nodes, escalations, pauses,
// ends, adopted plans) are synced at once and Mark.Sync is set; the rest within 50 ms. Record itself
// does not wait: whoever carries the effect out calls Wait(mark) first, from any goroutine.
//
// An event that cannot have happened is an error and nothing is written. On a full disk the events
// are written from a reserve and RUN_PAUSED{disk} follows by itself. After any error the run takes
// no more events.
func (r *Run) Record(now time.Time, bodies ...machine.Body) (Mark, error) { panic("contract") }

// Wait returns at once unless m.Sync is set; then when the events are durable. Any goroutine.
func (r *Run) Wait(m Mark) error { panic("contract") }

// RecordDurable is Record, then a wait for durability whatever the policy.
func (r *Run) RecordDurable(now time.Time, bodies ...machine.Body) error { panic("contract") }

// Resume records attempts found in flight as lost and RUN_RESUMED, and restores artifacts that a lost
// attempt had published. adopt, when set, is asked first for each lost attempt: a body it returns
// (from a complete result file) is recorded in place of lost.
func (r *Run) Resume(now time.Time, by string, adopt func(node string, generation, attempt int) *machine.FinishedBody) error {
	panic("contract")
}

// Close writes a last snapshot, syncs and closes the log and gives the lock up.
func (r *Run) Close() error { panic("contract") }

// Checkpoint

// Abandon releases everything without writing, as a killed process would. For tests.
func (r *Run) Abandon() { panic("contract") }
