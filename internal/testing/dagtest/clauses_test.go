package dagtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// L-2, L-9, B-2: random plans with budgets, breakers, waits, deadlines, conditions, run-time items and failures
// of every kind, killed before every event. What no run may do is held against the recorded events alone, by books that
// share no code with the machine. Where nothing depends on time or money the run ends as the undisturbed one.
func TestClauses(t *testing.T) {
	options := []Options{
		{Nodes: 12, Budget: true},
		{Nodes: 12, Breakers: true},
		{Nodes: 14, Budget: true, Breakers: true, Fatal: true, Deadline: true},
	}
	seen := map[string]int{}
	seeds(t, func(t *testing.T, seed uint64) {
		o := options[seed%3]
		strict := func(s *Sim) {
			b := &books{plan: s.Graph.Plan, nodes: map[string]*book{}, breakers: map[string]machine.BreakerChangedBody{},
				least: map[dag.Similarity]dag.USD{}, closed: map[string]time.Time{}, seen: seen}
			s.Check, s.Resumes = b.check, 8
		}
		whole := simulate(t, seed, o, strict)
		for k := 1; k <= len(whole.Events); k++ {
			s := simulate(t, seed, o, func(s *Sim) {
				strict(s)
				s.Kills, s.Snapshots = []int{k, k + 2 + int(seed)%5}, k%2 == 0
			})
			run := s.State.Run()
			if run.Status != machine.RunDone && run.Status != machine.RunBroken && (run.Status != machine.RunPause || run.Pause.Reason == "stuck" || run.Pause.Reason == "") {
				t.Fatalf("seed %d, killed before event %d, ends as %s %+v", seed, k, run.Status, run.Pause)
			}
			if twice := s.TwiceDone(); len(twice) > 0 {
				t.Fatalf("seed %d, killed before event %d: done twice: %v", seed, k, twice)
			}
			if timeless := o == options[0] && !pausedForMoney(whole) && !pausedForMoney(s); timeless && run.Status != machine.RunPause && outcome(s) != outcome(whole) {
				t.Fatalf("seed %d: killed before event %d (%s): %s", seed, k, whole.Events[k-1].Type, firstDifference(outcome(s), outcome(whole)))
			} else if timeless && run.Status != machine.RunPause && givenUp(s) != givenUp(whole) {
				t.Fatalf("seed %d: killed before event %d: gave up\n%s, undisturbed\n%s: a lost attempt has used up a retry", seed, k, givenUp(s), givenUp(whole))
			}
		}
	})
	t.Logf("seen: %v", seen)
	if *seedFlag != 0 {
		return
	}
	for _, what := range []string{"start", "retry", "after a wait", "beside an open breaker", "probe", "rejected", "skipped", "lost", "paused: budget",
		"paused: person", "overrun", "near the cap", "item", "soft failure", "account closed"} {
		if seen[what] == 0 {
			t.Errorf("no run had this: %s", what)
		}
	}
}

// givenUp counts by node how often its attempts were used up.
func givenUp(s *Sim) string {
	count := map[string]int{}
	for _, e := range s.Events {
		if b, ok := e.Body.(*machine.FinishedBody); ok && b.Final && b.Status == dag.StatusFailed {
			count[b.Node]++
		}
	}
	return fmt.Sprint(count)
}

func pausedForMoney(s *Sim) bool {
	return slices.ContainsFunc(s.Events, func(e machine.Event) bool {
		b, ok := e.Body.(*machine.RunPausedBody)
		return ok && b.Reason == "budget"
	})
}

// books are what the recorded events say, kept anew.
type books struct {
	plan     *dag.Plan
	nodes    map[string]*book
	breakers map[string]machine.BreakerChangedBody // last change
	spent    dag.Amount                            // at worst: what is not known counts with its reservation
	stopped  bool                                  // paused, or ended
	fatal    bool                                  // from here on only clean-up
	least    map[dag.Similarity]dag.USD            // what similar nodes have cost beyond their reservations
	closed   map[string]time.Time                  // accounts, until when
	seen     map[string]int
}

// A book is one node's.
type book struct {
	running  bool
	ended    bool // in the generation
	over     bool // in the generation, at some time; a resume may have begun it anew
	status   dag.Status
	gen      int
	reserve  dag.Amount // of the attempt under way
	assumed  dag.Amount // of a lost one, in spent
	notUntil time.Time
	pool     string
	probe    bool // began when its breaker was not closed, which has not changed since
}

func (b *books) of(id string) *book {
	if b.nodes[id] == nil {
		b.nodes[id] = &book{}
	}
	return b.nodes[id]
}

// check takes in the newest event, and holds the machine's sums against its own.
func (b *books) check(s *Sim) error {
	e := &s.Events[len(s.Events)-1]
	if err := b.take(s, e); err != nil {
		return err
	}
	if l, worst := s.State.Ledger(), b.worst(); l.Spent != b.spent || l.Spent.USD+l.Reserved.USD != worst.USD {
		return fmt.Errorf("event %d: the ledger says %+v spent, %+v reserved; the events say %+v, %+v with what runs", e.Seq, l.Spent, l.Reserved, b.spent, worst)
	}
	return nil
}

func (b *books) take(s *Sim, e *machine.Event) error {
	switch x := e.Body.(type) {
	case *machine.StartedBody:
		return b.start(s, e, x)
	case *machine.FinishedBody:
		b.finish(s, x)
	case *machine.RunPausedBody:
		b.stopped = true
		b.seen["paused: "+string(x.Reason)]++
	case *machine.RunResumedBody:
		if b.stopped { // a person says: try again
			for id, n := range b.nodes {
				n.notUntil = time.Time{}
				if fail := s.node(id).OnFail; fail != "continue" && fail != "skip" && (n.status == dag.StatusFailed || n.status == dag.StatusLost) || n.status == dag.StatusCancelled {
					n.ended = false
				}
			}
		}
		b.stopped = false
	case *machine.RunEndedBody:
		b.stopped, b.fatal = true, false
	case *machine.BreakerChangedBody:
		b.breakers[x.Breaker] = *x
		for id, n := range b.nodes {
			n.probe = n.probe && s.node(id).Breaker != x.Breaker
		}
	case *machine.PlanExtendedBody: // its items wait for no more
		b.of(x.Node).over = true
	case *machine.RewoundBody:
		for _, id := range x.Nodes {
			*b.of(id) = book{gen: b.of(id).gen, assumed: b.of(id).assumed}
		}
	case *machine.EscalationAnsweredBody: // retry, rerun: what failed for good may start again
		if q, ok := s.State.Escalation(x.ID); ok && q.Question.Node != "" && (x.Answer == "retry" || x.Answer == "rerun") {
			b.of(q.Question.Node).ended, b.of(q.Question.Node).notUntil = false, time.Time{}
		}
	}
	return nil
}

// start holds a start against everything that is on record.
func (b *books) start(s *Sim, e *machine.Event, x *machine.StartedBody) error {
	n, node := b.of(x.Node), s.node(x.Node)
	no := func(why string, args ...any) error {
		return fmt.Errorf("event %d starts %s, and %s", e.Seq, x.Node, fmt.Sprintf(why, args...))
	}
	switch {
	case b.stopped:
		return no("the run is stopped")
	case b.fatal && !node.Always:
		return no("a failure was fatal")
	case n.running:
		return no("it runs")
	case n.ended && n.gen == x.Generation:
		return no("its end is on record")
	case e.Time.Before(n.notUntil):
		return no("it was to wait until %s", n.notUntil)
	case e.Time.Before(b.closed[node.Account]):
		return no("its account is closed until %s", b.closed[node.Account])
	}
	for _, need := range node.Needs {
		if m := b.of(need); node.AtLeast == 0 && !node.Always && !m.over {
			return no("%s, which it needs, has not ended", need)
		}
	}
	if k, ok := b.breakers[node.Breaker]; ok && node.Breaker != "" {
		if k.State == "open" && e.Time.Before(k.Until) {
			return no("breaker %s is open until %s", node.Breaker, k.Until)
		}
		if k.State != "closed" {
			b.seen["probe"]++
			if most := b.probes(node.Breaker); b.probing(s, node.Breaker) >= most {
				return no("%d probes of breaker %s are under way", most, node.Breaker)
			}
		}
	}
	for name, k := range b.breakers {
		if k.State == "open" && name != node.Breaker {
			b.seen["beside an open breaker"]++
		}
	}
	worst := b.worst()
	if budget := b.plan.Budget; node.Reserve != (dag.Amount{}) {
		if want := max(node.Reserve.USD, b.least[node.Similarity()]); node.Reserve.USD > 0 && x.Reserve.USD != want {
			return no("it reserves %s USD, not %s", x.Reserve.USD, want)
		}
		if budget.CapUSD > 0 && worst.USD+x.Reserve.USD > budget.CapUSD {
			return no("%s USD may be spent by then, %s more make more than %s", worst.USD, x.Reserve.USD, budget.CapUSD)
		}
		if budget.CapTokens > 0 && worst.Tokens+x.Reserve.Tokens > budget.CapTokens {
			return no("%d tokens may be used by then, %d more make more than %d", worst.Tokens, x.Reserve.Tokens, budget.CapTokens)
		}
		if budget.CapUSD > 0 && (worst.USD+x.Reserve.USD)*10 > budget.CapUSD*9 {
			b.seen["near the cap"]++
		}
	}
	if node.Pool != "" {
		used := 1
		for _, m := range b.nodes {
			if m.running && m.pool == node.Pool {
				used++
			}
		}
		for _, p := range b.plan.Pools {
			if p.Name == node.Pool && used > p.Size {
				return no("pool %s holds %d", p.Name, p.Size)
			}
		}
	}
	b.seen["start"]++
	if x.Attempt > 1 {
		b.seen["retry"]++
	}
	if !n.notUntil.IsZero() {
		b.seen["after a wait"]++
	}
	if len(node.Needs) == 1 && x.Node != node.Needs[0] && s.node(node.Needs[0]).Foreach != nil {
		b.seen["item"]++
	}
	*n = book{running: true, over: n.over, gen: x.Generation, reserve: x.Reserve, assumed: n.assumed, pool: node.Pool, probe: b.breakers[node.Breaker].State == "open"}
	return nil
}

// probing counts the attempts under way that began since a breaker changed last.
func (b *books) probing(s *Sim, breaker string) (n int) {
	for id, m := range b.nodes {
		if m.running && m.probe && s.node(id).Breaker == breaker {
			n++
		}
	}
	return n
}

func (b *books) probes(breaker string) int {
	for _, k := range b.plan.Breakers {
		if k.Name == breaker {
			return max(1, k.Probes)
		}
	}
	return 0
}

// worst is what may have been spent when all that runs costs its reservation.
func (b *books) worst() dag.Amount {
	sum := b.spent
	for _, n := range b.nodes {
		if n.running {
			sum.USD += n.reserve.USD
			sum.Tokens += n.reserve.Tokens
		}
	}
	return sum
}

func (b *books) finish(s *Sim, x *machine.FinishedBody) {
	n := b.of(x.Node)
	b.seen[string(x.Status)]++
	cost := dag.Amount{USD: x.CostUSD, Tokens: x.Usage.Input + x.Usage.CacheRead + x.Usage.CacheWrite + x.Usage.Output}
	switch known := x.CostUSD != 0 || cost.Tokens != 0 || x.CostKind != ""; {
	case x.Status == dag.StatusLost && n.running: // nobody knows: its reservation counts
		cost, n.assumed = n.reserve, n.reserve
	case n.running && x.CostKind == dag.CostAssumed && cost.Tokens == 0:
		cost.Tokens = n.reserve.Tokens
	case !n.running && known && x.Attempt != 0: // the lost attempt is known now
		b.spent.USD -= n.assumed.USD
		b.spent.Tokens -= n.assumed.Tokens
		n.assumed = dag.Amount{}
	}
	if n.running && x.Status != dag.StatusLost && cost.USD > n.reserve.USD {
		b.seen["overrun"]++
		if l := b.least[s.node(x.Node).Similarity()]; b.plan.Budget.CapUSD > 0 && n.reserve.USD > 0 {
			b.least[s.node(x.Node).Similarity()] = max(l, cost.USD)
		}
	}
	b.spent.USD += cost.USD
	b.spent.Tokens += cost.Tokens
	n.running, n.ended, n.gen, n.status = false, x.Final, x.Generation, x.Status
	n.over = n.over || x.Final
	if a := s.node(x.Node).Account; a != "" && x.WaitUntil.After(b.closed[a]) {
		b.closed[a] = x.WaitUntil
		b.seen["account closed"]++
	}
	b.fatal = b.fatal || x.Final && x.Class == "fatal"
	n.notUntil = time.Time{}
	for _, t := range []time.Time{x.RetryAt, x.WaitUntil} {
		if t.After(n.notUntil) {
			n.notUntil = t
		}
	}
	if fail := s.node(x.Node).OnFail; x.Final && x.Status == dag.StatusFailed && (fail == "continue" || fail == "skip") {
		b.seen["soft failure"]++
	}
}
