package dag

// The words below stand in plans and events as they are written here: the types tell them apart in Go and change
// nothing on disk. Words are only ever added.

// An Effect is what running an attempt twice does to the world.
type Effect string

const (
	Pure       Effect = "pure"       // nothing
	Idempotent Effect = "idempotent" // the same as running it once
	Once       Effect = "once"       // something that must not be repeated unasked
	Probe      Effect = "probe"      // as Once, but whether it took effect can be found out
)

// Repeatable reports whether an attempt whose outcome is not known may simply be followed by another.
func (e Effect) Repeatable() bool { return e != Once && e != Probe }

// A Class says how grave a category of failure is.
type Class string

const (
	Transient  Class = "transient"  // may pass by itself
	Structural Class = "structural" // the answer has the wrong form
	Soft       Class = "soft"       // the work is poorer for it
	Hard       Class = "hard"       // it will fail again
	Fatal      Class = "fatal"      // the run is to end
)

// An Action is what follows an attempt that failed.
type Action string

const (
	Try  Action = "retry" // another attempt after a backoff
	Wait Action = "wait"  // another attempt at an instant; uses none up
	Stop Action = "stop"  // only a user can help
	Fail Action = "fail"  // no other attempt
)

// An OnFail is what follows when a node has failed for good. Empty means FailRun.
type OnFail string

const (
	FailRun        OnFail = "fail"       // the run pauses
	FailContinue   OnFail = "continue"   // the run goes on; what needs the node is decided by its own condition
	FailSkip       OnFail = "skip"       // all that depends on the node is skipped
	FailEscalate   OnFail = "escalate"   // a user is asked
	FailCompensate OnFail = "compensate" // what was done is undone
)

// A Then is what follows once a failure has been undone.
type Then string

const (
	ThenStop     Then = "stop"     // the run has failed
	ThenAgain    Then = "again"    // what was undone, and what depends on it, runs again
	ThenContinue Then = "continue" // the run goes on without it
)

// A WhenFailed is what a failure that nothing allows does to the run. Empty means FailedPauses.
type WhenFailed string

const (
	FailedPauses WhenFailed = "pause" // it can be resumed once the cause is mended
	FailedEnds   WhenFailed = "end"   // clean-up runs at once, then the run has failed
)

// A WhenOpen is what nodes do whose breaker is open.
type WhenOpen string

const (
	OpenWait     WhenOpen = "wait"
	OpenSkip     WhenOpen = "skip"
	OpenContinue WhenOpen = "continue"
	OpenEscalate WhenOpen = "escalate"
)

// A Status is where a node stands as events, expressions and reports name it.
type Status string

const (
	StatusPending   Status = "pending" // expressions only, as running: an end is never one of the two
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusSkipped   Status = "skipped"
	StatusCancelled Status = "cancelled"
	StatusUndone    Status = "undone"   // of a node: it was completed, and its undo action has run
	StatusLost      Status = "lost"     // of an attempt: outcome unknown after a crash
	StatusRejected  Status = "rejected" // of an attempt: it counts for nothing; of a node: the run went on without it
)

// ViewStatuses are the statuses that expressions may read.
var ViewStatuses = []string{string(StatusPending), string(StatusRunning), string(StatusCompleted), string(StatusFailed),
	string(StatusSkipped), string(StatusCancelled), string(StatusUndone)}

// A CostKind says who knows what an attempt cost.
type CostKind string

const (
	CostReported CostKind = "reported" // the provider said so
	CostPriced   CostKind = "priced"   // tokens times the price list
	CostFree     CostKind = "free"     // known to have cost nothing
	CostAssumed  CostKind = "assumed"  // nobody said: the reservation stands in for it
)
