package report

import (
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Progress follows a run by its events and says how far it is, how long it will take and what
// it will cost. It belongs to the goroutine that feeds it.
type Progress struct {
	Total     int // nodes of the plan
	Completed int
	Failed    int
	Skipped   int
	Running   int
	Cost      dag.USD

	started map[string]time.Time // running attempts
	status  map[string]string    // nodes that have ended
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

// Ended is the number of nodes that need nothing more.
func (p *Progress) Ended() int { return p.Completed + p.Failed + p.Skipped }

// Start takes a state as it is: of a run that goes on. What it had running is not.
func (p *Progress) Start(st *machine.State) {
	*p = Progress{started: map[string]time.Time{}, last: map[string][]sample{}}
	p.recount(st)
	p.Cost = st.Ledger().Spent.USD
	p.recall(st)
}

// Apply takes in an event after the state has. Start comes first.
func (p *Progress) Apply(e *machine.Event, st *machine.State) {
	switch b := e.Body.(type) {
	case *machine.RunCreatedBody, *machine.PlanAdoptedBody, *machine.PlanExtendedBody, *machine.RewoundBody, *machine.RevertedBody:
		p.recount(st)
	case *machine.StartedBody:
		p.started[b.Node] = e.Time
		p.Running = len(p.started)
	case *machine.FinishedBody:
		p.finished(b, e.Time, st)
	}
}

func (p *Progress) finished(b *machine.FinishedBody, at time.Time, st *machine.State) {
	began, ran := p.started[b.Node]
	delete(p.started, b.Node)
	p.Running = len(p.started)
	p.Cost = st.Ledger().Spent.USD
	if b.Status == machine.StatusCompleted && ran && !b.Reused {
		if v, ok := st.NodeByID(b.Node); ok {
			l := append(p.last[v.Node.Kind], sample{at.Sub(began).Seconds(), b.CostUSD})
			p.last[v.Node.Kind] = l[max(0, len(l)-window):]
		}
	}
	switch {
	case b.Status == machine.StatusCompleted, b.Status == machine.StatusSkipped, b.Final:
		p.set(b.Node, b.Status)
	}
}

// set counts a node under its last status only: a node that runs again ends again.
func (p *Progress) set(node, status string) {
	count := func(s string, by int) {
		switch s {
		case machine.StatusCompleted:
			p.Completed += by
		case machine.StatusSkipped:
			p.Skipped += by
		case machine.StatusFailed, machine.StatusCancelled, machine.StatusRejected, machine.StatusLost:
			p.Failed += by
		}
	}
	count(p.status[node], -1)
	count(status, 1)
	if status == "" {
		delete(p.status, node)
		return
	}
	p.status[node] = status
}

// recount reads the state anew: a plan was adopted or nodes were sent back.
func (p *Progress) recount(st *machine.State) {
	p.Total, p.Completed, p.Failed, p.Skipped = st.Graph().Len(), 0, 0, 0
	p.status = map[string]string{}
	for i := range int32(p.Total) {
		v := st.NodeAt(i)
		switch v.Status {
		case machine.Completed:
			p.set(v.Node.ID, machine.StatusCompleted)
		case machine.Skipped:
			p.set(v.Node.ID, machine.StatusSkipped)
		case machine.Failed, machine.Cancelled:
			p.set(v.Node.ID, machine.StatusFailed)
		}
	}
}

// Elapsed returns how long the present attempt of a node has been running.
func (p *Progress) Elapsed(node string, now time.Time) (time.Duration, bool) {
	began, ok := p.started[node]
	return now.Sub(began), ok
}

// average is the weighted mean of the last nodes of a kind: the newest weighs most.
func (p *Progress) average(kind string) (sec float64, usd dag.USD, ok bool) {
	switch kind {
	case "checkpoint", "route", "milestone", "join", "approval":
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
