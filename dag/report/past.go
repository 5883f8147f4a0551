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
	out.USD, out.Seconds, out.Tokens = rangeOf(samples)
	out.USD[2] *= dag.USD(attempts)
	out.Seconds[2] *= float64(attempts)
	out.Tokens[2] *= int64(attempts)
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
