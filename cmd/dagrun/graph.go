package main

import (
	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
)

func newGraph() *cobra.Command {
	var specs specFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "graph [SPEC]",
		Short: "Print the graph in the DOT language",
		Long: `graph prints the compiled plan as a graph: dagrun graph | dot -Tsvg > graph.svg
Dashed boxes and edges are conditional. With --json it prints the plan itself.

` + specHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			res, _, err := specs.compile(args)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), res.Plan)
			}
			return report.WriteDOT(c.OutOrStdout(), res.Graph)
		},
	}
	specs.add(c)
	addJSON(c, &asJSON)
	return c
}
