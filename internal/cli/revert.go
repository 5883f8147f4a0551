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
	var specDir string
	c := &cobra.Command{
		Use:   "revert [--checkpoint] ID",
		Short: "Go back to a checkpoint",
		Long: `revert verifies a checkpoint, restores its artifacts and accumulators (after a backup of the present
ones) and sends back the nodes that have run since. What they have put beside the specification (publish) goes
back to what stood there then; a file that was new is removed, and one that somebody has changed since is left as
it is. Events, logs and costs stay. With --preview it shows what would become invalid, what redoing it costs and
what becomes of each file beside the specification, and changes nothing.`,
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
			p, warnings, err := revert(runs.options(dir, "revert"), id, specDir, preview || id == "")
			for _, w := range warnings {
				warn(c, w)
			}
			if err != nil {
				return err
			}
			return show(c, p, func(w io.Writer) error { return writeRevert(w, p, preview) })
		},
	}
	runs.add(c)
	addSpecDir(c, &specDir)
	c.Flags().StringVar(&id, "checkpoint", "", "id of the checkpoint, see dagrun checkpoints")
	c.Flags().BoolVar(&preview, "preview", false, "show what would happen, change nothing")
	return c
}

// revert goes back to a checkpoint, also when the log behind it is broken, or looks what that would do.
func revert(o run.Options, id, specDir string, look bool) (p *run.Preview, warnings []string, err error) {
	o.Salvage = !look
	open := run.Open
	if look {
		open = run.OpenReadOnly
	}
	r, rep, err := open(o)
	if rep != nil && !look {
		warnings = rep.Warnings
	}
	if err != nil {
		return nil, warnings, err
	}
	now := time.Now()
	if len(r.State().Published()) > 0 {
		if specDir, _, err = findOrigin(o.Dir, specDir); err == nil {
			err = r.Beside(now, specDir)
		}
	}
	if err == nil && look {
		p, err = r.PreviewRevert(id)
	} else if err == nil {
		p, err = r.Revert(now, id)
	}
	if err = errors.Join(err, r.Close()); err == nil && !look {
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
	var beside []string
	for _, f := range p.Published {
		then := f.Why
		switch {
		case f.Left:
			then = "left as it is: " + f.Why
		case then == "" && f.Previous == "":
			then = "removed, there was none then"
		case then == "":
			then = "restored"
		}
		beside = append(beside, report.Plain(f.Path+": "+then))
	}
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
		{"Beside the specification:", beside},
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
