package machine

import (
	"fmt"
	"slices"
	"time"
)

// A question is an escalation and, once there is one, its answer.
type question struct {
	body     EscalationOpenedBody
	opened   int64
	answer   *EscalationAnsweredBody
	answered int64
}

func (s *State) onEscalation(e *Event, b *EscalationOpenedBody) error {
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
	s.questions = append(s.questions, question{body: *b, opened: ms(e.Time)})
	s.indexQuestion(len(s.questions) - 1)
	switch b.Kind {
	case AskBreaker:
		s.breakers[s.breakerIndex(b.Breaker)].question = b.ID
	case AskApproval, AskFailed, AskLost, AskCompensation:
		if node >= 0 {
			s.recs[node].m().question = b.ID
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
	s.questAt[q.body.ID] = int32(k)
	if q.answer == nil {
		s.openQ = append(s.openQ, int32(k))
	}
}

// Kinds of escalation whose answers the machine acts on. Answers to other kinds are for whoever
// asked. The answer "abort", where it is an option, ends the run.
const (
	AskApproval     = "approval"     // the answer completes the node: values answer, by
	AskFailed       = "failed"       // retry, continue, skip, fail
	AskLost         = "lost"         // rerun, done, fail
	AskCompensation = "compensation" // retry, continue
	AskBreaker      = "breaker"      // wait, skip, continue
)

func (s *State) onAnswer(e *Event, b *EscalationAnsweredBody) error {
	k, ok := s.questAt[b.ID]
	if !ok {
		return fmt.Errorf("escalation %q was never opened", b.ID)
	}
	q := &s.questions[k]
	if q.answer != nil {
		return fmt.Errorf("escalation %q was answered already", b.ID)
	}
	if len(q.body.Options) > 0 && !slices.Contains(q.body.Options, b.Answer) {
		return fmt.Errorf("escalation %q has no option %q", b.ID, b.Answer)
	}
	q.answer, q.answered = b, ms(e.Time)
	s.openQ = slices.DeleteFunc(s.openQ, func(o int32) bool { return o == k })
	if b.Answer == "abort" && q.body.Kind != AskApproval {
		s.end(fmt.Sprintf("aborted by %s: %s", b.By, q.body.Message))
	}
	if q.body.Kind == AskBreaker {
		s.breakers[s.breakerIndex(q.body.Breaker)].answer = b.Answer
	}
	if i, ok := s.graph.Index(q.body.Node); ok && s.recs[i].more != nil && s.recs[i].more.question == b.ID {
		s.answer(i, q.body.Kind, b.Answer, ms(e.Time))
		s.touch(i)
		s.findUndo()
	}
	return nil
}

// answer applies an answer to the node that asked.
func (s *State) answer(i int32, kind, answer string, now int64) {
	r := &s.recs[i]
	m := r.more
	switch {
	case kind == AskApproval:
		return // the node keeps its question until its end is recorded
	case kind == AskFailed && answer == "retry":
		r.fresh(now)
		s.watchDeadline(i)
	case kind == AskLost && answer == "rerun":
		m.unresolved = false
	case kind == AskCompensation && answer == "retry":
		m.undoTries, m.undoAt = 0, 0
	case kind == AskCompensation:
		m.undone = true
	default:
		m.verdict = answer
	}
	m.question = ""
}

// An EscalationView is a question and its answer.
type EscalationView struct {
	Question EscalationOpenedBody
	Opened   time.Time
	Answer   *EscalationAnsweredBody // nil = open
	Answered time.Time
}

func (q *question) view() EscalationView {
	return EscalationView{q.body, at(q.opened), q.answer, at(q.answered)}
}

// Escalations returns the open questions in the order they were asked.
func (s *State) Escalations() []EscalationOpenedBody {
	list := make([]EscalationOpenedBody, len(s.openQ))
	for k, q := range s.openQ {
		list[k] = s.questions[q].body
	}
	return list
}

// Escalation returns a question by id.
func (s *State) Escalation(id string) (EscalationView, bool) {
	k, ok := s.questAt[id]
	if !ok {
		return EscalationView{}, false
	}
	return s.questions[k].view(), true
}
