package executor

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run/statedir"
)

// count answers what the machine asks of a breaker. sony/gobreaker does the counting, over the state that is in the
// question and over nothing else: the same question at the same instant has the same answer in every process.
//
//	closed --[failures reached]--> open --[openFor passed]--> half-open
//	half-open --[probes ended well]--> closed     half-open --[failure]--> open
func count(q *machine.BreakerQuestion, now time.Time) *machine.BreakerChangedBody {
	b := &machine.BreakerChangedBody{Breaker: q.Breaker.Name, State: gobreaker.StateHalfOpen.String()}
	if q.Last.State == gobreaker.StateOpen.String() {
		b.Cause = "openFor has passed"
		if q.Outcome != nil {
			b.Cause = "a call that began earlier ended well"
		}
		return b
	}
	b.Cause = q.Outcome.Node + ": completed"
	var bad error
	if !q.Outcome.Good() {
		b.Cause = q.Outcome.Node + ": " + q.Outcome.Category
		bad = errors.New(q.Outcome.Category)
	}
	s := counted(q, now, bad)
	b.State = s.State.String()
	b.Counts = machine.Counts{
		Requests: s.Counts.Requests, Successes: s.Counts.TotalSuccesses, Failures: s.Counts.TotalFailures,
		ConsecOK: s.Counts.ConsecutiveSuccesses, ConsecBad: s.Counts.ConsecutiveFailures,
	}
	switch {
	case s.State == gobreaker.StateOpen: // in whole milliseconds, as events have them: who asks again then finds it passed
		b.Until = now.UTC().Truncate(time.Millisecond).Add(q.Breaker.OpenFor.D())
	case q.Breaker.Window > 0:
		b.Recent = recent(s)
	}
	return b
}

// buckets is the resolution of a rolling window.
const buckets = 10

// counted has gobreaker count one outcome. It takes and gives its state through a store, as where processes share a
// breaker. It reads the clock itself, but only to tell buckets of the window apart: they are laid around its now as
// they lie around ours.
func counted(q *machine.BreakerQuestion, now time.Time, bad error) (s gobreaker.SharedState) {
	spec, last := q.Breaker, &q.Last.Counts
	tenth := spec.Window.D() / buckets
	s = gobreaker.SharedState{Generation: 1, Buckets: make([]gobreaker.Counts, 1), Counts: gobreaker.Counts{
		Requests: last.Requests, TotalSuccesses: last.Successes, TotalFailures: last.Failures,
		ConsecutiveSuccesses: last.ConsecOK, ConsecutiveFailures: last.ConsecBad,
	}}
	if q.Last.State == gobreaker.StateHalfOpen.String() {
		s.State = gobreaker.StateHalfOpen
	}
	if spec.Window > 0 && s.State == gobreaker.StateClosed {
		n := int((spec.Window.D() + tenth - 1) / tenth)
		s.Age, s.Buckets = uint64(n-1), make([]gobreaker.Counts, n)
		s.Start = time.Now().Add(-time.Duration(n-1)*tenth - tenth/2)
		s.Counts = gobreaker.Counts{}
		passed := int(now.UnixNano()/int64(tenth) - q.Changed.UnixNano()/int64(tenth))
		for k, failures := range recorded(&q.Last) {
			if at := n - 1 - k - passed; at >= 0 && at < n {
				s.Buckets[at] = gobreaker.Counts{Requests: failures, TotalFailures: failures}
				s.Counts.Requests += failures
				s.Counts.TotalFailures += failures
			}
		}
	}
	store := shared{}
	store.put(s)
	cb, err := gobreaker.NewDistributedCircuitBreaker[struct{}](store, gobreaker.Settings{
		MaxRequests:  uint32(max(1, spec.Probes)),
		Interval:     spec.Window.D(),
		BucketPeriod: tenth,
		Timeout:      spec.OpenFor.D(),
		ReadyToTrip: func(c gobreaker.Counts) bool {
			if spec.Window > 0 {
				return int(c.TotalFailures) >= spec.Failures
			}
			return int(c.ConsecutiveFailures) >= spec.Failures
		},
	})
	if err == nil {
		_, _ = cb.Execute(func() (struct{}, error) { return struct{}{}, bad }) // a rejection changes nothing
		err = json.Unmarshal(store[stateKey], &s)
	}
	if err != nil { // only memory is involved: a mistake in the program
		panic("executor: breaker " + spec.Name + ": " + err.Error())
	}
	return s
}

// recorded are the failures in the tenths of the window. Earlier versions recorded their sum only: it counts as new,
// for longer than it would have, never for less.
func recorded(last *machine.BreakerChangedBody) []uint32 {
	if last.Recent == nil && last.Counts.Failures > 0 {
		return []uint32{last.Counts.Failures}
	}
	return last.Recent
}

// recent are the failures in the tenths of the window, the newest first.
func recent(s gobreaker.SharedState) []uint32 {
	n := len(s.Buckets)
	list := make([]uint32, n)
	last := 0
	for k := range n {
		list[k] = s.Buckets[(int(s.Age)-k+n)%n].TotalFailures
		if list[k] > 0 {
			last = k + 1
		}
	}
	return list[:last]
}

// shared is gobreaker's store: the state of one breaker for one question.
type shared map[string][]byte

const stateKey = "gobreaker:state:"

func (m shared) put(s gobreaker.SharedState) { m[stateKey], _ = json.Marshal(s) } // numbers and times cannot fail

func (m shared) Lock(string) error                      { return nil }
func (m shared) Unlock(string) error                    { return nil }
func (m shared) GetData(name string) ([]byte, error)    { return m[name], nil }
func (m shared) SetData(name string, data []byte) error { m[name] = data; return nil }

// inherit records the breakers of the plan that the run knows nothing of and an earlier one left open.
func (h *host) inherit(now time.Time) error {
	var bodies []machine.Body
	for _, spec := range h.run.Graph().Plan.Breakers {
		if _, _, known := h.state().BreakerRecord(spec.Name); known || h.o.Breakers == nil {
			continue
		}
		left, _, ok, err := LeftOpen(h.o.Breakers, spec)
		if err != nil {
			return err
		}
		if ok {
			bodies = append(bodies, &left)
		}
	}
	return h.record(now, bodies...)
}

// LeftOpen returns the state in which an earlier run left a breaker, and since when: what a run without
// facts of its own on the breaker begins with. False when it is closed or was never kept.
func LeftOpen(store *statedir.Dir, spec dag.Breaker) (machine.BreakerChangedBody, time.Time, bool, error) {
	kept, ok, err := store.Breaker(cmp.Or(spec.Key, spec.Name))
	if err != nil || !ok || kept.State == gobreaker.StateClosed.String() {
		return machine.BreakerChangedBody{}, time.Time{}, false, err
	}
	return machine.BreakerChangedBody{Breaker: spec.Name, State: kept.State, Until: kept.Until, Counts: kept.Counts,
		Cause: "as an earlier run left it"}, kept.Updated, true, nil
}

// counts answers the machine, and keeps the answer for the next run. Not being able to is no reason to stop: the
// run's own log has it.
func (h *host) counts(q *machine.BreakerQuestion, now time.Time) machine.Body {
	b := count(q, now)
	if h.o.Breakers != nil {
		_ = h.o.Breakers.SetBreaker(cmp.Or(q.Breaker.Key, q.Breaker.Name),
			statedir.Breaker{State: b.State, Until: b.Until, Counts: b.Counts, Updated: now})
	}
	return b
}
