package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
)

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
