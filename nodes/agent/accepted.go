package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/accept"
)

// finish turns a reply into a result: the answer is kept, whatever it is, and goes through accept.
func (q *question) finish(r *reply, res *nodes.Result) (*nodes.Result, error) {
	res.Usage, res.Survivors = r.Usage, r.Survivors
	res.Warnings = append(res.Warnings, r.Warnings...)
	cost(q.set, r, res)
	models(q.set, r, res)
	if r.Text != "" {
		if err := q.task.KeepFrom("raw-output.txt", strings.NewReader(r.Text)); err != nil {
			return res, err
		}
	}
	if r.Failure != nil && r.Failure.Category != "bad_answer" {
		return res, r.Failure
	}
	st, failure := q.accepted(r)
	switch {
	case r.Doubt == nil, failure != nil && r.Object != nil: // an object that does not fit came whole
	case failure != nil, !r.Turned && !q.set.proves(r):
		r.Failure, r.Finish = r.Doubt, "error"
		return res, r.Failure
	default:
		res.Warnings = append(res.Warnings, "the answer is whole, but: "+r.Doubt.Message)
	}
	if failure == nil {
		failure = refused(q.set, r, res)
	}
	res.Entries, res.Values = st.Entries, st.Values
	res.Notes = append(res.Notes, st.Notes...)
	res.Warnings = append(res.Warnings, st.Warnings...)
	if failure != nil {
		return res, failure
	}
	return q.publish(r, st, res)
}

// accepted applies shape and steps to the answer; where the answer holds no object or artifact, to the texts of
// other turns, newest first. At last the values of else may stand for the object.
func (q *question) accepted(r *reply) (*accept.State, *nodes.Error) {
	st, failure := accept.NewState(q.task, r.Text), r.Failure
	if failure == nil {
		failure = q.apply(st, r, nil)
	}
	if failure == nil {
		if r.Cut != "" {
			st.Warn("the answer ended at a limit (%s), but everything asked for is whole", r.Cut)
		}
		return st, nil
	}
	if failure.Category == "no_artifact" || failure.Category == "bad_answer" {
		for _, text := range r.Earlier {
			other := accept.NewState(q.task, text)
			if q.apply(other, r, nil) == nil {
				other.Warn("the answer was taken from another turn than the last")
				return other, nil
			}
		}
	}
	failure = explain(failure, r)
	if instead, failed := q.otherwise(r, failure); instead != nil {
		return instead, failed
	}
	return st, failure
}

// apply takes an answer through its shape and the steps. instead is nil, or stands for the object of the answer.
func (q *question) apply(st *accept.State, r *reply, instead []byte) *nodes.Error {
	steps := q.set.steps
	if q.set.shape != nil {
		steps = append([]accept.Step{shapeStep{set: q.set, reply: r, instead: instead}}, steps...)
	}
	if len(steps) == 0 && r.Cut != "" {
		return &nodes.Error{Category: "truncated", Message: "the answer ended at a limit (" + r.Cut + ")"}
	}
	if err := accept.Run(steps, st); err != nil {
		return nodes.Failure("unknown", err)
	}
	return nil
}

// publish stages what was accepted and saves the result, so that it is not bought again.
func (q *question) publish(r *reply, st *accept.State, res *nodes.Result) (*nodes.Result, error) {
	staged, err := q.stage(st)
	if err != nil {
		return res, err
	}
	res.Writes, res.Schemas = staged.Writes, staged.Schemas
	if res.Values == nil {
		res.Values = map[string]any{}
	}
	res.Values["chars"] = utf8.RuneCountInString(st.Answer)
	res.Values["model"] = answeredBy(q.set, r)
	res.Values["finish_reason"] = r.Finish
	w, err := q.task.Keep(nodes.SavedName)
	if err == nil {
		err = errors.Join(nodes.SaveResult(w, q.task, res), w.Close())
	}
	if err != nil {
		res.Warnings = append(res.Warnings, "lost: keep "+nodes.SavedName+": "+err.Error())
	}
	return res, nil
}

// stage stages what was accepted; where no step took the artifact of to, that is the answer.
func (q *question) stage(st *accept.State) (*nodes.Result, error) {
	if _, taken := st.Artifacts[q.set.To]; q.set.To != "" && !taken {
		st.Artifacts[q.set.To] = []byte(st.Answer)
	}
	return st.Result(q.task.Out, true)
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
		res.Notes = append(res.Notes, nodes.LogLine{Log: "quality", Type: "notional-cost", Fields: usd})
	}
}

// resolve makes the last judgements on a reply that its provider calls good: the report file
// takes the place of the answer, and an empty answer is none.
func resolve(q *question, r *reply) error {
	if r.Failure != nil && r.Failure.Category == "bad_answer" && q.set.Answer != nil {
		r.Failure, r.Finish = nil, "stop" // what it gave is judged here, and says better what is wrong
	}
	if r.Failure != nil {
		return nil
	}
	text, made, err := q.report()
	if err != nil {
		return err
	}
	switch {
	case made:
		r.Said, r.Text, r.Earlier, r.FromFile = r.Text, text, nil, true
		r.Turned = !r.Cutting // a limit that was reached after the report was written cut nothing
		return nil
	case q.set.Report != "" && q.set.Answer != nil && r.Doubt != nil: // whatever stopped it is why there is none
		r.Finish, r.Failure = "error", r.Doubt
		return nil
	case q.set.Report != "" && q.set.Answer != nil: // the answer is the object, so that it cannot be the report too
		r.Finish = "error"
		r.Failure = explain(nodes.Fail("no_artifact", "the agent did not write the file "+q.set.Report), r)
		return nil
	case q.set.Report != "":
		r.Warnings = append(r.Warnings, "the agent did not write "+q.set.Report+"; its answer was taken instead")
	}
	if !transcript.Blank(r.Text) || r.Object != nil {
		return nil
	}
	switch r.Finish = "error"; {
	case r.Doubt != nil:
		r.Failure = r.Doubt
	case r.Cut != "" && !r.CutUnknown():
		r.Failure = nodes.Permanent(nodes.Fail("truncated", "the answer is empty: the length limit was used up ("+r.Cut+")"))
	case r.Reported != nil:
		r.Failure = r.Reported
		r.Price()
	default:
		r.Failure = &nodes.Error{Category: "no_artifact", Message: "the answer is empty", Permanent: len(r.Denials) > 0}
	}
	return nil
}

// cutShows are the failures by which an answer shows that it was cut.
var cutShows = []string{"no_artifact", "bad_answer", "truncated", "validation_failed"}

// explain says more of an answer that was not accepted, where the reply tells the reason.
func explain(e *nodes.Error, r *reply) *nodes.Error {
	out := *e
	switch {
	case r.Cut != "" && slices.Contains(cutShows, e.Category):
		out.Category, out.Message = "truncated", "the answer ended at a limit ("+r.Cut+"): "+e.Message
		out.Permanent = !r.CutUnknown()
	case e.Category == "no_artifact" && len(r.Denials) > 0:
		out.Message = "the agent was refused a tool or a permission: " + e.Message
		out.Permanent = true // the same flags give the same refusal
	}
	if out.Diagnostics == "" {
		out.Diagnostics = "answer: " + printable.Clip(strings.TrimSpace(r.Text), 800)
	}
	return &out
}

// refused applies onDenial: a refused tool is a warning, or a failure where the spec says so.
func refused(s *settings, r *reply, res *nodes.Result) *nodes.Error {
	if len(r.Denials) == 0 {
		return nil
	}
	msg := "tools were refused: " + strings.Join(r.Denials, ", ")
	if s.OnDenial == "fail" {
		return nodes.Permanent(nodes.Fail("refused", msg))
	}
	res.Warnings = append(res.Warnings, msg)
	return nil
}

// otherwise accepts an answer whose object does not fit with the values of else, where the node has some and it will
// not be asked again. It returns nil where that is not so.
func (q *question) otherwise(r *reply, why *nodes.Error) (*accept.State, *nodes.Error) {
	fails, answer := "bad_answer", q.set.Answer
	if r.Doubt != nil && r.Doubt.Category == cutShort {
		fails = cutShort // there was no time for a better one
	}
	again := q.task.Again
	if why.Category != "bad_answer" || answer == nil || answer.Else == nil || again != nil && again(fails) {
		return nil, why
	}
	st := accept.NewState(q.task, r.Text)
	failure := q.apply(st, r, answer.Else)
	st.Warn("the answer does not fit, so the values of else are used: %s", why.Message)
	st.Note("decision", "answer-else", map[string]any{"reason": printable.Clip(why.Message, 300), "values": answer.Else})
	return st, failure
}

// proves reports whether an accept list that an answer has passed proves that it is whole. One that
// ended by itself is whole when anything was asked of it; one that may have been cut when it holds a
// page, whose end shows.
func (s *settings) proves(r *reply) bool {
	if s.Answer != nil || !r.Cutting { // an object shows whether it is whole
		return s.Answer != nil || len(s.Accept) > 0
	}
	return slices.ContainsFunc(s.Accept, func(a acceptStep) bool {
		var e struct {
			HTML json.RawMessage `json:"html"`
		}
		return json.Unmarshal(a.Extract, &e) == nil && len(e.HTML) > 0
	})
}
