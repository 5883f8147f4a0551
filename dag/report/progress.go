package report

import (
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Progress follows a run by its events and says how far it is, how long it will take and what
// it will cost. It belongs to the goroutine that feeds it.
type Progress struct {
	Total int // nodes of the plan
	Ended int // nodes that need nothing more
	Cost  dag.USD

	started map[string]time.Time // running attempts
	last    map[string][]sample  // by kind, newest last, at most window
}

type sample struct {
	seconds float64
	usd     dag.USD
}

// window and fewest are how many of the last nodes of a kind an estimate weighs, and how many it
// needs (T-3).
const (
	window = 8
	fewest = 3
)

// Start takes a state as it is: of a run that goes on. What it had running is not.
func (p *Progress) Start(st *machine.State) {
	*p = Progress{started: map[string]time.Time{}, last: map[string][]sample{}}
	p.look(st)
	p.recall(st)
}

// Apply takes in an event after the state has. Start comes first.
func (p *Progress) Apply(e *machine.Event, st *machine.State) {
	p.look(st)
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		p.started[b.Node] = e.Time
	case *machine.FinishedBody:
		began, ran := p.started[b.Node]
		delete(p.started, b.Node)
		if b.Status == dag.StatusCompleted && ran && !b.Reused {
			p.remember(b, e.Time.Sub(began), st)
		}
	}
}

// look reads the numbers that the state keeps anyway.
func (p *Progress) look(st *machine.State) {
	c := NewCounts(st)
	p.Total, p.Ended, p.Cost = c.Nodes, c.Nodes-c.Open, st.Spent().USD
}

func (p *Progress) remember(b *machine.FinishedBody, took time.Duration, st *machine.State) {
	i, ok := st.Graph().Index(b.Node)
	if !ok {
		return
	}
	kind := st.Graph().Node(i).Kind
	l := append(p.last[kind], sample{took.Seconds(), b.CostUSD})
	p.last[kind] = l[max(0, len(l)-window):]
}

// Elapsed returns how long the present attempt of a node has been running.
func (p *Progress) Elapsed(node string, now time.Time) (time.Duration, bool) {
	began, ok := p.started[node]
	if !ok {
		return 0, false
	}
	return now.Sub(began), true
}

// average is the weighted mean of the last nodes of a kind: the newest weighs most.
func (p *Progress) average(kind string) (sec float64, usd dag.USD, ok bool) {
	if IsControl(kind) {
		return 0, 0, true
	}
	l := p.last[kind]
	if len(l) < fewest { // T-3: too few to say
		return 0, 0, false
	}
	var weights, dollars float64
	for i, s := range l {
		w := float64(i + 1)
		weights += w
		sec += w * s.seconds
		dollars += w * float64(s.usd)
	}
	return sec / weights, dag.USD(dollars / weights), true
}
