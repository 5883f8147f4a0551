// Package machine folds the events of a run into a state and derives, from that state and an instant, the commands
// that should be under way now.
//
// It does no IO, reads no clock, draws no random number and lets no order of a map be seen: a live run, a resume, a
// replay and the simulator differ only in where the events come from. It evaluates no expression, counts no breaker
// and knows no kind of node: it asks its host, and the answers are events.
//
// A host works in a loop: Advance with the time, Decide, then carry the commands out. What is to be recorded is given
// to Apply and written to the log before anything acts on it, and synced first where State.Urgent says so; how an
// attempt ended goes through Settle. Then it waits for an end, an answer or the instant that Decide named.
//
// Where to read: event.go has the table of event types with the functions that fold them; record.go what is known of
// a node; classify.go how its status follows from that; decide.go, start.go and question.go what is derived from the
// statuses; settle.go what a failure leads to.
//
// A run:
//
//	          RUN_CREATED           all nodes settled
//	(none) ------------> running ---------------------> completed
//	                      |  ^  \  fatal failure, abort, cancel
//	           RUN_PAUSED |  |   `------------> ending --clean-up done--> failed
//	                      v  | RUN_RESUMED                                  |
//	                     paused <-------------- RUN_RESUMED (running) ------'
//
// The states of a node are drawn at Status.
package machine

import (
	"fmt"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// A State is the state of one run. The zero State is a run before its first event. It belongs
// to one goroutine.
//
// Facts (what AppendSnapshot writes) and what is derived from them are kept apart: build derives
// everything anew, touch keeps it up to date, and tests hold the two equal.
type State struct {
	// Facts.
	run        runFacts
	recs       []rec // by node index
	expansions []*PlanExtendedBody
	retired    []retired
	detached   []detached
	ledger     ledger
	breakers   []breaker
	questions  []EscalationView
	observed   observations
	errors     []ErrorView // the last of them
	notices    []Notice    // that nobody has been given yet

	stays bool // its host has declared so: no fact

	// Derived.
	graph     *dag.Graph
	status    []Status
	settled   []settlement
	tallies   []tally
	counts    [Undone + 1]int32
	passed    int32 // nodes that have failed without holding the run
	open      int32 // nodes that are not settled
	lists     [Undone + 1][]int32
	classes   []class
	class     []int32 // by node
	heapAt    []int32 // by node: place in the heap of its class
	pools     []pool
	always    []int32
	timers    []timer
	overdue   []int32
	held      []bool // by the submitted plan; nil = none
	left      []bool // left out by the selected part; nil = none
	blocked   []bool // about to be rewound; nil = none
	effects   reuse.Effects
	undoing   int32 // node whose failure is being compensated, -1 = none
	openQ     []int32
	questAt   map[string]int32
	breakAt   map[string]int32
	retiredAt map[string]int
	ending    string // reason for which the run ends; "" = it does not
}

type pool struct {
	name string
	size int32
	used int32
	wait int64 // milliseconds; 0 = without limit
}

// runFacts are the facts of the run as a whole. Instants are Unix milliseconds.
type runFacts struct {
	ID         string        `json:"run_id"`
	Name       string        `json:"name"`
	PlanDigest string        `json:"plan_digest"`
	Seed       int64         `json:"seed"`
	Seq        int64         `json:"seq"` // last event folded
	Created    int64         `json:"created_at"`
	Updated    int64         `json:"updated_at"`
	Status     RunStatus     `json:"status"` // running, paused, completed, failed; ending is derived
	Pause      RunPausedBody `json:"pause"`
	Failed     string        `json:"failed,omitempty"`
	Ending     string        `json:"ending,omitempty"`      // fatal failure, abort or cancel
	Active     int64         `json:"active_ms"`             // of activity up to ActiveFrom
	ActiveFrom int64         `json:"active_from,omitempty"` // start of the present stretch; 0 = none
	Resumes    int           `json:"resumes,omitempty"`
	Undos      int           `json:"compensations_done,omitempty"`
	// Submitted is the plan that waits to be adopted; nil = none.
	Submitted *PlanSubmittedBody `json:"submitted,omitempty"`
	// Part is what of the plan is to run, Rerun what is to run again and has not been sent back yet, SavedPlans the ids of
	// the saved plans that were applied.
	Part       dag.Selection `json:"part,omitzero"`
	Rerun      []string      `json:"rerun,omitempty"`
	SavedPlans []string      `json:"saved_plans,omitempty"`
	Previous   *Ended        `json:"previous,omitempty"` // as RUN_CREATED says
	// Compensating is the node whose undo action is in flight.
	Compensating string `json:"compensating,omitempty"`
	Cancelled    bool   `json:"cancelled,omitempty"`     // with Ending: a user ended it
	UndoAll      bool   `json:"undo_all,omitempty"`      // with Ending: all that was done is to be undone
	UndoGivenUp  bool   `json:"undo_given_up,omitempty"` // with Ending: nothing more is undone, a user said so
}

// An EventError is what Apply returns for an event that cannot have happened.
type EventError struct {
	Seq  int64
	Type Type
	Why  string
}

func (e *EventError) Error() string { return fmt.Sprintf("event %d (%s): %s", e.Seq, e.Type, e.Why) }

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
