package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

func newRevert() *cobra.Command {
	var runs runFlags
	var id string
	var preview bool
	c := &cobra.Command{
		Use:   "revert [--checkpoint] ID",
		Short: "Go back to a checkpoint",
		Long: `revert verifies a checkpoint, restores its artifacts and accumulators (after a backup of the present
ones) and sends back the nodes that have run since. Events, logs and costs stay. With --preview it shows
what would become invalid and what redoing it costs, and changes nothing.`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && id == "":
				id = args[0]
			case len(args) == 1 && id != args[0]:
				return usageError(c, "two checkpoints given: %s and %s", id, args[0])
			}
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			var p *run.Preview
			if preview || id == "" { // no checkpoint has that name, and the preview says which there are
				r, _, err := run.OpenReadOnly(runs.options(dir, "revert"))
				if err != nil {
					return err
				}
				defer r.Close()
				if p, err = r.PreviewRevert(id); err != nil {
					return err
				}
			} else {
				var warnings []string
				p, warnings, err = revert(runs.options(dir, "revert"), id)
				for _, w := range warnings {
					warn(c, w)
				}
				if err != nil {
					return err
				}
			}
			return show(c, p, func(w io.Writer) error { return writeRevert(w, p, preview) })
		},
	}
	runs.add(c)
	c.Flags().StringVar(&id, "checkpoint", "", "id of the checkpoint, see dagrun checkpoints")
	c.Flags().BoolVar(&preview, "preview", false, "show what would happen, change nothing")
	return c
}

// revert goes back to a checkpoint, also when the log behind it is broken.
func revert(o run.Options, id string) (p *run.Preview, warnings []string, err error) {
	o.Salvage = true
	r, rep, err := run.Open(o)
	if rep != nil {
		warnings = rep.Warnings
	}
	if err != nil {
		return nil, warnings, err
	}
	p, err = r.Revert(time.Now(), id)
	if err = errors.Join(err, r.Close()); err == nil {
		_ = runlog.Update(o) // the next start does it otherwise
	}
	return p, warnings, err
}

// mostNames is how many names of a list are printed, one a line; --json has them all.
const mostNames = 20

func writeRevert(w io.Writer, p *run.Preview, preview bool) error {
	verb := "Reverted to"
	if preview {
		verb = "Would revert to"
	}
	var b strings.Builder
	skipped := map[string]bool{}
	for _, id := range p.Skipped {
		skipped[id] = true
	}
	ran := slices.DeleteFunc(slices.Clone(p.Nodes), func(id string) bool { return skipped[id] })
	fmt.Fprintf(&b, "%s %s of %s\n", verb, p.Checkpoint.ID, report.Instant(p.Checkpoint.CreatedAt))
	if len(ran) == 0 {
		b.WriteString("No node runs again.\n")
	} else {
		took := report.Duration(max(p.RedoSeconds, 0.001))
		fmt.Fprintf(&b, "To run again: %s, which took %s and cost $%s\n", report.Count(len(ran), "node"), took, p.RedoUSD)
	}
	for _, list := range []struct {
		title string
		names []string
	}{
		{"", ran},
		{"Never ran, decided again:", p.Skipped},
		{"Restored:", p.Files},
		{"Not undone: effects outside the run of", p.Once},
	} {
		if list.title != "" && len(list.names) > 0 {
			fmt.Fprintln(&b, list.title)
		}
		for _, name := range list.names[:min(len(list.names), mostNames)] {
			fmt.Fprintf(&b, "  %s\n", name)
		}
		if more := len(list.names) - mostNames; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
