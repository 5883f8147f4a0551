package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes"
)

// Preflight asks every kind that can tell whether the nodes of it that have still to run can work on
// this machine, before any of them has cost anything. It records nothing. Warnings are for the
// person who starts the run; an error means that the run should not go on here. scratch as in Options.
func Preflight(ctx context.Context, r *run.Run, kinds *nodes.Registry, specDir, scratch string) (warnings []string, err error) {
	var bad []error
	for _, kind := range kinds.Kinds() {
		p, ok := kind.(nodes.Preflighter)
		if !ok {
			continue
		}
		with := stillToRun(r.State(), kind.Name())
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

func preflight(ctx context.Context, p nodes.Preflighter, with []json.RawMessage, specDir, scratch string) ([]string, error) {
	dir := filepath.Join(scratch, "preflight")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	defer os.Remove(scratch)
	defer os.RemoveAll(dir)
	return p.Preflight(ctx, with, specDir, dir)
}

// stillToRun returns the settings of the nodes of a kind that have not ended.
func stillToRun(st *machine.State, kind string) []json.RawMessage {
	var with []json.RawMessage
	for i := range int32(st.Graph().Len()) {
		if n := st.Graph().Node(i); n.Kind == kind && !st.NodeAt(i).Status.Ended() {
			with = append(with, n.With)
		}
	}
	return with
}
