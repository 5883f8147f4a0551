package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
)

func newEscalations() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "escalations",
		Short: "List the open questions of the run",
		Long:  "escalations lists the questions that wait for an answer. Answer one with: dagrun respond ID ANSWER",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := runs.openReadOnly("escalations")
			if err != nil {
				return err
			}
			defer r.Close()
			open := r.State().Escalations()
			if open == nil {
				open = []machine.EscalationOpenedBody{}
			}
			return show(c, open, func(w io.Writer) error { return writeQuestions(w, open) })
		},
	}
	runs.add(c)
	return c
}

func writeQuestions(out io.Writer, open []machine.EscalationOpenedBody) error {
	var b strings.Builder
	if len(open) == 0 {
		b.WriteString("No question is open.\n")
	}
	for _, q := range open {
		about := string(q.Kind)
		if q.Node != "" {
			about += ", node " + q.Node
		}
		fmt.Fprintf(&b, "%s (%s)\n  %s\n", q.ID, about, strings.ReplaceAll(strings.TrimSpace(q.Message), "\n", "\n  "))
		for _, o := range q.Options {
			note := ""
			if o == q.Recommended {
				note = "  (recommended)"
			}
			fmt.Fprintf(&b, "  - %s%s\n", o, note)
		}
		if !q.Deadline.IsZero() {
			fmt.Fprintf(&b, "  without an answer by %s: %s\n", report.Instant(q.Deadline), q.Default)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
