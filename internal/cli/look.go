package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes/all"
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

// reading completes a command that only reads a run.
func (f *runFlags) reading(c *cobra.Command, do func(args []string, r *run.Run, dir string) error) {
	f.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return f.read(c, func(r *run.Run, dir string) error { return do(args, r, dir) })
	}
}

func makeReport(c *cobra.Command) {
	var runs runFlags
	var by string
	c.ValidArgs = []string{"cost", "quality", "budget", "errors"}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && !slices.Contains(c.ValidArgs, args[0]) {
			return unknownName("report", args[0], c.ValidArgs)
		}
		return words(0, 1)(c, args)
	}
	c.Flags().StringVar(&by, "by", "kind", "for cost: kind, group, node, or labels, separated by commas")
	runs.reading(c, func(args []string, r *run.Run, dir string) error {
		h, err := report.ReadHistory(runs.options(dir, c.Name()))
		if err != nil {
			return err
		}
		switch append(args, "cost")[0] {
		case "quality":
			return show(c, report.NewQuality(r.State(), h))
		case "budget":
			return show(c, report.NewBudget(r.State(), h))
		case "errors":
			return show(c, failures{append([]report.ErrorEntry{}, h.Errors...)})
		}
		now := time.Now()
		if !r.Held() { // what ran has run until the last event
			now = r.State().Run().Updated
		}
		costs, err := report.NewCosts(r.State(), h, by, now)
		if err != nil {
			return err
		}
		return showBy(c, costs, costs.WriteText)
	})
}

func makeLog(c *cobra.Command) {
	var runs runFlags
	var f report.LogFilter
	c.RunE = func(c *cobra.Command, _ []string) error {
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
	}
	runs.add(c)
	c.Flags().StringVar(&f.Node, "node", "", "only events of this node")
	c.Flags().StringSliceVar(&f.Types, "type", nil, "only events of these types, e.g. work_item_finished")
}

func makeCheckpoints(c *cobra.Command) {
	var runs runFlags
	runs.reading(c, func(_ []string, r *run.Run, dir string) error {
		h, err := report.ReadHistory(runs.options(dir, c.Name()))
		if err != nil {
			return err
		}
		list := []checkpoint{}
		for _, p := range r.Checkpoints() {
			k := checkpoint{CheckpointInfo: p, Quality: h.Checkpoints[p.ID], Path: p.Path, Valid: p.Valid == nil}
			if p.Valid != nil {
				k.Problem = p.Valid.Error()
			}
			list = append(list, k)
		}
		return show(c, checkpoints{list})
	})
}

func makeEscalations(c *cobra.Command) {
	var runs runFlags
	runs.reading(c, func(_ []string, r *run.Run, _ string) error {
		return show(c, questions{append([]machine.EscalationOpenedBody{}, r.State().Escalations()...)})
	})
}

func makeShow(c *cobra.Command) {
	var runs runFlags
	var attempt int
	c.Flags().IntVar(&attempt, "attempt", 0, "show this attempt (default: the last one)")
	runs.reading(c, func(args []string, r *run.Run, dir string) error {
		id, err := findNode(r, args[0])
		if err != nil {
			return err
		}
		kinds := all.Registry()
		viewer := report.Viewer{Does: kinds.Does, Hide: all.Hide,
			Resolve: func(with json.RawMessage, of dag.Scope) (json.RawMessage, error) {
				e, err := compile.NewEvaluator(r.Graph().Plan, kinds)
				if err != nil {
					return nil, err
				}
				return e.Resolve(with, of)
			}}
		if attempt < 0 || c.Flags().Changed("attempt") && attempt == 0 {
			return errors.New("--attempt: attempts count from 1")
		}
		v, err := report.NewNodeView(r, dir, id, attempt, time.Now(), viewer)
		if err != nil {
			return err
		}
		return show(c, v)
	})
}

// findNode returns the node that a name means.
func findNode(r *run.Run, name string) (string, error) {
	if _, ok := r.Graph().Index(name); ok {
		return name, nil
	}
	return "", unknownName("node", name, nodeNames(r.Graph()))
}

// lookEvery is how often logs -f and status --watch look for what is new.
const lookEvery = 200 * time.Millisecond

func makeLogs(c *cobra.Command) {
	var runs runFlags
	var follow bool
	var tail int
	c.RunE = func(c *cobra.Command, args []string) error {
		if tail < 0 {
			return errors.New("--tail must not be negative")
		}
		return runs.read(c, func(r *run.Run, dir string) error {
			p := report.NewPrinted(r, runs.options(dir, c.Name()), dir)
			p.Tail = tail
			if len(args) > 0 {
				id, err := findNode(r, args[0])
				if err != nil {
					return err
				}
				p.Node = id
			}
			return printLogs(c, r, p, follow)
		})
	}
	runs.add(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	c.Flags().IntVar(&tail, "tail", 0, "only the last lines of what each attempt that has ended printed (default: all)")
}

// attemptOf names the attempt that printed a line, as show does.
func attemptOf(l report.PrintedLine) string {
	if l.Generation > 1 {
		return fmt.Sprintf("generation %d, attempt %d", l.Generation, l.Attempt)
	}
	return fmt.Sprintf("attempt %d", l.Attempt)
}

// printLogs prints what the nodes of a run printed, and with follow what they print until the run ends.
func printLogs(c *cobra.Command, r *run.Run, p *report.Printed, follow bool) error {
	out := bufio.NewWriter(c.OutOrStdout())
	defer out.Flush()
	lines := 0
	var last report.PrintedLine
	p.Line = func(l report.PrintedLine) error {
		lines++
		if again := l.Generation != last.Generation || l.Attempt != last.Attempt; again && p.Node != "" && !asJSON(c) &&
			(lines > 1 || l.Attempt > 1 || l.Generation > 1) {
			fmt.Fprintf(out, "--- %s\n", attemptOf(l))
		}
		last = l
		switch {
		case asJSON(c):
			return writeJSON(out, l, "")
		case p.Node != "":
			_, err := fmt.Fprintln(out, l.Text)
			return err
		}
		_, err := fmt.Fprintf(out, "%s | %s\n", l.Node, l.Text)
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		held := r.Held() // before looking: what it recorded last is then seen
		fresh, err := p.Look()
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
		if !follow || !held && !fresh {
			break
		}
		select {
		case <-tick.C:
		case <-stop:
			return p.Close()
		}
	}
	if err := p.Close(); err != nil {
		return err
	}
	if lines == 0 && !asJSON(c) {
		fmt.Fprintln(c.ErrOrStderr(), "nothing was printed")
	}
	return nil
}
