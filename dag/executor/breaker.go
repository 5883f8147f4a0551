package executor

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A breaker counts how the attempts that name it ended. gobreaker does the counting; its state
// is what the last BREAKER_CHANGED says, handed to it through its store, so that a run goes on
// with the breaker as it was.
//
//	closed --[failures reached]--> open --[openFor passed]--> half-open
//	half-open --[probes ended well]--> closed     half-open --[failure]--> open
//
// The machine gates the starts; a call is reported when it has ended, in no time, so that a
// long call holds no slot and no result is dropped for having begun in an earlier state:
// a call that ends well while the breaker is open lets the probes begin at once.
// It belongs to the goroutine of the loop.
type breaker struct {
	spec dag.Breaker
	mem  memory
	cb   *gobreaker.DistributedCircuitBreaker[struct{}]
	// changed takes the transitions of one call. gobreaker calls back under its lock, so that
	// the callback must do nothing but send; one call makes at most three transitions.
	changed chan gobreaker.State
}

// errIll is how an attempt is reported that says that the remote is ill.
var errIll = errors.New("ill")

// buckets is the resolution of a rolling window.
const buckets = 10

// newBreaker returns a breaker as the last recorded change left it at an instant; a zero
// change is a new breaker.
func newBreaker(spec dag.Breaker, last machine.BreakerChangedBody, at time.Time) (*breaker, error) {
	b := &breaker{spec: spec, mem: memory{}, changed: make(chan gobreaker.State, 8)}
	if err := b.store(sharedState(spec, last, at)); err != nil {
		return nil, err
	}
	cb, err := gobreaker.NewDistributedCircuitBreaker[struct{}](b.mem, gobreaker.Settings{
		Name:          spec.Name,
		MaxRequests:   uint32(max(1, spec.Probes)),
		Interval:      spec.Window.D(),
		BucketPeriod:  spec.Window.D() / buckets,
		Timeout:       spec.OpenFor.D(),
		ReadyToTrip:   b.full,
		OnStateChange: func(_ string, _, to gobreaker.State) { b.changed <- to },
	})
	b.cb = cb
	return b, err
}

// sharedState is gobreaker's form of a recorded change. Counts of a window go to its newest
// bucket: after a restart they count for longer, never for less.
func sharedState(spec dag.Breaker, last machine.BreakerChangedBody, at time.Time) gobreaker.SharedState {
	s := gobreaker.SharedState{Generation: 1, Start: at, Expiry: last.Until, Counts: gobreaker.Counts{
		Requests:             last.Counts.Requests,
		TotalSuccesses:       last.Counts.Successes,
		TotalFailures:        last.Counts.Failures,
		ConsecutiveSuccesses: last.Counts.ConsecOK,
		ConsecutiveFailures:  last.Counts.ConsecBad,
	}}
	switch last.State {
	case "open":
		s.State = gobreaker.StateOpen
	case "half-open":
		s.State = gobreaker.StateHalfOpen
	}
	n := 1
	if spec.Window > 0 {
		n = int((spec.Window + spec.Window/buckets - 1) / (spec.Window / buckets))
	}
	s.Buckets = make([]gobreaker.Counts, n)
	s.Buckets[0] = s.Counts
	return s
}

func (b *breaker) full(c gobreaker.Counts) bool {
	if b.spec.Window > 0 {
		return int(c.TotalFailures) >= b.spec.Failures
	}
	return int(c.ConsecutiveFailures) >= b.spec.Failures
}

// tick lets the time do its part: an open breaker whose time has come becomes half-open.
func (b *breaker) tick(now time.Time) ([]machine.BreakerChangedBody, error) {
	s, err := b.load()
	if err != nil || s.State != gobreaker.StateOpen || now.Before(s.Expiry) {
		return nil, err
	}
	return b.probe(s, now, "openFor has passed")
}

// probe ends the open state now.
func (b *breaker) probe(s gobreaker.SharedState, now time.Time, cause string) ([]machine.BreakerChangedBody, error) {
	s.Expiry = now.Add(-time.Millisecond) // gobreaker compares strictly
	if err := b.store(s); err != nil {
		return nil, err
	}
	if _, err := b.cb.State(); err != nil {
		return nil, err
	}
	return b.changes(cause, false)
}

// report counts an attempt that began at an instant and has now ended: well, or with a failure
// that says that the remote is ill. Everything else (cancelled, refused, a bad answer) must
// not be reported. It returns what is to be recorded.
func (b *breaker) report(good bool, began, now time.Time, cause string) ([]machine.BreakerChangedBody, error) {
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	var out []machine.BreakerChangedBody
	if s.State == gobreaker.StateOpen && good {
		if out, err = b.probe(s, now, "a call that began earlier ended well"); err != nil {
			return out, err
		}
	} else if !good && s.State != gobreaker.StateClosed && began.Before(s.Start) {
		return nil, nil // what it says of the remote is known already
	}
	_, _ = b.cb.Execute(func() (struct{}, error) { // a rejection changes nothing
		if good {
			return struct{}{}, nil
		}
		return struct{}{}, errIll
	})
	// A restart must know of every failure, and of the success that ends a row of them.
	counted := !good || s.State == gobreaker.StateHalfOpen || b.spec.Window == 0 && s.Counts.ConsecutiveFailures > 0
	more, err := b.changes(cause, counted && s.State != gobreaker.StateOpen)
	return append(out, more...), err
}

// changes returns the transitions of the last call and, if there was none but counts that a
// restart must know of have changed, those.
func (b *breaker) changes(cause string, counts bool) ([]machine.BreakerChangedBody, error) {
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	var out []machine.BreakerChangedBody
	for len(b.changed) > 0 {
		out = append(out, machine.BreakerChangedBody{Breaker: b.spec.Name, State: (<-b.changed).String(), Cause: cause})
	}
	if len(out) == 0 && counts {
		out = append(out, machine.BreakerChangedBody{Breaker: b.spec.Name, State: s.State.String(), Cause: cause})
	}
	if len(out) == 0 {
		return nil, nil
	}
	last := &out[len(out)-1]
	if s.State == gobreaker.StateOpen {
		// Whole milliseconds, as events have them: what is asked again at Until finds it passed.
		s.Expiry = s.Expiry.UTC().Truncate(time.Millisecond)
		last.Until = s.Expiry
		if err := b.store(s); err != nil {
			return nil, err
		}
	}
	last.Counts = machine.Counts{
		Requests: s.Counts.Requests, Successes: s.Counts.TotalSuccesses, Failures: s.Counts.TotalFailures,
		ConsecOK: s.Counts.ConsecutiveSuccesses, ConsecBad: s.Counts.ConsecutiveFailures,
	}
	return out, nil
}

func (b *breaker) key() string { return "gobreaker:state:" + b.spec.Name }

func (b *breaker) load() (s gobreaker.SharedState, err error) {
	return s, json.Unmarshal(b.mem[b.key()], &s)
}

func (b *breaker) store(s gobreaker.SharedState) error {
	data, err := json.Marshal(s)
	b.mem[b.key()] = data
	return err
}

// memory is gobreaker's store: the state of one breaker, used by one goroutine.
type memory map[string][]byte

func (m memory) Lock(string) error                      { return nil }
func (m memory) Unlock(string) error                    { return nil }
func (m memory) GetData(name string) ([]byte, error)    { return m[name], nil }
func (m memory) SetData(name string, data []byte) error { m[name] = data; return nil }

func (b *breaker) halfOpen() bool {
	s, err := b.load()
	return err == nil && s.State == gobreaker.StateHalfOpen
}
