package cli

import (
	"io"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/manual"
	"dagrun.dev/nodes/all"
)

// The commands that read a specification and write nothing.

func newVet() *cobra.Command {
	var specs specFlags
	c := &cobra.Command{
		Use:   "vet [SPEC]",
		Short: "Check a specification and print every mistake",
		Long: `vet checks a specification as plan does and prints one line for each mistake:
file:line:column: path: what is wrong. It runs and writes nothing.

` + specHelp,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			res, _, err := specs.compile(args)
			if err != nil {
				return err
			}
			for _, text := range res.Warnings {
				if !asJSON(c) { // which has them
					warn(c, text.Error())
				}
			}
			return show(c, vetted{[]mistake{}, mistakes(res.Warnings), res.Plan.Name, len(res.Plan.Nodes)})
		},
	}
	specs.add(c)
	addJSON(c)
	return c
}

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
				return runs.read(c, func(r *run.Run, _ string) error {
					return showBy(c, r.Graph().Plan, func(w io.Writer) error {
						return report.WriteRunDOT(w, r.State(), compile.Notes(r.Graph(), all.Registry()))
					})
				})
			}
			res, kinds, err := specs.compile(args)
			if err != nil {
				return err
			}
			return showBy(c, res.Plan, func(w io.Writer) error {
				return report.WriteDOT(w, res.Graph, compile.Notes(res.Graph, kinds))
			})
		},
	}
	specs.add(c)
	addJSON(c)
	c.Flags().BoolVar(&ofRun, "run", false, "the graph of a run, each node in the colour of its status")
	c.Flags().StringVar(&runs.dir, "output-dir", "", "directory of the run, with --run")
	return c
}

func newExplain() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain [NAME[.FIELD]...]",
		Short: "Explain a kind of node, a field, a category of failure, the expressions",
		Long: `explain says what a name of the format means: its type, its default, what it is for, and an example. The same
text makes the pages of docs/reference.`,
		Example: `  dagrun explain                        what there is
  dagrun explain exec                   a kind of node and its settings
  dagrun explain exec.exit              one setting
  dagrun explain pipeline.budget        a field of the pipeline; node.when is one of a node
  dagrun explain retry                  a definition that several fields use
  dagrun explain category rate_limited  what a failure means, and what to do
  dagrun explain expressions            conditions and ${...}; expressions split is one function`,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := newManual()
			if err != nil {
				return err
			}
			e, err := m.Explain(args)
			if err != nil {
				return err
			}
			return showText(c, e, e.Text())
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			m, err := newManual()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return m.Continue(args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	addJSON(c)
	return c
}

func newManual() (*manual.Manual, error) {
	format, err := schema.For(all.Registry())
	if err != nil {
		return nil, err
	}
	return manual.New(format), nil
}
