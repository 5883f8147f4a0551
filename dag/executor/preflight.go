package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes"
)

// Preflight asks every kind that can tell whether the nodes of it that have still to run can work on
// this machine, before any of them has cost anything. It records nothing. Warnings are for the user
// who starts the run; an error means that the run should not go on here. next is the plan that the run
// is to adopt, nil for the one in force. scratch as in Options.
func Preflight(ctx context.Context, r *run.Run, next *dag.Graph, kinds *nodes.Registry,
	specDir, scratch string) (warnings []string, err error) {
	var bad []error
	for _, kind := range kinds.Kinds() {
		p, ok := kind.(nodes.Preflighter)
		if !ok {
			continue
		}
		with := stillToRun(r, next, kind.Name())
		if len(with) == 0 {
			continue
		}
		said, err := preflight(ctx, p, with, specDir, scratchOf(r, scratch))
		warnings = append(warnings, said...)
		if err != nil {
			bad = append(bad, fmt.Errorf("kind %s cannot work here: %w", kind.Name(), err))
		}
	}
	return warnings, errors.Join(bad...)
}

func preflight(ctx context.Context, p nodes.Preflighter, with []json.RawMessage,
	specDir, scratch string) ([]string, error) {
	dir := filepath.Join(scratch, "preflight")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	defer os.Remove(scratch)
	defer os.RemoveAll(dir)
	return p.Preflight(ctx, with, specDir, dir)
}

// stillToRun returns the settings of the nodes of a kind that have not ended, or run again under another plan.
func stillToRun(r *run.Run, next *dag.Graph, kind string) []json.RawMessage {
	var with []json.RawMessage
	add := func(n *dag.Node) {
		if n.Kind == kind {
			with = append(with, n.With)
		}
	}
	if next == nil {
		st := r.State()
		for i := range int32(st.Graph().Len()) {
			if !st.StatusAt(i).Ended() {
				add(st.Graph().Node(i))
			}
		}
		return with
	}
	d := r.Compare(next)
	for k := range d.Nodes {
		if i, ok := d.Graph.Index(d.Nodes[k].ID); ok && d.Nodes[k].Do != reuse.DoReuse {
			add(d.Graph.Node(i))
		}
	}
	return with
}
