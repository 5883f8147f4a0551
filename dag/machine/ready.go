package machine

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"dagrun.dev/dag"
)

// A class is the ready nodes that pass the same gates: one pool, one breaker, one account, paid or free, work or
// control. Its heap has the best node first. Nodes of a class start in heap order; classes are merged by the same order
// when starts are chosen.
type class struct {
	pool  int32    // index in State.pools, -1 = none
	gates [2]int32 // indexes in State.breakers, -1 = none
	paid  bool     // reserves money or tokens
	host  bool     // carried out by the host: needs no worker
	heap  []int32
}

// classOf finds or makes the class of a node.
func (s *State) classOf(n *dag.Node) int32 {
	c := class{pool: s.poolIndex(n.Pool), gates: [2]int32{-1, -1}, paid: n.Reserve != dag.Amount{},
		host: n.Role() != dag.Role{}}
	if n.Breaker != "" {
		c.gates[breakerGate] = s.breakerIndex(n.Breaker)
	}
	if n.Account != "" {
		c.gates[accountGate] = s.breakerIndex(accountPrefix + n.Account)
	}
	for k := range s.classes { // a handful: pools x breakers x 4
		if o := &s.classes[k]; o.pool == c.pool && o.gates == c.gates && o.paid == c.paid && o.host == c.host {
			return int32(k)
		}
	}
	s.classes = append(s.classes, c)
	return int32(len(s.classes) - 1)
}

func (s *State) poolIndex(name string) int32 {
	for k := range s.pools {
		if s.pools[k].name == name {
			return int32(k)
		}
	}
	return -1
}

// An order is the heap of a class as package heap sees it, to put one of its nodes in its place.
type order struct {
	heap.Interface
	s  *State
	in []int32
}

func (o order) Len() int           { return len(o.in) }
func (o order) Less(a, b int) bool { return o.s.graph.Sooner(o.in[a], o.in[b]) }

func (o order) Swap(a, b int) {
	o.in[a], o.in[b] = o.in[b], o.in[a]
	o.s.heapAt[o.in[a]], o.s.heapAt[o.in[b]] = int32(a), int32(b)
}

// push adds a ready node to the heap of its class.
func (s *State) push(i int32) {
	c := &s.classes[s.class[i]]
	at := len(c.heap)
	c.heap, s.heapAt[i] = append(c.heap, i), int32(at)
	heap.Fix(order{s: s, in: c.heap}, at)
}

// remove takes a node out of the heap of its class.
func (s *State) remove(i int32) {
	c := &s.classes[s.class[i]]
	at, last := int(s.heapAt[i]), len(c.heap)-1
	order{s: s, in: c.heap}.Swap(at, last)
	if c.heap = c.heap[:last]; at < last {
		heap.Fix(order{s: s, in: c.heap}, at)
	}
}

// A timer asks for a node to be looked at again at an instant. It is void when the node's own
// instant has changed since.
type timer struct {
	at   int64 // Unix milliseconds
	node int32
	kind timerKind
}

type timerKind uint8

const (
	timerDue      timerKind = iota // backoff or wait ends
	timerDeadline                  // Timeout.Total has passed
)

func earlier(a, b timer) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) < 0
}

// pushTimer adds a timer that has an instant.
func (s *State) pushTimer(t timer) {
	if t.at != 0 {
		s.timers = pushHeap(s.timers, t, earlier)
	}
}

// watchDeadline has a node looked at when its total time is up.
func (s *State) watchDeadline(i int32) {
	s.pushTimer(timer{s.deadline(i), i, timerDeadline})
}

// watchRetry has a node looked at again when its instant to start again comes.
func (s *State) watchRetry(i int32) {
	s.pushTimer(timer{s.recs[i].wakeAt(), i, timerDue})
}

func (s *State) popTimer() (t timer) {
	t, s.timers = popHeap(s.timers, earlier)
	return t
}

// valid reports whether a timer still says something of its node.
func (s *State) valid(t timer) bool {
	r := &s.recs[t.node]
	if t.kind == timerDeadline {
		return !s.settled[t.node].counts() && s.deadline(t.node) == t.at
	}
	return r.wakeAt() == t.at && !r.due && r.Phase != running
}

// Advance moves the state's time to an instant: backoffs and waits that have ended by then are over, and total
// times are used up. It changes nothing that was recorded. A host calls it before it asks Decide; an earlier
// instant than before changes nothing, so a clock that is set back undoes nothing.
func (s *State) Advance(now time.Time) {
	if s.graph != nil {
		s.advance(ms(now))
	}
}

func (s *State) advance(now int64) {
	for s.due(now) {
		t := s.popTimer()
		if !s.valid(t) {
			continue
		}
		if t.kind == timerDeadline {
			if !slices.Contains(s.overdue, t.node) {
				s.overdue = append(s.overdue, t.node)
			}
			continue
		}
		s.recs[t.node].due = true
		s.touch(t.node)
	}
}

// due reports whether Advance has something to do: the first timer has come due, or is void.
func (s *State) due(now int64) bool {
	return len(s.timers) > 0 && (s.timers[0].at <= now || !s.valid(s.timers[0]))
}

// advanced returns the state as Advance would make it, and leaves s as it is. It shares with s what Advance does
// not write.
func (s *State) advanced(now int64) *State {
	if !s.due(now) {
		return s
	}
	c := *s
	c.recs, c.status, c.heapAt = slices.Clone(s.recs), slices.Clone(s.status), slices.Clone(s.heapAt)
	c.timers, c.overdue = slices.Clone(s.timers), slices.Clone(s.overdue)
	c.classes = slices.Clone(s.classes)
	for k := range c.classes {
		c.classes[k].heap = slices.Clone(c.classes[k].heap)
	}
	c.advance(now)
	return &c
}
