package executor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/printable"
)

// interrupt takes an interrupt: the first pauses the run, a second one soon after ends it at once.
func (h *host) interrupt(at time.Time) error {
	if !h.interrupted.IsZero() && at.Sub(h.interrupted) <= HardWithin {
		return ErrHard
	}
	now := h.clock.now()
	if h.interrupted.IsZero() && h.o.StopGrace > 0 {
		h.stopAt = now.Add(h.o.StopGrace)
	}
	h.interrupted = at
	if h.state().Run().Status != machine.RunRunning {
		return nil // it pauses or ends already
	}
	return h.record(now, &machine.RunPausedBody{Reason: machine.PauseUser, Message: "paused by an interrupt"})
}

// stopIfDue stops what still runs when the grace after an interrupt has passed.
func (h *host) stopIfDue() {
	if h.stopAt.IsZero() || h.clock.now().Before(h.stopAt) {
		return
	}
	h.stopAt = time.Time{}
	for _, a := range h.running {
		a.cancel(attempt.ErrStopped)
	}
}

// killAll ends everything that runs, at once, and waits until it is gone. Nothing is recorded
// any more: attempts that ask for it are told so.
func (h *host) killAll() {
	h.cancel(ErrHard)
	limit := time.After(hardWait)
	for len(h.running) > 0 {
		select {
		case r := <-h.results:
			h.forget(r)
		case <-limit:
			return // the operating system ends what is left, with this process
		}
	}
}

// forget takes an attempt off without recording its end. Its folders stay: what it finished is found there.
func (h *host) forget(r result) {
	close(h.running[r.key].slot.work)
	delete(h.running, r.key)
}

// hardWait bounds the wait for attempts that are killed.
const hardWait = 3 * time.Second

// pauseCheckpoint makes the checkpoint of a pause that the user asked for.
func (h *host) pauseCheckpoint() error {
	if h.interrupted.IsZero() || h.state().Run().Pause.Reason != machine.PauseUser {
		return h.run.Wait(h.mark)
	}
	now := h.clock.now()
	if _, err := h.run.Checkpoint(now, "cp-PAUSE-"+now.UTC().Format("20060102T150405Z"), "", nil); err != nil {
		return fmt.Errorf("checkpoint of the pause: %w", err)
	}
	return nil
}

// A Request is what another process asks of a running one. Its JSON is what the inbox holds of it.
type Request struct {
	Cancel bool   `json:"cancel,omitempty"` // end the run: clean-up nodes, then RUN_FAILED
	Undo   bool   `json:"undo,omitempty"`   // with Cancel: what was done is undone before the clean-up
	Reason string `json:"reason,omitempty"` // of the cancel
	// Answer answers a question; its id may be empty, see Answer.
	Answer *machine.EscalationAnsweredBody `json:"answer,omitempty"`
	// Unattended says that who would have answered here has gone: the host does not stay any longer, see Options.Stays.
	Unattended bool `json:"-"`
	// Submit is another plan, and Taken takes what is made of it, before Reply.
	Submit *Submission `json:"-"`
	Taken  *Taken      `json:"-"`
	// Reply takes the outcome: nil when the request is recorded, durable. It must have room.
	Reply chan<- error `json:"-"`
}

// request carries out what another process asks for.
func (h *host) request(r Request) error {
	reply, fatal := h.answerRequest(r)
	if r.Reply != nil {
		r.Reply <- reply
	}
	return fatal
}

func (h *host) answerRequest(r Request) (reply, fatal error) {
	now := h.clock.now()
	if r.Submit != nil {
		*r.Taken, reply = h.submit(r.Submit, now)
		return reply, nil
	}
	if r.Cancel {
		err := Cancel(h.run, now, r.Reason, r.Undo)
		return err, err
	}
	if r.Unattended {
		h.state().HostStays(false)
		return nil, nil
	}
	if r.Answer == nil {
		return errors.New("the request asks for nothing"), nil
	}
	a := *r.Answer
	a.Text, a.By = h.worker.Mask.Message(a.Text), h.worker.Mask.Message(a.By)
	body, err := Answer(h.state(), a)
	if err != nil {
		return err, nil
	}
	err = h.run.RecordDurable(now, body)
	return err, err
}

// Cancel records, durable, that a run is to end: what runs is stopped, with undo what was done is undone, clean-up
// nodes run, then it has failed. A run that has ended is left as it is.
func Cancel(r *run.Run, now time.Time, reason string, undo bool) error {
	bodies := []machine.Body{&machine.RunPausedBody{Reason: machine.PauseCancel, Message: reason, Undo: undo}}
	switch r.State().Run().Status {
	case machine.RunDone, machine.RunBroken:
		return nil
	case machine.RunPause: // a paused run runs nothing, not even clean-up. In this order, what has failed stays failed
		bodies = append(bodies, &machine.RunResumedBody{By: machine.ByCancel})
	}
	return r.RecordDurable(now, bodies...)
}

// Answer checks an answer to an open question and returns the fact to record. An empty id
// stands for the only open question, an empty name for "user".
func Answer(st *machine.State, a machine.EscalationAnsweredBody) (*machine.EscalationAnsweredBody, error) {
	open := st.Escalations()
	if a.ID == "" && len(open) == 1 {
		a.ID = open[0].ID
	}
	a.Text, a.By = printable.Text(a.Text), cmp.Or(printable.Line(a.By), "user")
	var asks machine.EscalationOpenedBody
	at := slices.IndexFunc(open, func(q machine.EscalationOpenedBody) bool { return q.ID == a.ID })
	if at >= 0 {
		asks = open[at]
	}
	q, known := st.Escalation(a.ID)
	switch {
	case a.By == machine.ByDeadline:
		return nil, fmt.Errorf("%q stands for an answer that nobody gave: name somebody else", a.By)
	case len(a.Text) > mostText:
		return nil, fmt.Errorf("the text has %d bytes; want at most %d", len(a.Text), mostText)
	case a.ID == "" && len(open) == 0:
		return nil, errors.New("no question is open")
	case a.ID == "":
		return nil, fmt.Errorf("%d questions are open, name one: %s", len(open), asked(open))
	case asks.Texts[a.Answer] == dag.TextRequired && a.Text == "":
		return nil, fmt.Errorf("question %s wants a text with %s: dagrun respond %[1]s %[2]s --text TEXT", a.ID, a.Answer)
	case slices.Contains(asks.Options, a.Answer):
		return &a, nil
	case at >= 0:
		return nil, fmt.Errorf("question %s accepts one of %s, not %q", a.ID, strings.Join(asks.Options, ", "), a.Answer)
	case known && q.Withdrawn:
		return nil, fmt.Errorf("question %s is no longer open: what it asked about has changed; see dagrun escalations", a.ID)
	case known && q.Answer != nil:
		return nil, fmt.Errorf("question %s was answered already: %s", a.ID, q.Answer.Answer)
	case len(open) == 0:
		return nil, fmt.Errorf("no question %s is open, and no other", a.ID)
	}
	return nil, fmt.Errorf("no question %s is open; open: %s", a.ID, asked(open))
}

// mostText bounds the text of an answer, in bytes.
const mostText = 64 << 10

// asked names questions with the answers that they take.
func asked(list []machine.EscalationOpenedBody) string {
	var names []string
	for _, q := range list {
		names = append(names, fmt.Sprintf("%s (%s)", q.ID, strings.Join(q.Options, ", ")))
	}
	return strings.Join(names, "; ")
}
