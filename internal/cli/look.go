package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// The commands that only read a run. They work beside a running apply.

// read opens the run of a command that only reads.
func (f *runFlags) read(c *cobra.Command, do func(r *run.Run, dir string) error) error {
	dir, err := f.existing()
	if err != nil {
		return err
	}
	r, _, err := run.OpenReadOnly(f.options(dir, c.Name()))
	if err != nil {
		return err
	}
	defer r.Close()
	return do(r, dir)
}

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
			return runs.read(c, func(r *run.Run, dir string) error {
				h, err := report.ReadHistory(runs.options(dir, c.Name()))
				if err != nil {
					return err
				}
				switch append(args, "cost")[0] {
				case "quality":
					q := report.NewQuality(r.State(), h)
					return show(c, q, q.WriteText)
				case "budget":
					b := report.NewBudget(r.State(), h)
					return show(c, b, b.WriteText)
				case "errors":
					list := append([]report.ErrorEntry{}, h.Errors...)
					return show(c, failures{list}, func(w io.Writer) error { return report.WriteErrors(w, list) })
				}
				now := time.Now()
				if !r.Held() { // what ran has run until the last event
					now = r.State().Run().Updated
				}
				costs, err := report.NewCosts(r.State(), h, by, now)
				if err != nil {
					return err
				}
				return show(c, costs, costs.WriteText)
			})
		},
	}
	runs.add(c)
	c.Flags().StringVar(&by, "by", "kind", "for cost: kind, group, node, or labels, separated by commas")
	return c
}

func newLog() *cobra.Command {
	var runs runFlags
	var f report.LogFilter
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the events of the run",
		Long: `log prints the event log of a run, checked against its hash chain, one line for each event. With
--json it prints the lines as they are on disk, behind their kind. It works beside a running apply.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			var known []string
			for _, t := range machine.Types() {
				known = append(known, string(t))
			}
			for i, t := range f.Types {
				if f.Types[i] = strings.ToUpper(t); !slices.Contains(known, f.Types[i]) {
					return unknownName("type of event", t, known)
				}
			}
			var ids []string
			err = runs.read(c, func(r *run.Run, _ string) error {
				ids = nodeNames(r.Graph())
				return nil
			})
			if _, gone := os.Stat(filepath.Join(dir, run.Dir, "events.ndjson")); gone != nil {
				return err // a log that is damaged is shown as far as it goes
			}
			f.JSON = asJSON(c)
			n, err := report.WriteLog(c.OutOrStdout(), dir, f)
			if err == nil && n == 0 && f.Node != "" && !slices.Contains(ids, f.Node) {
				return unknownName("node", f.Node, ids)
			}
			return err
		},
	}
	runs.add(c)
	c.Flags().StringVar(&f.Node, "node", "", "only events of this node")
	c.Flags().StringSliceVar(&f.Types, "type", nil, "only events of these types, e.g. work_item_finished")
	return c
}

func newCheckpoints() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "checkpoints",
		Short: "List the checkpoints of the run",
		Long: "checkpoints lists the checkpoints of a run, oldest first, each verified against its hashes, with how far and how\n" +
			"good the run was then.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runs.read(c, func(r *run.Run, dir string) error {
				found, err := r.Checkpoints()
				if err != nil {
					return err
				}
				h, err := report.ReadHistory(runs.options(dir, c.Name()))
				if err != nil {
					return err
				}
				list := []checkpoint{}
				for _, p := range found {
					k := checkpoint{CheckpointInfo: p, Quality: h.Checkpoints[p.ID], Path: p.Path, Valid: p.Valid == nil}
					if p.Valid != nil {
						k.Problem = p.Valid.Error()
					}
					list = append(list, k)
				}
				return show(c, checkpoints{list}, func(w io.Writer) error { return writeCheckpoints(w, list) })
			})
		},
	}
	runs.add(c)
	return c
}

func writeCheckpoints(out io.Writer, list []checkpoint) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "The run has no checkpoint yet.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "checkpoint\tmade\tdone\tfailed\tspent\tfiles\tstate\tquality")
	for _, p := range list {
		state := "valid"
		if !p.Valid {
			state = "DAMAGED: " + report.Plain(p.Problem)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t$%s\t%d\t%s\t%s\n", p.ID, report.Instant(p.CreatedAt), p.Quality.Progress,
			p.Quality.Failed, p.Quality.CostUSD, len(p.Files), state, report.Plain(p.Quality.Text()))
	}
	return w.Flush()
}

func newEscalations() *cobra.Command {
	var runs runFlags
	c := &cobra.Command{
		Use:   "escalations",
		Short: "List the open questions of the run",
		Long:  "escalations lists the questions that wait for an answer. Answer one with: dagrun respond ID ANSWER",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runs.read(c, func(r *run.Run, _ string) error {
				open := append([]machine.EscalationOpenedBody{}, r.State().Escalations()...)
				return show(c, questions{open}, func(w io.Writer) error { return report.WriteQuestions(w, open) })
			})
		},
	}
	runs.add(c)
	return c
}
