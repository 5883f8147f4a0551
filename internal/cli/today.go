package cli

import (
	"fmt"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

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
