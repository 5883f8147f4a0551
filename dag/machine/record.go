package machine

import (
	"slices"

	"dagrun.dev/dag"
)

// A rec is what is known of a node in its current generation: facts, and nothing that could be
// derived from them (but for due). Most nodes need no more than this; the rest is in more.
type rec struct {
	gen, attempt int32
	phase        phase
	end          end
	cond         bool // the condition was found true
	due          bool // its instant to start again has come; a note of advance, not a fact
	items        int32
	started      int64 // of the last attempt, Unix milliseconds
	finished     int64 // of the last attempt
	endSeq       int64 // of the event that ended the node
	fingerprint  string
	more         *more
}

type phase uint8

const (
	idle    phase = iota
	running       // an attempt is in flight
	ended         // no further attempt follows by itself
	stale         // ended, but the plan has changed above it: the end may not hold
)

// end is the status of a node whose phase is ended.
type end uint8

const (
	endCompleted end = iota
	endFailed
	endSkipped
	endCancelled
	endRejected // went on without it
)

// notExpanded is the number of items of a foreach that was not expanded.
const notExpanded = -1

// more is what is known of a node to which something has happened.
type more struct {
	first      int64         // first start of this generation
	since      int64         // start of the time that Timeout.Total bounds; 0 = first
	last       *FinishedBody // last end, without notes and diagnostics
	failures   []catCount    // in this round, by category
	before     int32         // failures of this generation that use up no attempt: of earlier rounds, waits, stops
	lost       int32         // in this round
	waits      int32         // in a row
	rounds     int32         // final failures, each after a fresh start
	rewinds    int32         // that its failures caused
	reshaped   bool          // a foreach: its items are others than those of the expansion before
	agains     int32         // times it sent back what it was missing; see again
	retryAt    int64         // 0 = none
	hold       bool          // retryAt is a wait, not a backoff
	stopped    bool          // only a person can help
	unresolved bool          // a lost attempt may have had an effect
	undone     bool          // its undo action is done
	undoTries  int32         // failures of the undo action
	undoAt     int64         // instant before which it is not tried again
	verdict    string        // of a person: retry | continue | skip | fail | done | rerun
	question   string        // id of the escalation it waits for
	reserved   dag.Amount    // of the running attempt
	assumed    dag.Amount    // booked for a lost attempt until something better is known
	cost       dag.USD       // all attempts and generations
	usage      Usage
	probe      [2]int32 // epoch+1 of its breaker, of its account, when the running attempt is a probe
}

type catCount struct {
	Category string `json:"category"`
	N        int32  `json:"n"`
}

func (r *rec) m() *more {
	if r.more == nil {
		r.more = new(more)
	}
	return r.more
}

// detail is more, for readers: never nil, and not to be changed.
func (r *rec) detail() *more {
	if r.more == nil {
		return &nothing
	}
	return r.more
}

var nothing more

// reset sends a node back: a new generation that has not begun. What it cost stays.
func (r *rec) reset() {
	old := r.more
	*r = rec{gen: r.gen + 1, items: notExpanded}
	if old != nil && (old.cost != 0 || old.usage != Usage{} || old.rewinds != 0 || old.agains != 0) {
		r.more = &more{cost: old.cost, usage: old.usage, rewinds: old.rewinds, agains: old.agains}
	}
}

// fresh gives a node new attempts within its generation: a person resumed the run, or said so.
func (r *rec) fresh(at int64) {
	r.phase, r.due = idle, false
	m := r.m()
	m.before += m.failed()
	m.failures, m.lost, m.waits, m.retryAt, m.hold, m.stopped = nil, 0, 0, 0, false, false
	m.verdict, m.question, m.undone, m.undoTries, m.undoAt = "", "", false, 0, 0
	if r.attempt > 0 {
		m.since = at
	}
}

func (r *rec) wakeAt() int64 {
	if r.more == nil {
		return 0
	}
	return r.more.retryAt
}

func (r *rec) firstStart() int64 {
	if r.more != nil && r.more.first != 0 {
		return r.more.first
	}
	return r.started
}

// deadline is the instant by which a node must have ended, 0 = none.
func (r *rec) deadline(n *dag.Node) int64 {
	if n.Timeout.Total <= 0 || r.attempt == 0 || r.phase == stale {
		return 0
	}
	since := r.firstStart()
	if r.more != nil && r.more.since != 0 {
		since = r.more.since
	}
	return since + n.Timeout.Total.D().Milliseconds()
}

func (m *more) failed() (total int32) {
	for _, c := range m.failures {
		total += c.N
	}
	return total
}

func (m *more) failedBy(category string) int32 {
	for _, c := range m.failures {
		if c.Category == category {
			return c.N
		}
	}
	return 0
}

func (m *more) countFailure(category string) {
	for k := range m.failures {
		if m.failures[k].Category == category {
			m.failures[k].N++
			return
		}
	}
	m.failures = append(m.failures, catCount{category, 1})
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
	st := s.classify(i)
	set := s.settlementOf(i, st)
	before := s.settled[i]
	s.settled[i] = set
	if old := s.status[i]; st != old || set != before {
		s.move(i, old, st)
		if s.ending != "" && s.graph.Node(i).Always {
			s.touchAlways() // clean-up nodes wait for one another only: see cleanupReady
		}
	}
	if set == before {
		return
	}
	s.effects.Forget(i)
	if before == unsettled {
		s.open--
	} else if set == unsettled {
		s.open++
	}
	for _, d := range s.graph.Dependents(i) {
		s.tallies[d].add(before, -1)
		s.tallies[d].add(set, 1)
		s.touch(d)
	}
}

func (s *State) move(i int32, old, st Status) {
	if old != st {
		s.counts[old]--
		s.counts[st]++
		if old == Ready {
			s.remove(i)
		}
		s.status[i] = st
		if st == Ready {
			s.push(i)
		}
	}
	if listed&(1<<st) == 0 || st == Failed && s.settled[i] != unsettled {
		return
	}
	l := &s.lists[st]
	if *l = append(*l, i); len(*l) > 2*int(s.counts[st])+64 {
		*l = s.list(st)
	}
}

// listed are the statuses whose nodes are kept in lists, for Decide.
const listed = 1<<Checking | 1<<Deciding | 1<<Expanding | 1<<Skipping | 1<<Asking | 1<<Stopped | 1<<Undoing | 1<<Failed | 1<<Running

// list returns the nodes of a status in index order; of failed ones, those that the run cannot
// go on without. The result is a slice of its own.
func (s *State) list(st Status) (keep []int32) {
	if s.counts[st] == 0 {
		return nil
	}
	sorted := true
	for _, i := range s.lists[st] {
		if s.status[i] == st && (st != Failed || s.settled[i] == unsettled) {
			sorted = sorted && (len(keep) == 0 || keep[len(keep)-1] < i)
			keep = append(keep, i)
		}
	}
	if !sorted {
		slices.Sort(keep)
		keep = slices.Compact(keep)
	}
	return keep
}

// Categories that the machine itself gives.
const (
	CategoryUpstream = "upstream"     // skipped because something above failed under onFail: skip
	CategoryNeeds    = "needs"        // failed: too few needs succeeded (atLeast)
	CategoryDeadline = "deadline"     // failed: Timeout.Total has passed
	CategoryBreaker  = "breaker_open" // skipped or gone on without, as the breaker's whenOpen says
	CategoryLost     = "lost"         // the outcome of attempts is unknown
)
