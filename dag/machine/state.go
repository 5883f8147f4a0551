// Package machine folds the events of a run into a state and derives, from that state and an
// instant, the commands that should be under way now.
//
// It does no IO, reads no clock, draws no random number and ranges over no map: a live run, a
// resume, a replay, the simulator and a workflow of a distributed engine differ only in where
// the events come from.
package machine

import (
	"time"

	"dagrun.dev/dag"
)

// A State is the state of one run. The zero State is a run before its first event. It belongs
// to one goroutine.
type State struct {
	// NOTE: placeholder; the fields belong to the implementation.
	_ struct{}
}

// Apply folds one fact into the state. It accepts whatever the log may lawfully hold and never
// depends on a rule of Decide; an event that cannot have happened (a start of a node that is
// not in the plan, a second end of an attempt) is an error that names the event's Seq, and
// leaves the state as it was. Cost: proportional to what the event changes.
func (s *State) Apply(e *Event) error { panic("contract") }

// Decide returns what should be under way now and is not, best first, and the instant at which
// to ask again if nothing happens before (zero: only an event can change the answer). It does
// not change what it will answer: asked twice without an event between, it says the same.
// At most free commands of Op Start are returned (free = idle workers of the host); pools,
// breakers, budget and pauses are already taken into account. All other commands come in full.
func (s *State) Decide(now time.Time, free int) ([]Command, time.Time) { panic("contract") }

// Settle turns how an attempt ended into the event that records it: class and disposition by
// the plan's category table and the node's policies, retry_at with jitter drawn from a hash of
// seed, node, generation and failure number, wait_until as the outcome says.
func (s *State) Settle(node string, o Outcome, now time.Time) Event { panic("contract") }

// A Command is a wish derived from facts. The host carries it out by recording the fact first.
type Command struct {
	Op   Op
	Node string // id; empty where the op concerns the run
	// Generation and Attempt are those the host writes into WORK_ITEM_STARTED.
	Generation, Attempt int
	Reserve             dag.Amount
	// Body, when set, is the payload of the event that the host should simply append:
	// pauses, skips by propagation, budget warnings, completion, escalations.
	Body Body
}

// Op is what a Command asks for.
type Op int

const (
	// Start: append WORK_ITEM_STARTED, then run one attempt (control nodes included).
	Start Op = iota
	// Evaluate: evaluate the node's When; append WORK_ITEM_FINISHED{skipped} if false,
	// WORK_ITEM_QUEUED{condition} if true, WORK_ITEM_FINISHED{failed, config} on an error.
	Evaluate
	// Expand: evaluate the node's Foreach and append PLAN_EXTENDED.
	Expand
	// Record: append Body. Nothing else to do.
	Record
	// Cancel: ask the running attempt to stop (total deadline, abort).
	Cancel
	// Resolve: an attempt was lost and the node's effect is once or probe: probe, or open the
	// escalation in Body.
	Resolve
	// Compensate: append COMPENSATION_STARTED, run the undo action, append COMPENSATION_FINISHED.
	Compensate
)

// An Outcome is how an attempt ended, as the host saw it.
type Outcome struct {
	Status      string // completed | failed | lost | rejected | cancelled
	Category    string
	Message     string
	Diagnostics string
	RetryAfter  time.Duration // asked for by the remote; honoured within the policy's cap rules
	WaitUntil   time.Time     // quota reset; uses no attempt
	Permanent   bool          // another attempt is useless whatever the policy says
	Body        FinishedBody  // values, usage, cost, fingerprint, warnings, notes: copied as they are
}
