package agent

import (
	"fmt"
	"io"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/proc"
)

// judge turns what a program printed and how it ended into a reply. Its own terminal event comes
// first, then other output, then stderr, then the exit status.
func (p *program) judge(q *question, res *proc.Result) (*reply, error) {
	r := &reply{}
	ev := q.evidence()
	ev.From = p.output.table
	if p.output.read == nil {
		r.Failure = p.text(r, res, q.set.MaxOutputMB<<20, ev)
	} else if err := p.transcript(q, r, res, ev); err != nil {
		return nil, err
	}
	r.price()
	for _, e := range []*nodes.Error{r.Failure, r.Doubt} {
		if e != nil && e.Diagnostics == "" {
			e.Diagnostics = res.LastWords()
		}
	}
	return r, nil
}

// price says what a failed call cost where that is certain: one that the service refused, and that had
// produced nothing, was free. One that may have run is not, whatever the program's own sum says. M2
func (r *reply) price() {
	if r.Failure == nil || r.Usage != (nodes.Usage{}) {
		return
	}
	switch {
	case r.CostUSD != nil && *r.CostUSD > 0:
	case r.refused && r.Text == "":
		r.CostUSD = new(float64)
	case r.Failure.Category == "transient":
		r.CostUSD = nil
	}
}

// transcript judges a program that prints JSON.
func (p *program) transcript(q *question, r *reply, res *proc.Result, ev evidence.Case) error {
	t := &transcript{ev: ev}
	most := q.set.MaxOutputMB << 20
	var undeclared []string // error objects that the reader may not know
	found, err := scanObjects(res.Stdout.At(), res.Stdout.Answer(), most, func(o object) {
		p.output.read(t, o)
		if o.has("error") && len(undeclared) < 10 {
			undeclared = append(undeclared, `{"error":`+printable.Clip(string(o["error"]), 2000)+`}`)
		}
	})
	if err == nil && len(t.endings) == 0 && p.output.errorsOnStderr {
		_, err = scanObjects(res.Stderr.At(), res.Stderr.Size(), most, func(o object) {
			if o.has("error") {
				p.output.read(t, o)
			}
		})
	}
	if err != nil {
		return err
	}
	if r.Ended = len(t.endings) > 0; r.Ended {
		if p.output.done != nil {
			p.output.done(t)
		}
		t.fill(r)
		if r.Failure != nil {
			if e, refused := p.declared(r.Failure.Message+"\n"+r.Failure.Diagnostics, ev); e != nil {
				r.Failure, r.refused = e, refused
			}
		}
		r.afterResult(found, res)
		if p.output.pieces && r.Failure == nil {
			p.pieces(r, found, res, ev)
		}
	} else {
		r.Finish = "error"
		t.sums(r)
		r.Failure, r.refused = p.noResult(t, undeclared, found, res, most)
	}
	if r.Failure != nil && r.Failure.Category == "budget" {
		r.limited(q, t)
	}
	return nil
}

// limited keeps the work of an agent that a limit stopped: the last text is judged as any answer, and where
// that is accepted the limit is a warning. The message names the fields of the specification. M1
func (r *reply) limited(q *question, t *transcript) {
	e := *r.Failure
	if e.Message == "maxTurns" && q.set.native() != nil && (r.Object != nil || r.turned) {
		r.Failure, r.Finish = nil, "stop" // the turn is whole; one more would only have asked for the object again
		return
	}
	switch {
	case e.Message == "maxUSD":
		e.Message = "the agent stopped at its limit of money"
		if r.CostUSD != nil {
			e.Message += fmt.Sprintf(" after $%.4g", *r.CostUSD)
		}
		if q.set.MaxUSD > 0 {
			e.Message += fmt.Sprintf(" (maxUSD: %.4g); if the work needs more, raise maxUSD", q.set.MaxUSD)
		}
	case q.set.Provider != "command":
		e.Message = fmt.Sprintf("the agent stopped at its limit of turns (maxTurns: %d); if the work needs more, raise maxTurns", q.set.MaxTurns)
	case e.Message == "maxTurns":
		e.Message = "the agent stopped at its own limit of turns"
	}
	if q.session != nil {
		e.Category, e.Permanent = cutShort, false
	}
	r.Failure = &e
	texts := t.all()
	if len(texts) == 0 && q.set.Report == "" && r.Object == nil {
		return
	}
	r.Doubt, r.Failure, r.Finish = &e, nil, "stop"
	if len(texts) > 0 {
		r.Text, r.Earlier = texts[0], texts[1:]
	}
}

// pieces judges an answer that came in pieces: one that is missing in the middle shows nowhere, and one at
// the end in a page at best.
func (p *program) pieces(r *reply, found scan, res *proc.Result, ev evidence.Case) {
	switch {
	case found.hole != "":
		r.Failure = &nodes.Error{Category: "protocol", Message: "a line of the output is broken, text may be missing: " + found.hole}
	case res.Cause != proc.Ended || res.Exit != 0:
		r.doubt(p.badEnd(r, res, ev, true))
	case found.cutAt >= 0 || found.tooLong >= 0:
		r.Doubt, r.Cutting = &nodes.Error{Category: "protocol", Message: "the output breaks off, text may be missing"}, true
	}
}

// afterResult warns of what is odd about a run that gave its result.
func (r *reply) afterResult(found scan, res *proc.Result) {
	warn := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	r.Warnings = append(r.Warnings, found.odd.warnings(r.Text)...)
	if w := found.warning(); w != "" {
		warn("%s", w)
	}
	if found.cutAt >= 0 {
		warn("the output breaks off at byte %d of %d, behind the result", found.cutAt, res.Stdout.Answer())
	}
	if found.tooLong >= 0 {
		warn("a value at byte %d was too long to be read", found.tooLong)
	}
	switch {
	case res.Cause == proc.Orphaned: // the host says so
	case res.Cause != proc.Ended:
		warn("the agent had given its result and was ended (%s)", res.Cause)
	case res.Signal != 0:
		warn("the agent was ended by signal %d after its result", int(res.Signal))
	case res.Exit != 0 && r.Failure == nil:
		warn("exit status %d after a good result", res.Exit)
	}
}

// noResult says why a program that prints JSON gave no result. What it reported of errors counts, then
// error objects that are not known, then its words where it printed no JSON at all.
func (p *program) noResult(t *transcript, undeclared []string, found scan, res *proc.Result, most int64) (*nodes.Error, bool) {
	ev, said := t.ev, []string{}
	for _, c := range t.told {
		said, ev.Types = append(said, c.Text), append(ev.Types, c.Types...)
		ev.Status = max(ev.Status, c.Status)
	}
	said = append(said, undeclared...)
	broken := found.cutAt >= 0 || found.tooLong >= 0 || found.hole != ""
	if found.objects == 0 && !broken {
		said = append(said, string(res.Stdout.HeadTail(4000)))
	}
	if e, refused := p.ended(res, strings.Join(said, "\n"), ev); e != nil {
		return e, refused
	}
	size := res.Stdout.Answer()
	empty := found.objects == 0 && found.noisy == 0 && found.cutAt < 0
	e := &nodes.Error{Category: "protocol"}
	switch {
	case found.tooLong >= 0:
		e.Permanent, e.Message = true, fmt.Sprintf("a value at byte %d is longer than %d MB (maxOutputMB)", found.tooLong, most>>20)
	case found.cutAt >= 0:
		e.Message = fmt.Sprintf("the output breaks off: the value at byte %d has no end, %d bytes were printed", found.cutAt, size)
	case res.Exit != 0:
		e.Category, e.Message = "exit_nonzero", p.exit(res)
	case empty:
		e.Category, e.Message = "no_artifact", "no output (exit status 0)"
	case found.objects > 0:
		e.Message = fmt.Sprintf("%d events, but no result", found.objects)
	default:
		e.Message = "the output is no JSON: " + found.noise[0]
	}
	return e, false
}

// text judges a program whose whole output is the answer. With exit status 0 any text is one, unless a
// declared pattern (command.errors) says otherwise or accept does not take it. X3
func (p *program) text(r *reply, res *proc.Result, most int64, ev evidence.Case) *nodes.Error {
	r.Finish = "stop"
	if res.Stdout.Answer() > most {
		return &nodes.Error{Category: "protocol", Permanent: true, Message: fmt.Sprintf("the answer is longer than %d MB (maxOutputMB)", most>>20)}
	}
	b, err := io.ReadAll(res.Stdout.UntilExit())
	if err != nil {
		return &nodes.Error{Category: "unknown", Message: "read the answer", Err: err}
	}
	text := string(b)
	said := ""
	if len(text) <= mostShort && !blank(text) {
		said = text
	}
	if res.Cause == proc.Ended && res.Exit == 0 && !blank(text) {
		if e, refused := p.declared(said, ev); e != nil && said != "" {
			r.refused = refused
			return e
		}
		r.Text = text
		return nil
	}
	failure := p.badEnd(r, res, ev, blank(text))
	if blank(text) || said != "" && p.pattern(said) != nil {
		return failure
	}
	r.Text, r.refused = text, false
	r.doubt(failure)
	return nil
}

// doubt says that a program failed which printed an answer and no word on whether that is whole.
func (r *reply) doubt(failure *nodes.Error) {
	r.Doubt, r.Cutting = failure, true
}

// badEnd says how a program failed whose whole output is the answer.
func (p *program) badEnd(r *reply, res *proc.Result, ev evidence.Case, empty bool) *nodes.Error {
	said := ""
	if !empty {
		said = string(res.Stdout.HeadTail(4000))
	}
	e, refused := p.ended(res, said, ev)
	r.refused = refused
	switch {
	case e != nil:
		return e
	case res.Exit == 0:
		return &nodes.Error{Category: "no_artifact", Message: "no output (exit status 0)"}
	}
	return &nodes.Error{Category: "exit_nonzero", Message: p.exit(res)}
}

// ended says how a program without a result ended, as far as there is evidence; else nil. said is what
// it told on stdout.
func (p *program) ended(res *proc.Result, said string, ev evidence.Case) (e *nodes.Error, refused bool) {
	ev.Text = strings.TrimSpace(strings.TrimSpace(said) + "\n" + proc.Printable(string(res.Stderr.Tail(8000))))
	known, _ := ev.Known()
	fail := func(category, message string) (*nodes.Error, bool) {
		return &nodes.Error{Category: category, Message: message, Permanent: evidence.Final(category)}, evidence.Refused(category)
	}
	declared, declaredRefusal := p.declared(ev.Text, ev)
	if declared != nil {
		known = declared.Category
	}
	judged := func() (*nodes.Error, bool) {
		if declared != nil {
			return declared, declaredRefusal
		}
		return ev.Judge()
	}
	switch {
	case res.Cause == proc.Cancelled:
		return fail("killed", "the agent was stopped")
	case res.Cause == proc.Orphaned:
		return fail("killed", "how the agent ended is not known")
	case patient[known] && (res.Cause != proc.Ended || signalled(res)):
		return judged() // it retried by itself until it was ended
	case res.Cause == proc.TimedOut:
		return fail("stalled", "no result within the time limit")
	case res.Cause == proc.Silent:
		return fail("stalled", "no output for too long")
	case declared != nil:
		return judged()
	case res.NotStarted():
		return fail("config", p.exit(res))
	case signalled(res):
		return fail("killed", p.exit(res))
	case known != "":
		return judged()
	}
	if category := p.output.table.Exit(res.Exit); category != "" {
		return fail(category, p.exit(res))
	}
	return nil, false
}

// signalled reports whether a signal ended a program, or a shell says that of what it ran.
func signalled(res *proc.Result) bool {
	return res.Signal != 0 || res.Exit > 128 && res.Exit <= 128+15
}

// patient are the categories that an agent's own retries hide until it is ended.
var patient = map[string]bool{"rate_limited": true, "quota_wait": true, "auth": true, "billing": true}

func (p *program) exit(res *proc.Result) string {
	msg := fmt.Sprintf("exit status %d", res.Exit)
	if res.Signal != 0 {
		msg = fmt.Sprintf("ended by signal %d (%v)", int(res.Signal), res.Signal)
	}
	for _, c := range []*proc.Capture{res.Stderr, res.Stdout} {
		lines := strings.Split(strings.TrimSpace(proc.Printable(string(c.Tail(2000)))), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" && !(c == res.Stdout && p.output.read != nil) {
			return msg + ": " + printable.Clip(last, 200)
		}
	}
	return msg
}
