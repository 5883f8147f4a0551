package main

import (
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
)

func newReport() *cobra.Command {
	var runs runFlags
	var by string
	c := &cobra.Command{
		Use:   "report",
		Short: "Sum up time, attempts and cost",
		Long:  "report sums up what the run took by kind, group, node, or a label of the nodes (--by label:role).",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := runs.openReadOnly("report")
			if err != nil {
				return err
			}
			defer r.Close()
			rep, err := report.NewCosts(r.State(), by, time.Now())
			if err != nil {
				return err
			}
			if runs.json {
				return printJSON(c.OutOrStdout(), rep)
			}
			return rep.WriteText(c.OutOrStdout())
		},
	}
	runs.add(c)
	c.Flags().StringVar(&by, "by", "kind", "kind, group, node, or label:NAME")
	return c
}
