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
	c := &cobra.Command{
		Use:   "cancel",
		Short: "End the run for good",
		Long: `cancel stops what runs, lets the clean-up nodes (always) run and ends the run as failed. It reaches a
running apply; when none runs, it does that itself. To pause a run and resume it later, interrupt
apply instead.

` + hostHelp,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := newSession(c, &runs, &h)
			if err != nil {
				return err
			}
			r, _, err := s.open(false)
			if asked, err := askHolder(err, s.dir, executor.Request{Cancel: true, Reason: reason}); asked || err != nil {
				text := "Asked the running process to cancel: it stops its nodes, cleans up and ends; " +
					"watch with: dagrun status --watch --output-dir " + s.dir
				return errors.Join(err, done(c, err, text))
			}
			return s.cancel(r, reason, specDir)
		},
	}
	runs.addState(c)
	h.add(c)
	addSpecDir(c, &specDir)
	c.Flags().StringVar(&reason, "reason", "cancelled by the user", "the reason to record")
	return c
}

// cancel ends a run that no other process holds.
func (s *session) cancel(r *run.Run, reason, specDir string) error {
	if status := r.State().Run().Status; status == machine.RunDone || status == machine.RunBroken {
		err := fmt.Errorf("the run in %s has already ended (%s); to start over: dagrun apply --fresh", s.dir, status)
		return errors.Join(err, r.Close())
	}
	if r.Graph().Plan.Outdated() { // clean-up would run
		return errors.Join(errOutdated(s.dir), r.Close())
	}
	now := time.Now()
	err := s.findOrigin(specDir)
	if err == nil {
		err = s.resume(r, now)
	}
	if err == nil {
		err = executor.Cancel(r, now, reason)
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
