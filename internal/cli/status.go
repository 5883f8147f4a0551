package cli

import (
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
)

func newStatus() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how the run stands",
		Long:  "status reads the run and shows how far it is, what it cost, what waits and why, and what to do next.\nIt works beside a running apply.",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, dir, err := runs.openReadOnly("status")
			if err != nil {
				return err
			}
			defer r.Close()
			s := report.NewStatus(r, dir, time.Now())
			if !r.Held() {
				s.Unheld(r)
				drift, err := r.Drift()
				if err != nil {
					return err
				}
				s.Drift(drift)
			}
			if state, err := runs.stateDir(); err == nil {
				if list, err := openBreakers(r.State(), r.Graph().Plan, state); err == nil {
					s.Breakers = list
				}
			}
			return show(c, s, s.WriteText)
		},
	}
	runs.addState(c)
	return c
}
