package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/run"
)

func newReplay() *cobra.Command {
	var runs runFlags
	var write bool
	c := &cobra.Command{
		Use:   "replay",
		Short: "Rebuild the state from the events and compare it with the snapshot",
		Long:  "replay folds the whole event log, without any snapshot, and compares the result with state.json. It\nruns no node. Exit status 5 means that they differ.\n\n" + exitHelp,
		Args:  cobra.NoArgs,
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
			if runs.json {
				err = printJSON(c.OutOrStdout(), map[string]any{
					"run_id": v.ID, "events": v.Seq, "status": v.Status, "snapshot_equal": same, "snapshot_renewed": write,
				})
			} else {
				verdict := "the snapshot is equal"
				if !same {
					verdict = "the snapshot differs"
				}
				if write {
					verdict += "; it was written anew"
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%d events, run %s is %s: %s\n", v.Seq, v.ID, v.Status, verdict)
			}
			if err == nil && !same && !write {
				return exit(exitDamaged)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().BoolVar(&write, "write", false, "write the snapshot anew")
	return c
}
