package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func newVerify() *cobra.Command {
	var runs runFlags
	var head string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check everything that is on disk",
		Long: `verify checks the whole chain of events, the snapshot against the replay, every recorded artifact,
backup and checkpoint, and the invariants of a run. It writes nothing. With --head it also proves that
the log still holds an event that was noted elsewhere. Exit status 5 means that something is wrong.

` + exitHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			checks, err := run.Verify(runs.options(dir, "verify"), head)
			if err != nil {
				return err
			}
			if checks[0].Pass {
				checks = append(checks, report.VerifyLogs(runs.options(dir, "verify")))
			}
			good := true
			for _, k := range checks {
				good = good && k.Pass
			}
			if runs.json {
				err = printJSON(c.OutOrStdout(), checks)
			} else {
				for _, k := range checks {
					mark := "ok    "
					if !k.Pass {
						mark = "WRONG "
					}
					fmt.Fprintf(c.OutOrStdout(), "%s%-12s %s\n", mark, k.Name, k.Detail)
				}
			}
			if err == nil && !good {
				return exit(exitDamaged)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().StringVar(&head, "head", "", "an event that must be in the log: its hash, or number:hash")
	return c
}
