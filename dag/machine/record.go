package machine

import (
	"cmp"
	"reflect"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// A rec is what is known of a node in its current generation: facts, and nothing that could be
// derived from them (but for due). Most nodes need no more than this; the rest is in Detail. The snapshot holds it
// as it is. Instants are Unix milliseconds, 0 = none.
type rec struct {
	Gen         int32     `json:"generation"`
	Attempt     int32     `json:"attempt,omitempty"`
	Phase       phase     `json:"phase,omitempty"`
	End         reuse.End `json:"end,omitempty"`       // where phase is ended
	Cond        bool      `json:"condition,omitempty"` // the condition was found true
	Expanded    bool      `json:"expanded,omitempty"`
	Items       int32     `json:"items,omitempty"`    // of an expanded foreach
	Started     int64     `json:"started,omitempty"`  // of the last attempt
	Finished    int64     `json:"finished,omitempty"` // of the last attempt
	EndSeq      int64     `json:"seq,omitempty"`      // of the event that ended the node
	Fingerprint string    `json:"fingerprint,omitempty"`
	Detail      *detail   `json:"detail,omitempty"`

	due bool // its instant to start again has come; a note of Advance, not a fact
}

// newRecs are the records of nodes that have just come into a plan.
func newRecs(n int) []rec { return slices.Repeat([]rec{{Gen: 1}}, n) }

type phase uint8

const (
	idle    phase = iota
	running       // an attempt is in flight
	ended         // no further attempt follows by itself
	stale         // ended, but the plan has changed above it: the end may not hold
)

// A detail is what is known of a node to which something has happened.
type detail struct {
	First    int64         `json:"first,omitempty"`    // first start of this generation
	Since    int64         `json:"since,omitempty"`    // start of the time that Timeout.Total bounds; 0 = First
	Last     *FinishedBody `json:"last,omitempty"`     // last end, without notes and diagnostics
	Failures []catCount    `json:"failures,omitempty"` // in this round, by category
	// Before are the failures of this generation that use up no attempt: of earlier rounds, waits, stops.
	Before     int32      `json:"failures_before,omitempty"`
	Lost       int32      `json:"lost,omitempty"`     // in this round
	Waits      int32      `json:"waits,omitempty"`    // in a row
	Rounds     int32      `json:"rounds,omitempty"`   // final failures, each after a fresh start
	Rewinds    int32      `json:"rewinds,omitempty"`  // that its failures caused
	Reshaped   bool       `json:"reshaped,omitempty"` // a foreach: its items are others than those of the expansion before
	Requeues   int32      `json:"requeues,omitempty"` // times it sent back what it was missing; see again
	RetryAt    int64      `json:"retry_at,omitempty"`
	Hold       bool       `json:"hold,omitempty"`       // RetryAt is a wait, not a backoff
	Pooled     int64      `json:"pool_since,omitempty"` // since when it waits for a place in its pool
	Extended   int32      `json:"extended,omitempty"`   // how often answers have given it more time
	Stopped    bool       `json:"stopped,omitempty"`    // only a user can help
	Queued     bool       `json:"queued,omitempty"`     // the attempt was handed over; the work has not begun
	Unresolved bool       `json:"unresolved,omitempty"` // a lost attempt may have had an effect
	Called     bool       `json:"called,omitempty"`     // the call of the last attempt is recorded as begun
	Took       string     `json:"took,omitempty"`       // how the last attempt ended well, before its end was recorded
	Undone     bool       `json:"undone,omitempty"`     // its undo action is done, or a user went on without it
	Left       bool       `json:"left,omitempty"`       // a user went on without its undo action
	UndoLost   bool       `json:"undo_lost,omitempty"`  // its undo action was cut off, and may not be repeated unasked
	UndoOver   bool       `json:"undo_over,omitempty"`  // it failed, and what that was to undo is undone
	Passed     bool       `json:"passed,omitempty"`     // it is undone, and the run has gone on without it
	UndoTries  int32      `json:"undo_tries,omitempty"` // failures of the undo action
	UndoAt     int64      `json:"undo_at,omitempty"`    // instant before which it is not tried again
	Verdict    string     `json:"verdict,omitempty"`    // of a user: retry | continue | skip | fail | done | rerun
	Question   string     `json:"escalation,omitempty"` // id of the escalation it waits for
	Reserved   dag.Amount `json:"reserved,omitzero"`    // of the running attempt
	Assumed    dag.Amount `json:"assumed,omitzero"`     // booked for a lost attempt until something better is known
	Cost       dag.USD    `json:"cost_usd,omitzero"`    // all attempts and generations
	Usage      Usage      `json:"usage,omitzero"`
	// When the running attempt is a probe: the epoch of its breaker, of its account, plus 1.
	BreakerProbe int32 `json:"breaker_probe,omitempty"`
	AccountProbe int32 `json:"account_probe,omitempty"`
}

// probe is the field for one of the two gates.
func (d *detail) probe(gate int) *int32 {
	if gate == accountGate {
		return &d.AccountProbe
	}
	return &d.BreakerProbe
}

type catCount struct {
	Category string `json:"category"`
	N        int32  `json:"n"`
}

func (r *rec) edit() *detail {
	if r.Detail == nil {
		r.Detail = new(detail)
	}
	return r.Detail
}

// detail returns what else is known of a node, for reading only: never nil. Whoever changes it calls edit.
func (r *rec) detail() *detail {
	if r.Detail == nil {
		return &nothing
	}
	return r.Detail
}

var nothing detail

// tidy forgets a detail that is empty: two states that know the same are the same, and are written the same.
func (r *rec) tidy() {
	if r.Detail != nil && reflect.ValueOf(r.Detail).Elem().IsZero() {
		r.Detail = nil
	}
}

func (r rec) tidied() rec {
	r.tidy()
	return r
}

// reset sends a node back: a new generation that has not begun. What it cost stays.
func (r *rec) reset() {
	old := r.Detail
	*r = rec{Gen: r.Gen + 1}
	if old != nil {
		r.Detail = &detail{Cost: old.Cost, Usage: old.Usage, Rewinds: old.Rewinds, Requeues: old.Requeues}
	}
}

// fresh gives a node new attempts within its generation: a user resumed the run, or said so.
func (r *rec) fresh(at int64) {
	r.Phase = idle
	m := r.edit()
	m.Before += m.failed()
	m.Failures, m.Lost, m.Waits, m.RetryAt, m.Hold, m.Stopped, m.Pooled = nil, 0, 0, 0, false, false, 0
	m.Verdict = ""
	m.notUndone()
	if r.Attempt > 0 {
		m.Since = at
	}
}

// notUndone forgets what was done to undo a node, or its failure.
func (d *detail) notUndone() {
	d.Undone, d.Left, d.UndoLost, d.UndoOver, d.Passed, d.UndoTries, d.UndoAt = false, false, false, false, false, 0, 0
}

func (r *rec) wakeAt() int64 { return r.detail().RetryAt }

func (r *rec) firstStart() int64 { return cmp.Or(r.detail().First, r.Started) }

// timeLimits are the time limits of a node, half as long again for each answer that gave it more time.
func (s *State) timeLimits(i int32) dag.Timeout {
	n := s.graph.Node(i)
	t, times := n.Timeout, s.recs[i].detail().Extended
	if k, ok := s.breakAt[n.Breaker]; ok {
		times += s.breakers[k].Extended
	}
	for range times {
		for _, limit := range []*dag.Duration{&t.Attempt, &t.Silence, &t.Total} {
			*limit += *limit / 2
		}
	}
	return t
}

// deadline is the instant by which a node must have ended, 0 = none.
func (s *State) deadline(i int32) int64 {
	r, total := &s.recs[i], s.timeLimits(i).Total
	if total == 0 || r.Attempt == 0 || r.Attempt == 1 && r.detail().Queued || r.Phase == ended || r.Phase == stale {
		return 0
	}
	return cmp.Or(r.detail().Since, r.firstStart()) + total.D().Milliseconds()
}

func (d *detail) failed() (total int32) {
	for _, c := range d.Failures {
		total += c.N
	}
	return total
}

func (d *detail) failedBy(category string) int32 {
	for _, c := range d.Failures {
		if c.Category == category {
			return c.N
		}
	}
	return 0
}

func (d *detail) countFailure(category string) {
	for k := range d.Failures {
		if d.Failures[k].Category == category {
			d.Failures[k].N++
			return
		}
	}
	d.Failures = append(d.Failures, catCount{category, 1})
}

// between forgets what a node waited for, and what was known of its attempt: one begins, or has ended.
func (d *detail) between() {
	d.RetryAt, d.Hold, d.Stopped, d.Pooled = 0, false, false, 0
	d.Unresolved, d.Called, d.Queued, d.Reserved = false, false, false, dag.Amount{}
}

// category is that of a node's last end; empty = none.
func (r *rec) category() string {
	if last := r.detail().Last; last != nil {
		return last.Category
	}
	return ""
}

// A settlement is what a node's end means to the nodes that need it.
type settlement uint8

const (
	unsettled settlement = iota
	succeeded
	replaced // a foreach: its items count in its place
	skipped
	forced // skipped or failed so that descendants are skipped whatever their condition
	soft   // failed, and the run goes on
)

func (t settlement) counts() bool { return t != unsettled }

// A tally counts how the needs of a node have ended.
type tally struct{ open, counted, ok, skipped, forced int32 }

func (t *tally) add(k settlement, by int32) {
	if k == unsettled {
		return
	}
	t.open -= by
	if k == replaced {
		return
	}
	t.counted += by
	switch k {
	case succeeded:
		t.ok += by
	case skipped:
		t.skipped += by
	case forced:
		t.forced += by
	}
}

// touch derives a node's status anew from the facts, keeps counts, heaps and lists, and tells
// the dependents when what its end means to them has changed. Whether a node is settled depends on
// its own facts only, so this goes no further than its dependents.
func (s *State) touch(i int32) {
	old, before := s.status[i], s.settled[i]
	st := s.classify(i)
	set := s.settlementOf(i, st)
	if st == old && set == before {
		return
	}
	if s.passedOver(i) {
		s.passed--
	}
	s.settled[i] = set
	if st != old {
		s.move(i, old, st)
	}
	if s.passedOver(i) {
		s.passed++
	}
	if set == before && !s.graph.Node(i).Always { // clean-up nodes wait for the status of one another: see cleanupReady
		return
	}
	s.effects.Forget(i)
	if before == unsettled {
		s.open--
	}
	if set == unsettled {
		s.open++
	}
	for _, d := range s.graph.Dependents(i) {
		s.tallies[d].add(before, -1)
		s.tallies[d].add(set, 1)
		s.touch(d)
	}
}

// passedOver reports whether a node has failed without holding the run.
func (s *State) passedOver(i int32) bool { return s.status[i] == Failed && s.settled[i].counts() }

func (s *State) move(i int32, old, st Status) {
	s.counts[old]--
	s.counts[st]++
	if old == Ready {
		s.remove(i)
	}
	s.status[i] = st
	if st == Ready {
		s.push(i)
	}
	l := &s.lists[st]
	if *l = append(*l, i); len(*l) > 2*int(s.counts[st])+64 {
		*l = s.having(st)
	}
}

// having returns the nodes of a status in index order, in a slice of its own.
func (s *State) having(st Status) (keep []int32) {
	if s.counts[st] == 0 {
		return nil
	}
	for _, i := range s.lists[st] {
		if s.status[i] == st {
			keep = append(keep, i)
		}
	}
	slices.Sort(keep)
	return slices.Compact(keep)
}

// list returns the same; of failed nodes, those that the run cannot go on without.
func (s *State) list(st Status) []int32 {
	passed := func(i int32) bool { return st == Failed && s.settled[i].counts() }
	return slices.DeleteFunc(s.having(st), passed)
}

// Categories that the machine itself gives.
const (
	CategoryUpstream = "upstream"            // skipped because something above failed under onFail: skip
	CategoryNeeds    = "needs"               // failed: too few needs succeeded (atLeast)
	CategoryDeadline = "deadline"            // failed: Timeout.Total has passed
	CategoryBreaker  = reuse.CategoryBreaker // skipped or gone on without, as the breaker's whenOpen says
	CategoryLost     = "lost"                // the outcome of attempts is unknown
	CategoryRefused  = "refused_by_user"     // an approval: the answer was one that refuses
	CategoryQueue    = "queue_wait"          // failed: it waited too long for its place in a pool
)
