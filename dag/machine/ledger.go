package machine

import (
	"cmp"

	"dagrun.dev/dag"
)

// A ledger is what the run has spent and may spend.
//
// Invariant, kept by Decide: no start makes spent + reserved + its reserve exceed a cap.
type ledger struct {
	Budget       dag.Budget `json:"budget,omitzero"`
	Spent        dag.Amount `json:"spent,omitzero"`
	Usage        Usage      `json:"usage,omitzero"`
	Assumed      dag.USD    `json:"assumed_usd,omitzero"` // part of Spent that nobody has confirmed
	WarnedUSD    bool       `json:"warned_usd,omitempty"`
	WarnedTokens bool       `json:"warned_tokens,omitempty"`
	Grown        []grown    `json:"grown_reserves,omitempty"` // reservations that did not hold

	reserved dag.Amount // derived: by the attempts in flight
}

// A grown reservation is the highest cost of an attempt of similar nodes that exceeded its reservation: those
// that run and the next ones reserve that.
type grown struct {
	Of      dag.Similarity `json:"of"`
	Reserve dag.Amount     `json:"reserve"`
}

// overrun is what a cost is where it passed its reservation, under a cap; else zero.
func (l *ledger) overrun(reserved, cost dag.Amount) (over dag.Amount) {
	if reserved.USD != 0 && l.Budget.CapUSD != 0 && cost.USD > reserved.USD {
		over.USD = cost.USD
	}
	if reserved.Tokens != 0 && l.Budget.CapTokens != 0 && cost.Tokens > reserved.Tokens {
		over.Tokens = cost.Tokens
	}
	return over
}

func (l *ledger) grow(of dag.Similarity, over dag.Amount) {
	for k := range l.Grown {
		if g := &l.Grown[k]; g.Of == of {
			g.Reserve = dag.Amount{USD: max(g.Reserve.USD, over.USD), Tokens: max(g.Reserve.Tokens, over.Tokens)}
			return
		}
	}
	l.Grown = append(l.Grown, grown{of, over})
}

// reserveOf is what the next attempt of a node reserves: what its plan says, or what one of similar nodes
// has cost if that was more.
func (s *State) reserveOf(n *dag.Node) dag.Amount {
	r := n.Reserve
	for _, g := range s.ledger.Grown {
		if g.Of != n.Similarity() {
			continue
		}
		if r.USD != 0 {
			r.USD = max(r.USD, g.Reserve.USD)
		}
		if r.Tokens != 0 {
			r.Tokens = max(r.Tokens, g.Reserve.Tokens)
		}
	}
	return r
}

func (l *ledger) limit(b dag.Budget) {
	l.Budget = b
	usd, tokens := l.warns()
	l.WarnedUSD, l.WarnedTokens = l.WarnedUSD && usd, l.WarnedTokens && tokens
}

// warns reports whether as much is spent as is to be warned of.
func (l *ledger) warns() (usd, tokens bool) {
	u, t := l.warnUSD(), cmp.Or(l.Budget.WarnTok, l.Budget.CapTokens*8/10)
	return u != 0 && l.Spent.USD >= u, t != 0 && l.Spent.Tokens >= t
}

// warnUSD is the threshold of the warning: 80 % of the cap where the plan names none.
func (l *ledger) warnUSD() dag.USD { return cmp.Or(l.Budget.WarnUSD, l.Budget.CapUSD*8/10) }

func (l *ledger) reserve(a dag.Amount, by int64) {
	l.reserved.USD += a.USD * dag.USD(by)
	l.reserved.Tokens += a.Tokens * by
}

// fits reports whether a start with a reservation keeps within the caps, after others that were
// chosen just before.
func (l *ledger) fits(a, chosen dag.Amount) bool {
	return (l.Budget.CapUSD == 0 || l.Spent.USD+l.reserved.USD+chosen.USD+a.USD <= l.Budget.CapUSD) &&
		(l.Budget.CapTokens == 0 || l.Spent.Tokens+l.reserved.Tokens+chosen.Tokens+a.Tokens <= l.Budget.CapTokens)
}

// book settles an attempt: its reservation is given back and its cost counted. What was assumed
// of a lost attempt stands until its end becomes known with a cost.
func (s *State) book(i int32, b *FinishedBody) {
	r, l := &s.recs[i], &s.ledger
	var reserved, wrong dag.Amount // wrong: assumed before, now known better
	cost := dag.Amount{USD: b.CostUSD, Tokens: b.Usage.Total()}
	if m := r.Detail; m != nil {
		if r.Phase == running {
			reserved = m.Reserved
			l.reserve(s.holds(i), -1)
		} else if b.CostKind != "" || cost != (dag.Amount{}) {
			wrong = m.Assumed
		}
		m.Assumed = dag.Amount{}
	}
	if b.CostKind == dag.CostAssumed {
		if cost.Tokens == 0 {
			cost.Tokens = reserved.Tokens
		}
		l.Assumed += cost.USD
		if b.Status == dag.StatusLost || b.Status == dag.StatusCancelled {
			r.edit().Assumed = cost
		}
	}
	if cost == (dag.Amount{}) && wrong == (dag.Amount{}) {
		return
	}
	m := r.edit()
	l.Assumed -= wrong.USD
	l.Spent.USD += cost.USD - wrong.USD
	l.Spent.Tokens += cost.Tokens - wrong.Tokens
	l.Usage = l.Usage.Plus(b.Usage)
	m.Cost += cost.USD - wrong.USD
	m.Usage = m.Usage.Plus(b.Usage)
	if over := l.overrun(reserved, cost); over != (dag.Amount{}) {
		l.grow(s.graph.Node(i).Similarity(), over)
		s.holdAnew(i)
	}
}

// holds is what a running attempt keeps reserved: what it reserved when it started, or what similar nodes reserve by
// now, for it will hardly cost less and nothing may be started with money that it needs.
func (s *State) holds(i int32) dag.Amount {
	held, now := s.recs[i].Detail.Reserved, dag.Amount{}
	if held != now {
		now = s.reserveOf(s.graph.Node(i))
	}
	return dag.Amount{USD: max(held.USD, now.USD), Tokens: max(held.Tokens, now.Tokens)}
}

// holdAnew sums up what running attempts keep reserved, after similar nodes have come to reserve more. i is the
// attempt that has just ended.
func (s *State) holdAnew(i int32) {
	s.ledger.reserved = dag.Amount{}
	for k := range s.recs {
		if r := &s.recs[k]; int32(k) != i && r.Phase == running && r.Detail != nil {
			s.ledger.reserve(s.holds(int32(k)), 1)
		}
	}
}

func (s *State) onLimits(_ Event, b *LimitsChangedBody) error {
	s.ledger.limit(b.Budget)
	return nil
}

func (s *State) onWarned(_ Event, b *BudgetWarnedBody) error {
	if b.Limit == "tokens" {
		s.ledger.WarnedTokens = true
	} else {
		s.ledger.WarnedUSD = true
	}
	return nil
}

// Spent returns what the run has spent, assumed costs included.
func (s *State) Spent() dag.Amount { return s.ledger.Spent }

// A LedgerView is the run's money and tokens.
type LedgerView struct {
	Budget   dag.Budget
	Spent    dag.Amount // settled, assumed costs included
	Assumed  dag.USD    // part of Spent that nobody has confirmed
	Reserved dag.Amount // held for attempts in flight
	Usage    Usage
	WarnUSD  dag.USD // threshold in force, 0 = none
}

// wallLeft is how long the run may still be active, in milliseconds; false when nothing limits that.
func (s *State) wallLeft(now int64) (left int64, limited bool) {
	wall := s.ledger.Budget.Wall.D().Milliseconds()
	return wall - s.activeAt(now), wall != 0
}

// Ledger returns what the run has spent and reserved. It survives resume and revert: going back
// refunds nothing.
func (s *State) Ledger() LedgerView {
	l := &s.ledger
	return LedgerView{l.Budget, l.Spent, l.Assumed, l.reserved, l.Usage, l.warnUSD()}
}
