package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func makeResume(c *cobra.Command) {
	var runs runFlags
	var h hostFlags
	var again, salvage bool
	var specDir string
	var limits limitFlags
	var part partFlags
	var without []string
	var all bool
	c.RunE = func(c *cobra.Command, _ []string) error {
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
		s.warnEdited()
		return s.carryOn(r)
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
}

// warnEdited warns where the specification has been edited since the run took it up.
func (s *session) warnEdited() {
	if o, err := readOrigin(s.dir); err == nil {
		if file := o.edited(s.specDir); file != "" {
			s.warn(fmt.Sprintf("%s was edited after the run had taken it up, and resume goes on with the plan that it has: "+
				"dagrun apply takes the edit up", fromHere(filepath.Join(s.specDir, file))))
		}
	}
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
	v := r.State().Run()
	failed := v.Status == machine.RunBroken && !again
	done := v.Status == machine.RunDone && len(part.Rerun) == 0 ||
		v.Status == machine.RunPause && v.Pause.Reason == machine.PausePart && len(r.State().LeftOut()) > 0 &&
			!part.chosen(r.State()) && len(without) == 0
	switch {
	case (done || failed) && len(r.State().Notices()) > 0:
		return nil // who was not told of its end is
	case done:
		s.rest(r)
		return s.end(report.NewStatus(r, s.dir, now), nil)
	case r.Graph().Plan.Outdated():
		return errOutdated(s.dir)
	case failed:
		s.rest(r)
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

// limitFlags are new limits for a run that goes on under the plan it has.
type limitFlags struct {
	flags               func(name string) bool // was it given
	capUSD, warnUSD     float64
	capTokens, warnToks int64
	failures            int64
	wall, wait          time.Duration
}

func (f *limitFlags) add(c *cobra.Command) {
	f.flags = c.Flags().Changed
	c.Flags().Float64Var(&f.capUSD, "cap-usd", 0, "new cap of the budget in US dollars")
	c.Flags().Float64Var(&f.warnUSD, "warn-usd", 0, "new warning threshold of the budget in US dollars")
	c.Flags().Int64Var(&f.capTokens, "cap-tokens", 0, "new cap of the budget in tokens")
	c.Flags().Int64Var(&f.warnToks, "warn-tokens", 0, "new warning threshold of the budget in tokens")
	c.Flags().Int64Var(&f.failures, "failures", 0, "new limit of the nodes that may fail without holding the run")
	c.Flags().DurationVar(&f.wait, "longest-wait", 0, "new longest wait for a service before the run pauses instead")
	c.Flags().DurationVar(&f.wall, "wall", 0, "new limit of the active time of the run, pauses not counted")
}

// change puts the limits that were given into a budget. A warning that stands at the usual share of
// the cap moves with the cap.
func (f *limitFlags) change(b *dag.Budget) error {
	was := *b
	for _, l := range []struct {
		flag string
		v    float64
		to   *dag.USD
	}{{"cap-usd", f.capUSD, &b.CapUSD}, {"warn-usd", f.warnUSD, &b.WarnUSD}} {
		if !f.flags(l.flag) {
			continue
		}
		usd, err := dag.Dollars(l.v)
		if err == nil && usd <= 0 {
			err = errors.New("must be above 0")
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", l.flag, err)
		}
		*l.to = usd
	}
	for _, l := range []struct {
		flag string
		v    int64
		to   *int64
	}{
		{"cap-tokens", f.capTokens, &b.CapTokens}, {"warn-tokens", f.warnToks, &b.WarnTok},
		{"failures", f.failures, &b.Failures},
		{"wall", int64(f.wall), (*int64)(&b.Wall)}, {"longest-wait", int64(f.wait), (*int64)(&b.LongestWait)},
	} {
		if !f.flags(l.flag) {
			continue
		}
		if l.v <= 0 {
			return fmt.Errorf("--%s: must be above 0", l.flag)
		}
		*l.to = l.v
	}
	if !f.flags("warn-usd") && was.WarnUSD == usualWarning(was.CapUSD) {
		b.WarnUSD = usualWarning(b.CapUSD)
	}
	if b.CapUSD > 0 && b.WarnUSD > b.CapUSD || b.CapTokens > 0 && b.WarnTok > b.CapTokens {
		return errors.New("the warning threshold is above the cap: change both")
	}
	return nil
}

// usualWarning is the threshold where nobody has named one: 80 % of the cap.
func usualWarning(limit dag.USD) dag.USD { return limit * 8 / 10 }
