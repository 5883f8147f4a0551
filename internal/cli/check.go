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

func makeVet(c *cobra.Command) {
	var specs specFlags
	c.RunE = func(c *cobra.Command, args []string) error {
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
	}
	specs.add(c)
}

func makeGraph(c *cobra.Command) {
	var specs specFlags
	var runs runFlags
	var ofRun bool
	c.RunE = func(c *cobra.Command, args []string) error {
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
	}
	specs.add(c)
	c.Flags().BoolVar(&ofRun, "run", false, "the graph of a run, each node in the colour of its status")
	c.Flags().StringVar(&runs.dir, "output-dir", "", "directory of the run, with --run")
}

func makeExplain(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, args []string) error {
		m, err := newManual()
		if err != nil {
			return err
		}
		e, err := m.Explain(args)
		if err != nil {
			return err
		}
		return showText(c, e, e.Text())
	}
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		m, err := newManual()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return m.Continue(args), cobra.ShellCompDirectiveNoFileComp
	}
}

func newManual() (*manual.Manual, error) {
	format, err := schema.For(all.Registry())
	if err != nil {
		return nil, err
	}
	return manual.New(format), nil
}
