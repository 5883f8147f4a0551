package report

import (
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// window and fewest are how many of the last nodes of a kind an estimate weighs, and how many it needs.
const (
	window = 8
	fewest = 3
)

// A pace is what the nodes of a run that completed last took, by kind, newest last, at most window.
type pace map[string][]sample

type sample struct {
	at      time.Time // of the end
	seconds float64
	usd     dag.USD
}

func paceOf(st *machine.State) pace {
	p := pace{}
	for i := range int32(st.Graph().Len()) {
		kind := st.Graph().Node(i).Kind
		if st.StatusAt(i) != machine.Completed || IsControl(kind) {
			continue
		}
		v := st.NodeAt(i)
		last := p[kind]
		if v.Attempt == 0 || len(last) == window && v.Finished.Before(last[0].at) {
			continue
		}
		k := len(last)
		for k > 0 && last[k-1].at.After(v.Finished) {
			k--
		}
		last = slices.Insert(last, k, sample{v.Finished, v.Finished.Sub(v.Started).Seconds(), v.Cost})
		p[kind] = last[max(0, len(last)-window):]
	}
	return p
}

// average is the weighted mean of the last nodes of a kind: the newest weighs most.
func (p pace) average(kind string) (sec float64, usd dag.USD, ok bool) {
	if IsControl(kind) {
		return 0, 0, true
	}
	if len(p[kind]) < fewest { // too few to say
		return 0, 0, false
	}
	var weights, dollars float64
	for i, s := range p[kind] {
		w := float64(i + 1)
		weights += w
		sec += w * s.seconds
		dollars += w * float64(s.usd)
	}
	return sec / weights, dag.USD(dollars / weights), true
}

// expect is what a node will take: as the last nodes of its kind, else as its specification estimates.
func (p pace) expect(n *dag.Node) (sec float64, usd dag.USD, ok bool) {
	if sec, usd, ok = p.average(n.Kind); ok {
		return sec, usd, true
	}
	e := n.Estimate
	return e.Seconds, e.USD, e.Seconds > 0
}

// IsControl reports whether a kind is carried out by the host itself: it takes no time to speak of.
func IsControl(kind string) bool { return shapes[kind] != "" }

// Forecast estimates the time until the run ends, with jobs attempts at once, and its whole cost. The time is that of
// the longest chain of what is to come, or of all of it shared among the jobs, whichever is longer. Nothing is known
// while for a node that is still to run neither its kind nor its specification says what it takes. Nodes whose
// conditions are open are not counted.
func Forecast(st *machine.State, now time.Time, jobs int) (left time.Duration, cost dag.USD, ok bool) {
	g, p := st.Graph(), paceOf(st)
	var sum, longest float64
	cost = st.Spent().USD
	chain := make([]float64, g.Len())
	for i := range int32(g.Len()) {
		for _, need := range g.Needs(i) {
			chain[i] = max(chain[i], chain[need])
		}
		n, status := g.Node(i), st.StatusAt(i)
		if status.Ended() || status == machine.Waiting && n.When != "" {
			continue
		}
		sec, usd, known := p.expect(n)
		if !known {
			return 0, 0, false
		}
		if status == machine.Running {
			sec = max(0, sec-now.Sub(st.NodeAt(i).Started).Seconds())
		}
		sum += sec
		cost += usd
		chain[i] += sec
		longest = max(longest, chain[i])
	}
	return time.Duration(max(longest, sum/float64(max(1, jobs))) * float64(time.Second)), cost, true
}

// jobsSeen is how many attempts run at once, by the time that what has ended took beside the time of activity.
func jobsSeen(st *machine.State, active float64) int {
	worked := 0.0
	for i := range int32(st.Graph().Len()) {
		if v := st.NodeAt(i); v.Status == machine.Completed {
			worked += v.Finished.Sub(v.Started).Seconds()
		}
	}
	jobs := max(1, st.Count(machine.Running))
	if active > 0 {
		jobs = max(jobs, int(worked/active+0.5))
	}
	return jobs
}
