package compile

import (
	"fmt"
	"maps"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
)

// reserve gives every node that may cost money the reservation it has not declared. Where
// the cost is unknown, a run with a cap needs the spec's word.
func (b *builder) reserve() {
	unknown := map[string][]*draft{} // model -> nodes
	e := dag.NewEstimator(b.plan)
	for i, d := range b.drafts {
		n := &b.plan.Nodes[i]
		switch {
		case d.bad || reserved(e, n):
		case b.plan.Budget.CapUSD > 0:
			b.fail(d.pos, d.path, "%s: %s", unreserved, b.noPrice(modelOf(n)))
		default:
			unknown[modelOf(n)] = append(unknown[modelOf(n)], d)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(unknown)) {
		d := unknown[model][0]
		more := ""
		if n := len(unknown[model]); n > 1 {
			more = fmt.Sprintf(" (nodes like it: %d)", n-1)
		}
		b.warn(d.pos, d.path,
			"without an estimate: {usd: ...} its cost is not known before it has run%s: %s", more, b.noPrice(model))
	}
}

const unreserved = "may cost money, and under a budget needs a reserve: {usd: ...} or an estimate"

// reserved sets the reservation of a paid node to what its dearest attempt is estimated at, if it
// declares none. It is false when that cost is unknown.
func reserved(e *dag.Estimator, n *dag.Node) bool {
	if !n.Paid || n.Reserve.USD > 0 {
		return true
	}
	r := e.Node(n)
	n.Reserve.USD = r.Most
	return r.From != "reserve"
}

func modelOf(n *dag.Node) string {
	if n.Call == nil {
		return ""
	}
	return n.Call.Model
}

func (b *builder) noPrice(model string) string {
	if model == "" {
		return "no model is named"
	}
	var names []string
	for _, p := range b.plan.Prices {
		names = append(names, p.Model)
	}
	return fmt.Sprintf("there is no price for model %q%s", model, rules.DidYouMean(model, names))
}
