package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func newCheckpoints() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "checkpoints",
		Short: "List the checkpoints of the run",
		Long:  "checkpoints lists the checkpoints of a run, oldest first, each verified against its hashes.",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := runs.openReadOnly("checkpoints")
			if err != nil {
				return err
			}
			defer r.Close()
			found, err := r.Checkpoints()
			if err != nil {
				return err
			}
			list := []checkpoint{}
			for _, p := range found {
				k := checkpoint{CheckpointInfo: p, Path: p.Path, Valid: p.Valid == nil}
				if p.Valid != nil {
					k.Problem = p.Valid.Error()
				}
				list = append(list, k)
			}
			return show(c, list, func(w io.Writer) error { return writeCheckpoints(w, list) })
		},
	}
	runs.add(c)
	return c
}

// A checkpoint is a line of the list: its manifest and what became of it.
type checkpoint struct {
	run.CheckpointInfo
	Path    string `json:"path"` // relative to the output directory
	Valid   bool   `json:"valid"`
	Problem string `json:"problem,omitempty"`
}

func writeCheckpoints(out io.Writer, list []checkpoint) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "The run has no checkpoint yet.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "checkpoint\tmade\tevent\tcompleted\tfailed\tspent\tfiles\tstate")
	for _, p := range list {
		state := "valid"
		if !p.Valid {
			state = "UNUSABLE: " + report.Plain(p.Problem)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t$%s\t%d\t%s\n", p.ID, report.Instant(p.CreatedAt), p.Head, p.Completed, p.Failed, p.CostUSD, len(p.Files), state)
	}
	return w.Flush()
}
