package machine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// Bounds that no policy can lift: they keep a run from going round for ever.
const (
	// lostMost is how many attempts of a node may be lost in one round of attempts: a node that
	// kills its host is stopped.
	lostMost = 3
	// waitsMost is how often in a row a node may be told to wait before a user is asked.
	waitsMost = 20
	// longestDelay bounds a backoff, whatever its formula gives.
	longestDelay = 8 * 24 * time.Hour
	// farthest is how far ahead an instant is kept as it was named.
	farthest = 10 * 365 * 24 * time.Hour
	// shortestRetry is waited where the remote asks for less.
	shortestRetry = 500 * time.Millisecond
	// shortestWait is waited where the instant named lies in the past.
	shortestWait = time.Minute
	// diagnosticsMost is how many characters of diagnostics an event keeps.
	diagnosticsMost = 2000
)

// defaultWait is the delay of a category that waits without an instant to wait for.
var defaultWait = dag.Retry{Base: dag.Duration(time.Minute), Factor: 2, Cap: dag.Duration(15 * time.Minute),
	Jitter: 0.2}

// Settle turns how an attempt ended into the event that records it: class and disposition by
// the plan's category table and the node's policies, retry_at with jitter drawn from a hash of
// seed, node, generation and failure number, wait_until as the outcome says. It changes nothing.
//
// A failure leads to one of five things: another attempt after a backoff, or after what the remote
// asked for if that is within the policy's cap (uses an attempt), a wait for an
// instant (uses none; also for a Retry-After above the cap), a wait for an account that others wait for
// already (rejected: the attempt counts for nothing), a stop for a user, or the end of the node. The failures
// of a category are counted against that category's limit, all failures against the largest limit among the
// categories seen.
func (s *State) Settle(node string, o Outcome, now time.Time) Event {
	i, ok := s.graph.Index(node)
	if !ok {
		panic("machine: Settle of a node that is not in the plan: " + node)
	}
	r := &s.recs[i]
	b := &o.Body
	b.Node, b.Generation, b.Attempt, b.Status = node, int(r.Gen), 0, o.Status
	if r.Phase == running || r.Detail != nil && r.Detail.Unresolved {
		b.Attempt = int(r.Attempt)
	}
	b.Category, b.Message, b.Diagnostics = o.Category, oneLine(o.Message), clip(o.Diagnostics, diagnosticsMost)
	o.RetryAfter = max(0, o.RetryAfter)
	x := settling{s: s, i: i, r: r, n: s.graph.Node(i), o: &o, b: b, now: now}
	x.cost()
	x.overrun()
	switch o.Status {
	case dag.StatusCompleted, dag.StatusSkipped:
		b.Final = true
		if r.detail().Unresolved { // a probe says so
			b.Warnings = append(b.Warnings, unkept(x.n, b.Message)...)
		}
	case dag.StatusLost:
		x.lost()
	case dag.StatusCancelled:
		x.cancelled()
	case dag.StatusFailed:
		x.failed()
	}
	if len(b.Salvaged) > 0 && (b.Status != dag.StatusFailed || !b.Final) {
		b.Salvaged, b.Values = nil, nil
	}
	return New(now, b)
}

type settling struct {
	s   *State
	i   int32
	r   *rec
	n   *dag.Node
	o   *Outcome
	b   *FinishedBody
	now time.Time
}

// cost says what an attempt cost when nobody has: its reservation stands. Zero is a cost only
// when CostKind says so.
func (x *settling) cost() {
	if x.b.CostKind != "" || x.o.Status == dag.StatusRejected || x.o.Status == dag.StatusSkipped || x.r.Phase != running {
		return
	}
	reserved := x.r.detail().Reserved
	switch {
	case x.o.Status == dag.StatusLost && x.n.Call != nil && !x.r.detail().Called: // that is durable before the call
		x.b.CostKind = dag.CostFree
	case x.b.CostUSD != 0:
		x.b.CostKind = dag.CostReported
	case reserved.USD != 0 || reserved.Tokens != 0 && x.b.Usage == Usage{}:
		x.b.CostKind, x.b.CostUSD = dag.CostAssumed, reserved.USD
	}
}

// overrun warns of a cost that passed its reservation.
func (x *settling) overrun() {
	reserved, warn := x.r.detail().Reserved, func(format string, args ...any) {
		line := fmt.Sprintf(format+" it reserved; nodes similar to it reserve as much from now on", args...)
		x.b.Warnings = append(slices.Clip(x.b.Warnings), line)
	}
	over := x.s.ledger.overrun(reserved, dag.Amount{USD: x.b.CostUSD, Tokens: x.b.Usage.Total()})
	if over.USD != 0 {
		warn("cost $%s, more than the $%s that", over.USD, reserved.USD)
	}
	if over.Tokens != 0 {
		warn("used %d tokens, more than the %d that", over.Tokens, reserved.Tokens)
	}
}

func (x *settling) lost() {
	m := x.r.detail()
	x.b.Category, x.b.Class = cmp.Or(x.b.Category, CategoryLost), dag.Hard
	x.b.Message = cmp.Or(x.b.Message, "the process ended during the attempt: its outcome is unknown")
	if m.Question != "" { // it only waited for an answer
		return
	}
	if x.last() || int(m.Lost)+1 >= lostMost {
		x.b.Final = true
	}
}

func (x *settling) cancelled() {
	if d := x.s.deadline(x.i); d != 0 && ms(x.now) >= d && x.s.ending == "" {
		x.b.Status, x.b.Category = dag.StatusFailed, CategoryDeadline
		x.b.Message = usedUp(x.n) + strings.TrimPrefix(x.b.Message, "cancelled") // what was kept stays said
		x.b.Final, x.b.Class = true, x.s.classOfFailure(CategoryDeadline)
		return
	}
	x.b.Final = x.last()
}

// last reports whether no attempt follows one that was cut off: the run ends. Where it may have done what is to be
// undone, that is found out first.
func (x *settling) last() bool {
	return x.s.ending != "" && !x.n.Always && (x.n.Effect.Repeatable() || !x.s.undoes(x.i))
}

// usedUp says that a node has had all its time.
func usedUp(n *dag.Node) string {
	return fmt.Sprintf("exceeded its total timeout (%s)", n.Timeout.Total.D())
}

func (x *settling) failed() {
	p := x.s.graph.Plan.PolicyFor(x.n, x.o.Category)
	x.b.Class = p.Class
	m := x.r.detail()
	switch {
	case x.o.Permanent || p.Then == dag.Fail || x.s.ending != "" && !x.n.Always:
		x.b.Final = true
	case p.Then == dag.Stop:
		x.b.Stop = true
	case !x.o.WaitUntil.IsZero() || p.Then == dag.Wait:
		x.wait(p, m, x.waitFor(p, m))
	case p.Retry.Attempts > 1 && x.o.RetryAfter > max(p.Retry.Cap.D(), shortestWait):
		x.wait(p, m, x.o.RetryAfter)
	default:
		x.retry(p, m)
	}
	x.keepDeadline()
}

// waitFor is how long to wait for an instant.
func (x *settling) waitFor(p dag.Policy, m *detail) time.Duration {
	switch {
	case !x.o.WaitUntil.IsZero():
		return max(shortestWait, x.o.WaitUntil.Sub(x.now))
	case x.o.RetryAfter != 0:
		return x.o.RetryAfter
	}
	retry := p.Retry
	if !p.Own {
		retry = defaultWait
	}
	return x.delay(retry, int(m.Waits)+1)
}

func (x *settling) wait(p dag.Policy, m *detail, d time.Duration) {
	a := x.s.account(x.i)
	told := p.Account && a != nil && a.isOpen(ms(x.now)) // another node has: no wait of its own
	if !told && int(m.Waits)+1 > waitsMost {
		x.b.Stop = true
		return
	}
	x.b.WaitUntil = x.later(min(d, farthest))
	if told {
		x.b.Status = dag.StatusRejected
		named := !x.o.WaitUntil.IsZero() || x.o.RetryAfter != 0
		if until := at(a.Until); !named || x.b.WaitUntil.Before(until) {
			x.b.WaitUntil = until
		}
	}
}

func (x *settling) retry(p dag.Policy, m *detail) {
	mine, all, most := m.failedBy(x.o.Category)+1, m.failed()+1, p.Retry.Attempts
	for _, c := range m.Failures {
		most = max(most, x.s.graph.Plan.PolicyFor(x.n, c.Category).Retry.Attempts)
	}
	if int(mine) >= p.Retry.Attempts || int(all) >= most {
		x.b.Final = true
		return
	}
	d := x.delay(p.Retry, int(mine))
	if after := x.o.RetryAfter; after != 0 { // the remote knows better; a little later than asked, never earlier
		d = max(shortestRetry, after+time.Duration(x.draw()*float64(min(after/10, 10*time.Second))))
	}
	x.b.RetryAt = x.later(d)
}

// keepDeadline ends a node that could only go on after its total time.
func (x *settling) keepDeadline() {
	d := x.s.deadline(x.i)
	if d == 0 || x.b.Stop {
		return
	}
	if next := max(ms(x.b.RetryAt), ms(x.b.WaitUntil), ms(x.now)); next >= d {
		x.b.RetryAt, x.b.WaitUntil, x.b.Final = time.Time{}, time.Time{}, true
	}
}

// later is an instant in whole milliseconds, not before now + d.
func (x *settling) later(d time.Duration) time.Time {
	return x.now.UTC().Add(d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// delay is the backoff after the n-th failure, n from 1.
func (x *settling) delay(r dag.Retry, n int) time.Duration {
	if len(r.Delays) != 0 {
		return r.Delays[min(n, len(r.Delays))-1].D()
	}
	d := float64(r.Base) * math.Pow(max(1, r.Factor), float64(n-1))
	if r.Cap != 0 {
		d = min(d, float64(r.Cap))
	}
	d *= 1 + r.Jitter*x.draw()
	return time.Duration(min(d, float64(longestDelay)))
}

// draw returns a number in [0,1) from a hash of seed, node, generation and failure number: the
// same whenever the same failure is settled again.
func (x *settling) draw() float64 {
	m := x.r.detail()
	b := binary.LittleEndian.AppendUint64(nil, uint64(x.s.run.Seed))
	b = binary.LittleEndian.AppendUint64(append(b, x.n.ID...), uint64(x.r.Gen))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.failed())+uint64(m.Waits)<<32)
	hash := fnv.New64a()
	hash.Write(b)
	h := hash.Sum64()
	h ^= h >> 33 // finish as splitmix64 does: neighbours must not be alike
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return float64(h>>11) / (1 << 53)
}

// oneLine puts a message on one line.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// clip returns the last n characters: the end of an output says more than its beginning.
func clip(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}
