package cli

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes/all"
)

func newShow() *cobra.Command {
	var runs runFlags
	var attempt int
	c := &cobra.Command{
		Use:   "show NODE",
		Short: "Show all that there is to know of one node",
		Long: `show prints of one node of the run what it was given (settings with their values, input files, what it reads,
by content), what ran and what it printed last, what it left and wrote and where, its values, what it took and
cost, how each attempt ended, why it ran or was reused or waits, and the policies that hold for it. It works
beside a running apply, and for nodes that have not run yet.`,
		Args: exactlyOne,
		RunE: func(c *cobra.Command, args []string) error {
			return runs.read(c, func(r *run.Run, dir string) error {
				id, err := findNode(r, args[0])
				if err != nil {
					return err
				}
				kinds := all.Registry()
				viewer := report.Viewer{Does: kinds.Does, Hide: all.Hide,
					Resolve: func(with json.RawMessage, of dag.Scope) (json.RawMessage, error) {
						e, err := compile.NewEvaluator(r.Graph().Plan, kinds)
						if err != nil {
							return nil, err
						}
						return e.Resolve(with, of)
					}}
				if attempt < 0 || c.Flags().Changed("attempt") && attempt == 0 {
					return errors.New("--attempt: attempts count from 1")
				}
				v, err := report.NewNodeView(r, dir, id, attempt, time.Now(), viewer)
				if err != nil {
					return err
				}
				return show(c, v, v.WriteText)
			})
		},
	}
	runs.add(c)
	c.Flags().IntVar(&attempt, "attempt", 0, "show this attempt (default: the last one)")
	return c
}

// findNode returns the node that a name means.
func findNode(r *run.Run, name string) (string, error) {
	if _, ok := r.Graph().Index(name); ok {
		return name, nil
	}
	return "", unknownName("node", name, nodeNames(r.Graph()))
}
