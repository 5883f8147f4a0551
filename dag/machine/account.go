package machine

import (
	"cmp"
	"fmt"
	"time"

	"dagrun.dev/dag"
)

// An account (dag.Node.Account) has a breaker that no plan declares. A quota's end, a refused login and an
// empty account, which the table of categories marks, are facts about the account: the first attempt that
// is told so opens the breaker, and no node that would ask the same account is started. Attempts that are
// under way just end. When the wait is over, or the run was resumed, one attempt goes first; when the account
// has answered it, the others follow, at first one after the other.
const accountPrefix = "account "

const (
	// spreadFor is how long after an account has answered again its attempts start one after the other.
	spreadFor = time.Minute
	// spreadGap is the time between two of them.
	spreadGap = time.Second
	// longestWait is waited in the process where the plan names nothing; beyond it the run pauses.
	longestWait = 24 * time.Hour
)

// account returns the breaker of a node's account, nil if it has none.
func (s *State) account(i int32) *breaker {
	k := s.classes[s.class[i]].gates[accountGate]
	if k < 0 {
		return nil
	}
	return &s.breakers[k]
}

// onAccount takes what the end of a running attempt says of the account that was asked.
func (s *State) onAccount(e Event, i int32, b *FinishedBody) {
	a, m := s.account(i), s.recs[i].Detail
	if a == nil {
		return
	}
	now := ms(e.Time)
	probe := m != nil && m.AccountProbe == a.Epoch+1
	c, _ := s.graph.Plan.CategoryByName(b.Category)
	switch refused := c != nil && c.Account && (b.Status == dag.StatusFailed || b.Status == dag.StatusRejected); {
	case refused && a.State != breakerClosed && !probe: // it was under way when that became known
		a.Until = max(a.Until, ms(b.WaitUntil))
	case refused:
		*a = breaker{Name: a.Name, State: breakerOpen, Until: max(now, ms(b.WaitUntil)),
			Cause: cmp.Or(b.Message, b.Category), Changed: now,
			Epoch: a.Epoch + 1, Openings: a.Openings + 1}
	case probe && (b.Status == dag.StatusCompleted ||
		b.Status == dag.StatusFailed && (b.Class == dag.Structural || b.Class == dag.Soft)):
		*a = breaker{Name: a.Name, Changed: now, Opened: now, Started: now, Epoch: a.Epoch + 1, Openings: a.Openings}
	}
}

// nextStart is when the next attempt may start where starts are spread, after an account has answered again; 0 = at any
// time.
func (b *breaker) nextStart(now int64) int64 {
	if now >= b.Opened+spreadFor.Milliseconds() {
		return 0
	}
	return b.Started + spreadGap.Milliseconds()
}

// park pauses a run in which all that is left to do is to wait for longer than it may.
func (d *decision) park() {
	s := d.s
	longest := cmp.Or(s.ledger.Budget.LongestWait.D(), longestWait)
	if d.wake-d.now <= longest.Milliseconds() {
		return
	}
	var node, why string
	var until int64
	for i := range s.recs {
		if at, text := s.waitsUntil(int32(i)); at > d.now && (until == 0 || at < until) {
			node, why, until = s.graph.Node(int32(i)).ID, text, at
		}
	}
	if until == 0 {
		return // it does not wait for a service
	}
	d.pause(PauseQuota, node,
		"%s. What is left to do waits until %s, which is longer than the longest wait of %s",
		why, at(until).Format("2006-01-02 15:04 MST"), dag.Duration(longest).D())
}

// waitsUntil is until when a node waits for a service, and why; 0 = it does not.
func (s *State) waitsUntil(i int32) (until int64, why string) {
	switch s.status[i] {
	case Holding:
		m := s.recs[i].detail()
		return m.RetryAt, fmt.Sprintf("%s: %s", s.graph.Node(i).ID, cmp.Or(m.Last.Message, m.Last.Category))
	case Ready:
		if a := s.account(i); a != nil && a.State == breakerOpen {
			return a.Until, a.Cause
		}
	}
	return
}
