package dagtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/hosttest"
)

// Epoch is the instant at which simulated runs begin.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A Sim is a fake host: it carries out what the machine asks for in virtual time, and keeps the
// events as a log would. It checks on the way what must hold for every run.
type Sim struct {
	Graph   *dag.Graph
	State   *machine.State
	Events  []machine.Event // the log
	Workers int             // most attempts at once; default 3
	Resumes int             // most resumes after a pause; default 20
	// Kills are numbers of events before which the host is killed and started again.
	Kills []int
	// Snapshots has a restarted host begin with a snapshot instead of the whole log.
	Snapshots bool
	// Reads has nodes be what RandomReaders makes of them.
	Reads bool
	// Frugal refuses the start of a node that has been given the same before.
	Frugal bool
	// Handed is a plan that is handed to the run once it has HandedAt events, while it goes on.
	Handed   *dag.Plan
	HandedAt int
	// Parts are selected one after the other: the first as the run begins, the next when the part before is done.
	Parts []machine.PartSelectedBody
	// Case has the simulation be the host of a case of the suite of hosts; see suite_test.go.
	Case *hosttest.Case
	// Eval evaluates what a plan of a specification says; values, failures and answers are left to chance. nil: the plan is random.
	Eval dag.Evaluator
	// CancelAt is after how many events a user cancels the run and has it undone; 0 = never.
	CancelAt int
	// Queue has it hand attempts over to a queue, from which a worker takes them later.
	Queue bool
	// Check is called after every event.
	Check func(*Sim) error

	now      time.Time
	running  map[string]attempt
	undoing  string
	failures map[string]int  // recorded failures, see failKey
	paid     map[string]bool // recorded successes by node and generation
	effects  map[string]int  // effects of once and probe nodes, by node and generation
	undid    map[string]int  // effects of undo actions, by node and generation
	undos    undos           // what was undone, for the checks
	next     *dag.Graph      // about to be adopted
	files    *index.Index
	world    map[string]string // what silent commands did, by node
	made     map[string]string // fingerprint of the last completed attempt, by node
	steps    int
	suite    suite
	killed   bool  // while the present step was carried out
	died     []int // kills that have happened
}

type attempt struct {
	node       *dag.Node
	gen, no    int
	began, end time.Time
	took       time.Duration // of an attempt that is queued
	queued     bool          // end is when a worker takes it
	done       bool          // its outcome is known; not yet recorded

	fingerprint, given string
}

// New returns a simulation of a plan.
func New(p *dag.Plan) (*Sim, error) {
	g, err := dag.NewGraph(p)
	if err != nil {
		return nil, err
	}
	return &Sim{Graph: g, State: new(machine.State), Workers: 3, Resumes: 20, now: Epoch, running: map[string]attempt{},
		failures: map[string]int{}, paid: map[string]bool{}, effects: map[string]int{}, files: index.New(),
		world: map[string]string{}, made: map[string]string{}, undid: map[string]int{}}, nil
}

// Run carries the run to its end, or to a pause that resuming does not help.
func (s *Sim) Run() error {
	p := s.Graph.Plan
	created := &machine.RunCreatedBody{
		RunID: "sim", Name: p.Name, PlanDigest: "plan", Schema: machine.Schema, Seed: p.Seed}
	if err := s.record(created); err != nil {
		return err
	}
	return s.GoOn()
}

// GoOn is Run for a run that has begun.
func (s *Sim) GoOn() error {
	for {
		if s.steps++; s.steps > 3000 {
			return fmt.Errorf("does not end: %+v\n%s", s.State.Run(), s.Dump())
		}
		over, err := s.step()
		if over || err != nil {
			return err
		}
	}
}

// step asks, acts, and lets time pass when there is nothing to do.
func (s *Sim) step() (over bool, err error) {
	s.killed = false
	status := s.State.Run().Status
	going := status == machine.RunRunning || status == machine.RunEnding
	if open := s.State.Escalations(); s.Case == nil && len(open) > 0 && going {
		if answer := s.answer(&open[0]); answer != "" {
			return false, s.record(&machine.EscalationAnsweredBody{ID: open[0].ID, Answer: answer, By: "user"})
		}
	}
	if s.handsOver() {
		return false, s.handOver()
	}
	if b := s.nextPart(); b != nil {
		return false, s.record(b)
	}
	if s.CancelAt > 0 && len(s.Events) >= s.CancelAt && status == machine.RunRunning {
		return false, s.record(&machine.RunPausedBody{Reason: machine.PauseCancel, Message: "enough", Undo: true})
	}
	s.State.Advance(s.now)
	cmds, wake := s.State.Decide(s.now, s.Workers-len(s.running))
	if again, _ := s.State.Decide(s.now, s.Workers-len(s.running)); !equal(cmds, again) {
		return false, fmt.Errorf("asked twice, answered differently:\n%s\n%s", show(cmds), show(again))
	}
	did := false
	for _, c := range cmds {
		acted, err := s.carry(c)
		if err != nil {
			return false, fmt.Errorf("%s: %w", show([]machine.Command{c}), err)
		}
		if s.killed || c.Op == machine.Resolve && c.Body == nil { // what a probe says may change the answer
			return false, nil
		}
		did = did || acted
	}
	if did {
		return false, nil
	}
	return s.idle(wake)
}

// nextPart is the part to select now; nil = none.
func (s *Sim) nextPart() *machine.PartSelectedBody {
	n := 0
	for _, e := range s.Events {
		if e.Type == machine.PartSelected {
			n++
		}
	}
	v := s.State.Run()
	if n < len(s.Parts) && (n == 0 || v.Status == machine.RunPause && v.Pause.Reason == machine.PausePart) {
		return &s.Parts[n]
	}
	return nil
}

// idle waits for the next end of an attempt or the machine's instant, whichever comes first.
func (s *Sim) idle(wake time.Time) (over bool, err error) {
	next, ok := s.firstEnd()
	if acted, err := s.act(next, ok, wake); acted || err != nil {
		return false, err
	}
	if ok && next.queued && (wake.IsZero() || !next.end.After(wake)) {
		s.pass(next.end)
		return false, s.begin(next)
	}
	status := s.State.Run().Status
	switch {
	case ok && (wake.IsZero() || !next.end.After(wake)):
		s.pass(next.end)
		return false, s.finish(next, s.fate(next))
	case status.Ended():
		return true, nil
	case status == machine.RunPause:
		if s.undoing != "" {
			return false, s.undone()
		}
		if s.State.Run().Resumes >= s.Resumes {
			return true, nil
		}
		s.pass(s.now.Add(time.Hour))
		return false, s.record(&machine.RunResumedBody{By: "resume"})
	case s.undoing != "":
		return false, s.undone()
	case !wake.IsZero():
		s.pass(wake)
		return false, nil
	}
	return false, fmt.Errorf("stands still, %v running, wake %v: %+v\n%s", s.running, wake, s.State.Run(), s.Dump())
}

// Dump shows all nodes that have not ended and the last events.
func (s *Sim) Dump() string {
	var b strings.Builder
	for i := range int32(s.State.Graph().Len()) {
		if v := s.State.NodeAt(i); v.Status != machine.Completed && v.Status != machine.Skipped {
			fmt.Fprintf(&b, "%s %s needs %v onFail %s when %q fate %s %s blocked %+v\n",
				v.Node.ID, v.Status, v.Node.Needs, v.Node.OnFail, v.Node.When,
				v.Node.Labels["fate"], v.Node.Labels["category"], v.Blocked)
		}
	}
	for _, e := range s.Events[max(0, len(s.Events)-12):] {
		raw, _ := machine.AppendPayload(nil, e.Body)
		fmt.Fprintf(&b, "%d %s %s\n", e.Seq, e.Type, raw)
	}
	return b.String()
}

// answer is what the person says: the truth about lost attempts, retry where that can help.
func (s *Sim) answer(q *machine.EscalationOpenedBody) string {
	if s.Eval != nil && q.Kind != machine.AskLost && q.Kind != machine.AskCompensation {
		return q.Options[s.hash(q.ID, "answer")%len(q.Options)]
	}
	switch q.Kind {
	case machine.AskLost:
		v, _ := s.State.NodeByID(q.Node)
		if s.effects[key(q.Node, v.Generation)] > 0 {
			return "done"
		}
		if !slices.Contains(q.Options, machine.AnswerRerun) {
			return "fail"
		}
		return "rerun"
	case machine.AskFailed:
		if v, _ := s.State.NodeByID(q.Node); v.Node.Labels["fate"] == "always" || v.Rounds > 5 {
			return "continue"
		}
		return "retry"
	case machine.AskCompensation:
		v, _ := s.State.NodeByID(q.Node)
		switch {
		case !slices.Contains(q.Options, machine.AnswerDone):
			return "continue" // it failed again and again
		case s.undid[key(q.Node, v.Generation)] > 0:
			return "done"
		}
		return "rerun"
	}
	return ""
}

func (s *Sim) pass(to time.Time) {
	if to.After(s.now) {
		s.now = to
	}
}

// undone ends the undo action under way; some fail once, some always.
func (s *Sim) undone() error {
	node := s.undoing
	s.undoing = ""
	s.pass(s.now.Add(time.Second))
	v, _ := s.State.NodeByID(node)
	b := &machine.CompensationBody{Node: node, Status: dag.StatusCompleted, Done: true}
	k := key(node, v.Generation)
	switch fate := s.hash(node, "undo") % 7; {
	case !s.undos.on || fate > 1:
	case fate == 1 || s.failures["undo "+k] == 0:
		b.Status, b.Reason = dag.StatusFailed, "failed by fate"
	}
	if b.Status == dag.StatusCompleted {
		s.undid[k]++
	}
	err := s.record(b)
	if b.Status == dag.StatusFailed && !s.killed {
		s.failures["undo "+k]++
	}
	return err
}

func (s *Sim) firstEnd() (attempt, bool) {
	var first attempt
	for i := range s.State.Graph().Len() { // in plan order: maps have none
		a, ok := s.running[s.State.Graph().Node(int32(i)).ID]
		if ok && (first.node == nil || a.end.Before(first.end)) {
			first = a
		}
	}
	return first, first.node != nil
}

// record makes a fact of a payload, by way of its bytes. Before an event of Kills the host dies
// instead.
func (s *Sim) record(b machine.Body) error {
	if k := len(s.Events) + 1; slices.Contains(s.Kills, k) && !slices.Contains(s.died, k) {
		s.died = append(s.died, k)
		s.killed = true
		return s.restart()
	}
	e := machine.New(s.now, b)
	e.Seq = int64(len(s.Events) + 1)
	raw, err := machine.AppendPayload(nil, b)
	if err != nil {
		return err
	}
	if e.Body, err = machine.DecodePayload(e.Type, raw); err != nil {
		return err
	}
	if again, err := machine.AppendPayload(nil, e.Body); err != nil || !bytes.Equal(raw, again) {
		return fmt.Errorf("payload is not stable: %s, %s, %v", raw, again, err)
	}
	if _, ok := b.(*machine.RunCreatedBody); ok {
		e.Plan = s.Graph
	}
	if _, ok := b.(*machine.PlanAdoptedBody); ok {
		e.Plan = s.next
	}
	if err := s.State.Apply(&e); err != nil {
		return err
	}
	if _, ok := b.(*machine.PlanAdoptedBody); ok {
		s.Graph = s.next
	}
	s.Events = append(s.Events, e)
	s.files.Apply(&e, s.State.Graph())
	if err := s.watch(&e); err != nil {
		return err
	}
	if s.Check != nil {
		return s.Check(s)
	}
	return nil
}

// watch checks what must hold after every event.
func (s *Sim) watch(e *machine.Event) error {
	if err := s.watchUndo(e); err != nil {
		return err
	}
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		if s.paid[key(b.Node, b.Generation)] {
			return fmt.Errorf("pays twice for %s", b.Node)
		}
		part, g := s.State.Run().Part, s.State.Graph()
		i, _ := g.Index(b.Node)
		if left := part.LeftOut(g); left != nil && left[i] && !g.Node(i).Always {
			return fmt.Errorf("start of %s, which the part leaves out", b.Node)
		}
		if s.Frugal {
			if err := s.wasted(b); err != nil {
				return err
			}
		}
		l := s.State.Ledger()
		if l.Budget.CapUSD > 0 && b.Reserve.USD > 0 && l.Spent.USD+l.Reserved.USD > l.Budget.CapUSD ||
			l.Budget.CapTokens > 0 && b.Reserve.Tokens > 0 && l.Spent.Tokens+l.Reserved.Tokens > l.Budget.CapTokens {
			return fmt.Errorf("start of %s could pass the cap: %+v", b.Node, l)
		}
		if st := s.State.Run().Status; b.Queued == s.Queue && st != machine.RunRunning && st != machine.RunEnding {
			return fmt.Errorf("start of %s in a run that is %s", b.Node, st)
		}
	case *machine.RunPausedBody:
		if b.Reason == "stuck" {
			return fmt.Errorf("%s", b.Message)
		}
	case *machine.FinishedBody:
		switch b.Status {
		case dag.StatusCompleted:
			s.paid[key(b.Node, b.Generation)] = true
			if !b.Reused {
				s.made[b.Node] = b.Fingerprint
			}
		case dag.StatusFailed:
			s.failures[s.failKey(b.Node, b.Generation)]++
		}
	}
	return nil
}

// failKey is what failures are counted by. Readers, that an edit begins anew, fail as those of a new run do.
func (s *Sim) failKey(node string, gen int) string {
	if s.Reads {
		return key(node, gen)
	}
	return node
}

func key(node string, gen int) string { return fmt.Sprint(node, "#", gen) }

func equal(a, b []machine.Command) bool { return show(a) == show(b) }

func show(cmds []machine.Command) string {
	var b strings.Builder
	for _, c := range cmds {
		fmt.Fprintf(&b, "%d %s %d.%d %v", c.Op, c.Node, c.Generation, c.Attempt, c.Reserve)
		if c.Body != nil {
			raw, _ := machine.AppendPayload(nil, c.Body)
			fmt.Fprintf(&b, " %T%s", c.Body, raw)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// hash is a number that follows from the plan's seed and some words.
func (s *Sim) hash(words ...string) int {
	h := fnv.New32a()
	fmt.Fprint(h, s.Graph.Plan.Seed, words)
	return int(h.Sum32() >> 4)
}

func (s *Sim) flip(words ...string) bool { return s.hash(words...)%2 == 0 }

// effect notes that a once or probe node did what it does.
func (s *Sim) effect(a attempt) {
	if a.node.Effect == "once" || a.node.Effect == "probe" {
		s.effects[key(a.node.ID, a.gen)]++
	}
}

// TwiceDone returns the nodes whose effect happened more than once in a generation.
func (s *Sim) TwiceDone() (list []string) {
	for k, n := range s.effects {
		if n > 1 {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}

// fate is how an attempt ends: by the node's label, and by the failures recorded so far, so that
// a lost attempt changes nothing.
func (s *Sim) fate(a attempt) machine.Outcome {
	n := a.node
	if s.Case != nil {
		return s.scripted(a)
	}
	if s.Eval != nil {
		return s.chance(a)
	}
	switch fate := n.Labels["fate"]; {
	case fate == "fatal":
		return machine.Outcome{Status: dag.StatusFailed, Category: "fatal", Message: "fatal by fate"}
	case fate != "always":
		most, _ := strconv.Atoi(fate)
		if s.failures[s.failKey(n.ID, a.gen)] >= most {
			break
		}
		fallthrough
	default:
		o := machine.Outcome{Status: dag.StatusFailed, Category: n.Labels["category"], Message: "failed by fate"}
		o.Body.CostUSD, o.Body.Fingerprint = n.Reserve.USD/4, a.fingerprint
		return o
	}
	o := machine.Outcome{Status: dag.StatusCompleted}
	if s.Reads {
		o.Body.Values, o.Body.Fingerprint = s.value(a), a.fingerprint
		return o
	}
	o.Body.Values = map[string]json.RawMessage{"v": json.RawMessage(strconv.Itoa(s.hash(n.ID) % 1000))}
	if n.Reserve.USD > 0 {
		o.Body.CostUSD, o.Body.Usage.Output = n.Reserve.USD/2, n.Reserve.Tokens/2
		if s.hash(n.ID, "over")%10 == 0 {
			o.Body.CostUSD = n.Reserve.USD * 2 // an overrun
		}
	}
	return o
}

func (s *Sim) finish(a attempt, o machine.Outcome) error {
	a.done = true
	s.running[a.node.ID] = a
	if o.Status == dag.StatusCompleted {
		s.effect(a)
		if err := s.publish(a); err != nil {
			return err
		}
	}
	e := s.State.Settle(a.node.ID, o, s.now)
	if err := s.record(e.Body); err != nil || s.killed {
		return err
	}
	delete(s.running, a.node.ID)
	return nil
}
