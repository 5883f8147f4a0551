// Package agent is the kind of node that puts a question to a language model and accepts its
// answer. It does not retry, wait or count money: it says what it saw.
package agent

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
)

//go:embed schema.cue
var schema string

// Kind is the kind "agent". The zero value is ready for use.
type Kind struct {
	now func() time.Time // the runner's clock, for "resets 3pm"; nil = time.Now
}

var _ nodes.FileChecker = Kind{}

// Name returns "agent".
func (Kind) Name() string { return "agent" }

// Schema returns the CUE source of #Agent.
func (Kind) Schema() string { return schema }

// Run puts the question once: prompt, call, shape, accept, publish.
func (k Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, p, steps, err := prepare(t)
	if err != nil {
		return nil, err
	}
	q, res, err := assemble(t, s)
	if err != nil {
		return res, err
	}
	q.now = k.clock()
	r, record, err := call(ctx, p, q)
	if err != nil {
		return res, advise(s, err)
	}
	res, err = finish(t, s, steps, r, res)
	q.session.settle(r, res, err)
	err = advise(s, harmless(res, err))
	// The answer is on disk by now: who finds the call recorded finds the answer too.
	if failed := record(); failed != nil {
		return res, failed
	}
	return res, err
}

// prepare reads what an attempt needs of its settings.
func prepare(t *nodes.Task) (*settings, provider, []accept.Step, error) {
	s, err := read(t.With)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := providerOf(s)
	if err != nil {
		return nil, nil, nil, err
	}
	s.fallBack(t)
	credential.MaskURL(t, s.BaseURL)
	for name, value := range s.Headers {
		credential.MaskNamed(t, name, value)
	}
	for name, raw := range s.Env {
		credential.MaskNamed(t, name, accept.Plain(raw))
	}
	steps, err := s.steps()
	return s, p, steps, err
}

func (k Kind) clock() func() time.Time {
	if k.now == nil {
		return time.Now
	}
	return k.now
}

// harmless makes what an agent said safe for a log and a terminal, where messages quote it. B-10
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

// call asks the provider and records that it was asked. record records what became of it; it is
// called when the answer has been kept.
func call(ctx context.Context, p provider, q *question) (r *reply, record func() error, err error) {
	begin := time.Now()
	if err := q.task.Emit("LLM_CALL_STARTED", started(p, q)); err != nil {
		return nil, nil, err
	}
	r, err = p.ask(ctx, q)
	latency := time.Since(begin).Milliseconds()
	if err == nil {
		err = settle(q, r)
	}
	if err != nil {
		failure := asError(ctx, err)
		return nil, nil, errors.Join(q.task.Emit("LLM_CALL_FAILED", failed(failure, 0, latency)), err)
	}
	return r, func() error { return tell(q, r, latency) }, nil
}

// tell records what became of a call.
func tell(q *question, r *reply, latency int64) error {
	if r.Failure != nil {
		errors.As(harmless(&nodes.Result{}, r.Failure), &r.Failure)
		return q.task.Emit("LLM_CALL_FAILED", failed(r.Failure, r.Status, latency))
	}
	return q.task.Emit("LLM_CALL_FINISHED", finished(r, latency))
}

func asError(ctx context.Context, err error) *nodes.Error {
	var e *nodes.Error
	switch {
	case errors.As(err, &e):
		return e
	case ctx.Err() != nil:
		return nodes.Fail("killed", "stopped: "+context.Cause(ctx).Error())
	}
	return nodes.Fail("unknown", err.Error())
}

// finish turns a reply into a result: the answer is kept, whatever it is, and goes through accept.
func finish(t *nodes.Task, s *settings, steps []accept.Step, r *reply, res *nodes.Result) (*nodes.Result, error) {
	res.Usage, res.Survivors = r.Usage, r.Survivors
	res.Warnings = append(res.Warnings, r.Warnings...)
	cost(s, r, res)
	models(s, r, res)
	if r.Text != "" {
		if err := t.KeepFrom("raw-output.txt", strings.NewReader(r.Text)); err != nil {
			return res, err
		}
	}
	if r.Failure != nil && r.Failure.Category != "bad_answer" {
		return res, r.Failure
	}
	st, failure := accepted(t, steps, s, r)
	switch {
	case r.Doubt == nil, failure != nil && r.Object != nil: // an object that does not fit came whole
	case failure != nil, !r.Turned && !s.proves(r):
		r.Failure, r.Finish = r.Doubt, "error"
		return res, r.Failure
	default:
		res.Warnings = append(res.Warnings, "the answer is whole, but: "+r.Doubt.Message)
	}
	if failure == nil {
		failure = refused(s, r, res)
	}
	res.Entries, res.Values = st.Entries, st.Values
	res.Notes = append(res.Notes, st.Notes...)
	res.Warnings = append(res.Warnings, st.Warnings...)
	if failure != nil {
		return res, failure
	}
	return publish(t, s, r, st, res)
}

// accepted applies shape and steps to the answer; where the answer holds no object or artifact, to the texts of
// other turns, newest first. At last the values of else may stand for the object.
func accepted(t *nodes.Task, steps []accept.Step, s *settings, r *reply) (*accept.State, *nodes.Error) {
	st, failure := accept.NewState(t, r.Text), r.Failure
	if failure == nil {
		failure = apply(s.shaped(steps, r, nil), st, r)
	}
	if failure == nil {
		if r.Cut != "" {
			st.Warn("the answer ended at a limit (%s), but everything asked for is whole", r.Cut)
		}
		return st, nil
	}
	if failure.Category == "no_artifact" || failure.Category == "bad_answer" {
		for _, text := range r.Earlier {
			other := accept.NewState(t, text)
			if apply(s.shaped(steps, r, nil), other, r) == nil {
				other.Warn("the answer was taken from another turn than the last")
				return other, nil
			}
		}
	}
	failure = explain(failure, r)
	if instead, failed := s.otherwise(t, steps, r, failure); instead != nil {
		return instead, failed
	}
	return st, failure
}

func apply(steps []accept.Step, st *accept.State, r *reply) *nodes.Error {
	if len(steps) == 0 && r.Cut != "" {
		return &nodes.Error{Category: "truncated", Message: "the answer ended at a limit (" + r.Cut + ")"}
	}
	var e *nodes.Error
	if err := accept.Run(steps, st); err != nil && !errors.As(err, &e) {
		e = &nodes.Error{Category: "unknown", Message: "accept", Err: err}
	}
	return e
}

// publish stages what was accepted and saves the result, so that it is not bought again.
func publish(t *nodes.Task, s *settings, r *reply, st *accept.State, res *nodes.Result) (*nodes.Result, error) {
	if _, taken := st.Artifacts[s.To]; s.To != "" && !taken {
		st.Artifacts[s.To] = []byte(st.Answer)
	}
	staged, err := st.Result(t.Out, true)
	if err != nil {
		return res, err
	}
	res.Writes = staged.Writes
	if res.Values == nil {
		res.Values = map[string]any{}
	}
	res.Values["chars"] = utf8.RuneCountInString(st.Answer)
	res.Values["model"] = answeredBy(s, r)
	res.Values["finish_reason"] = r.Finish
	w, err := t.Keep(nodes.SavedName)
	if err != nil {
		return res, err
	}
	return res, errors.Join(nodes.SaveResult(w, t, res), w.Close())
}

// cost books what the provider reported; with a flat price it is a note only.
func cost(s *settings, r *reply, res *nodes.Result) {
	if !s.FlatRate {
		res.CostUSD, res.LeastUSD = r.CostUSD, r.LeastUSD
		return
	}
	res.CostUSD = new(float64)
	if r.CostUSD != nil && *r.CostUSD > 0 {
		usd := map[string]any{"usd": *r.CostUSD}
		res.Notes = append(res.Notes, nodes.Note{Log: "quality", Type: "notional-cost", Fields: usd})
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
