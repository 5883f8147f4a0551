package report

import (
	"testing"

	"dagrun.dev/dag"
)

// T-3: while a run goes on, one label stands for its cost: the one that tells most of it apart.
func TestSharesLine(t *testing.T) {
	usd := func(v float64) dag.USD { u, _ := dag.Dollars(v); return u }
	list := []Share{
		{Label: "number", Value: "1", CostUSD: usd(9)},
		{Label: "part", Value: "x", CostUSD: usd(2)},
		{Label: "part", Value: "y", CostUSD: usd(1)},
		{Label: "role", Value: "reader", CostUSD: usd(1)},
		{Label: "role", Value: "writer", CostUSD: usd(4), Projected: usd(6)},
	}
	if got, want := SharesLine(list), "by role: reader $1.00, writer $4.00 of about $6.00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := SharesLine(nil); got != "" {
		t.Errorf("nothing: %q", got)
	}
}
