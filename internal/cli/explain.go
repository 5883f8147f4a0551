package cli

import (
	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/manual"
	"dagrun.dev/nodes/all"
)

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
			return showText(c, e, "%s", e.Text())
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
