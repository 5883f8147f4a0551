package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

// writeChecks prints a line for each check and one that says what they come to.
func writeChecks(w io.Writer, checks []run.Check) error {
	var b strings.Builder
	wrong := 0
	for _, k := range checks {
		mark := "ok   "
		if !k.Pass {
			mark = "WRONG"
			wrong++
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%s  %-16s  %s", mark, k.Name, report.Plain(k.Detail)), " "))
	}
	if wrong > 0 {
		fmt.Fprintf(&b, "%d of %d checks failed.\n", wrong, len(checks))
	} else {
		fmt.Fprintf(&b, "All %d checks passed.\n", len(checks))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

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
		Args: noArgs,
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
				checks = append(checks, runlog.Verify(runs.options(dir, "verify")))
			}
			good := true
			for _, k := range checks {
				good = good && k.Pass
			}
			err = show(c, checks, func(w io.Writer) error { return writeChecks(w, checks) })
			if err == nil && !good {
				return exitWith(exitDamaged)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().StringVar(&head, "head", "", "an event that must be in the log: its hash, or number:hash")
	return c
}
