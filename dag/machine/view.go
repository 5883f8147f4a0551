package machine

import (
	"encoding/json"
	"time"

	"dagrun.dev/dag"
)

// The accessors below are for hosts and reports. Slices and maps they return belong to the
// state and are not to be changed; they are valid until the next Apply.

// Graph returns the present graph: the adopted plan with its run-time expansions. It is nil
// before the first event.
func (s *State) Graph() *dag.Graph { panic("contract") }

// Run returns what is known of the run as a whole.
func (s *State) Run() RunView { panic("contract") }

// A RunView is the run as a whole.
type RunView struct {
	ID, Name   string
	PlanDigest string
	Seed       int64
	Seq        int64     // last event folded
	Created    time.Time // of RUN_CREATED
	Updated    time.Time // of the last event
	Status     RunStatus
	Pause      RunPausedBody // the pause in force, or the last one
	State      string        // declared by milestones; CREATED at first
	Stable     string        // last stable state
	Active     time.Duration // time of activity until Updated
	Resumes    int
	Failed     string // reason of RUN_FAILED
}

// RunStatus is where a run stands.
type RunStatus string

const (
	RunNone    RunStatus = ""
	RunRunning RunStatus = "running"
	RunPause   RunStatus = "paused"
	RunEnding  RunStatus = "ending" // fatal failure or cancel: only clean-up runs
	RunDone    RunStatus = "completed"
	RunBroken  RunStatus = "failed"
)

// NodeByID returns the record of a node.
func (s *State) NodeByID(id string) (NodeView, bool) { panic("contract") }

// NodeAt returns the record of the node at an index.
func (s *State) NodeAt(i int32) NodeView { panic("contract") }

// A NodeView is the record of a node in its current generation.
type NodeView struct {
	Node       *dag.Node
	Status     Status
	Generation int // from 1
	Attempt    int // last started in this generation; 0 = none
	Failures   int // recorded failures since the node was last given a fresh start
	Lost       int
	First      time.Time // first start of this generation
	Started    time.Time // last start
	Finished   time.Time // last end
	Last       *FinishedBody
	RetryAt    time.Time // instant before which it will not start (backoff or wait)
	Values     map[string]json.RawMessage
	Cost       dag.USD // over all attempts and generations
	Usage      Usage
	Reserved   dag.Amount // of the running attempt
	Blocked    Block
}

// A Block says why a node that could start does not.
type Block struct {
	By    string // pool | breaker | quota | budget | person | escalation | retry | pause | needs; empty = nothing
	Name  string // of the pool, breaker, escalation or first open need
	Until time.Time
}

// ScopeOf returns what expressions of a node may read: its ancestors, its history, the run.
func (s *State) ScopeOf(node string) dag.Scope { panic("contract") }

// DeclaredState returns the state that milestones last declared for a section, of the run when
// the section is empty. CREATED at first.
func (s *State) DeclaredState(section string) string { panic("contract") }

// BreakerRecord returns the last change recorded of a breaker and when; false when there is none.
func (s *State) BreakerRecord(name string) (BreakerChangedBody, time.Time, bool) { panic("contract") }

// Escalations returns the open questions in the order in which they were opened.
func (s *State) Escalations() []EscalationOpenedBody { panic("contract") }

// Escalation returns a question, open or answered; false when it was never opened.
func (s *State) Escalation(id string) (EscalationView, bool) { panic("contract") }

// An EscalationView is a question and, once there is one, its answer.
type EscalationView struct {
	Question EscalationOpenedBody
	Answer   *EscalationAnsweredBody
}

// Status is where a node stands.
//
//	            +-> deciding -+                    +--------- retrying / holding <-+
//	waiting ----+-------------+--> ready --> running --> completed                 |
//	            |             +-> expanding  |  ^   +--> failed --+----------------+
//	            +-> skipping --> skipped     |  |                 +-> asking (a person)
//	                                         +--+ lost, rejected  +-> undoing (compensation)
type Status uint8

const (
	Waiting   Status = iota // needs have not ended
	Deciding                // the condition is to be evaluated
	Expanding               // the items are to be expanded
	Skipping                // to be recorded as skipped or failed without a start
	Ready                   // may start
	Running                 // an attempt is in flight
	Retrying                // backs off until an instant
	Holding                 // waits for an absolute instant; no attempt used
	Asking                  // an escalation decides, or the outcome of a lost attempt is unknown
	Stopped                 // only a person can help; resuming the run starts it again
	Undoing                 // failed; compensation is under way
	Blocked                 // about to be rewound by the compensation of another node
	Completed
	Failed
	Skipped
	Cancelled
)
