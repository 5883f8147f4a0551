package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// The accessors below are for hosts and reports. Slices and maps they return belong to the
// state and are not to be changed; they are valid until the next Apply.

// Graph returns the present graph: the adopted plan with its run-time expansions. It is nil
// before the first event.
func (s *State) Graph() *dag.Graph { return s.graph }

// NodeByID returns the record of a node.
func (s *State) NodeByID(id string) (v NodeView, ok bool) {
	i, ok := s.graph.Index(id)
	if ok {
		v = s.NodeAt(i)
	}
	return v, ok
}

// Count returns how many nodes have a status.
func (s *State) Count(st Status) int { return int(s.counts[st]) }

// StatusAt returns where the node at an index stands. It costs nothing, unlike NodeAt.
func (s *State) StatusAt(i int32) Status { return s.status[i] }

// Errors returns the last failures and losses, recovered or not, oldest first.
func (s *State) Errors() []ErrorView { return s.errors }

// An ErrorView is a failed or lost attempt.
type ErrorView struct {
	Seq        int64     `json:"seq"`
	Time       time.Time `json:"time"`
	Node       string    `json:"node"`
	Generation int       `json:"generation"`
	Attempt    int       `json:"attempt,omitempty"`
	Category   string    `json:"category,omitempty"`
	Class      dag.Class `json:"class,omitempty"`
	Message    string    `json:"message,omitempty"`
	Final      bool      `json:"final,omitempty"`
}

// A NodeView is the record of a node in its current generation.
type NodeView struct {
	Node        *dag.Node
	Status      Status
	Recorded    Status // the status by the events alone: a node whose instant has come still waits for it
	Soft        bool   // failed or cancelled, and the run goes on
	Queued      bool   // its attempt was handed over, and no worker has begun
	Unresolved  bool   // its last attempt was lost; a probe or a user must say whether it took effect
	Took        string // how the attempt under way, or lost, ended well; empty = it did not, or that is not known
	Stale       bool   // it had ended, and the plan has changed above it: the end may not hold
	Generation  int    // from 1
	Attempt     int    // last started in this generation; 0 = none
	Failures    int    // recorded failures since the node was last given a fresh start
	AllFailures int    // recorded failures of this generation
	Lost        int    // since the node was last given a fresh start
	Rounds      int    // final failures, each after a fresh start
	Rewinds     int    // that its failures caused
	First       time.Time
	Started     time.Time     // last start
	Finished    time.Time     // last end
	Fingerprint string        // of the last end
	Last        *FinishedBody // last end: of its notes only how checks went, no diagnostics or fingerprint; may be nil
	RetryAt     time.Time     // instant before which it will not start (backoff or wait)
	Values      map[string]json.RawMessage
	Cost        dag.USD // over all attempts and generations
	Usage       Usage
	Reserved    dag.Amount // of the running attempt
	Reserve     dag.Amount // of the next attempt
	Blocked     Block
	Limits      dag.Timeout // of time, as they are now
}

// A Block says why a node that could start does not.
type Block struct {
	// retry | wait | person | escalation | compensation | plan | selection | needs | pause | pool | breaker | account |
	// quota | budget; empty = nothing
	By    string
	Name  string // of the pool, breaker, escalation or first open need
	Until time.Time
}

// FailedWith returns how often a node has failed since it was last given a fresh start, by category.
func (s *State) FailedWith(i int32) map[string]int {
	counts := map[string]int{}
	for _, c := range s.recs[i].detail().Failures {
		counts[c.Category] = int(c.N)
	}
	return counts
}

// NodeAt returns the record of the node at an index.
func (s *State) NodeAt(i int32) NodeView {
	r, n := &s.recs[i], s.graph.Node(i)
	m := r.detail()
	v := NodeView{
		Node: n, Status: s.status[i], Recorded: s.classifyAs(i, false), Generation: int(r.Gen), Attempt: int(r.Attempt),
		Queued: m.Queued, Unresolved: m.Unresolved, Took: m.Took, Stale: r.Phase == stale,
		Soft:     (s.status[i] == Failed || s.status[i] == Cancelled) && s.settled[i].counts(),
		Failures: int(m.failed()), AllFailures: int(m.Before + m.failed()),
		Lost: int(m.Lost), Rounds: int(m.Rounds), Rewinds: int(m.Rewinds),
		First: at(r.firstStart()), Started: at(r.Started), Finished: at(r.Finished), RetryAt: at(m.RetryAt),
		Fingerprint: r.Fingerprint, Last: s.lastEnd(i), Cost: m.Cost, Usage: m.Usage,
		Reserved: m.Reserved, Reserve: s.reserveOf(n), Blocked: s.block(i), Limits: s.timeLimits(i),
	}
	if v.Last != nil {
		v.Values = v.Last.Values
	}
	return v
}

// lastEnd is how a node ended last, while that stands; nil = it has not, or there is nothing to say.
func (s *State) lastEnd(i int32) *FinishedBody {
	if s.recs[i].Phase == stale {
		return nil
	}
	return s.recs[i].detail().Last
}

func (s *State) block(i int32) Block {
	r, n := &s.recs[i], s.graph.Node(i)
	switch s.status[i] {
	case Retrying:
		return Block{By: "retry", Until: at(r.wakeAt())}
	case Holding:
		return Block{By: "wait", Until: at(r.wakeAt())}
	case Stopped:
		return Block{By: "person"}
	case Asking:
		return Block{By: "escalation", Name: r.detail().Question}
	case Undoing, Blocked:
		if s.heldBack(i) {
			return Block{By: "plan"}
		}
		if s.leftOut(i) {
			return Block{By: "selection"}
		}
		return Block{By: "compensation"}
	case Waiting:
		for _, j := range s.graph.Needs(i) {
			if !s.settled[j].counts() {
				return Block{By: "needs", Name: s.graph.Node(j).ID}
			}
		}
	case Ready:
		return s.gated(i, n)
	}
	return Block{}
}

// gated says which gate a ready node stands before, by what was last recorded.
func (s *State) gated(i int32, n *dag.Node) Block {
	if s.run.Status == RunPause {
		return Block{By: "pause", Name: string(s.run.Pause.Reason)}
	}
	c := &s.classes[s.class[i]]
	for g, k := range c.gates {
		if k < 0 {
			continue
		}
		b, by := &s.breakers[k], [...]string{"breaker", "account"}[g]
		switch {
		case b.Hold > s.run.Updated:
			return Block{By: "quota", Name: b.Name, Until: at(b.Hold)}
		case b.isOpen(s.run.Updated):
			return Block{By: by, Name: strings.TrimPrefix(b.Name, accountPrefix), Until: at(b.Until)}
		case b.room(s.breakerSpec(b.Name), s.run.Updated) == 0:
			return Block{By: by, Name: strings.TrimPrefix(b.Name, accountPrefix), Until: at(b.nextStart(s.run.Updated))}
		}
	}
	if c.pool >= 0 && s.pools[c.pool].used >= s.pools[c.pool].size {
		return Block{By: "pool", Name: s.pools[c.pool].name}
	}
	if c.paid && !s.ledger.fits(s.reserveOf(n), dag.Amount{}) {
		return Block{By: "budget"}
	}
	return Block{}
}

// ScopeOf returns what expressions of a node may read: its ancestors, the nodes of its history,
// and facts of the run. It reads the state as it is when it is asked.
func (s *State) ScopeOf(node string) dag.Scope {
	i, ok := s.graph.Index(node)
	if !ok {
		i = -1
	}
	return scope{s: s, node: i}
}

// UndoScopeOf returns what the settings of a node's undo action may read: what those of the node may, and the node.
func (s *State) UndoScopeOf(node string) dag.Scope {
	c := s.ScopeOf(node).(scope)
	c.own = true
	return c
}

type scope struct {
	s    *State
	node int32
	own  bool // it may read itself
}

// View implements dag.Scope.
func (c scope) View(id string) (dag.View, bool) {
	i, ok := c.s.graph.Index(id)
	if !ok || !c.reads(i, id) {
		return dag.View{}, false
	}
	v := dag.View{Status: c.s.status[i].word(), Generation: int(c.s.recs[i].Gen), Out: c.s.values(i)}
	if c.s.recs[i].Expanded {
		v.Items = func() []dag.Item { return c.s.items(i) }
	}
	switch last := c.s.lastEnd(i); c.s.status[i] {
	case Failed, Asking, Undoing, Stopped, Cancelled, Skipped:
		if last != nil {
			v.Category = last.Category
		}
	}
	if c.s.status[i] == Asking && c.s.recs[i].Phase == ended { // a user is asked what to do about its failure
		v.Status = dag.StatusFailed
	}
	return v, true
}

// values are those that a node has recorded, as they were; nil for none.
func (s *State) values(i int32) map[string]json.RawMessage {
	last := s.lastEnd(i)
	if last == nil {
		return nil
	}
	out := maps.Clone(last.Values)
	for _, name := range slices.Sorted(maps.Keys(out)) {
		out[name] = dag.ReadValue(out[name], s.graph.Node(i).Outputs[name])
	}
	return out
}

// Expanded reports whether the items of a foreach are known.
func (s *State) Expanded(node string) bool {
	i, ok := s.graph.Index(node)
	return ok && s.recs[i].Expanded
}

// items are those of a foreach, in the order of its list.
func (s *State) items(root int32) []dag.Item {
	list := []dag.Item{}
	for i := int32(s.graph.Base()); int(i) < s.graph.Len(); i++ {
		if of, _ := s.graph.Origin(i); of == root {
			n := s.graph.Node(i)
			key := strings.TrimPrefix(n.ID, s.graph.Node(root).ID+"/")
			list = append(list, dag.Item{Key: key, Status: s.status[i].word(), Out: s.values(i), Outputs: n.Outputs})
		}
	}
	return list
}

func (c scope) reads(i int32, id string) bool {
	if c.node < 0 {
		return false
	}
	for _, h := range c.s.graph.Node(c.node).History {
		if h == id {
			return true
		}
	}
	return c.own && i == c.node || c.s.graph.Ancestor(i, c.node)
}

// Ended reports whether a node needs nothing more, unless it is sent back.
func (st Status) Ended() bool { return st >= Completed }

// word is the status as expressions and reports name it.
func (st Status) word() dag.Status {
	switch st {
	case Running:
		return dag.StatusRunning
	case Completed:
		return dag.StatusCompleted
	case Failed, Undoing:
		return dag.StatusFailed
	case Skipped:
		return dag.StatusSkipped
	case Cancelled:
		return dag.StatusCancelled
	case Undone:
		return dag.StatusUndone
	}
	return dag.StatusPending
}

// Run implements dag.Scope. The keys are those of expr.Facts.
func (c scope) Run() map[string]any {
	s := c.s
	ending := ""
	if s.run.Cancelled {
		ending = "cancelled"
	} else if s.run.Ending != "" {
		ending = "failed"
	}
	return map[string]any{
		"name":          s.graph.Plan.Name,
		"ending":        ending,
		"spentUSD":      s.ledger.Spent.USD.Float(),
		"reservedUSD":   s.ledger.reserved.USD.Float(),
		"capUSD":        s.ledger.Budget.CapUSD.Float(),
		"spentTokens":   s.ledger.Spent.Tokens,
		"capTokens":     s.ledger.Budget.CapTokens,
		"completed":     int64(s.counts[Completed]),
		"failed":        int64(s.counts[Failed]),
		"skipped":       int64(s.counts[Skipped]),
		"seconds":       float64(s.activeAt(s.run.Updated)) / 1000,
		"compensations": int64(s.run.Undos),
	}
}

// Status is where a node stands.
//
//	            +-> deciding -+                    +--------- retrying / holding <-+
//	waiting ----+-------------+--> ready --> running --> completed                 |
//	            |             +-> expanding  |  ^   +--> failed --+----------------+
//	            +-> skipping --> skipped     |  |                 +-> asking (a user)
//	                                         +--+ lost, rejected  +-> undoing (compensation)
//
// A change of plan above it sends an ended node back to waiting, then to checking: its end is found
// to hold, or it is waiting in a new generation.
type Status uint8

const (
	Waiting   Status = iota // needs have not ended
	Checking                // it had ended before the plan changed above it: whether that holds is to be found out
	Deciding                // the condition is to be evaluated
	Expanding               // the items are to be expanded
	Skipping                // to be recorded as skipped or failed without a start
	Ready                   // may start
	Running                 // an attempt is in flight
	Retrying                // backs off until an instant
	Holding                 // waits for an absolute instant; no attempt used
	Asking                  // an escalation decides, or the outcome of a lost attempt is unknown
	Stopped                 // only a user can help; resuming the run starts it again
	Undoing                 // failed; compensation is under way
	Blocked                 // a compensation is to rewind it, a plan not yet adopted to change it, or it is left out
	Completed               // this and all that follow: see Ended
	Failed
	Skipped
	Cancelled
	Undone // it had completed, and its undo action has run
)

func (st Status) String() string { return statusNames[st] }

var statusNames = [...]string{"waiting", "checking", "deciding", "expanding", "skipping", "ready", "running",
	"retrying", "holding", "asking", "stopped", "undoing", "blocked", "completed", "failed", "skipped", "cancelled",
	"undone"}

// tooManyPassed reports whether more nodes have failed without holding the run than the budget allows.
func (s *State) tooManyPassed() bool {
	most := s.ledger.Budget.Failures
	return most > 0 && int64(s.passed) > most
}

// passedNodes are the nodes that have failed without holding the run, in plan order.
func (s *State) passedNodes() (list []int32) {
	for i := range s.status {
		if s.passedOver(int32(i)) {
			list = append(list, int32(i))
		}
	}
	return list
}

// PassedOver counts the nodes that have failed without holding the run, and says how many the budget allows;
// 0 = no limit.
func (s *State) PassedOver() (have, most int64) { return int64(s.passed), s.ledger.Budget.Failures }
