package reuse

import (
	"strings"
	"testing"

	"dagrun.dev/dag"
)

// What differs in the lists of two plans is told by name.
func TestLimitsAreNamed(t *testing.T) {
	pools := func(list ...dag.Pool) *dag.Plan { return &dag.Plan{Pools: list} }
	a, b, c := dag.Pool{Name: "a", Size: 1}, dag.Pool{Name: "b", Size: 2}, dag.Pool{Name: "c", Size: 3}
	for _, x := range []struct {
		was, is *dag.Plan
		want    string
	}{
		{pools(a, b), pools(a, b), ""},
		{pools(a, b), pools(a, dag.Pool{Name: "b", Size: 5}, c), "pools: b changed; pools: c added"},
		{pools(a, b), pools(), "pools: a removed; pools: b removed"},
		{pools(a, b), pools(b, a), "pools: another order"},
		{&dag.Plan{Params: []dag.Param{{Name: "th", Value: []byte("3")}}}, &dag.Plan{Params: []dag.Param{{Name: "th", Value: []byte("4")}}}, "params: th changed"},
		{&dag.Plan{Prices: []dag.Price{{Model: "m", Input: 1}}}, &dag.Plan{Prices: []dag.Price{{Model: "m", Input: 2}}}, "prices: m changed"},
		{&dag.Plan{Budget: dag.Budget{CapUSD: 1e6}}, &dag.Plan{Budget: dag.Budget{CapUSD: 2e6}}, "budget.capUSD 1.00 -> 2.00"},
	} {
		if got := strings.Join(limits(x.was, x.is), "; "); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}
