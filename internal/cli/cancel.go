package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

func newCancel() *cobra.Command {
	var runs runFlags
	var h hostFlags
	var reason, specDir string
	var undo bool
	c := &cobra.Command{
		Use:   "cancel",
		Short: "End the run for good",
		Long: `cancel stops what runs, lets the clean-up nodes (always) run and ends the run as failed. It reaches a
running apply; when none runs, it does that itself. To pause a run and resume it later, interrupt
apply instead.

With --undo it first undoes what the run has done: the undo action (compensate) of each node that has completed
runs, the last node to complete first. Of a node that must not be repeated and was cut off you are asked whether it
took effect. A run that has failed, or was cancelled without --undo, can be undone as well.

` + hostHelp,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := newSession(c, &runs, &h)
			if err != nil {
				return err
			}
			request := executor.Request{Cancel: true, Undo: undo, Reason: reason}
			r, err := openOrAsk(s.dir, request, func() (*run.Run, *run.Report, error) { return s.open(false) })
			if r == nil {
				text := "Asked the running process to cancel: it stops its nodes" + andUndoes(undo) + ", cleans up and ends; " +
					"watch with: dagrun status --watch --output-dir " + s.dir
				return errors.Join(err, done(c, err, text))
			}
			return s.cancel(r, reason, specDir, undo)
		},
	}
	runs.addState(c)
	h.add(c)
	addSpecDir(c, &specDir)
	c.Flags().StringVar(&reason, "reason", "cancelled by the user", "the reason to record")
	c.Flags().BoolVar(&undo, "undo", false, "undo what the run has done before it ends")
	c.Example = `  dagrun cancel
  dagrun cancel --undo --reason "wrong version" --output-dir build/deploy`
	return c
}

func andUndoes(undo bool) string {
	if undo {
		return ", undoes what it has done"
	}
	return ""
}

// cancel ends a run that no other process holds.
func (s *session) cancel(r *run.Run, reason, specDir string, undo bool) error {
	if status := r.State().Run().Status; status == machine.RunDone || status == machine.RunBroken && !undo {
		err := fmt.Errorf("the run in %s has already ended (%s); to start over: dagrun apply --fresh", s.dir, status)
		return errors.Join(err, r.Close())
	}
	if r.Graph().Plan.Outdated() { // clean-up would run
		return errors.Join(errOutdated(s.dir), r.Close())
	}
	now := time.Now()
	err := s.findOrigin(specDir)
	if err == nil { // in this order what has failed stays failed, for the clean-up to see
		err = s.resume(r, now, &machine.RunPausedBody{Reason: machine.PauseCancel, Message: reason, Undo: undo})
	}
	if err != nil {
		return errors.Join(err, r.Close())
	}
	err = s.carryOn(r)
	if errors.Is(err, exit(exitBad)) {
		return nil // it has failed, as was asked
	}
	return err
}
