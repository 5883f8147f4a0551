// Package evidence says what the failures of model providers mean: which category, how long to wait, and
// whether the service refused the call. Typed fields and status codes decide; words count only where a
// Table lists them as a known output of the program or API that said them. Prose is never searched.
package evidence

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// A Case is what is known of one failure.
type Case struct {
	From   *Table   // the program or API whose failure it is; nil: only typed fields and the status count
	Status int      // of HTTP; 0 = unknown
	HTML   bool     // the body was a page: a gateway spoke, not the API
	Types  []string // what the failure calls itself: error.type, error.code, a reason
	Text   string   // what was said, the terminal event first. Error objects in it are read
	Line   string   // what the message is; "" = the line of Text that is known, else its first
	// Now is what the runner's clock shows, in its zone, for "resets 3pm"; Tries counts the starts of this
	// attempt's node, for waits without a given time.
	Now   time.Time
	Tries int
	// Else is the category when nothing is recognised; empty = "transient".
	Else string
}

// Error returns the failure.
func (c Case) Error() *nodes.Error { e, _ := c.Judge(); return e }

// Judge returns the failure, and whether the service refused the call: then it costs nothing, unless
// something had been produced before.
func (c Case) Judge() (e *nodes.Error, refused bool) {
	f := c.find()
	e = &nodes.Error{Category: cmp.Or(f.category, c.Else, "transient"), Message: f.message}
	e.Permanent = final[e.Category] || e.Category == "protocol" && f.status != 0
	c.wait(e)
	return e, f.refused
}

// As returns the failure as one of a category that the specification has named. wait is how long not to try
// where the text does not say; 0 = the usual. refused is that of Judge.
func (c Case) As(category string, wait time.Duration) (e *nodes.Error, refused bool) {
	e = &nodes.Error{Category: category, Message: message(readObjects(Clean(c.Text)).text, "")}
	c.wait(e)
	_, said := resetAt(Clean(c.Text), c.Now)
	switch {
	case wait == 0:
	case category == "quota_wait" && !said:
		e.WaitUntil = c.Now.Add(wait)
	case category != "quota_wait" && e.RetryAfter == 0:
		e.RetryAfter = wait
	}
	return e, refusals[category]
}

// Irrelevant reports whether the text is nothing but what the program is known to say of no failure.
func (c Case) Irrelevant() bool { return c.Text != "" && c.From.relevant(Clean(c.Text)) == "" }

// Known is the category that the case is recognised as; "" = nothing in it is.
func (c Case) Known() string { return c.find().category }

type finding struct {
	category, message string
	status            int
	refused           bool
}

// find reads the case. A status says what kind of failure it is. A type says more where it is a particular reason,
// whatever the status: no money left comes as a bad request or as forbidden, a plan limit as too many requests. So does
// a known output where the status names no reason.
func (c Case) find() (f finding) {
	text := c.From.relevant(Clean(c.Text))
	said := readObjects(text)
	f.status = cmp.Or(c.Status, said.status, c.From.status(said.text))
	typed := ""
	for _, t := range slices.Concat(c.Types, said.types) {
		typed = sharper(typed, types()[strings.ToLower(t)].category)
	}
	f.category = sharper(byStatus(f.status, c.HTML || page.MatchString(head(text, 4000))), typed)
	if !general[typed] {
		f.category = typed
	}
	out, line := c.From.output(said.text)
	f.category = sharper(f.category, out.category)
	f.message = cmp.Or(c.Line, message(said.text, line))
	f.refused = out.unsent || refusals[f.category] || f.status >= 300 && !maybeDone[f.status]
	return f
}

// sharper returns the second category where it names a particular reason, or the first is unknown.
func sharper(now, next string) string {
	if next != "" && (now == "" || !general[next] && (general[now] || now == next)) {
		return next
	}
	return now
}

// general are the categories without a particular reason.
var general = map[string]bool{"": true, "transient": true, "rate_limited": true, "protocol": true}

// final are the categories in which the same question gets the same answer, and no user can change
// that without changing the question.
var final = map[string]bool{
	"input_too_big": true, "refused": true, "budget": true, "truncated": true, "spawn_failed": true,
}

// refusals are the categories in which the service did no work.
var refusals = map[string]bool{
	"auth": true, "billing": true, "rate_limited": true, "quota_wait": true, "input_too_big": true, "config": true,
}

// maybeDone are the statuses with which something in between gave up waiting for the service, which may
// have done the work, and charged for it. With 408 and 499 the service itself had not got the request.
var maybeDone = map[int]bool{504: true, 524: true}

// Fail returns the failure that a category is by itself, and whether it means that the service did no work.
func Fail(category, message string) (e *nodes.Error, refused bool) {
	return &nodes.Error{Category: category, Message: message, Permanent: final[category]}, refusals[category]
}

// byStatus returns the category of a status of HTTP, "" for 0 and for success.
func byStatus(status int, html bool) string {
	switch {
	case status == 403 && html:
		return "transient"
	case status == 401, status == 403:
		return "auth"
	case status == 402:
		return "billing"
	case status == 404, status == 407, status == 501, status >= 300 && status < 400:
		return "config"
	case status == 408, status == 409, status == 425, status == 499:
		return "transient"
	case status == 413:
		return "input_too_big"
	case status == 429:
		return "rate_limited"
	case status == 451:
		return "refused"
	case status >= 400 && status < 500:
		return "protocol"
	case status >= 500 && status < 600:
		return "transient"
	}
	return ""
}

// page is the beginning of a web page in what was said: a client hands on what a gateway answered.
var page = regexp.MustCompile(`(?i)<!doctype html|<html\b`)

// wait fills in how long not to try. Plan limits wait until a moment and use no attempt.
func (c Case) wait(e *nodes.Error) {
	text := c.From.relevant(Clean(c.Text))
	switch e.Category {
	case "quota_wait":
		until, ok := resetAt(text, c.Now)
		if !ok {
			until = c.Now.Add(backoff(c.Tries))
		}
		e.WaitUntil = until
	case "rate_limited", "transient":
		if d, ok := delay(text); ok {
			e.RetryAfter = d
		} else if at, ok := resetISO(text, c.Now); ok && at.After(c.Now) {
			e.RetryAfter = at.Sub(c.Now)
		}
	}
}

// backoff is the wait for a plan limit that names no time: one minute, doubling with each
// start, at most an hour.
func backoff(tries int) time.Duration {
	return min(time.Minute<<min(max(tries-1, 0), 6), time.Hour)
}

// Of returns the case of an error object that a service sent inside of an answer that had begun well. raw is all that
// it sent.
func (c Case) Of(e ErrorObject, raw []byte) Case {
	c.Status, c.Types, c.Text = e.Status, e.Kinds, e.Message+"\n"+head(string(raw), MostBody)
	c.Line = printable.Clip(printable.Line(e.text()), 300)
	if e.Request != "" {
		c.Line += " (request " + printable.Clip(e.Request, 100) + ")"
	}
	return c
}
