package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func newStatus() *cobra.Command {
	var runs runFlags
	var watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how the run stands",
		Long: `status reads the run and shows how far it is, what it cost, what waits and why, and what to do next.
It works beside a running apply. With --watch it is shown again whenever it has changed, until no process
carries the run on: on a terminal in place, elsewhere one line for each change.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if watch {
				return runs.watchStatus(c)
			}
			return runs.read(c, func(r *run.Run, dir string) error {
				s, err := runs.statusOf(r, dir)
				if err != nil {
					return err
				}
				return show(c, s, s.WriteText)
			})
		},
	}
	runs.addState(c)
	c.Flags().BoolVar(&watch, "watch", false, "show it again whenever it changes, until the run ends")
	return c
}

// statusOf is how a run stands now.
func (f *runFlags) statusOf(r *run.Run, dir string) (*report.Status, error) {
	s := report.NewStatus(r, dir, time.Now())
	if !r.Held() {
		s.Unheld(r)
		drift, err := r.Drift()
		if err != nil {
			return nil, err
		}
		s.Drift(drift)
	}
	if state, err := f.stateDir(); err == nil { // what earlier runs left of breakers is not of this run
		if list, err := openBreakers(r.State(), r.Graph().Plan, state); err == nil {
			s.Breakers = list
		}
	}
	return s, nil
}

// watchStatus shows how a run stands whenever it has changed, until no process carries it on.
func (f *runFlags) watchStatus(c *cobra.Command) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	for last := int64(-1); ; {
		held, began := false, time.Now()
		err := f.read(c, func(r *run.Run, dir string) error {
			held = r.Held()
			if r.Head().Seq == last && held {
				return nil
			}
			last = r.Head().Seq
			s, err := f.statusOf(r, dir)
			if err != nil {
				return err
			}
			return showAgain(c, s)
		})
		if err != nil || !held {
			return err
		}
		select {
		case <-time.After(max(lookEvery, 10*time.Since(began))): // of a large run less often
		case <-stop:
			return nil
		}
	}
}

// showAgain prints a status in the place of the one before, or as a line behind it.
func showAgain(c *cobra.Command, s *report.Status) error {
	out := c.OutOrStdout()
	switch {
	case asJSON(c):
		return writeJSON(out, s, "")
	case isTerminal(out):
		var text bytes.Buffer
		if err := s.WriteText(&text); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "\x1b[H\x1b[2J%s", text.Bytes()) // home, clear
		return err
	}
	line := fmt.Sprintf("%s  %s  %d/%d nodes, %s, $%s", s.Updated.Local().Format(time.TimeOnly), s.Headline(),
		s.Ended(), s.Nodes, s.Counts, s.CostUSD)
	if s.ETA != nil {
		line += ", " + s.Remaining() + " left"
	}
	_, err := fmt.Fprintln(out, report.Plain(line))
	return err
}
