package cli

import (
	"fmt"

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
			if runs.json {
				err = printJSON(c.OutOrStdout(), map[string]any{
					"run_id": v.ID, "events": v.Seq, "status": v.Status, "snapshot_equal": same, "snapshot_renewed": write, "logs_renewed": logs,
				})
			} else {
				verdict := "the snapshot is equal"
				if !same {
					verdict = "the snapshot differs"
				}
				if write {
					verdict += "; it was written anew"
				}
				if logs {
					verdict += "; the logs were made anew"
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%d events, which leave run %s %s: %s\n", v.Seq, v.ID, v.Status, verdict)
			}
			if err == nil && !same && !write {
				return exit(exitDamaged)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().BoolVar(&write, "write", false, "write the snapshot anew")
	c.Flags().BoolVar(&logs, "logs", false, "make the six logs anew from the events")
	return c
}
