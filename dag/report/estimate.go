package report

import (
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// recall takes the samples of a state: the nodes that completed last, by kind.
func (p *Progress) recall(st *machine.State) {
	type ended struct {
		sample
		at time.Time
	}
	all := map[string][]ended{}
	for i := range int32(st.Graph().Len()) {
		v := st.NodeAt(i)
		if v.Status == machine.Completed && v.Attempt > 0 && !IsControl(v.Node.Kind) {
			all[v.Node.Kind] = append(all[v.Node.Kind], ended{sample{v.Finished.Sub(v.Started).Seconds(), v.Cost}, v.Finished})
		}
	}
	for kind, list := range all { // each kind by itself
		slices.SortStableFunc(list, func(a, b ended) int { return a.at.Compare(b.at) })
		for _, e := range list[max(0, len(list)-window):] {
			p.last[kind] = append(p.last[kind], e.sample)
		}
	}
}

// IsControl reports whether a kind is carried out by the host itself: it takes no time to speak of.
func IsControl(kind string) bool { return shapes[kind] != "" }

// Forecast estimates the time until the run ends, with jobs attempts at once, and its whole cost. The time is that of the
// longest chain of what is to come, or of all of it shared among the jobs, whichever is longer. A node takes the weighted
// average of the last nodes of its kind, newer ones counting more, or the estimate of its specification. Nothing is known
// while a kind that is still to run has neither. Nodes whose conditions are open are not counted.
func (p *Progress) Forecast(st *machine.State, now time.Time, jobs int) (left time.Duration, cost dag.USD, ok bool) {
	g := st.Graph()
	var sum, longest float64
	cost = p.Cost
	chain := make([]float64, g.Len())
	for i := range int32(g.Len()) {
		for _, need := range g.Needs(i) {
			chain[i] = max(chain[i], chain[need])
		}
		if counted(st, i) {
			continue
		}
		n := g.Node(i)
		s, usd, known := p.expect(n)
		if !known {
			return 0, 0, false
		}
		if elapsed, running := p.Elapsed(n.ID, now); running {
			s = max(0, s-elapsed.Seconds())
		}
		sum += s
		cost += usd
		chain[i] += s
		longest = max(longest, chain[i])
	}
	return time.Duration(max(longest, sum/float64(max(1, jobs))) * float64(time.Second)), cost, true
}

// counted reports whether nothing is to be expected of a node any more, or nobody knows yet whether
// it will run at all.
func counted(st *machine.State, i int32) bool {
	now := st.StatusAt(i)
	return now.Ended() || now == machine.Waiting && st.Graph().Node(i).When != ""
}

// expect is what a node will take.
func (p *Progress) expect(n *dag.Node) (sec float64, usd dag.USD, ok bool) {
	if sec, usd, ok = p.average(n.Kind); ok {
		return sec, usd, true
	}
	e := n.Estimate
	return e.Seconds, e.USD, e.Seconds > 0
}

// A Share is what the nodes of one value of a label cost, and will have cost in the end.
type Share struct {
	Label     string  `json:"label"`
	Value     string  `json:"value"`
	Nodes     int     `json:"nodes"`
	Ended     int     `json:"ended"`
	CostUSD   dag.USD `json:"cost_usd"`
	Projected dag.USD `json:"projected_usd,omitempty"` // 0: unknown, or free
}

// mostShares bounds the values of a label that is worth a summary.
const mostShares = 16

// Shares sums up cost by every label that has two to sixteen values and costs something, by label, values
// in plan order. What is to come costs what the nodes of the same kind and value did on average, else
// those of the same kind.
func (p *Progress) Shares(st *machine.State) []Share {
	by := map[string][]*shareSum{}
	for i := range int32(st.Graph().Len()) {
		v := st.NodeAt(i)
		for label, value := range v.Node.Labels { // sorted below; values by node
			at := slices.IndexFunc(by[label], func(s *shareSum) bool { return s.Value == value })
			if at < 0 {
				if at = len(by[label]); at > mostShares {
					continue
				}
				by[label] = append(by[label], &shareSum{Share: Share{Label: label, Value: value}, kinds: map[string]*kindSum{}})
			}
			by[label][at].add(&v)
		}
	}
	var out []Share
	for _, label := range sortedNames(by) {
		list := by[label]
		var cost dag.USD
		for _, s := range list {
			cost += s.CostUSD
		}
		if len(list) < 2 || len(list) > mostShares || cost == 0 {
			continue
		}
		for _, s := range list {
			s.Projected = s.project(p)
			out = append(out, s.Share)
		}
	}
	return out
}

// A shareSum is a Share in the making.
type shareSum struct {
	Share
	kinds map[string]*kindSum
}

// A kindSum is what the nodes of one kind took within a share.
type kindSum struct {
	done, open int
	cost       dag.USD
}

func (s *shareSum) add(v *machine.NodeView) {
	s.Nodes++
	s.CostUSD += v.Cost
	k := s.kinds[v.Node.Kind]
	if k == nil {
		k = &kindSum{}
		s.kinds[v.Node.Kind] = k
	}
	if v.Status.Ended() {
		s.Ended++
		if v.Attempt > 0 {
			k.done++
			k.cost += v.Cost
		}
	} else if v.Node.When == "" || v.Status != machine.Waiting {
		k.open++
	}
}

func (s *shareSum) project(p *Progress) dag.USD {
	total := s.CostUSD
	for kind, k := range s.kinds { // a sum
		if k.open == 0 || IsControl(kind) {
			continue
		}
		one := dag.USD(0)
		if k.done > 0 {
			one = k.cost / dag.USD(k.done)
		} else if _, usd, ok := p.average(kind); ok {
			one = usd
		} else {
			return 0
		}
		total += one * dag.USD(k.open)
	}
	return total
}

// A Series is one value of the nodes that decide the way, over those that have completed: scores of
// rounds, say.
type Series struct {
	Name   string   `json:"name"`
	Nodes  []string `json:"nodes"`
	Values []string `json:"values"` // as JSON has them, texts without quotes
}

// seriesOf collects the small values of nodes of kind route in plan order, the longest series first. A value
// that repeats a label of its node says nothing, and a reason is a sentence.
func seriesOf(st *machine.State) []Series {
	var out []Series
	for i := range int32(st.Graph().Len()) {
		v := st.NodeAt(i)
		if v.Node.Kind != "route" || v.Status != machine.Completed {
			continue
		}
		for _, name := range sortedNames(v.Values) {
			text := ValueText(v.Values[name])
			if _, label := v.Node.Labels[name]; label || name == "reason" || text == "" || len(text) > 24 {
				continue
			}
			k := slices.IndexFunc(out, func(s Series) bool { return s.Name == name })
			if k < 0 {
				k = len(out)
				out = append(out, Series{Name: name})
			}
			out[k].Nodes = append(out[k].Nodes, v.Node.ID)
			out[k].Values = append(out[k].Values, text)
		}
	}
	slices.SortStableFunc(out, func(a, b Series) int { return len(b.Values) - len(a.Values) })
	return out
}
