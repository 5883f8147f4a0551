package cli

import (
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
)

func newReport() *cobra.Command {
	var runs runFlags
	var by string
	c := &cobra.Command{
		Use:   "report [cost | quality | budget | errors]",
		Short: "Sum up cost, quality, budget or errors",
		Long: `report sums up what the run took. It works beside a running apply.

  cost     nodes, attempts, failures, time, tokens, cost and validations by --by: kind, group, node
           or labels of the nodes, several separated by commas (--by role,subset)
  quality  what was reported of the quality of the work, and how scores went
  budget   spent and reserved, and where the amounts come from: reported, priced from tokens, or assumed
  errors   every failed attempt, recovered or not`,
		ValidArgs: []string{"cost", "quality", "budget", "errors"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(c.ValidArgs, args[0]) {
				return unknownName("report", args[0], c.ValidArgs)
			}
			return atMostOne(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			r, dir, err := runs.openReadOnly("report")
			if err != nil {
				return err
			}
			defer r.Close()
			h, err := report.ReadHistory(runs.options(dir, "report"))
			if err != nil {
				return err
			}
			view, write := any(nil), (func(io.Writer) error)(nil)
			switch append(args, "cost")[0] {
			case "cost":
				costs, err := report.NewCosts(r.State(), h, by, time.Now())
				if err != nil {
					return err
				}
				view, write = costs, costs.WriteText
			case "quality":
				q := report.NewQuality(r.State(), h)
				view, write = q, q.WriteText
			case "budget":
				b := report.NewBudget(r.State(), h)
				view, write = b, b.WriteText
			case "errors":
				list := append([]report.ErrorEntry{}, h.Errors...)
				view, write = list, func(w io.Writer) error { return report.WriteErrors(w, list) }
			}
			return show(c, view, write)
		},
	}
	runs.add(c)
	c.Flags().StringVar(&by, "by", "kind", "for cost: kind, group, node, or labels, separated by commas")
	return c
}
