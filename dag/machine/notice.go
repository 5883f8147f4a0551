package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
)

// A Notice is an event of which somebody is to be told. It stands in the state from that event on until NOTIFIED says
// that they were, so that whoever is killed in between tells them again.
type Notice struct {
	Of      int64           `json:"of"` // seq of the event
	To      int             `json:"to"` // index in the plan's list
	On      string          `json:"on"` // ask | pause | fail | end | undo
	Time    time.Time       `json:"time"`
	Type    Type            `json:"type"`
	Stage   string          `json:"stage,omitempty"`
	Payload json.RawMessage `json:"payload"`
	Missed  int             `json:"missed,omitempty"` // events right before it that were left out, see bound
}

// Notices returns who is to be told of what, oldest event first.
func (s *State) Notices() []Notice { return s.notices }

// Missed is how many events somebody was to be told of and never will be, because too many were waiting; an event
// counts once for each of them.
func (s *State) Missed() int { return s.observed.Missed }

// notice finds out who is to be told of an event that was applied.
func (s *State) notice(e *Event) {
	p := s.graph.Plan
	s.notices = slices.DeleteFunc(s.notices, func(n Notice) bool { return n.To >= len(p.Notify) }) // of an earlier plan
	on := noticed(e.Body)
	if on == "" || len(p.Notify) == 0 {
		return
	}
	raw, err := AppendPayload(nil, e.Body)
	if err != nil {
		return // it cannot be: the event was written
	}
	n := Notice{Of: s.run.Seq + 1, On: on, Time: e.Time, Type: e.Type, Payload: raw}
	if i, ok := s.graph.Index(NodeOf(e.Body)); ok {
		n.Stage = p.Stage(s.graph.Node(i))
	}
	for k, to := range p.Notify {
		if n.To = k; len(to.On) == 0 || slices.Contains(to.On, on) {
			s.notices = append(s.notices, n)
			s.bound(k, to.Most)
		}
	}
}

// bound leaves out what waits for somebody beyond a number of notices, so that a receiver who is gone costs no more
// than that. The oldest may be on its way already: the one behind it goes, and the next one says how many are missing.
func (s *State) bound(to, most int) {
	var waits []int // indexes
	for i, n := range s.notices {
		if n.To == to {
			waits = append(waits, i)
		}
	}
	if most == 0 || len(waits) <= most { // none is declared by plans of earlier versions
		return
	}
	s.notices[waits[2]].Missed += s.notices[waits[1]].Missed + 1
	s.observed.Missed++
	s.notices = slices.Delete(s.notices, waits[1], waits[1]+1)
}

// noticed is the word for what an event tells; empty for most.
func noticed(b Body) string {
	switch b := b.(type) {
	case *EscalationOpenedBody:
		return "ask"
	case *RunPausedBody:
		if b.Reason != PauseCancel && b.Reason != PauseFailure { // the end follows
			return "pause"
		}
	case *FinishedBody:
		if b.Status == dag.StatusFailed && (b.Final || b.Stop) {
			return "fail"
		}
	case *RunEndedBody:
		return "end"
	case *CompensationBody:
		if b.Then == "" {
			return "undo"
		}
	}
	return ""
}

func (s *State) onNotified(_ Event, b *NotifiedBody) error {
	k := slices.IndexFunc(s.notices, func(n Notice) bool { return n.Of == b.Of && n.To == b.To })
	if k < 0 {
		return fmt.Errorf("nobody is to be told of event %d", b.Of)
	}
	s.notices = slices.Delete(s.notices, k, k+1)
	for k := range s.observed.Compensations {
		if c := &s.observed.Compensations[k]; c.Seq == b.Of {
			c.Told = c.Told || b.Error == ""
		}
	}
	return nil
}
