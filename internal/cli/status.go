package cli

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func makeStatus(c *cobra.Command) {
	var runs runFlags
	var watch bool
	c.RunE = func(c *cobra.Command, _ []string) error {
		if watch {
			return runs.watchStatus(c)
		}
		return runs.read(c, func(r *run.Run, dir string) error {
			s, err := runs.statusOf(r, dir)
			if err != nil {
				return err
			}
			return show(c, s)
		})
	}
	runs.addState(c)
	c.Flags().BoolVar(&watch, "watch", false, "show it again whenever it changes, until the run ends")
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

// watchStatus shows how a run stands whenever it has changed, until no process carries it on: on a terminal in place,
// and whole in the end, elsewhere as a line for each change.
func (f *runFlags) watchStatus(c *cobra.Command) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	screen := newScreen(c.OutOrStdout())
	var view atomic.Pointer[report.Status]
	show := func(s *report.Status) error { return showLine(c, s) }
	if !asJSON(c) && screen.draws() {
		show = func(*report.Status) error { screen.redraw(); return nil }
		hide := screen.show(func(columns, rows int) []string {
			if s := view.Load(); s != nil {
				return s.Later(time.Now()).Whole(columns, rows)
			}
			return nil
		})
		defer func() {
			if hide(); view.Load() != nil {
				_ = writeView(screen, view.Load(), "status")
			}
		}()
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
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
			view.Store(s)
			return show(s)
		})
		if err != nil || !held {
			return err
		}
		for next := time.After(max(lookEvery, 10*time.Since(began))); next != nil; { // of a large run less often
			select {
			case <-second.C:
				screen.redraw()
			case <-next:
				next = nil
			case <-stop:
				return nil
			}
		}
	}
}

// showLine prints a status as a line, or as JSON.
func showLine(c *cobra.Command, s *report.Status) error {
	out := c.OutOrStdout()
	if asJSON(c) {
		return writeJSON(out, s, "")
	}
	line := fmt.Sprintf("%s  %s  %d/%d nodes, %s, $%s", s.Updated.Local().Format(time.TimeOnly), s.Headline(),
		s.Ended(), s.Nodes, s.Counts, s.CostUSD)
	if s.ETA != nil {
		line += ", " + s.Remaining() + " left"
	}
	_, err := fmt.Fprintln(out, report.Plain(line))
	return err
}
