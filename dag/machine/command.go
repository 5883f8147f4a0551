package machine

import (
	"time"

	"dagrun.dev/dag"
)

// A Command is a wish derived from facts. The host carries it out by recording the fact first.
type Command struct {
	Op   Op
	Node string // id; empty where the op concerns the run
	// Generation and Attempt are those the host writes into WORK_ITEM_STARTED; of Compensate,
	// Attempt counts the tries of the undo action.
	Generation, Attempt int
	Reserve             dag.Amount
	// Body, when set, is the payload of the event that the host should simply append:
	// pauses, skips by propagation, budget warnings, completion, escalations.
	Body Body
	// Breaker is what Count asks.
	Breaker *BreakerQuestion
}

// Op is what a Command asks for.
type Op int

const (
	// Start: append WORK_ITEM_STARTED, then run one attempt (control nodes included). Two are answered otherwise: a
	// node that asks a user (dag.Role) gets ESCALATION_OPENED and no start, and where the disk has no room for the
	// answer of a paid one, the host appends RUN_PAUSED.
	Start Op = iota
	// Evaluate: evaluate the node's When; append WORK_ITEM_FINISHED{skipped} if false,
	// WORK_ITEM_QUEUED{condition} if true, WORK_ITEM_FINISHED{failed, config} on an error.
	Evaluate
	// Expand: evaluate the node's Foreach and append PLAN_EXTENDED. The node itself carries out
	// nothing: PLAN_EXTENDED completes it, and its items count in its place.
	Expand
	// Record: append Body. Nothing else to do.
	Record
	// Cancel: ask the running attempt to stop (total deadline, end of the run, rewind). It is
	// repeated until the attempt has ended.
	Cancel
	// Resolve: an attempt was lost and the node's effect is once or probe. With a Body: append
	// that escalation. Without: run the probe (a host that has none for the node asks the user),
	// then append WORK_ITEM_FINISHED for the lost attempt: completed or failed if it took effect,
	// rejected if it did not (it is started again).
	// Repeated until that is recorded.
	Resolve
	// Recheck: the result of the node is stale, its needs have ended again, and nothing in the state speaks
	// against it. Find out what reuse.ByInputs asks and append what Judged returns. Repeated until that is recorded.
	Recheck
	// Count: append the BREAKER_CHANGED that answers Breaker. Repeated until it is recorded.
	Count
	// Adopt: compare the submitted plan (State.Submitted) with the state again, and append what Adoption returns, with
	// the plan. Repeated until that is recorded.
	Adopt
	// Compensate: append Body (COMPENSATION_STARTED), run the undo action, append
	// COMPENSATION_FINISHED.
	Compensate
)

// An Outcome is how an attempt ended, as the host saw it.
type Outcome struct {
	Status      dag.Status    `json:"status"` // completed | failed | lost | rejected | cancelled
	Category    string        `json:"category,omitempty"`
	Message     string        `json:"message,omitempty"`
	Diagnostics string        `json:"diagnostics,omitempty"`
	RetryAfter  time.Duration `json:"retry_after_ns,omitempty"` // asked for by the remote; waited for at least
	WaitUntil   time.Time     `json:"wait_until,omitzero"`      // quota reset; uses no attempt
	Fault       string        `json:"fault,omitempty"`          // of a disk that failed the attempt; see RunPausedBody
	Permanent   bool          `json:"permanent,omitempty"`      // another attempt is useless whatever the policy says
	Body        FinishedBody  `json:"body"`                     // what the attempt itself knows, copied as it is
}
