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
	node := int32(-1)
	if b.Node != "" {
		i, err := s.find(b.Node)
		if err != nil {
			return err
		}
		node = i
	}
	s.questions = append(s.questions, EscalationView{Question: *b, Opened: e.Time})
	s.indexQuestion(len(s.questions) - 1)
	switch b.Kind {
	case AskBreaker:
		s.breakers[s.breakerIndex(b.Breaker)].Question = b.ID
	case AskApproval, AskFailed, AskLost, AskCompensation:
		if node >= 0 {
			s.recs[node].edit().Question = b.ID
			s.touch(node)
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
	q.Answer, q.Answered = b, e.Time
	s.openQ = slices.DeleteFunc(s.openQ, func(o int32) bool { return o == k })
	if b.Answer == AnswerAbort && q.Question.Kind != AskApproval {
		s.run.UndoGivenUp = s.run.UndoGivenUp || q.Question.Kind == AskCompensation
		s.end(fmt.Sprintf("aborted by %s: %s", b.By, q.Question.Message))
	}
	if q.Question.Kind == AskBreaker {
		s.breakers[s.breakerIndex(q.Question.Breaker)].Answer = b.Answer
	}
	if i, ok := s.graph.Index(q.Question.Node); ok && s.recs[i].Detail != nil && s.recs[i].Detail.Question == b.ID {
		s.answer(i, q.Question.Kind, b.Answer, ms(e.Time))
		s.touch(i)
		s.findUndo()
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
	case kind == AskFailed && answer == AnswerRetry:
		r.fresh(now)
		s.watchDeadline(i)
	case kind == AskLost && answer == AnswerRerun:
		m.Unresolved = false
	case kind == AskCompensation:
		m.UndoTries, m.UndoAt, m.UndoLost = 0, 0, false
		m.Undone = answer != AnswerRetry && answer != AnswerRerun
		m.Left = m.Undone && answer != AnswerDone
	default:
		m.Verdict = answer
	}
	m.Question = ""
}

// withdraw closes the open questions that hold no node any more.
func (s *State) withdraw() {
	s.openQ = slices.DeleteFunc(s.openQ, func(k int32) bool {
		q := &s.questions[k]
		switch q.Question.Kind {
		case AskApproval, AskFailed, AskLost, AskCompensation:
			i, ok := s.graph.Index(q.Question.Node)
			q.Withdrawn = q.Question.Node != "" && (!ok || s.recs[i].Detail == nil || s.recs[i].Detail.Question != q.Question.ID)
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
			q := s.ask(i, AskFailed, "%s failed: %s", []any{n.ID, cmp.Or(m.Last.Message, m.Last.Category)},
				AnswerRetry, AnswerContinue, AnswerSkip, AnswerFail, AnswerAbort)
			q.Recommended = AnswerRetry
			d.recordOf(i, q)
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
		if len(n.Writes) > 0 {
			b.Warnings = []string{"marked done by a user: of " + strings.Join(n.Writes, ", ") +
				" only what it had written before it was interrupted exists"}
		}
		d.recordOf(i, b)
	case m.Verdict != "":
		b := s.failure(i, CategoryLost, "outcome unknown; marked failed by a user")
		b.Attempt = int(r.Attempt)
		d.recordOf(i, b)
	case n.Effect == dag.Probe:
		d.command(Resolve, i)
	default:
		d.command(Resolve, i)
		q := s.ask(i, AskLost, "Attempt %d of %s was interrupted. Did it take effect?", []any{r.Attempt, n.ID}, options...)
		if m.Took != "" { // what is to be done without what it left?
			q.Message = fmt.Sprintf("Attempt %d of %s ended well (%s), but what it left was not kept: %s. "+
				"Is it done, or shall it be done again?", r.Attempt, n.ID, m.Took, m.Last.Message)
			q.Recommended = AnswerDone
		}
		d.cmds[len(d.cmds)-1].Body = q
	}
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
	if r.Phase != idle || r.Detail == nil || r.Detail.Question == "" {
		return false
	}
	k, ok := s.questAt[r.Detail.Question]
	return ok && s.questions[k].Question.Kind == AskApproval
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
		b = d.s.failure(i, CategoryRefused, why)
	}
	b.Values = map[string]json.RawMessage{"answer": quote(q.Answer.Answer), "by": quote(q.Answer.By)}
	d.recordOf(i, b)
}

// ByDeadline is who answers a question whose time has passed.
const ByDeadline = "deadline"

func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return b
}

// ask is a question about a node; its id is unique and the same until it has been opened.
func (s *State) ask(i int32, kind Ask, format string, args []any, options ...string) *EscalationOpenedBody {
	n := s.graph.Node(i)
	id := fmt.Sprintf("%s/%s/%d", kind, n.ID, s.recs[i].Gen)
	for k := 2; ; k++ {
		if _, used := s.questAt[id]; !used {
			break
		}
		id = fmt.Sprintf("%s/%s/%d.%d", kind, n.ID, s.recs[i].Gen, k)
	}
	return &EscalationOpenedBody{ID: id, Kind: kind, Node: n.ID, Message: fmt.Sprintf(format, args...), Options: options}
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
