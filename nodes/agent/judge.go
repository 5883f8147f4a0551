package agent

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/jsonscan"
	"dagrun.dev/nodes/internal/proc"
)

// A run is one run of a program as it ended, to be judged.
type run struct {
	cli
	q   *question
	res *proc.Result
}

// judge turns what a program printed and how it ended into a reply. Its own terminal event comes
// first, then other output, then stderr, then the exit status.
func (u *run) judge() (*reply, error) {
	r := &reply{}
	if u.format.Read == nil {
		r.Failure = u.text(r)
	} else if err := u.objects(r); err != nil {
		return nil, err
	}
	r.Price()
	for _, e := range []*nodes.Error{r.Failure, r.Doubt} {
		if e != nil && e.Diagnostics == "" {
			e.Diagnostics = u.res.LastWords()
		}
	}
	return r, nil
}

// most is how long one value, or an answer of text, may be in bytes.
func (u *run) most() int64 { return u.q.set.MaxOutputMB << 20 }

// objects judges a program that prints JSON.
func (u *run) objects(r *reply) error {
	t := transcript.New(u.format, u.q.evidence(nil), 0)
	var undeclared []string // error objects that the reader may not know
	found, err := jsonscan.Scan(u.res.Stdout.At(), u.res.Stdout.Answer(), u.most(), func(o jsonscan.Object) {
		t.Read(o)
		if o.Has("error") && len(undeclared) < 10 {
			undeclared = append(undeclared, `{"error":`+printable.Clip(string(o["error"]), 2000)+`}`)
		}
	})
	if ended, _ := t.Ended(); err == nil && !ended && u.format.ErrorsOnStderr {
		_, err = jsonscan.Scan(u.res.Stderr.At(), u.res.Stderr.Size(), u.most(), func(o jsonscan.Object) {
			if o.Has("error") {
				t.Read(o)
			}
		})
	}
	if err != nil {
		return err
	}
	if r.Ended, _ = t.Ended(); r.Ended {
		t.Fill(r)
		if r.Failure != nil {
			if e, refused := u.declared(r.Failure.Message + "\n" + r.Failure.Diagnostics); e != nil {
				r.Failure, r.Refused = e, refused
			}
		}
		u.afterResult(r, found)
		if u.format.Partial && r.Failure == nil {
			u.partial(r, found)
		}
	} else {
		t.FillPartial(r)
		r.Failure, r.Refused = u.noResult(t, undeclared, found)
	}
	if r.Failure != nil && r.Failure.Category == "budget" {
		u.limited(r, t)
	}
	return nil
}

// limited keeps the work of an agent that a limit stopped: the last text is judged as any answer, and where
// that is accepted the limit is a warning. The message names the fields of the specification.
func (u *run) limited(r *reply, t *transcript.Transcript) {
	e, q := *r.Failure, u.q
	if e.Message == transcript.MaxTurns && q.set.native() != nil && (r.Object != nil || r.Turned) {
		r.Failure, r.Finish = nil, "stop" // the turn is whole; one more would only have asked for the object again
		return
	}
	switch {
	case e.Message == transcript.MaxUSD:
		e.Message = "the agent stopped at its limit of money"
		if r.CostUSD != nil {
			e.Message += fmt.Sprintf(" after $%.4g", *r.CostUSD)
		}
		if q.set.MaxUSD > 0 {
			e.Message += fmt.Sprintf(" (maxUSD: %.4g); if the work needs more, raise maxUSD", q.set.MaxUSD)
		}
	case q.set.Provider != "command":
		e.Message = fmt.Sprintf("the agent stopped at its limit of turns (maxTurns: %d); "+
			"if the work needs more, raise maxTurns", q.set.MaxTurns)
	case e.Message == transcript.MaxTurns:
		e.Message = "the agent stopped at its own limit of turns"
	}
	if q.session != nil {
		e.Category, e.Permanent = cutShort, false
	}
	r.Failure = &e
	texts := t.Texts()
	if len(texts) == 0 && q.set.Report == "" && r.Object == nil {
		return
	}
	r.Doubt, r.Failure, r.Finish = &e, nil, "stop"
	if len(texts) > 0 {
		r.Text, r.Earlier = texts[0], texts[1:]
	}
}

// partial judges an answer that came in parts: one that is missing in the middle shows nowhere, and one at
// the end in a page at best.
func (u *run) partial(r *reply, found jsonscan.Found) {
	switch {
	case found.Hole != "":
		r.Failure = nodes.Fail("protocol", "a line of the output is broken, text may be missing: "+found.Hole)
	case u.res.Cause != proc.Ended || u.res.Exit != 0:
		r.Doubt, r.Cutting = u.badEnd(r, true), true
	case found.Broken():
		r.Doubt, r.Cutting = nodes.Fail("protocol", "the output breaks off, text may be missing"), true
	}
}

// afterResult warns of what is odd about a run that gave its result.
func (u *run) afterResult(r *reply, found jsonscan.Found) {
	r.Warnings = append(r.Warnings, found.Odd.Warnings(r.Text)...)
	if w := found.Warning(); w != "" {
		r.Warn("%s", w)
	}
	if found.CutAt >= 0 {
		r.Warn("the output breaks off at byte %d of %d, behind the result", found.CutAt, u.res.Stdout.Answer())
	}
	if found.TooLong >= 0 {
		r.Warn("a value at byte %d was too long to be read", found.TooLong)
	}
	switch {
	case u.res.Cause == proc.Orphaned: // the host says so
	case u.res.Cause != proc.Ended:
		r.Warn("the agent had given its result and was ended (%s)", u.res.Cause)
	case u.res.Signal != 0:
		r.Warn("the agent was ended by signal %d after its result", int(u.res.Signal))
	case u.res.Exit != 0 && r.Failure == nil:
		r.Warn("exit status %d after a good result", u.res.Exit)
	}
}

// noResult says why a program that prints JSON gave no result. What it reported of errors counts, then
// error objects that are not known, then its words where it printed no JSON at all.
func (u *run) noResult(t *transcript.Transcript, undeclared []string, found jsonscan.Found) (*nodes.Error, bool) {
	ev := t.Reported()
	said := append([]string{ev.Text}, undeclared...)
	if found.Objects == 0 && !found.Broken() {
		said = append(said, string(u.res.Stdout.HeadTail(4000)))
	}
	if e, refused := u.ended(strings.Join(said, "\n"), ev); e != nil {
		return e, refused
	}
	e := &nodes.Error{Category: "protocol"}
	switch {
	case found.TooLong >= 0:
		e.Category, e.Permanent = "output_limit", true
		e.Message = fmt.Sprintf("a value at byte %d is longer than %d MB (maxOutputMB)", found.TooLong, u.most()>>20)
	case found.CutAt >= 0:
		e.Message = fmt.Sprintf("the output breaks off: the value at byte %d has no end, %d bytes were printed",
			found.CutAt, u.res.Stdout.Answer())
	case u.res.Exit != 0:
		e.Category, e.Message = "exit_nonzero", u.exit()
	case found.Objects == 0 && found.OtherLines == 0:
		e.Category, e.Message = "no_artifact", "no output (exit status 0)"
	case found.Objects > 0:
		e.Message = fmt.Sprintf("%d events, but no result", found.Objects)
	default:
		e.Message = "the output is no JSON: " + found.Other
	}
	return e, false
}

// text judges a program whose whole output is the answer. With exit status 0 any text is one, unless a
// declared pattern (command.errors) says otherwise or accept does not take it.
func (u *run) text(r *reply) *nodes.Error {
	r.Finish = "stop"
	out := u.res.Stdout
	if u.res.Cause == proc.Limited || out.Answer() > u.most() {
		return u.tooMuch()
	}
	b, err := io.ReadAll(out.UntilExit())
	if err != nil {
		return &nodes.Error{Category: "unknown", Message: "read the answer", Err: err}
	}
	text := string(b)
	said := ""
	if len(text) <= mostShort && !transcript.Blank(text) {
		said = text
	}
	if u.res.Cause == proc.Ended && u.res.Exit == 0 && !transcript.Blank(text) {
		if e, refused := u.declared(said); e != nil && said != "" {
			r.Refused = refused
			return e
		}
		r.Text = text
		return nil
	}
	failure := u.badEnd(r, transcript.Blank(text))
	if transcript.Blank(text) || said != "" && u.pattern(said) != nil {
		return failure
	}
	r.Text, r.Refused = text, false
	r.Doubt, r.Cutting = failure, true
	return nil
}

// badEnd says how a program failed whose whole output is the answer.
func (u *run) badEnd(r *reply, empty bool) *nodes.Error {
	said := ""
	if !empty {
		said = string(u.res.Stdout.HeadTail(4000))
	}
	e, refused := u.ended(said, u.q.evidence(u.format.Table))
	r.Refused = refused
	switch {
	case e != nil:
		return e
	case u.res.Exit == 0:
		return nodes.Fail("no_artifact", "no output (exit status 0)")
	}
	return nodes.Fail("exit_nonzero", u.exit())
}

// ended says how a program without a result ended, as far as there is evidence; else nil. said is what
// it said on stdout.
func (u *run) ended(said string, ev evidence.Case) (e *nodes.Error, refused bool) {
	res := u.res
	ev.Text = strings.TrimSpace(strings.TrimSpace(said) + "\n" + printable.Text(string(res.Stderr.Tail(8000))))
	known := ev.Known()
	e, refused = u.declared(ev.Text)
	declared := e != nil
	if declared {
		known = e.Category
	} else {
		e, refused = ev.Judge()
	}
	switch {
	case res.Cause == proc.Cancelled:
		return evidence.Fail("killed", "the agent was stopped")
	case res.Cause == proc.Limited:
		return u.tooMuch(), false
	case res.Cause == proc.Orphaned:
		return evidence.Fail("killed", "how the agent ended is not known")
	case patient[known] && (res.Cause != proc.Ended || u.signalled()):
		return e, refused // it retried by itself until it was ended
	case res.Cause == proc.TimedOut:
		return evidence.Fail("stalled", "no result within the time limit")
	case res.Cause == proc.Silent:
		return evidence.Fail("stalled", "no output for too long")
	case declared:
		return e, refused
	case res.NotStarted():
		return evidence.Fail("config", u.exit())
	case u.signalled():
		return evidence.Fail("killed", u.exit())
	case known != "":
		return e, refused
	}
	if category := u.format.Table.Exit(res.Exit); category != "" {
		return evidence.Fail(category, u.exit())
	}
	return nil, false
}

// tooMuch says that a program printed more than can be accepted. What came before is kept.
func (u *run) tooMuch() *nodes.Error {
	if u.res.Cut(u.most()) > 0 {
		return nodes.Permanent(nodes.Failf("output_limit", "the agent printed more than %d MB (maxOutputMB)", u.most()>>20))
	}
	return nodes.Permanent(nodes.Failf("output_limit", "stopped: the agent had printed %d MB, "+
		"and the disk of the run has no room for more", (u.res.Stdout.Size()+u.res.Stderr.Size())>>20))
}

// signalled reports whether a signal ended a program, or a shell says that of what it ran.
func (u *run) signalled() bool {
	return u.res.Signal != 0 || u.res.Exit > 128 && u.res.Exit <= 128+15
}

// patient are the categories that an agent's own retries hide until it is ended.
var patient = map[string]bool{"rate_limited": true, "quota_wait": true, "auth": true, "billing": true}

// exit says how the program ended; JSON on stdout is no word about that.
func (u *run) exit() string {
	if u.format.Read != nil {
		return u.res.ExitMessage(u.res.Stderr)
	}
	return u.res.ExitMessage(u.res.Stderr, u.res.Stdout)
}

// pattern returns the first declared pattern that text matches.
func (u *run) pattern(text string) *errorPattern {
	for i, e := range u.patterns {
		re, err := regexp.Compile("(?i)" + e.Match)
		if err == nil && re.MatchString(text) {
			return &u.patterns[i]
		}
	}
	return nil
}

// mostShort is the length up to which a good-looking answer is held against declared patterns.
const mostShort = 1500

// declared returns a failure of which text was said as the settings declare it, nil where they do not.
// refused: they call it a refusal of the service.
func (u *run) declared(text string) (e *nodes.Error, refused bool) {
	d := u.pattern(text)
	if d == nil {
		return nil, false
	}
	ev := u.q.evidence(u.format.Table)
	ev.Text = text
	return ev.As(d.Category, d.Wait.D())
}
