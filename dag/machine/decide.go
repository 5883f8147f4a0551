package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// Decide returns what should be under way at an instant and is not, and the instant at which to ask again
// if nothing happens before (zero: only an event can change the answer). It only reads: what it is asked, and for
// which instant, changes nothing that follows. A host asks about the instant to which it has advanced the state;
// a later one costs a copy of the records. Facts to record come first, then work; starts come best first: priority,
// longest expected path, plan order. At most free commands of Op Start for nodes that need a worker are returned
// (free = idle ones of the host), and at most 256 for control nodes, which need none; pools, breakers, budget and
// pauses are already taken into account. All other commands come in full. Cost: proportional to what is returned and to
// the questions that wait for a user, not to the plan, except when nothing is left to do: why a run cannot go on is
// looked for in all nodes.
func (s *State) Decide(now time.Time, free int) ([]Command, time.Time) {
	if s.graph == nil {
		return nil, time.Time{}
	}
	s = s.advanced(ms(now))
	d := decision{s: s, now: ms(now), free: free}
	if !s.run.Status.Ended() {
		d.counts()
	}
	switch {
	case s.run.Status.Ended():
	case s.run.Status == RunPause:
		d.overdue(false)
		d.waitTimers()
		if s.counts[Running] == 0 {
			d.wake = 0
		}
	case s.ending != "":
		d.end()
	default:
		d.run()
	}
	return d.cmds, at(d.wake)
}

// A decision is one answer in the making.
type decision struct {
	s    *State
	now  int64
	free int
	cmds []Command
	wake int64 // 0 = no instant is waited for

	paused bool // a pause was decided: nothing starts
	later  bool // nodes that could start are being ended: ask again once that is recorded
}

func (d *decision) record(b Body) { d.cmds = append(d.cmds, Command{Op: Record, Body: b}) }

func (d *decision) recordOf(i int32, b Body) {
	d.cmds = append(d.cmds, Command{Op: Record, Node: d.s.graph.Node(i).ID, Body: b})
}

func (d *decision) command(op Op, i int32) {
	r := &d.s.recs[i]
	d.cmds = append(d.cmds, Command{Op: op, Node: d.s.graph.Node(i).ID, Generation: int(r.Gen), Attempt: int(r.Attempt)})
}

func (d *decision) waitUntil(at int64) {
	if at != 0 {
		d.wake = min(cmp.Or(d.wake, at), at)
	}
}

// run decides for a run that goes on.
func (d *decision) run() {
	if d.adopt() || d.fails() || d.renew() {
		return
	}
	if d.rerun() {
		return
	}
	d.answers()
	d.overdue(true)
	if d.skips() {
		return
	}
	d.recheck(d.s.list(Checking))
	for _, i := range d.s.list(Deciding) {
		d.command(Evaluate, i)
	}
	for _, i := range d.s.list(Expanding) {
		d.command(Expand, i)
	}
	d.asking()
	d.undo()
	d.warnings()
	d.pauses()
	if !d.paused && !d.later {
		d.starts()
	}
	if d.paused { // nothing starts beside a pause
		d.cmds = slices.DeleteFunc(d.cmds, func(c Command) bool { return c.Op == Start })
	}
	d.waitTimers()
	d.finish()
	if left, limited := d.s.wallLeft(d.now); limited && !d.paused {
		d.waitUntil(d.now + left) // after finish: a limit gives a run nothing to do that only waits for a user
	}
}

// waitTimers asks again when the next backoff, wait or total time ends.
func (d *decision) waitTimers() {
	if len(d.s.timers) > 0 {
		d.waitUntil(d.s.timers[0].at)
	}
}

// answers takes the default of questions whose time has passed.
func (d *decision) answers() {
	for _, k := range d.s.openQ {
		q := &d.s.questions[k].Question
		due := ms(q.Deadline)
		switch {
		case due == 0 || q.Default == "":
		case due <= d.now:
			d.record(&EscalationAnsweredBody{ID: q.ID, Answer: q.Default, By: ByDeadline})
		default:
			d.waitUntil(due)
		}
	}
}

// overdue ends nodes whose total time has passed: what runs is asked to stop, the rest fails.
func (d *decision) overdue(all bool) {
	s := d.s
	for _, i := range s.overdue {
		switch at := s.deadline(i); {
		case at == 0 || at > d.now: // it has ended, or was given more time
		case s.status[i] == Running:
			d.command(Cancel, i)
		case all && (s.status[i] == Ready || s.status[i] == Retrying || s.status[i] == Holding):
			d.later = true
			d.recordOf(i, s.failure(i, CategoryDeadline, usedUp(s.graph.Node(i))))
		}
	}
}

// finalEnd is the end of a node by other means than an attempt.
func (s *State) finalEnd(i int32, status dag.Status) *FinishedBody {
	return &FinishedBody{Node: s.graph.Node(i).ID, Generation: int(s.recs[i].Gen), Status: status, Final: true}
}

// failure is the end of a node that fails without an attempt.
func (s *State) failure(i int32, category, message string) *FinishedBody {
	b := s.finalEnd(i, dag.StatusFailed)
	b.Category, b.Class, b.Message = category, s.classOfFailure(category), message
	return b
}

// classOfFailure is the class of a failure without an attempt, or by the machine's own word.
func (s *State) classOfFailure(category string) dag.Class {
	if c, ok := s.graph.Plan.CategoryByName(category); ok {
		return c.Class
	}
	return dag.Hard
}

// skips records the nodes that will not run. It reports whether nodes were sent back instead: that is
// decided alone, as all else may look different then.
func (d *decision) skips() (sentBack bool) {
	s := d.s
	for _, i := range s.list(Skipping) {
		n, t := s.graph.Node(i), &s.tallies[i]
		b := s.finalEnd(i, dag.StatusSkipped)
		switch unwanted(n, t) {
		case byCount:
			back, waits := s.again(i)
			if waits {
				continue
			}
			if back != nil {
				d.cmds = d.cmds[:0]
				d.recordOf(i, back)
				return true
			}
			b = s.failure(i, CategoryNeeds, s.shortage(i))
		case byUpstream:
			b.Category, b.Message = CategoryUpstream, "skipped because of "+s.cause(i)
		default:
			b.Message = "all its needs were skipped"
		}
		d.recordOf(i, b)
	}
	return false
}

// cause names the failed node because of which node i is skipped.
func (s *State) cause(i int32) string {
	for _, j := range s.graph.Needs(i) {
		if s.settled[j] != forced {
			continue
		}
		if s.status[j] != Skipped {
			return s.graph.Node(j).ID
		}
		return strings.TrimPrefix(s.recs[j].detail().Last.Message, "skipped because of ")
	}
	return "a failed node"
}

func (d *decision) warnings() {
	l := &d.s.ledger
	usd, tokens := l.warns()
	if usd && !l.WarnedUSD {
		d.record(&BudgetWarnedBody{Limit: "usd", SpentUSD: l.Spent.USD, Tokens: l.Spent.Tokens})
	}
	if tokens && !l.WarnedTokens {
		d.record(&BudgetWarnedBody{Limit: "tokens", SpentUSD: l.Spent.USD, Tokens: l.Spent.Tokens})
	}
}

func (d *decision) pause(reason Pause, node, format string, args ...any) {
	if !d.paused {
		d.paused = true
		d.record(&RunPausedBody{Reason: reason, Node: node, Message: fmt.Sprintf(format, args...)})
	}
}

// failuresInARow is how many rounds of attempts, each begun by a resume, a node may fail before
// the pause says that something is fundamentally wrong with it: resuming it once more would only pay again.
const failuresInARow = 3

// fails ends the run where a failure does that: one that is undone before the run stops, or any where the plan says so.
func (d *decision) fails() bool {
	s := d.s
	list := slices.DeleteFunc(s.list(Undoing), func(k int32) bool { return s.then(k) != dag.ThenStop })
	if s.graph.Plan.WhenFailed == dag.FailedEnds {
		list = slices.Concat(list, s.list(Failed), s.list(Stopped))
	}
	i := s.firstToEnd(list)
	if i == none {
		return false
	}
	d.record(&RunPausedBody{Reason: PauseFailure, Node: s.graph.Node(i).ID, Message: s.failureText(i)})
	return true
}

// failureText says that a node failed, and why.
func (s *State) failureText(i int32) string {
	m := s.recs[i].detail()
	return fmt.Sprintf("%s failed: %s", s.graph.Node(i).ID, cmp.Or(m.Last.Message, m.Last.Category))
}

// pauses finds out whether the run has to pause now.
func (d *decision) pauses() {
	s := d.s
	if i := s.firstToEnd(s.list(Failed)); i != none {
		id, m := s.graph.Node(i).ID, s.recs[i].detail()
		why := cmp.Or(m.Last.Message, m.Last.Category)
		if m.Last.Category == CategoryNeeds {
			why += ". Resuming runs what is missing again"
		}
		if m.Rounds >= failuresInARow && m.Last.Category != CategoryRefused {
			d.pause(PauseRepeated, id, "%s has failed in %d separate runs of attempts, last with %s: %s. "+
				"Resuming again is unlikely to help: look at its settings, its inputs and what it depends on",
				id, m.Rounds, cmp.Or(m.Last.Category, "no category"), why)
		}
		d.pause(PauseNodeFailed, id, "%s failed: %s", id, why)
	}
	if list := s.list(Stopped); len(list) > 0 {
		id, m := s.graph.Node(list[0]).ID, s.recs[list[0]].detail()
		d.pause(PausePerson, id, "%s: %s", id, cmp.Or(m.Last.Message, m.Last.Category))
	}
	if most := s.ledger.Budget.Failures; s.tooManyPassed() {
		i := slices.MaxFunc(s.passedNodes(), s.byEnd)
		id, m := s.graph.Node(i).ID, s.recs[i].detail()
		d.pause(PauseBudget, id, "%d nodes have failed without holding the run, and budget.failures allows %d; "+
			"the last one is %s: %s", s.passed, most, id, cmp.Or(m.Last.Message, m.Last.Category))
	}
	if left, limited := s.wallLeft(d.now); limited && left <= 0 {
		d.pause(PauseBudget, "", "reached the run time limit (%s)", s.ledger.Budget.Wall.D())
	}
}

// HostStays has a host declare whether it goes on waiting where only an answer to a question can carry the run on.
// Otherwise the run pauses then, so that a process can end. It is no fact of the run: each host declares it.
func (s *State) HostStays(stays bool) { s.stays = stays }

// finish completes the run, or pauses it when only a user can carry it on and the host does not stay.
func (d *decision) finish() {
	s := d.s
	if len(d.cmds) > 0 || s.busy() {
		return
	}
	switch {
	case s.open == 0:
		d.record(s.ended(false, ""))
	case s.left != nil && s.firstOpen() == none:
		d.pause(PausePart, "", "%s", s.partMessage())
	case d.wake != 0:
		d.park()
	case d.free <= 0:
	case len(s.openQ) > 0 && s.stays:
	case len(s.openQ) > 0:
		q := &s.questions[s.openQ[0]].Question
		d.pause(PauseEscalation, q.Node, "waits for an answer to %s: %s", q.ID, q.Message)
	default:
		d.pause(d.stuck())
	}
}

// stuck names the pause of a run in which nothing can start: a breaker without a time to try
// again. Anything else would be a mistake in this package, and is said, not hidden.
func (d *decision) stuck() (reason Pause, node, format string) {
	for k := range d.s.breakers {
		if d.s.breakers[k].isOpen(d.now) {
			return PauseBreaker, "", "breaker " + d.s.breakers[k].Name + " is open and has no time to try again"
		}
	}
	i := d.s.firstOpen()
	id := d.s.graph.Node(i).ID
	if j := d.s.waitsForLeftOut(i); j != none {
		return PausePart, id, fmt.Sprintf("%s cannot run: it needs %s, which is to run again and is left out by %s",
			id, d.s.graph.Node(j).ID, d.s.run.Part)
	}
	return PauseStuck, id, "nothing can run: the first node that has not ended is " + d.s.status[i].String()
}

func (s *State) ended(failed bool, reason string) *RunEndedBody {
	return &RunEndedBody{Failed: failed, Reason: reason, Completed: int(s.counts[Completed]), Soft: int(s.counts[Failed]),
		Skipped: int(s.counts[Skipped]), Undone: int(s.counts[Undone]), CostUSD: s.ledger.Spent.USD}
}

// end decides for a run that ends: what runs is asked to stop, what is to be undone is undone, then clean-up nodes run.
func (d *decision) end() {
	s := d.s
	d.answers()
	for _, i := range s.list(Running) {
		if !s.graph.Node(i).Always {
			d.command(Cancel, i)
		}
	}
	if len(d.cmds) > 0 || d.undoBeforeEnd() {
		return
	}
	left := false
	for _, i := range s.always {
		switch s.status[i] {
		case Checking:
			d.recheck([]int32{i})
		case Deciding:
			d.command(Evaluate, i)
		case Expanding:
			d.command(Expand, i)
		case Retrying, Holding:
			d.waitUntil(s.recs[i].wakeAt())
			left = true
		}
	}
	left = d.cleanup() || left
	if len(d.cmds) == 0 && !left && s.counts[Running] == 0 {
		d.record(s.ended(true, s.ending+s.undoText()))
	}
}
