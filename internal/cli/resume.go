package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func newResume() *cobra.Command {
	var runs runFlags
	var h hostFlags
	var again, salvage bool
	var specDir string
	var limits limitFlags
	var part partFlags
	var without []string
	var all bool
	c := &cobra.Command{
		Use:   "resume",
		Short: "Resume a run under the plan it has",
		Long: `resume continues a run where it was stopped, under the plan that it adopted last, whatever the
specification says now; only limits and the part that runs can be changed. To resume under a changed specification, use
apply.

Where the log is damaged, resume and apply ask at a terminal from where to go on: the events before the damage, a
checkpoint before it, or anew. Elsewhere the error says what to type.

` + partHelp + ` --all ends it.

` + hostHelp + `

` + exitHelp,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := newSession(c, &runs, &h)
			if err == nil {
				err = s.findOrigin(specDir)
			}
			if err != nil {
				return err
			}
			r, rep, err := s.open(salvage)
			if err != nil {
				return err
			}
			if salvage && rep.Dropped == nil { // whoever repeats it after a crash has not been told yet what it may cost
				err := errors.New("the log is not damaged, there is nothing to salvage. " +
					"Ready to resume: dagrun resume --output-dir " + s.dir)
				return errors.Join(err, r.Close())
			}
			if err := s.ready(r, again, all, &limits, &part, without); err != nil || s.nothing {
				return errors.Join(err, r.Close())
			}
			return s.carryOn(r)
		},
	}
	runs.addState(c)
	h.add(c)
	c.Flags().BoolVar(&again, "again", false, "resume a run that has failed for good or was cancelled")
	c.Flags().BoolVar(&salvage, "salvage", false, "resume from the events before a damage of the log, at once unless "+
		"what followed may have been paid for or had effects; the damaged log is kept under archives")
	addSpecDir(c, &specDir)
	limits.add(c)
	part.add(c)
	c.Flags().BoolVar(&all, "all", false, "go on with all nodes of a run of which a part was selected")
	c.Flags().StringArrayVar(&without, "without", nil, "skip a node that has not ended (may be repeated)")
	return c
}

// ready makes a run that exists go on under its own plan.
func (s *session) ready(
	r *run.Run, again, all bool, limits *limitFlags, part *partFlags, without []string,
) error {
	if all && !part.All() {
		return errors.New("--all goes on with everything: leave out --only, --from and --until")
	}
	d, err := r.CompareOwn()
	if err == nil {
		err = part.check(d.Graph)
	}
	if err == nil {
		if part.All() && !all {
			part.Selection = r.State().Run().Part
		}
		err = part.Take(r.State(), d)
	}
	if err != nil {
		return err
	}
	budget := r.State().Ledger().Budget
	was := budget
	if err := limits.change(&budget); err != nil {
		return err
	}
	if _, err := withoutBodies(r.State(), without); err != nil { // before anything is recorded
		return err
	}
	now := time.Now()
	switch v := r.State().Run(); {
	case v.Status == machine.RunDone && len(part.Rerun) == 0,
		v.Status == machine.RunPause && v.Pause.Reason == machine.PausePart && len(r.State().LeftOut()) > 0 &&
			!part.chosen(r.State()) && len(without) == 0:
		s.rest(r)
		return s.end(report.NewStatus(r, s.dir, now), nil)
	case r.Graph().Plan.Outdated():
		return errOutdated(s.dir)
	case v.Status == machine.RunBroken && !again:
		return errFailed(s.dir, v.Failed)
	}
	if err := s.lookAhead(d, s.specDir); err != nil {
		return err
	}
	bodies := r.Selects(&machine.PartSelectedBody{Part: part.Selection, Rerun: part.Rerun, By: "resume"})
	if budget != was {
		bodies = append(bodies, &machine.LimitsChangedBody{Budget: budget, By: "resume"})
	}
	for _, b := range bodies {
		if err := r.RecordDurable(now, b); err != nil {
			return err
		}
	}
	if err := s.resume(r, now); err != nil {
		return err
	}
	bodies, err = withoutBodies(r.State(), without)
	if err != nil || len(bodies) == 0 {
		return err
	}
	return r.RecordDurable(now, bodies...)
}

func errOutdated(dir string) error {
	return fmt.Errorf("the run in %s has a plan of an earlier version of dagrun, in which scripts were templates and "+
		"shells went on after a command that failed; it would not be carried out as it was meant. To go on under the "+
		"specification as it is now: dagrun apply; to start over: dagrun apply --fresh", dir)
}

func errFailed(dir, why string) error {
	return fmt.Errorf("the run in %s has failed: %s; resume it anyway with --again, or start over: dagrun apply --fresh",
		dir, why)
}
