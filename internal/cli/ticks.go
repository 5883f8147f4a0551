package cli

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// tickFlags say how many ticks a command carries out.
type tickFlags struct {
	steps int
	time  time.Duration
}

func (f *tickFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.steps, "steps", 1, "where the work never ends: carry out up to so many ticks")
	c.Flags().DurationVar(&f.time, "for", 0, "where the work never ends: begin ticks for so long")
}

func (f *tickFlags) valid(c *cobra.Command, p *dag.Plan, saved bool) error {
	steps, long := c.Flags().Changed("steps"), c.Flags().Changed("for")
	switch {
	case p.Ticks == nil && (steps || long):
		return errors.New("--steps and --for count ticks, and the specification has none: `dagrun explain pipeline.ticks`")
	case saved && (steps || long):
		return errors.New("a saved plan is for one tick: leave out --steps and --for")
	case f.steps < 1 || long && f.time <= 0:
		return errors.New("--steps and --for want more than 0")
	case long && !steps:
		f.steps = 0
	}
	return nil
}

// tickByTick carries out one tick after the other, each with the specification as it is then. The status is that of the
// last one; where that is 0, that of one which failed.
func (s *session) tickByTick(res *compile.Result, f tickFlags, one func(*session, *compile.Result) error,
	again func() (*compile.Result, error),
) error {
	begun := time.Now()
	var failed error
	inARow := 0
	for n := 1; ; n++ {
		t := *s
		err := one(&t, res)
		if inARow++; err == nil {
			inARow = 0
		} else {
			failed = err
		}
		more := t.stood != nil && moreFollow(t.stood.Status, t.stood.State, res.Plan.Ticks) && n != f.steps
		if more && f.time > 0 && inARow > 0 { // nothing else bounds how many ticks fail, and what they cost
			time.Sleep(min(backOff(inARow), f.time-time.Since(begun)))
		}
		if !more || f.time > 0 && time.Since(begun) >= f.time {
			return cmp.Or(err, failed)
		}
		if res, err = again(); err != nil {
			return err
		}
	}
}

// moreFollow reports whether another tick may have something to do at once. A specification that was edited meanwhile
// may have none any more.
func moreFollow(status machine.RunStatus, state string, t *dag.Ticks) bool {
	return t != nil && (status == machine.RunBroken || status == machine.RunDone && state != t.Idle)
}

// backOff is how long it waits after so many failures, one after the other.
func backOff(failed int) time.Duration { return min(time.Second<<min(failed-1, 20), 5*time.Minute) }

// leftToday is what the ticks of this day may still spend; 0: there is no limit. Where nothing is left the error is
// *dayIsOver.
func (s *session) leftToday(now time.Time) (dag.USD, error) {
	if s.plan.Ticks == nil || s.plan.Ticks.PerDay.USD == 0 {
		return 0, nil
	}
	limit := s.plan.Ticks.PerDay.USD
	last, err := run.LastTickOf(s.runs.options(s.dir, s.name))
	if err != nil {
		return 0, err
	}
	spent := last.On(now)
	if spent < limit {
		return limit - spent, nil
	}
	return 0, &dayIsOver{fmt.Sprintf("the ticks of this day have spent $%s, and ticks.perDay allows $%s", spent, limit),
		dayAfter(now)}
}

// dayAfter is when the next day (UTC) begins.
func dayAfter(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// limitToday has a tick pause before the call that could pass what is left of the day. What an earlier day took from
// the cap of one that waits for it is given back.
func (s *session) limitToday(r *run.Run, left dag.USD) error {
	if left == 0 {
		return nil
	}
	v, budget := r.State().Run(), r.State().Ledger().Budget
	if spent := r.State().Spent().USD; !dayAfter(v.Created).Equal(dayAfter(s.opened.Now)) {
		left += spent // of days that are over
		if c := r.Graph().Plan.Budget.CapUSD; v.Pause.Reason == machine.PauseBudget && budget.CapUSD < left {
			budget.CapUSD = left
			if c > 0 && c < left {
				budget.CapUSD = c
			}
		}
	}
	if budget.CapUSD == 0 || budget.CapUSD > left {
		budget.CapUSD = left
	}
	budget.WarnUSD = min(budget.WarnUSD, budget.CapUSD)
	if budget == r.State().Ledger().Budget {
		return nil
	}
	return r.RecordDurable(s.opened.Now, &machine.LimitsChangedBody{Budget: budget, By: "ticks.perDay"})
}
