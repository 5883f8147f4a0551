package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
)

// A chooser picks the best ready nodes without taking them out of their heaps: a heap of places
// in heaps, which starts with the tops and goes on with the children of what it gives.
type chooser struct {
	d      *decision
	places []place
	before func(a, b place) bool // by their nodes
	paid   bool                  // no further paid start fits
	chosen dag.Amount
	taken  int     // starts chosen of nodes that need a worker
	hosted int     // and of others
	pools  []int32 // starts chosen, by pool
	probes []int32 // by breaker
}

type place struct {
	class, at int32
}

func (d *decision) chooser() *chooser {
	s := d.s
	return &chooser{
		d: d, pools: make([]int32, len(s.pools)), probes: make([]int32, len(s.breakers)),
		before: func(a, b place) bool {
			return s.graph.Sooner(s.classes[a.class].heap[a.at], s.classes[b.class].heap[b.at])
		},
	}
}

// mostHosted is how many nodes that need no worker start at once: what is recorded of them is written in one piece.
const mostHosted = 256

// starts chooses the nodes to start now. A question is asked, and the way decided, though all workers are busy.
func (d *decision) starts() {
	c := d.chooser()
	if c.queues() {
		return
	}
	for k := range d.s.classes {
		if len(d.s.classes[k].heap) > 0 {
			c.look(int32(k))
			c.add(place{int32(k), 0})
		}
	}
	for len(c.places) > 0 {
		p := c.pop()
		heap := d.s.classes[p.class].heap
		i := heap[p.at]
		if !c.hands(p.class) || !c.passes(p.class, i) {
			continue // nor does any of its class that comes later
		}
		if d.paused {
			return
		}
		c.start(p.class, i)
		for child := 2*p.at + 1; child <= 2*p.at+2 && int(child) < len(heap); child++ {
			c.add(place{p.class, child})
		}
	}
}

// queuedPool is the reason of WORK_ITEM_QUEUED for nodes that wait for their place in a pool.
const queuedPool = "pool"

// queues counts how long nodes wait for their places in pools that bound that, and reports whether some have waited too
// long: they fail, and nothing starts before that is recorded. Its cost is that of the nodes that wait.
func (c *chooser) queues() (ended bool) {
	d, s := c.d, c.d.s
	for k := range s.classes {
		class := &s.classes[k]
		if class.pool == none || s.pools[class.pool].wait == 0 || c.poolRoom(int32(k)) {
			continue
		}
		p := &s.pools[class.pool]
		var new []string
		for _, i := range slices.Sorted(slices.Values(class.heap)) {
			since := s.recs[i].detail().Pooled
			switch due := since + p.wait; {
			case since == 0:
				new = append(new, s.graph.Node(i).ID)
			case due <= d.now:
				ended = true
				text := fmt.Sprintf("waited longer than %s for its place in pool %s; %d waiting",
					time.Duration(p.wait)*time.Millisecond, p.name, len(class.heap))
				d.recordOf(i, s.failure(i, CategoryQueue, text))
			default:
				d.waitUntil(due)
			}
		}
		if len(new) > 0 {
			d.record(&QueuedBody{Nodes: new, Reason: queuedPool})
		}
	}
	return ended
}

// cleanup starts the clean-up nodes of a run that ends, in plan order. It reports whether any waits for an instant or a
// worker, though nothing runs. A node that the budget or a breaker without an end holds back is left out: the run must
// end.
func (d *decision) cleanup() (waiting bool) {
	c, s := d.chooser(), d.s
	for _, i := range s.always {
		if s.status[i] != Ready {
			continue
		}
		k := s.class[i]
		switch {
		case s.classes[k].paid && !s.ledger.fits(s.reserveOf(s.graph.Node(i)), c.chosen):
		case !c.breakerRoom(k):
			for _, g := range s.classes[k].gates {
				if g == none {
					continue
				}
				b := &s.breakers[g]
				if until := max(b.Until, b.Hold, b.nextStart(d.now)); until > d.now {
					d.waitUntil(until)
					waiting = true
				}
			}
		case !c.hands(k):
			waiting = true
		case c.poolRoom(k):
			c.start(k, i)
		}
	}
	return waiting
}

func (c *chooser) start(k, i int32) {
	s := c.d.s
	n, r := s.graph.Node(i), &s.recs[i]
	reserve := s.reserveOf(n)
	c.d.cmds = append(c.d.cmds,
		Command{Op: Start, Node: n.ID, Generation: int(r.Gen), Attempt: int(r.Attempt) + 1, Reserve: reserve})
	if s.classes[k].host {
		c.hosted++
	} else {
		c.taken++
	}
	c.chosen.USD += reserve.USD
	c.chosen.Tokens += reserve.Tokens
	if p := s.classes[k].pool; p != none {
		c.pools[p]++
	}
	for _, b := range s.classes[k].gates {
		if b != none {
			c.probes[b]++
		}
	}
}

// hands reports whether there is somebody to carry out another node of a class.
func (c *chooser) hands(k int32) bool {
	if c.d.s.classes[k].host {
		return c.hosted < mostHosted
	}
	return c.taken < c.d.free
}

func (c *chooser) poolRoom(k int32) bool {
	p := c.d.s.classes[k].pool
	return p == none || c.d.s.pools[p].used+c.pools[p] < c.d.s.pools[p].size
}

func (c *chooser) breakerRoom(k int32) bool {
	for _, i := range c.d.s.classes[k].gates {
		if i == none {
			continue
		}
		if b := &c.d.s.breakers[i]; b.room(c.d.s.breakerSpec(b.Name), c.d.now) <= c.probes[i] {
			return false
		}
	}
	return true
}

// look looks at the breakers of a class. The one that its nodes name comes first: where it is open, they
// do what whenOpen says.
func (c *chooser) look(k int32) {
	for _, i := range c.d.s.classes[k].gates {
		if i != none && !c.passable(k, &c.d.s.breakers[i]) {
			return
		}
	}
}

func (c *chooser) passable(k int32, b *breaker) bool {
	d, s := c.d, c.d.s
	if !b.isOpen(d.now) {
		if until := max(b.Hold, b.nextStart(d.now)); d.now < until {
			d.waitUntil(until)
			return false
		}
		return true
	}
	switch s.whenOpen(b) {
	case dag.OpenSkip:
		for _, i := range s.classes[k].heap {
			d.recordOf(i, s.without(i, b, dag.StatusSkipped))
		}
	case dag.OpenContinue:
		for _, i := range s.classes[k].heap {
			d.recordOf(i, s.without(i, b, dag.StatusRejected))
		}
	case dag.OpenEscalate:
		d.askBreaker(b)
		d.waitUntil(b.Until)
	default:
		d.waitUntil(b.Until)
	}
	return false
}

// without is the end of a node that does not start because its breaker is open.
func (s *State) without(i int32, b *breaker, status dag.Status) *FinishedBody {
	return &FinishedBody{Node: s.graph.Node(i).ID, Generation: int(s.recs[i].Gen), Status: status, Final: true,
		Category: CategoryBreaker, Class: dag.Soft, Message: b.openReason()}
}

// openReason says that a breaker is open, and why.
func (b *breaker) openReason() string {
	return fmt.Sprintf("breaker %s is open: %s", b.Name, cmp.Or(b.Cause, "too many failures"))
}

func (d *decision) askBreaker(b *breaker) {
	if b.Question != "" {
		return
	}
	for _, c := range d.cmds { // another class of the same breaker has asked
		if q, ok := c.Body.(*EscalationOpenedBody); ok && q.Breaker == b.Name {
			return
		}
	}
	q := d.s.Ask(EscalationOpenedBody{Kind: AskBreaker, Breaker: b.Name, Message: b.openReason(), Recommended: AnswerWait,
		Options: []string{AnswerWait, AnswerExtend, AnswerSkip, AnswerContinue, AnswerAbort}}, at(d.now))
	if q.Deadline.IsZero() { // the breaker waits by itself
		q.Default, q.Deadline = AnswerWait, at(b.Until)
	}
	d.record(q)
}

// passes reports whether a class lets the given node start, the best of it that is left.
func (c *chooser) passes(k, i int32) bool {
	d, s := c.d, c.d.s
	class := &s.classes[k]
	if class.paid && c.paid || !c.poolRoom(k) || !c.breakerRoom(k) {
		return false
	}
	if class.paid && !s.ledger.fits(s.reserveOf(s.graph.Node(i)), c.chosen) {
		c.paid = true // nobody smaller overtakes: the order stays, and nobody starves
		d.budget(i, c.chosen)
		return false
	}
	return true
}

// budget pauses the run when the next paid start can never fit: no attempt in flight could give
// back a part of its reservation.
func (d *decision) budget(i int32, chosen dag.Amount) {
	s := d.s
	if s.ledger.reserved != (dag.Amount{}) || chosen != (dag.Amount{}) {
		return
	}
	n, l := s.graph.Node(i), &s.ledger
	reserve := s.reserveOf(n)
	if l.Budget.CapUSD != 0 && l.Spent.USD+reserve.USD > l.Budget.CapUSD {
		d.pause(PauseBudget, n.ID, "$%s is spent and %s reserves $%s more, but the cap is $%s",
			l.Spent.USD, n.ID, reserve.USD, l.Budget.CapUSD)
		return
	}
	d.pause(PauseBudget, n.ID, "%d tokens are spent and %s reserves %d more, but the cap is %d",
		l.Spent.Tokens, n.ID, reserve.Tokens, l.Budget.CapTokens)
}

func (c *chooser) add(p place) { c.places = pushHeap(c.places, p, c.before) }

func (c *chooser) pop() (p place) {
	p, c.places = popHeap(c.places, c.before)
	return p
}
