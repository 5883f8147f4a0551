package reuse

import "dagrun.dev/dag"

// A Run is what a run knows of the nodes of its plan. It does not change while this package asks it.
type Run interface {
	// Graph is the graph of the plan in force, with run-time expansions.
	Graph() *dag.Graph
	// PlanDigest is the digest of the plan in force.
	PlanDigest() string
	// Record returns what is known of the node at an index of Graph.
	Record(i int32) Record
	// Failure reports whether a node ended without success by its policies, its result stale or not, and the
	// categories of the failures that led to it, sorted.
	Failure(i int32) (categories []string, failed bool)
}

// A Record is what a run knows of one node, as far as a result depends on it.
type Record struct {
	Ended       bool   // nothing follows by itself: no retry, no question, no compensation
	Settled     bool   // its end lets the nodes that need it go on
	Stale       bool   // it had ended when the plan changed above it, and nothing has been decided about that yet
	Begun       bool   // it has an attempt, a question, an end, or a condition found true: anew is another generation
	Unresolved  bool   // an attempt was lost that must not be repeated before it is known what became of it
	End         End    // how it ended; of no meaning for nodes that have not
	Category    string // of its last end
	Fingerprint string // of what its last attempt was given; empty = not known
	Attempts    int    // of the generation
	Generation  int    // from 1
	EndSeq      int64  // of the event that ended it
	Reshaped    bool   // a foreach: its items are others than those of the expansion before
}

// has reports whether a node has ended, its result stale or not.
func (r *Record) has() bool { return r.Ended || r.Stale }

// End is how a node ended. Snapshots hold it as a number.
type End uint8

// The ends of a node.
const (
	Completed End = iota
	Failed
	Skipped
	Cancelled
	Rejected // the run went on without it
)

// CategoryBreaker is that of nodes which a breaker kept from starting.
const CategoryBreaker = "breaker_open"
