package machine

import "dagrun.dev/dag"

// AppendSnapshot appends the state as canonical JSON (schemas/snapshot.schema.json). Two states
// folded from the same events give the same bytes. Everything else is derived from it.
func (s *State) AppendSnapshot(dst []byte) ([]byte, error) { panic("contract") }

// RestoreSnapshot returns the state that AppendSnapshot wrote. g is the graph of the plan whose
// digest SnapshotPlan names (without run-time expansions: the snapshot holds those).
func RestoreSnapshot(raw []byte, g *dag.Graph) (*State, error) { panic("contract") }

// SnapshotPlan returns run id, plan digest and the Seq of the last event of a snapshot.
func SnapshotPlan(raw []byte) (run, digest string, seq int64, err error) { panic("contract") }
