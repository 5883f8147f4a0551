package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

func newCancel() *cobra.Command {
	var runs runFlags
	var h hostFlags
	var reason string
	c := &cobra.Command{
		Use:   "cancel",
		Short: "End the run for good",
		Long: `cancel stops what runs, lets the clean-up nodes (always) run and ends the run as failed. It reaches a
running apply; when none runs, it carries that out itself. To pause a run that is to go on later, interrupt
apply instead.

` + hostHelp,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			s := &session{cmd: c, name: "cancel", runs: &runs, host: &h, dir: dir, kinds: nodes.NewRegistry(all.Kinds()...)}
			r, rep, err := run.Open(s.options())
			if asked, err := askHolder(err, dir, executor.Request{Cancel: true, Reason: reason}); asked || err != nil {
				return errors.Join(err, tellDone(c, &runs, err, "Cancelled: the running process stops what runs and cleans up"))
			}
			s.warn(rep)
			return s.cancel(r, reason)
		},
	}
	runs.addState(c)
	h.add(c)
	c.Flags().StringVar(&reason, "reason", "cancelled by the user", "why, for the record")
	return c
}

// cancel ends a run that no other process holds.
func (s *session) cancel(r *run.Run, reason string) error {
	switch r.State().Run().Status {
	case machine.RunDone, machine.RunBroken:
		return errors.Join(fmt.Errorf("the run in %s has ended already (%s); to begin anew: dagrun apply --fresh", s.dir, r.State().Run().Status), r.Close())
	}
	origin, err := readOrigin(s.dir)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	s.specDir = origin.Dir
	now := time.Now()
	if err := r.Resume(now, s.name, executor.Adopt(r, s.kinds, s.evaluator, secret, now)); err != nil {
		return errors.Join(err, r.Close())
	}
	if err := executor.Cancel(r, now, reason); err != nil {
		return errors.Join(err, r.Close())
	}
	err = s.carryOn(r)
	var status *statusError
	if errors.As(err, &status) && status.status == exitBad && status.err == nil {
		return nil // it has failed, as it was told to
	}
	return err
}
