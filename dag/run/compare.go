package run

import (
	"io"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// What a comparison says of a node.
const (
	DoRun     = "run"     // not finished yet, runs as before
	DoReuse   = "reuse"   // finished; nothing it depends on changed
	DoChanged = "changed" // finished or not; what it does changed
	DoBlocked = "blocked" // finished, runs again because of a changed node before it
	DoAdded   = "added"   // not in the run's plan
	DoRemoved = "removed" // not in the new plan
)

// A Diff compares a run with a plan. Nodes are in the order of the new plan, removed ones last.
type Diff struct {
	PlanDigest string // of the new plan
	Same       bool   // the plans are equal
	Nodes      []NodeDiff
	Limits     []string // plan-wide changes that make no node run again: "budget.capUSD 5.00 -> 8.00"
}

// A NodeDiff says what happens to one node and why.
type NodeDiff struct {
	ID     string
	Do     string   // see the constants
	Why    []string // parts that differ ("with.prompt", "file review.md"), or the node that causes it
	Effect string
}

// Count returns how many nodes have a Do.
func (d *Diff) Count(do string) int { panic("contract") }

// Compare says node by node what adopting g would do. It changes nothing and works read-only.
func (r *Run) Compare(g *dag.Graph) *Diff { panic("contract") }

// Adopt makes g the run's plan: plan and input files go to the object store, then PLAN_ADOPTED is
// recorded, durable. Nodes that Compare calls changed or blocked run again with generation + 1.
// Adopting the plan that the run has does nothing.
func (r *Run) Adopt(now time.Time, g *dag.Graph, file func(path string) (io.ReadCloser, error)) (*Diff, error) {
	panic("contract")
}

// Archive moves a run (state, log, logs, accumulators, node folders) to archives/run-<id>-<time> so
// that Create works again, and returns that path relative to the output directory. Live artifacts
// stay; objects stay and are shared. It takes the lock for the time.
func Archive(o Options) (string, error) { panic("contract") }

// A CheckpointInfo describes a checkpoint; it is also its manifest on disk.
type CheckpointInfo struct {
	Format    int         `json:"format"`
	ID        string      `json:"id"`
	Node      string      `json:"node,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	RunID     string      `json:"run_id"`
	Head      int64       `json:"head"`      // last event it includes
	HeadHash  string      `json:"head_hash"` // of that event
	Plan      string      `json:"plan_sha256"`
	State     string      `json:"state_sha256"`
	Files     []SavedFile `json:"files"` // artifacts and accumulators
	Completed int         `json:"completed"`
	Failed    int         `json:"failed"`
	CostUSD   dag.USD     `json:"cost_usd"`

	Path  string `json:"-"` // relative to the output directory
	Valid error  `json:"-"` // nil, or what is wrong with it; set by Checkpoints
}

// A SavedFile is an artifact's or accumulator's version in a checkpoint.
type SavedFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"`  // live path, relative to the output directory
	Saved  string `json:"saved"` // name within the checkpoint's folder
	Digest string `json:"sha256"`
	Size   int64  `json:"size"`
	// Entries, for an accumulator, lists the digests of its entries, oldest first.
	Entries []string `json:"entries,omitempty"`
}

// Checkpoint writes checkpoints/<id> and records CHECKPOINT_CREATED, durable. names lists artifacts
// and accumulators; nil means all that exist (for a node: that its ancestors wrote). An existing id
// gets a suffix (cp-S1, cp-S1-2, ...): nothing is overwritten.
func (r *Run) Checkpoint(now time.Time, id, node string, names []string) (*CheckpointInfo, error) {
	panic("contract")
}

// Checkpoints lists the checkpoints, oldest first, each verified.
func (r *Run) Checkpoints() ([]CheckpointInfo, error) { panic("contract") }

// A Preview says what reverting would do.
type Preview struct {
	Checkpoint CheckpointInfo
	Nodes      []string // finished or started since; they run again, in plan order
	Files      []string // live paths that change
	RedoUSD    dag.USD  // what those nodes cost so far
	RedoTime   time.Duration
	Once       []string // nodes among them with effect once: their effect cannot be undone
}

// PreviewRevert says what Revert would do. Works read-only.
func (r *Run) PreviewRevert(id string) (*Preview, error) { panic("contract") }

// Revert goes back to a checkpoint: hashes are verified, REVERTED is recorded, artifacts and
// accumulators restored (present ones backed up). Later records, logs and cost stay.
func (r *Run) Revert(now time.Time, id string) (*Preview, error) { panic("contract") }

// A Check is one thing that Verify looked at.
type Check struct {
	Name   string `json:"name"` // chain, snapshot, artifacts, backups, ... in a fixed order
	Pass   bool   `json:"pass"`
	Detail string `json:"detail,omitempty"`
}

// Verify checks a run directory from outside without writing: the whole chain, the snapshot against
// the replay, every recorded artifact and backup, checkpoints, and the ten invariants of the state
// document. head, when not empty ("seq:hash" or "hash"), must be an event of the log.
func Verify(o Options, head string) ([]Check, error) { panic("contract") }

// Replay folds the whole log, ignoring snapshots, and compares with the snapshot on disk. write
// renews state.json. It runs no work.
func Replay(o Options, write bool) (st *machine.State, same bool, err error) { panic("contract") }
