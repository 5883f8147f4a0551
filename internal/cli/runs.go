package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func newRuns() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "runs",
		Short: "List the runs that this machine knows of",
		Long: `runs lists the runs under build/ of the current folder and those that were begun or carried on
elsewhere on this machine, as the state directory remembers them: name, status, when something happened
last, cost and place. Runs whose folder is gone are left out.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list := []runLine{}
			for _, dir := range runs.places(true) {
				list = append(list, runs.line(dir))
			}
			slices.SortStableFunc(list, func(a, b runLine) int { return b.Updated.Compare(a.Updated) })
			return show(c, runList{list}, func(w io.Writer) error { return writeRuns(w, list) })
		},
	}
	runs.addState(c)
	c.AddCommand(newRunsPrune())
	return c
}

// line reads how the run in a directory stands.
func (f *runFlags) line(dir string) runLine {
	l := runLine{Dir: dir, Name: filepath.Base(dir)}
	r, _, err := run.OpenReadOnly(f.options(dir, "runs"))
	if err != nil {
		l.Problem = strings.SplitN(err.Error(), "\n", 2)[0]
		return l
	}
	defer r.Close()
	v, counts := r.State().Run(), report.NewCounts(r.State())
	l.Name, l.RunID, l.Status, l.Created, l.Updated = v.Name, v.ID, v.Status, v.Created, v.Updated
	l.CostUSD, l.Ended, l.Nodes = r.State().Spent().USD, counts.Ended(), counts.Nodes
	l.Stopped = (v.Status == machine.RunRunning || v.Status == machine.RunEnding) && !r.Held()
	return l
}

func writeRuns(out io.Writer, list []runLine) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "There is no run here, and none is remembered. Begin one: dagrun apply")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tstatus\tnodes\tlast event\tcost\tplace")
	for _, l := range list {
		if l.Problem != "" {
			fmt.Fprintf(w, "%s\tunreadable\t\t\t\t%s: %s\n",
				report.Plain(l.Name), report.Plain(l.Dir), report.Plain(l.Problem))
			continue
		}
		status := string(l.Status)
		if l.Stopped {
			status = "stopped"
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t$%s\t%s\n", report.Plain(l.Name), status, l.Ended, l.Nodes,
			report.Instant(l.Updated), l.CostUSD, report.Plain(l.Dir))
	}
	return w.Flush()
}
