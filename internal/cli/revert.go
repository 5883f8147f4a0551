package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

func makeRevert(c *cobra.Command) {
	var runs runFlags
	var id string
	var preview bool
	var specDir string
	c.Args = words(0, 1)
	c.RunE = func(c *cobra.Command, args []string) error {
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
		return show(c, reverted{p, preview})
	}
	runs.add(c)
	addSpecDir(c, &specDir)
	c.Flags().StringVar(&id, "checkpoint", "", "id of the checkpoint, see dagrun checkpoints")
	c.Flags().BoolVar(&preview, "preview", false, "show what would happen, change nothing")
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

// Ran are the nodes that run again.
func (p reverted) Ran() []string {
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(id string) bool { return slices.Contains(p.Skipped, id) })
}

// mostNames is how many names of a list are printed, one a line; --json has them all.
const mostNames = 20

// A nameList is names with a title.
type nameList struct {
	Title string
	Names []string
}

// Lists are the nodes and files that it is about, for people.
func (p reverted) Lists() (lists []nameList) {
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
		beside = append(beside, f.Path+": "+then)
	}
	for _, list := range []nameList{
		{"", p.Ran()},
		{"Never ran, decided again:", p.Skipped},
		{"Restored:", p.Files},
		{"Beside the specification:", beside},
		{"Not undone: effects outside the run of", p.Once},
	} {
		if more := len(list.Names) - mostNames; more > 0 {
			list.Names = append(list.Names[:mostNames:mostNames], fmt.Sprintf("and %d more", more))
		}
		if len(list.Names) > 0 {
			lists = append(lists, list)
		}
	}
	return lists
}
