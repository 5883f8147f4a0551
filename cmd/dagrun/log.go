package main

import (
	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
)

func newLog() *cobra.Command {
	var runs runFlags
	var node string
	var types []string
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the events of the run",
		Long: `log prints the event log of a run, checked against its hash chain, one line for each event. With
--json it prints the lines as they are on disk. It works beside a running apply.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			return report.WriteLog(c.OutOrStdout(), dir, report.LogFilter{Node: node, Types: types, JSON: runs.json})
		},
	}
	runs.add(c)
	c.Flags().StringVar(&node, "node", "", "only events of this node")
	c.Flags().StringSliceVar(&types, "type", nil, "only events of these types, e.g. WORK_ITEM_FINISHED")
	return c
}
