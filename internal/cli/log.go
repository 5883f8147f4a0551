package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func newLog() *cobra.Command {
	var runs runFlags
	var node string
	var types []string
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the events of the run",
		Long: `log prints the event log of a run, checked against its hash chain, one line for each event. With
--json it prints the lines as they are on disk. It works beside a running apply.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			if err := checkFilter(&runs, types); err != nil {
				return err
			}
			out := &counter{w: c.OutOrStdout()}
			err = report.WriteLog(out, dir, report.LogFilter{Node: node, Types: types, JSON: asJSON(c)})
			if err == nil && out.n == 0 {
				err = knownNode(&runs, node)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().StringVar(&node, "node", "", "only events of this node")
	c.Flags().StringSliceVar(&types, "type", nil, "only events of these types, e.g. work_item_finished")
	return c
}

// A counter counts what is written.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}

// checkFilter refuses types that no event has, and a run whose log is gone. A log that is damaged is
// shown as far as it goes.
func checkFilter(runs *runFlags, types []string) error {
	var known []string
	for _, t := range machine.Types() {
		known = append(known, string(t))
	}
	for i, t := range types {
		types[i] = strings.ToUpper(t)
		if !slices.Contains(known, types[i]) {
			return unknownName("type of event", t, known)
		}
	}
	r, dir, err := runs.openReadOnly("log")
	if err != nil {
		if _, gone := os.Stat(filepath.Join(dir, run.Dir, "events.ndjson")); gone != nil {
			return err
		}
		return nil
	}
	return r.Close()
}

// knownNode refuses a node of which there is no event and that is not in the plan either.
func knownNode(runs *runFlags, node string) error {
	r, _, err := runs.openReadOnly("log")
	if err != nil {
		return err
	}
	defer r.Close()
	if _, ok := r.State().NodeByID(node); ok || node == "" {
		return nil
	}
	var ids []string
	for i := range int32(r.Graph().Len()) {
		ids = append(ids, r.Graph().Node(i).ID)
	}
	return unknownName("node", node, ids)
}
