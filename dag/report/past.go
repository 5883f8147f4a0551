package report

import (
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/run/statedir"
)

// A past is what earlier runs say of how much nodes take.
type past struct {
	own     map[string][]statedir.Sample
	similar map[dag.Similarity][]statedir.Sample // of nodes with an estimate: it is what says that they are similar
}

func newPast(g *dag.Graph, history map[string][]statedir.Sample) *past {
	p := &past{own: history, similar: map[dag.Similarity][]statedir.Sample{}}
	if len(history) == 0 {
		return p
	}
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if n.Estimate != (dag.Estimate{}) {
			p.similar[n.Similarity()] = append(p.similar[n.Similarity()], history[n.HistoryKey()]...)
		}
	}
	return p
}

// apply replaces what a node is expected to take by what it took before, or what similar nodes took. The
// samples are of single attempts.
func (p *past) apply(n *dag.Node, out *PlanNode, attempts int) {
	samples, from := p.own[n.HistoryKey()], "history"
	if len(samples) == 0 && n.Estimate != (dag.Estimate{}) {
		samples, from = p.similar[n.Similarity()], "similar"
	}
	if len(samples) == 0 || free(samples) && n.Estimate.USD > 0 { // something else bore its name
		return
	}
	out.USD = spread(samples, func(s statedir.Sample) dag.USD { return s.USD })
	out.Seconds = spread(samples, func(s statedir.Sample) float64 { return s.Seconds })
	out.Tokens = spread(samples, func(s statedir.Sample) int64 { return s.Tokens })
	out.USD[2] *= dag.USD(attempts)
	out.Seconds[2] *= float64(attempts)
	out.Tokens[2] *= int64(attempts)
	out.CostFrom, out.Unknown = from, false
}

func free(samples []statedir.Sample) bool {
	return !slices.ContainsFunc(samples, func(s statedir.Sample) bool { return s.USD > 0 })
}

// spread is the least, the mean and the most of what attempts took.
func spread[N dag.USD | float64 | int64](past []statedir.Sample, of func(statedir.Sample) N) (r [3]N) {
	r[0] = of(past[0])
	for _, s := range past {
		v := of(s)
		r[0], r[1], r[2] = min(r[0], v), r[1]+v, max(r[2], v)
	}
	r[1] /= N(len(past))
	return r
}
