package cli

import (
	"io"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/report"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

func newGraph() *cobra.Command {
	var specs specFlags
	var runs runFlags
	var ofRun bool
	c := &cobra.Command{
		Use:   "graph [SPEC]",
		Short: "Print the graph in the DOT language",
		Long: `graph prints the compiled plan as a graph: dagrun graph | dot -Tsvg > graph.svg
Dashed boxes and edges are conditional; their tooltips have the condition, those of boxes the rules, checks,
viewports and questions too. Edges out of a route name the decisions that lead along them; parameters
are in a note. With --run it prints the graph of the run in --output-dir, run-time nodes included, each in
the colour of its status: green completed, blue running, red failed, orange failed but allowed, yellow
waiting, grey skipped. With --json it prints the plan itself.

` + specHelp,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if ofRun {
				r, _, err := runs.openReadOnly("graph")
				if err != nil {
					return err
				}
				defer r.Close()
				return show(c, r.Graph().Plan, func(w io.Writer) error {
					return report.WriteRunDOT(w, r.State(), compile.Notes(r.Graph(), nodes.NewRegistry(all.Kinds()...)))
				})
			}
			res, _, err := specs.compile(args)
			if err != nil {
				return err
			}
			return show(c, res.Plan, func(w io.Writer) error { return report.WriteDOT(w, res.Graph, res.Notes) })
		},
	}
	specs.add(c)
	addJSON(c)
	c.Flags().BoolVar(&ofRun, "run", false, "the graph of a run, each node in the colour of its status")
	c.Flags().StringVar(&runs.dir, "output-dir", "", "directory of the run, with --run")
	return c
}
