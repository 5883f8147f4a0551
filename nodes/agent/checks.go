package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
)

// settle makes the last judgements on a reply that its provider calls good: the report file
// takes the place of the answer, and an empty answer is none.
func settle(q *question, r *reply) error {
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

// models compares the models that answered with the one that was asked for.
func models(s *settings, r *reply, res *nodes.Result) {
	if len(r.ByModel) > 1 {
		fields := map[string]any{}
		for name, usd := range r.ByModel {
			fields[name] = usd
		}
		res.Notes = append(res.Notes, nodes.Note{Log: "quality", Type: "cost-by-model", Fields: fields})
	}
	switch {
	case s.Model == "" && len(r.Models) == 1:
		res.Model = r.Models[0]
	case len(s.FallbackModels) > 0: // the node's settings name the first one
		res.Model = s.Model
	}
	asked := slices.ContainsFunc(r.Models, func(m string) bool { return sameModel(s.Model, m) })
	if s.Model == "" || len(r.Models) == 0 || asked {
		return
	}
	res.Model = r.Models[0]
	msg := fmt.Sprintf("model %s was asked for, %s answered", s.Model, strings.Join(r.Models, ", "))
	if s.OnModelSwitch == "fail" && r.Failure == nil {
		r.Failure = nodes.Fail("transient", msg)
		return
	}
	res.Warnings = append(res.Warnings, msg)
}

// sameModel reports whether two names mean one model: dated releases, provider prefixes and
// the short names of families are the same.
func sameModel(asked, got string) bool {
	norm := func(s string) string {
		s = strings.ToLower(s)
		s = s[strings.LastIndexByte(s, '/')+1:]
		s, _, _ = strings.Cut(s, "[")
		s = strings.TrimSuffix(s, "-latest")
		return s
	}
	a, g := norm(asked), norm(got)
	return a == g || a == "default" || release(a, g) || release(g, a) ||
		!strings.Contains(a, "-") && strings.Contains(g, "-"+a+"-")
}

// release reports whether full is name with a date or number of a release behind it: three digits at
// least, for fewer tell another model (claude-opus-5 and claude-opus-5-5).
func release(name, full string) bool {
	rest, ok := strings.CutPrefix(full, name)
	return ok && len(rest) > 3 && (rest[0] == '-' || rest[0] == '@') && strings.Trim(rest[1:], "0123456789-") == ""
}

// answeredBy returns the name of the model that answered.
func answeredBy(s *settings, r *reply) string {
	for _, m := range r.Models {
		if s.Model == "" || sameModel(s.Model, m) {
			return m
		}
	}
	if len(r.Models) > 0 {
		return r.Models[0]
	}
	return cmp.Or(s.Model, "default")
}
