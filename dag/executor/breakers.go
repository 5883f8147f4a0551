package executor

import (
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
)

// A BreakerStore keeps the state of breakers for the next run. *statedir.Dir is one.
type BreakerStore interface {
	Breaker(key string) (statedir.Breaker, bool, error)
	SetBreaker(key string, b statedir.Breaker) error
}

// A breakerSet holds the breakers of a plan. The machine gates starts by what was recorded of
// them; the set only says what is to be recorded. It belongs to the goroutine of the loop.
type breakerSet struct {
	run    *run.Run
	store  BreakerStore
	byName map[string]*breaker
	names  []string // in plan order
}

// newBreakerSet loads the breakers: from the run's own facts, else from what an earlier run left
// open.
func newBreakerSet(r *run.Run, store BreakerStore, now time.Time) (*breakerSet, error) {
	s := &breakerSet{run: r, store: store, byName: map[string]*breaker{}}
	var inherited []machine.Body
	for _, spec := range r.Graph().Plan.Breakers {
		last, at, known := r.State().BreakerRecord(spec.Name)
		if !known && store != nil {
			kept, when, ok, err := LeftOpen(store, spec)
			if err != nil {
				return nil, err
			}
			if ok {
				last, at = kept, when
				inherited = append(inherited, &last)
			}
		}
		b, err := newBreaker(spec, last, at)
		if err != nil {
			return nil, err
		}
		s.byName[spec.Name] = b
		s.names = append(s.names, spec.Name)
	}
	if len(inherited) == 0 {
		return s, nil
	}
	_, err := r.Record(now, inherited...)
	return s, err
}

// LeftOpen returns the state in which an earlier run left a breaker, and since when: what a run without
// facts of its own on the breaker begins with. False when it is closed or was never kept.
func LeftOpen(store BreakerStore, spec dag.Breaker) (machine.BreakerChangedBody, time.Time, bool, error) {
	kept, ok, err := store.Breaker(breakerKey(spec))
	if err != nil || !ok || kept.State == "closed" {
		return machine.BreakerChangedBody{}, time.Time{}, false, err
	}
	return machine.BreakerChangedBody{Breaker: spec.Name, State: kept.State, Until: kept.Until, Counts: kept.Counts,
		Cause: "as an earlier run left it"}, kept.Updated, true, nil
}

func breakerKey(b dag.Breaker) string {
	if b.Key != "" {
		return b.Key
	}
	return b.Name
}

// tickBreakers records the breakers whose time has come.
func (h *host) tickBreakers(now time.Time) error {
	var bodies []machine.Body
	for _, name := range h.breakers.names {
		out, err := h.breakers.byName[name].tick(now)
		if err != nil {
			return err
		}
		bodies = append(bodies, h.breakers.keep(name, out, now)...)
	}
	return h.record(now, bodies...)
}

// report counts how an attempt of a node ended and returns what is to be recorded of its
// breaker.
//
// While the breaker is closed a failure counts when it is the node's last: retries used up.
// While it is half-open every failure counts: the attempt was a probe.
func (s *breakerSet) report(n *dag.Node, began time.Time, f *machine.FinishedBody, now time.Time) []machine.Body {
	b := s.byName[n.Breaker]
	if b == nil {
		return nil
	}
	good := f.Status == dag.StatusCompleted
	if !good && (f.Status != dag.StatusFailed || !s.counts(b.spec, f.Category) || !f.Final && !b.halfOpen()) {
		return nil
	}
	cause := n.ID + ": completed"
	if !good {
		cause = n.ID + ": " + f.Category
	}
	out, err := b.report(good, began, now, cause)
	if err != nil { // only memory is involved: a mistake in the program
		panic(fmt.Sprintf("executor: breaker %s: %v", n.Breaker, err))
	}
	return s.keep(n.Breaker, out, now)
}

// counts reports whether a category of failure says that the remote is ill.
func (s *breakerSet) counts(b dag.Breaker, category string) bool {
	if len(b.Counts) > 0 {
		return slices.Contains(b.Counts, category)
	}
	for _, c := range s.run.Graph().Plan.Categories {
		if c.Name == category {
			return c.Breaker > 0
		}
	}
	return false
}

// keep saves the last change for the next run and returns the changes as payloads. Not being
// able to save is no reason to stop: the run's own log has them.
func (s *breakerSet) keep(name string, changes []machine.BreakerChangedBody, now time.Time) []machine.Body {
	if len(changes) == 0 {
		return nil
	}
	bodies := make([]machine.Body, len(changes))
	for i := range changes {
		bodies[i] = &changes[i]
	}
	if s.store != nil {
		last := changes[len(changes)-1]
		_ = s.store.SetBreaker(breakerKey(s.byName[name].spec), statedir.Breaker{State: last.State, Until: last.Until, Counts: last.Counts, Updated: now})
	}
	return bodies
}
