// Package agent is the kind of node that puts a question to a language model and accepts its
// answer. It does not retry, wait or count money: it says what it saw.
//
// The files follow an attempt. What a specification may say is in settings.go, providers.go and describe.go, and what
// each provider can do of it in capability. The question is made in assemble.go, in a folder (folder.go) and
// perhaps a session (session.go). It goes to a provider (provider.go): a program is started by claude.go, codex.go,
// gemini.go or command.go, run in cli.go and judged in judge.go; a service is asked in http.go, with the body of
// anthropic.go or openai.go, and read in stream.go. Both fill internal/transcript. What comes back is accepted in
// accepted.go, by its shape (answer.go) and the steps of accept.
package agent

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
)

//go:embed schema.cue
var schema string

// Kind is the kind "agent".
var Kind = nodes.Kind{Name: "agent", Schema: schema,
	Parse: func(with json.RawMessage) (nodes.Settings, error) { return read(with) }}

var _ interface { // its abilities
	nodes.FileChecker
	nodes.Rescuer
	nodes.Salvager
	nodes.Sharer
	nodes.Preflighter
} = &settings{}

// Run puts the question once: prompt, call, shape, accept, publish.
func (s *settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	q, err := s.prepare(t)
	if err != nil {
		return nil, err
	}
	res, err := q.assemble()
	if err != nil {
		return res, err
	}
	r, err := call(ctx, q)
	if err != nil {
		return res, advise(q.set, err)
	}
	res, err = q.finish(r, res)
	q.session.end(r, res, err)
	err = advise(q.set, harmless(res, err))
	// The answer is on disk by now: who finds the call recorded finds the answer too.
	if failed := record(q, r); failed != nil {
		return res, failed
	}
	return res, err
}

// prepare makes the question of an attempt.
func (s *settings) prepare(t *nodes.Task) (q *question, err error) {
	if len(s.mistakes) > 0 {
		return nil, nodes.Permanent(nodes.Fail("config", "answer.schema: "+s.mistakes[0].Text))
	}
	q = &question{task: t, set: s}
	if q.provider, err = providerOf(s); err != nil {
		return nil, err
	}
	s.fallBack(t)
	credential.MaskURL(t, s.BaseURL)
	for name, value := range s.Headers {
		credential.MaskNamed(t, name, value)
	}
	for name, raw := range s.Env {
		credential.MaskNamed(t, name, accept.Plain(raw))
	}
	return q, nil
}

// reopen finds the folder that the attempt had, and its session.
func (q *question) reopen() (err error) {
	if q.set.Session != "" && q.task.Carry != nil {
		q.session, err = lastSession(q.task)
		if err == nil && q.session.ID == "" {
			err = errors.New("the agent's session is gone")
		}
	}
	if err == nil {
		q.folder = q.base(workName)
	}
	return err
}

// Rescue ends an attempt by what its provider had printed or sent when the process that asked
// died: the answer goes through accept as it would have. Nothing is asked.
func (s *settings) Rescue(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
	q, err := s.prepare(t)
	if err != nil {
		return nil, nil // the plan was accepted with these settings: what was written of them is damaged
	}
	if q.reopen() != nil {
		return nil, nil
	}
	r, err := q.provider.recall(q)
	if err != nil || r == nil {
		return nil, nil
	}
	if !r.Ended && r.Doubt == nil {
		return lost(q.set, r)
	}
	if resolve(q, r) != nil {
		return nil, nil
	}
	res, err := q.finish(r, &nodes.Result{})
	q.session.end(r, res, err)
	if r.Doubt != nil && err != nil && r.Doubt.Category != cutShort {
		return nil, nil // it may have been cut
	}
	err = advise(q.set, harmless(res, err))
	if failed := record(q, r); failed != nil {
		return nil, nil
	}
	return res, err
}

// Salvage takes the report file through accept, as if it were the answer.
func (s *settings) Salvage(t *nodes.Task, files, outputs []string) *nodes.Result {
	res, err := s.salvage(t)
	if err != nil {
		res = &nodes.Result{}
	}
	for _, name := range slices.Concat(files, outputs) {
		_, value := res.Values[name]
		_, file := res.Writes[name]
		switch {
		case err != nil:
			res.Warnings = append(res.Warnings, name+": "+printable.Clip(err.Error(), 300))
		case !file && slices.Contains(files, name), !value && slices.Contains(outputs, name):
			res.Warnings = append(res.Warnings, name+": the report does not hold it")
		}
	}
	return res
}

func (s *settings) salvage(t *nodes.Task) (*nodes.Result, error) {
	q, err := s.prepare(t)
	if err == nil {
		err = q.reopen()
	}
	if err != nil {
		return nil, err
	}
	text, made, err := q.report()
	if err == nil && !made {
		err = errors.New("the agent had not written its report file")
	}
	if err != nil {
		return nil, err
	}
	st := accept.NewState(t, text)
	if err := accept.Run(s.steps, st); err != nil {
		return nil, err
	}
	return q.stage(st)
}

// lost is the end of an attempt whose provider was at work when the process died: what its answer would have been is
// not known, but what it had used, where the head of its stream said so.
func lost(s *settings, r *reply) (*nodes.Result, error) {
	in := r.Usage.Input + r.Usage.CacheRead + r.Usage.CacheWrite
	if in == 0 {
		return nil, nil
	}
	res := &nodes.Result{Usage: r.Usage}
	models(s, r, res)
	e := nodes.Failf("lost", "the answer was lost with the process that read it; "+
		"taken as %d tokens in, %d out from what had come", in, r.Usage.Output)
	e.Unknown = true
	return res, e
}

// call records that the provider is asked, and asks it. What became of that is recorded (record) when the answer
// has been kept.
func call(ctx context.Context, q *question) (*reply, error) {
	begin := time.Now()
	if err := q.task.Emit("LLM_CALL_STARTED", started(q)); err != nil {
		return nil, err
	}
	r, err := q.provider.ask(ctx, q)
	latency := time.Since(begin)
	if err == nil {
		r.Latency = latency
		err = resolve(q, r)
	}
	if err != nil {
		failure := nodes.Failure("unknown", err)
		if failure.Category == "unknown" && ctx.Err() != nil {
			failure = nodes.Fail("killed", "stopped: "+context.Cause(ctx).Error())
		}
		return nil, errors.Join(q.task.Emit("LLM_CALL_FAILED", failed(failure, 0, latency)), err)
	}
	return r, nil
}

// record records what became of a call.
func record(q *question, r *reply) error {
	if r.Failure != nil {
		errors.As(harmless(&nodes.Result{}, r.Failure), &r.Failure)
		return q.task.Emit("LLM_CALL_FAILED", failed(r.Failure, r.Status, r.Latency))
	}
	return q.task.Emit("LLM_CALL_FINISHED", finished(r))
}

// harmless makes what an agent said safe for a log and a terminal, where messages quote it.
func harmless(res *nodes.Result, err error) error {
	for i, w := range res.Warnings {
		res.Warnings[i] = printable.Text(w)
	}
	var e *nodes.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.Message, out.Diagnostics = printable.Text(out.Message), printable.Text(out.Diagnostics)
	return &out
}
