package machine

import (
	"fmt"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// A breaker is what was recorded of a named circuit breaker. The host counts and says when it
// changes; the machine gates starts:
//
//	closed ---------> open ---until has passed---> half-open: probes only ---> closed
//	   ^               ^ whenOpen: wait, skip,              |
//	   |               |  continue, escalate                |
//	   +--- recorded --+------------ recorded --------------+
type breaker struct {
	name     string
	state    breakerState
	until    int64
	counts   Counts
	cause    string
	changed  int64 // 0 = nothing was recorded of it
	epoch    int32 // transitions so far; probes belong to one
	openings int32
	hold     int64  // until when a quota holds every node of it
	opened   int64  // of an account: when it answered again
	started  int64  // of an account: the last start since
	question string // of the present opening
	answer   string // to it

	probing int32 // derived: probes in flight
}

// The gates of a class: the breaker that its nodes name, and the breaker of their account.
const (
	breakerGate = iota
	accountGate
)

type breakerState uint8

const (
	breakerClosed breakerState = iota
	breakerOpen
	breakerHalfOpen
)

var breakerNames = [...]string{"closed", "open", "half-open"}

func (s *State) breakerIndex(name string) int32 {
	if k, ok := s.breakAt[name]; ok {
		return k
	}
	if s.breakAt == nil {
		s.breakAt = map[string]int32{}
	}
	k := int32(len(s.breakers))
	s.breakAt[name] = k
	s.breakers = append(s.breakers, breaker{name: name})
	return k
}

// indexBreakers prepares for a graph: breakers of an earlier plan are kept.
func (s *State) indexBreakers() {
	s.breakAt = map[string]int32{}
	for k := range s.breakers {
		s.breakAt[s.breakers[k].name] = int32(k)
		s.breakers[k].probing = 0
	}
	for k := range s.graph.Plan.Breakers {
		s.breakerIndex(s.graph.Plan.Breakers[k].Name)
	}
}

func (s *State) onBreaker(e *Event, b *BreakerChangedBody) error {
	state := breakerClosed
	switch b.State {
	case "closed":
	case "open":
		state = breakerOpen
	case "half-open":
		state = breakerHalfOpen
	default:
		return fmt.Errorf("unknown breaker state %q", b.State)
	}
	k := &s.breakers[s.breakerIndex(b.Breaker)]
	if state != k.state && state != breakerHalfOpen { // probes may start before half-open is recorded
		k.epoch++
		k.probing = 0
	}
	if state != k.state && state == breakerOpen {
		k.openings++
		k.question, k.answer = "", ""
	}
	k.state, k.until, k.counts, k.cause, k.changed = state, ms(b.Until), b.Counts, b.Cause, ms(e.Time)
	if len(s.openQ) > 0 {
		s.withdraw()
	}
	return nil
}

// isOpen reports whether no start may pass at an instant. An open breaker whose time has passed
// lets probes through even before its host has recorded that it is half-open.
func (b *breaker) isOpen(now int64) bool {
	return b.state == breakerOpen && (b.until == 0 || now < b.until)
}

// room is how many starts it lets through at an instant.
func (b *breaker) room(spec *dag.Breaker, now int64) int32 {
	switch {
	case b.isOpen(now) || now < b.hold:
		return 0
	case b.state == breakerClosed && now < b.opened+spreadFor.Milliseconds():
		if now < b.nextStart(now) {
			return 0
		}
		return 1
	case b.state == breakerClosed:
		return 1 << 30
	}
	probes := int32(1)
	if spec != nil {
		probes = max(1, int32(spec.Probes))
	}
	if b.state == breakerHalfOpen {
		probes -= min(probes-1, int32(b.counts.Successes))
	}
	return max(0, probes-b.probing)
}

func (s *State) breakerSpec(name string) *dag.Breaker {
	b, _ := s.graph.Plan.BreakerByName(name)
	return b
}

// whenOpen is what nodes do now: what a person said, else what the plan says.
func (s *State) whenOpen(b *breaker) dag.WhenOpen {
	if b.answer != "" {
		return dag.WhenOpen(b.answer)
	}
	if spec := s.breakerSpec(b.name); spec != nil {
		return spec.WhenOpen
	}
	return dag.OpenWait
}

// BreakerRecord returns the last change recorded of a breaker, and when it was recorded.
func (s *State) BreakerRecord(name string) (BreakerChangedBody, time.Time, bool) {
	k, ok := s.breakAt[name]
	if !ok || s.breakers[k].changed == 0 {
		return BreakerChangedBody{}, time.Time{}, false
	}
	b := &s.breakers[k]
	return BreakerChangedBody{Breaker: name, State: breakerNames[b.state], Until: at(b.until), Counts: b.counts, Cause: b.cause}, at(b.changed), true
}

// A BreakerView is a breaker as status and reports show it.
type BreakerView struct {
	BreakerChangedBody
	Changed  time.Time // zero: nothing was recorded, it is closed
	Openings int
	Probing  int       // probes in flight
	Hold     time.Time // until when a quota holds its nodes
}

// Breakers returns all breakers: those of the plan by name, then those of earlier plans and of accounts that
// have refused.
func (s *State) Breakers() []BreakerView {
	list := make([]BreakerView, 0, len(s.breakers))
	for k := range s.breakers {
		b := &s.breakers[k]
		if b.changed == 0 && strings.HasPrefix(b.name, accountPrefix) {
			continue
		}
		list = append(list, BreakerView{
			BreakerChangedBody{Breaker: b.name, State: breakerNames[b.state], Until: at(b.until), Counts: b.counts, Cause: b.cause},
			at(b.changed), int(b.openings), int(b.probing), at(b.hold)})
	}
	return list
}
