package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// An EscalationView is a question and, once there is one, its answer.
type EscalationView struct {
	Question EscalationOpenedBody    `json:"question"`
	Opened   time.Time               `json:"opened_at"`
	Answer   *EscalationAnsweredBody `json:"answer,omitempty"` // nil = open
	Answered time.Time               `json:"answered_at,omitzero"`
	// Withdrawn: its node was sent back, or has left the plan, before there was an answer. There will be none.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

func (s *State) onEscalation(e Event, b *EscalationOpenedBody) error {
	if _, dup := s.questAt[b.ID]; dup || b.ID == "" {
		return fmt.Errorf("escalation %q was opened before, or has no id", b.ID)
	}
	i, err := s.find(b.Node)
	if b.Node != "" && err != nil {
		return err
	}
	s.questions = append(s.questions, EscalationView{Question: *b, Opened: e.Time})
	s.indexQuestion(len(s.questions) - 1)
	switch b.Kind {
	case AskBreaker:
		s.breakers[s.breakerIndex(b.Breaker)].Question = b.ID
	case AskApproval, AskFailed, AskLost, AskCompensation:
		if err == nil {
			s.recs[i].edit().Question = b.ID
			s.touch(i)
		}
	}
	return nil
}

func (s *State) indexQuestion(k int) {
	if s.questAt == nil {
		s.questAt = map[string]int32{}
	}
	q := &s.questions[k]
	s.questAt[q.Question.ID] = int32(k)
	if q.Answer == nil && !q.Withdrawn {
		s.openQ = append(s.openQ, int32(k))
	}
}

func (s *State) onAnswer(e Event, b *EscalationAnsweredBody) error {
	k, ok := s.questAt[b.ID]
	if !ok {
		return fmt.Errorf("escalation %q was never opened", b.ID)
	}
	q := &s.questions[k]
	if q.Answer != nil {
		return fmt.Errorf("escalation %q was answered already", b.ID)
	}
	if len(q.Question.Options) > 0 && !slices.Contains(q.Question.Options, b.Answer) {
		return fmt.Errorf("escalation %q has no option %q", b.ID, b.Answer)
	}
	if q.Question.Texts[b.Answer] == dag.TextRequired && b.Text == "" && b.By != ByDeadline {
		return fmt.Errorf("escalation %q wants a text with %q", b.ID, b.Answer)
	}
	q.Answer, q.Answered = b, e.Time
	s.openQ = slices.DeleteFunc(s.openQ, func(o int32) bool { return o == k })
	if b.Answer == AnswerAbort && q.Question.Kind != AskApproval {
		s.run.UndoGivenUp = s.run.UndoGivenUp || q.Question.Kind == AskCompensation
		s.end(fmt.Sprintf("aborted by %s: %s", b.By, q.Question.Message))
	}
	if q.Question.Kind == AskBreaker {
		s.answerBreaker(&s.breakers[s.breakerIndex(q.Question.Breaker)], b.Answer, ms(e.Time))
	}
	if i, ok := s.graph.Index(q.Question.Node); ok && s.recs[i].Detail != nil && s.recs[i].Detail.Question == b.ID {
		s.answer(i, q.Question.Kind, b.Answer, ms(e.Time))
		if m := s.recs[i].detail(); b.By == ByDeadline && q.Question.Kind != AskApproval && m.Last != nil {
			m.Last.Warnings = append(slices.Clip(m.Last.Warnings), q.unasked())
		}
		s.touch(i)
	}
	return nil
}

// answer applies an answer to the node that asked.
func (s *State) answer(i int32, kind Ask, answer string, now int64) {
	r := &s.recs[i]
	m := r.Detail
	switch {
	case kind == AskApproval:
		return // the node keeps its question until its end is recorded
	case kind == AskFailed && (answer == AnswerRetry || answer == AnswerExtend):
		r.fresh(now)
		if answer == AnswerExtend {
			m.Extended++
		}
		s.watchDeadline(i)
	case kind == AskLost && answer == AnswerRerun:
		m.Unresolved = false
	case kind == AskCompensation:
		again := answer == AnswerRetry || answer == AnswerRerun
		m.notUndone()
		m.Undone, m.Left = !again, !again && answer != AnswerDone
	default:
		m.Verdict = answer
	}
	m.Question = ""
}

// answerBreaker applies an answer about an open breaker.
func (s *State) answerBreaker(b *breaker, answer string, now int64) {
	b.Answer = answer
	if answer != AnswerExtend {
		return
	}
	b.Extended++
	b.Until = min(b.Until, now) // half-open: one may try
	for i := range s.recs {
		s.watchDeadline(int32(i))
	}
}

// unasked says that a default was taken.
func (q *EscalationView) unasked() string {
	return fmt.Sprintf("nobody answered %s in time, so it was taken as %s", q.Question.ID, q.Question.Default)
}

// withdraw closes the open questions that hold no node any more.
func (s *State) withdraw() {
	s.openQ = slices.DeleteFunc(s.openQ, func(k int32) bool {
		q := &s.questions[k]
		switch q.Question.Kind {
		case AskApproval, AskFailed, AskLost, AskCompensation:
			i, ok := s.graph.Index(q.Question.Node)
			q.Withdrawn = q.Question.Node != "" && (!ok || s.recs[i].detail().Question != q.Question.ID)
		case AskBreaker:
			b := &s.breakers[s.breakerIndex(q.Question.Breaker)]
			q.Withdrawn = b.State != breakerOpen || b.Question != q.Question.ID
		}
		return q.Withdrawn
	})
}

// asking opens the questions that hold nodes, and acts on answers that complete them.
func (d *decision) asking() {
	s := d.s
	var stale []string
	for _, i := range s.list(Asking) {
		n, r := s.graph.Node(i), &s.recs[i]
		m := r.detail()
		switch {
		case s.outdated(i, n):
			stale = append(stale, n.ID)
		case m.Question != "":
			d.approved(i, m)
		case m.Unresolved:
			d.resolve(i, AnswerRerun, AnswerDone, AnswerFail, AnswerAbort)
		default:
			d.recordOf(i, d.ask(i, EscalationOpenedBody{Kind: AskFailed, Recommended: AnswerRetry,
				Message: fmt.Sprintf("%s failed: %s", n.ID, cmp.Or(m.Last.Message, m.Last.Category)),
				Options: []string{AnswerRetry, AnswerExtend, AnswerContinue, AnswerSkip, AnswerFail, AnswerAbort}}))
		}
	}
	if len(stale) > 0 {
		d.record(&RewoundBody{To: stale[0], Nodes: stale, Reason: reasonOutdated})
	}
}

// resolve finds out what became of an attempt that was cut off, and acts on the answer.
func (d *decision) resolve(i int32, options ...string) {
	s := d.s
	n, r := s.graph.Node(i), &s.recs[i]
	switch m := r.detail(); {
	case m.Verdict == AnswerDone:
		b := &FinishedBody{Node: n.ID, Generation: int(r.Gen), Attempt: int(r.Attempt),
			Status: dag.StatusCompleted, Final: true, Message: "marked done by a user; outputs unknown"}
		b.Warnings = unkept(n, "marked done by a user")
		d.recordOf(i, b)
	case m.Verdict != "":
		b := s.failure(i, CategoryLost, "outcome unknown; marked failed by a user")
		b.Attempt = int(r.Attempt)
		d.recordOf(i, b)
	case n.Effect == dag.Probe:
		d.command(Resolve, i)
	default:
		d.command(Resolve, i)
		q := EscalationOpenedBody{Kind: AskLost, Options: options,
			Message: fmt.Sprintf("Attempt %d of %s was interrupted. Did it take effect?", r.Attempt, n.ID)}
		if m.Took != "" { // what is to be done without what it left?
			q.Message = fmt.Sprintf("Attempt %d of %s ended well (%s), but what it left was not kept: %s. "+
				"Is it done, or shall it be done again?", r.Attempt, n.ID, m.Took, m.Last.Message)
			q.Recommended = AnswerDone
		}
		d.cmds[len(d.cmds)-1].Body = d.ask(i, q)
	}
}

// unkept is what is to be known of an attempt that was cut off and is said to have done its work: nobody kept what it
// left behind since.
func unkept(n *dag.Node, said string) []string {
	if len(n.Writes) == 0 {
		return nil
	}
	return []string{said + ": of " + strings.Join(n.Writes, ", ") +
		" only what it had written before it was interrupted exists"}
}

// reasonOutdated is the reason of REWOUND for nodes whose questions were asked about results that do
// not stand any more.
const reasonOutdated = "what it asks about has changed since"

// outdated reports whether a node that waits for approval, or has it, does so of needs that have not
// ended, or not as they had: they were sent back after it asked. An answer counts for the results that the
// person has seen, so the question is asked anew when there are others.
func (s *State) outdated(i int32, n *dag.Node) bool {
	if !s.recs[i].approving(s) {
		return false
	}
	t := &s.tallies[i]
	return t.open > 0 && !s.decided(i, n, t) || !n.Always && unwanted(n, t) != wanted
}

// approving reports whether a node waits for approval that takes the place of an attempt.
func (r *rec) approving(s *State) bool {
	q, _ := s.Escalation(r.detail().Question)
	return q.Question.Kind == AskApproval
}

// approved completes a node whose question has been answered.
func (d *decision) approved(i int32, m *detail) {
	q, ok := d.s.Escalation(m.Question)
	if !ok || q.Answer == nil {
		return
	}
	b := d.s.finalEnd(i, dag.StatusCompleted)
	if slices.Contains(q.Question.Refuses, q.Answer.Answer) {
		why := "refused: the answer is " + q.Answer.Answer
		if q.Answer.By == ByDeadline {
			why = "refused: nobody answered in time, so the answer is " + q.Answer.Answer
		}
		b = d.s.failure(i, CategoryRefused, strings.TrimSuffix(why+": "+q.Answer.Text, ": "))
	} else if q.Answer.By == ByDeadline {
		b.Warnings = []string{q.unasked()}
	}
	b.Values = map[string]json.RawMessage{"answer": quote(q.Answer.Answer), "by": quote(q.Answer.By)}
	if q.Answer.Text != "" && d.s.graph.Node(i).Outputs["text"] != "" {
		b.Values["text"] = quote(q.Answer.Text)
	}
	d.recordOf(i, b)
}

// ByDeadline is who answers a question whose time has passed.
const ByDeadline = "deadline"

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // strings can always be marshalled
	return b
}

// ask completes a question about a node.
func (d *decision) ask(i int32, q EscalationOpenedBody) *EscalationOpenedBody {
	q.Node = d.s.graph.Node(i).ID
	return d.s.Ask(q, at(d.now))
}

// unaskedMost is how often a default is taken unasked of one node, or of a breaker's openings in a row, that only tries
// again: nothing goes round for ever because nobody answers.
const unaskedMost = 3

// Ask completes a question that is asked now, of which kind, node or breaker, message and answers are given: its id,
// which is the same until it has been opened, and what the plan says of its type.
func (s *State) Ask(q EscalationOpenedBody, now time.Time) *EscalationOpenedBody {
	var n *dag.Node
	var round, asked int
	if i, ok := s.graph.Index(q.Node); ok {
		n, round = s.graph.Node(i), int(s.recs[i].Gen)
		q.Type = cmp.Or(q.Type, s.askedType(i, &q))
	} else {
		b := &s.breakers[s.breakAt[q.Breaker]]
		round, asked = int(b.Openings), int(b.Extended)
		q.Type = cmp.Or(s.breakerSpec(b.Name).Asks, dag.AskBreaker)
		nodes := s.graph.Plan.Nodes
		n = &nodes[slices.IndexFunc(nodes, func(n dag.Node) bool { return n.Breaker == b.Name })]
	}
	if q.ID == "" {
		q.ID = fmt.Sprintf("%s/%s/%d", q.Kind, cmp.Or(q.Node, q.Breaker), round)
	}
	for first := q.ID; ; asked++ {
		if _, used := s.questAt[q.ID]; !used {
			break
		}
		q.ID = fmt.Sprintf("%s.%d", first, asked+2)
	}
	q.Stage = s.graph.Plan.Stage(n)
	s.policy(&q, asked, now)
	return &q
}

// askedType is the type of a question about a node. What is not asked about it is taken off the answers.
func (s *State) askedType(i int32, q *EscalationOpenedBody) string {
	if q.Kind != AskFailed {
		return string(q.Kind)
	}
	typ := dag.AskFailure
	if c, ok := s.graph.Plan.CategoryByName(s.recs[i].detail().Last.Category); ok {
		typ = cmp.Or(c.Asks, typ)
	}
	if t := s.graph.Node(i).Timeout; typ != dag.AskTimeout || max(t.Attempt, t.Silence, t.Total) == 0 {
		q.Options = slices.DeleteFunc(q.Options, func(x string) bool { return x == AnswerExtend })
	}
	return typ
}

// policy lays what the plan says of a question's type over it. What an approval says itself goes before.
func (s *State) policy(q *EscalationOpenedBody, asked int, now time.Time) {
	p := s.graph.Plan.Escalation(q.Type)
	if p.Message != "" {
		q.Message = p.Message + " " + q.Message
	}
	if q.Kind != AskApproval {
		var offered []string
		for _, o := range p.Options {
			if slices.Contains(q.Options, o.Name) {
				offered = append(offered, o.Name)
			}
		}
		if len(offered) > 0 {
			q.Options = offered
		}
	}
	does, texts := map[string]string{}, map[string]string{}
	for _, x := range q.Options {
		o := dag.Option{Name: x, Does: meanings[q.Kind][x]}
		if k := slices.IndexFunc(p.Options, func(o dag.Option) bool { return o.Name == x }); k >= 0 {
			o.Does, o.Text = cmp.Or(p.Options[k].Does, o.Does), p.Options[k].Text
		}
		say(does, x, cmp.Or(q.Does[x], o.Does))
		say(texts, x, cmp.Or(q.Texts[x], o.Text))
	}
	q.Does, q.Texts = does, texts
	offers := func(x string) bool { return slices.Contains(q.Options, x) }
	if !offers(q.Recommended) {
		q.Recommended = ""
	}
	if own := q.Kind == AskApproval && q.Recommended != ""; !own && offers(p.Recommended) {
		q.Recommended = p.Recommended
	}
	if again := asked >= unaskedMost && triesAgain(p.Default); q.Default == "" && offers(p.Default) && !again {
		q.Default = p.Default
	}
	if q.Default != "" && q.Deadline.IsZero() && p.After != 0 {
		q.Deadline = now.Add(p.After.D()).UTC().Truncate(time.Millisecond)
	}
}

func triesAgain(answer string) bool {
	return answer == AnswerRetry || answer == AnswerExtend || answer == AnswerRerun
}

func say(m map[string]string, name, text string) {
	if text != "" {
		m[name] = text
	}
}

// Escalations returns the open questions in the order they were asked.
func (s *State) Escalations() []EscalationOpenedBody {
	list := make([]EscalationOpenedBody, len(s.openQ))
	for k, q := range s.openQ {
		list[k] = s.questions[q].Question
	}
	return list
}

// Escalation returns a question by id.
func (s *State) Escalation(id string) (EscalationView, bool) {
	k, ok := s.questAt[id]
	if !ok {
		return EscalationView{}, false
	}
	return s.questions[k], true
}
