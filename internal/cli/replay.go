package cli

import (
	"github.com/spf13/cobra"

	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

func newReplay() *cobra.Command {
	var runs runFlags
	var write, logs bool
	c := &cobra.Command{
		Use:   "replay",
		Short: "Rebuild the state from the events and compare it with the snapshot",
		Long:  "replay folds the whole event log, without any snapshot, and compares the result with state.json. It\nruns no node. Exit status 5 means that they differ.\n\n" + exitHelp,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			st, same, err := run.Replay(runs.options(dir, "replay"), write)
			if err != nil {
				return err
			}
			v := st.Run()
			if logs {
				if err := runlog.Rebuild(runs.options(dir, "replay")); err != nil {
					return err
				}
			}
			verdict := "the snapshot is equal"
			if !same {
				verdict = "the snapshot differs"
			}
			if write {
				verdict += " and was rewritten"
			}
			if logs {
				verdict += "; the logs were rewritten"
			}
			found := map[string]any{"run_id": v.ID, "events": v.Seq, "status": v.Status,
				"snapshot_equal": same, "snapshot_renewed": write, "logs_renewed": logs}
			err = showText(c, found, "%d events; run %s is %s: %s\n", v.Seq, v.ID, v.Status, verdict)
			if err == nil && !same && !write {
				return exitWith(exitDamaged)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().BoolVar(&write, "write", false, "rewrite the snapshot")
	c.Flags().BoolVar(&logs, "logs", false, "rewrite the six logs from the events")
	return c
}
