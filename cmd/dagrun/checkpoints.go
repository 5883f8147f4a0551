package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newCheckpoints() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "checkpoints",
		Short: "List the checkpoints of the run",
		Long:  "checkpoints lists the checkpoints of a run, oldest first, each verified against its hashes.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := runs.openReadOnly("checkpoints")
			if err != nil {
				return err
			}
			defer r.Close()
			list, err := r.Checkpoints()
			if err != nil {
				return err
			}
			if runs.json {
				return printJSON(c.OutOrStdout(), list)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, p := range list {
				valid := "valid"
				if p.Valid != nil {
					valid = p.Valid.Error()
				}
				fmt.Fprintf(w, "%s\t%s\tevent %d\t%d completed\t$%s\t%d files\t%s\n",
					p.ID, p.CreatedAt.Format("2006-01-02 15:04:05Z07:00"), p.Head, p.Completed, p.CostUSD, len(p.Files), valid)
			}
			return w.Flush()
		},
	}
	runs.add(c)
	return c
}
