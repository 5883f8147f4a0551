package report

import (
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/run/statedir"
)

// A past is what earlier runs say of how much nodes take.
type past struct {
	own   map[string][]statedir.Sample
	alike map[likeness][]statedir.Sample
}

// A likeness is what nodes have in common that take about the same: their specification gives them the same
// estimate for the same kind of work and the same model.
type likeness struct {
	kind, provider, model string
	estimate              dag.Estimate
}

func newPast(g *dag.Graph, history map[string][]statedir.Sample) *past {
	p := &past{own: history, alike: map[likeness][]statedir.Sample{}}
	if len(history) == 0 {
		return p
	}
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if l, ok := likenessOf(n); ok {
			p.alike[l] = append(p.alike[l], history[n.HistoryKey()]...)
		}
	}
	return p
}

// likenessOf is only for nodes with an estimate: it is what says that they are alike.
func likenessOf(n *dag.Node) (likeness, bool) {
	l := likeness{kind: n.Kind, estimate: n.Estimate}
	if n.Call != nil {
		l.provider, l.model = n.Call.Provider, n.Call.Model
	}
	return l, n.Estimate != (dag.Estimate{})
}

// apply replaces what a node is expected to take by what it took before, or what nodes like it took.
func (p *past) apply(n *dag.Node, out *PlanNode) {
	samples, from := p.own[n.HistoryKey()], "history"
	if len(samples) == 0 {
		if l, ok := likenessOf(n); ok {
			samples, from = p.alike[l], "alike"
		}
	}
	if len(samples) == 0 || free(samples) && n.Estimate.USD > 0 { // something else bore its name
		return
	}
	out.USD, out.Seconds, out.Tokens = rangeOf(samples)
	out.CostFrom, out.Unknown = from, false
}

func free(samples []statedir.Sample) bool {
	return !slices.ContainsFunc(samples, func(s statedir.Sample) bool { return s.USD > 0 })
}

// rangeOf takes the least, the mean and the most of what attempts took.
func rangeOf(past []statedir.Sample) (usd [3]dag.USD, sec [3]float64, tok [3]int64) {
	for i, s := range past {
		if i == 0 {
			usd, sec, tok = [3]dag.USD{s.USD, 0, s.USD}, [3]float64{s.Seconds, 0, s.Seconds}, [3]int64{s.Tokens, 0, s.Tokens}
		}
		usd[0], usd[1], usd[2] = min(usd[0], s.USD), usd[1]+s.USD, max(usd[2], s.USD)
		sec[0], sec[1], sec[2] = min(sec[0], s.Seconds), sec[1]+s.Seconds, max(sec[2], s.Seconds)
		tok[0], tok[1], tok[2] = min(tok[0], s.Tokens), tok[1]+s.Tokens, max(tok[2], s.Tokens)
	}
	n := len(past)
	usd[1] /= dag.USD(n)
	sec[1] /= float64(n)
	tok[1] /= int64(n)
	return usd, sec, tok
}
