package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// A breaker is what was recorded of a named circuit breaker. The machine gates starts, and asks its host to
// count how attempts ended (Op Count); what the host answers is recorded, and is all that is counted from:
//
//	closed ---------> open ---until has passed---> half-open: probes only ---> closed
//	   ^               ^ whenOpen: wait, skip,              |
//	   |               |  continue, escalate                |
//	   +--- recorded --+------------ recorded --------------+
type breaker struct {
	Name     string       `json:"breaker"`
	State    breakerState `json:"state,omitempty"`
	Until    int64        `json:"until,omitempty"`
	Counts   Counts       `json:"counts,omitzero"`
	Cause    string       `json:"cause,omitempty"`
	Changed  int64        `json:"changed_at,omitempty"` // 0 = nothing was recorded of it
	Epoch    int32        `json:"epoch,omitempty"`      // transitions so far; probes belong to one
	Openings int32        `json:"openings,omitempty"`
	Hold     int64        `json:"hold_until,omitempty"` // until when a quota holds every node of it
	Opened   int64        `json:"opened_at,omitempty"`  // of an account: when it answered again
	Started  int64        `json:"last_start,omitempty"` // of an account: the last start since
	Recent   []uint32     `json:"recent_failures,omitempty"`
	Since    int64        `json:"state_since,omitempty"` // of the last change of state
	// Pending are the outcomes that are to be counted, oldest first; no start passes before.
	Pending  []BreakerOutcome `json:"to_count,omitempty"`
	Question string           `json:"escalation,omitempty"` // of the present opening
	Answer   string           `json:"answer,omitempty"`     // to it
	Extended int32            `json:"extended,omitempty"`   // how often answers have given its nodes more time

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
	k := int32(len(s.breakers))
	s.breakAt[name] = k
	s.breakers = append(s.breakers, breaker{Name: name})
	return k
}

// indexBreakers prepares for a graph: breakers of an earlier plan are kept.
func (s *State) indexBreakers() {
	s.breakAt = map[string]int32{}
	for k := range s.breakers {
		s.breakAt[s.breakers[k].Name] = int32(k)
		s.breakers[k].probing = 0
	}
	for k := range s.graph.Plan.Breakers {
		s.breakerIndex(s.graph.Plan.Breakers[k].Name)
	}
}

func (s *State) onBreaker(e Event, b *BreakerChangedBody) error {
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
	before := k.State
	if state != before {
		k.Since = ms(e.Time)
		if state != breakerHalfOpen { // probes may start before that is recorded
			k.Epoch++
			k.probing = 0
		}
		if state == breakerOpen {
			k.Openings++
			k.Question, k.Answer = "", ""
		}
	}
	k.State, k.Until, k.Counts, k.Recent, k.Cause, k.Changed = state, ms(b.Until), b.Counts, b.Recent, b.Cause, ms(e.Time)
	k.counted(before)
	return nil
}

// A BreakerOutcome is an end of an attempt that a breaker counts.
type BreakerOutcome struct {
	Node     string `json:"node"`
	Category string `json:"category,omitempty"` // of the failure; empty = it ended well
	// Final: it counts while the breaker is closed, for no further attempt of the node follows, or for each counts.
	Final bool `json:"final,omitempty"`
}

// Good reports whether the attempt ended well.
func (o *BreakerOutcome) Good() bool { return o.Category == "" }

// A BreakerQuestion asks what becomes of a breaker. The answer is one change, which is recorded.
type BreakerQuestion struct {
	Breaker *dag.Breaker
	Last    BreakerChangedBody // what was last recorded of it
	Changed time.Time          // when; zero = nothing was, it is closed
	// Outcome is what is to be counted. Of an open breaker nothing is: it becomes half-open, because its time has
	// come (nil), or because an attempt that began earlier has ended well.
	Outcome *BreakerOutcome
}

// count notes the end of a running attempt that its breaker has to count. While the breaker is closed a failure counts
// when it is the node's last, and a success when it ends a row of failures; while it is half-open every end of a probe
// counts. An end that says nothing new is left out: it would have to be recorded.
func (s *State) count(i int32, b *FinishedBody) {
	n := s.graph.Node(i)
	spec, ok := s.graph.Plan.BreakerByName(n.Breaker)
	if !ok {
		return
	}
	k := &s.breakers[s.breakerIndex(n.Breaker)]
	o := BreakerOutcome{Node: n.ID, Final: b.Final || spec.Each == "attempt"}
	switch {
	case b.Status == dag.StatusCompleted:
		quiet := spec.Window != 0 || k.Counts.ConsecBad == 0
		if k.State == breakerClosed && quiet && len(k.Pending) == 0 {
			return
		}
	case b.Status != dag.StatusFailed || !s.speaksOfRemote(spec, b.Category) || k.State == breakerOpen:
		return
	case k.State == breakerHalfOpen && s.recs[i].Started < k.Since:
		return // what it says of the remote is known already
	case k.State == breakerClosed && !o.Final:
		return
	default:
		o.Category = b.Category
	}
	k.Pending = append(k.Pending, o)
}

// speaksOfRemote reports whether a category of failure says that the remote is unhealthy.
func (s *State) speaksOfRemote(spec *dag.Breaker, category string) bool {
	if len(spec.Counts) > 0 {
		return slices.Contains(spec.Counts, category)
	}
	c, ok := s.graph.Plan.CategoryByName(category)
	return ok && c.Breaker > 0
}

// counted takes off what a recorded change has counted: the oldest outcome, unless the breaker was open. What is left
// must still count in the state that it is in now.
func (b *breaker) counted(before breakerState) {
	if before != breakerOpen && len(b.Pending) > 0 {
		b.Pending = b.Pending[1:]
	}
	b.Pending = slices.DeleteFunc(b.Pending, func(o BreakerOutcome) bool {
		return !o.Good() && (b.State == breakerOpen || b.State == breakerClosed && !o.Final)
	})
}

// counts asks the host to count, and to end the open state of breakers whose time has come.
func (d *decision) counts() {
	for k := range d.s.breakers {
		b := &d.s.breakers[k]
		due := b.State == breakerOpen && b.Until != 0 && b.Until <= d.now
		if len(b.Pending) == 0 && !due {
			continue
		}
		spec, ok := d.s.graph.Plan.BreakerByName(b.Name)
		if !ok {
			continue // of an earlier plan, or an account's
		}
		q := &BreakerQuestion{Breaker: spec, Last: b.last(), Changed: at(b.Changed)}
		if len(b.Pending) > 0 {
			q.Outcome = &b.Pending[0]
		}
		d.cmds = append(d.cmds, Command{Op: Count, Breaker: q})
	}
}

// last is the change that was last recorded of a breaker.
func (b *breaker) last() BreakerChangedBody {
	return BreakerChangedBody{Breaker: b.Name, State: breakerNames[b.State], Until: at(b.Until),
		Counts: b.Counts, Recent: b.Recent, Cause: b.Cause}
}

// isOpen reports whether no start may pass at an instant. An open breaker whose time has passed
// lets probes through even before its host has recorded that it is half-open.
func (b *breaker) isOpen(now int64) bool {
	return b.State == breakerOpen && (b.Until == 0 || now < b.Until)
}

// room is how many starts it lets through at an instant.
func (b *breaker) room(spec *dag.Breaker, now int64) int32 {
	switch {
	case b.isOpen(now) || now < b.Hold || len(b.Pending) > 0:
		return 0
	case b.State == breakerClosed && now < b.Opened+spreadFor.Milliseconds():
		if now < b.nextStart(now) {
			return 0
		}
		return 1
	case b.State == breakerClosed:
		return 1 << 30
	}
	probes := int32(1)
	if spec != nil {
		probes = int32(spec.Probes)
	}
	if b.State == breakerHalfOpen {
		probes -= int32(b.Counts.Successes)
	}
	return max(0, max(1, probes)-b.probing)
}

func (s *State) breakerSpec(name string) *dag.Breaker {
	b, _ := s.graph.Plan.BreakerByName(name)
	return b
}

// whenOpen is what nodes do now: what a user said, else what the plan says.
func (s *State) whenOpen(b *breaker) dag.WhenOpen {
	if b.Answer != "" {
		return dag.WhenOpen(b.Answer)
	}
	if spec := s.breakerSpec(b.Name); spec != nil {
		return spec.WhenOpen
	}
	return dag.OpenWait
}

// BreakerRecord returns the last change recorded of a breaker, and when it was recorded.
func (s *State) BreakerRecord(name string) (BreakerChangedBody, time.Time, bool) {
	k, ok := s.breakAt[name]
	if !ok || s.breakers[k].Changed == 0 {
		return BreakerChangedBody{}, time.Time{}, false
	}
	b := &s.breakers[k]
	return b.last(), at(b.Changed), true
}

// A BreakerView is a breaker as status and reports show it.
type BreakerView struct {
	BreakerChangedBody
	Hold time.Time // until when a quota holds its nodes
}

// Breakers returns all breakers: those of the plan by name, then those of earlier plans and of accounts that
// have refused.
func (s *State) Breakers() []BreakerView {
	list := make([]BreakerView, 0, len(s.breakers))
	for k := range s.breakers {
		b := &s.breakers[k]
		if b.Changed == 0 && strings.HasPrefix(b.Name, accountPrefix) {
			continue
		}
		list = append(list, BreakerView{b.last(), at(b.Hold)})
	}
	return list
}
