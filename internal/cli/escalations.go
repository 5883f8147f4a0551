package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
)

func newEscalations() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "escalations",
		Short: "List the questions that the run asks",
		Long:  "escalations lists the questions that wait for an answer. Answer one with: dagrun respond ID ANSWER",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := runs.openReadOnly("escalations")
			if err != nil {
				return err
			}
			defer r.Close()
			open := r.State().Escalations()
			if runs.json {
				if open == nil {
					open = []machine.EscalationOpenedBody{}
				}
				return printJSON(c.OutOrStdout(), open)
			}
			out := c.OutOrStdout()
			if len(open) == 0 {
				fmt.Fprintln(out, "No question is open.")
			}
			for _, q := range open {
				fmt.Fprintf(out, "%s (%s", q.ID, q.Kind)
				if q.Node != "" {
					fmt.Fprintf(out, ", node %s", q.Node)
				}
				fmt.Fprintf(out, ")\n  %s\n", strings.ReplaceAll(strings.TrimSpace(q.Message), "\n", "\n  "))
				for _, o := range q.Options {
					note := ""
					if o == q.Recommended {
						note = "  (recommended)"
					}
					fmt.Fprintf(out, "  - %s%s\n", o, note)
				}
				if !q.Deadline.IsZero() {
					fmt.Fprintf(out, "  without an answer by %s: %s\n", report.Instant(q.Deadline), q.Default)
				}
			}
			return nil
		},
	}
	runs.add(c)
	return c
}
