package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// An Answer is an answer of HTTP that is not the one that was hoped for.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // its beginning
}

// Answered returns the failure that an answer of HTTP is: its status, its headers and its body speak together.
func (c Case) Answered(a Answer) *nodes.Error {
	object, ok := ReadError(a.Body)
	c.Status, c.Text = a.Status, string(a.Body)
	switch {
	case ok:
		c.Types, c.Text = object.Kinds, object.Message+"\n"+c.Text
	case a.page():
		c.HTML, c.Text = true, ""
	}
	if strings.TrimSpace(c.Text) == "" {
		c.Text = http.StatusText(a.Status)
	}
	e := c.Error()
	if a.Status < 300 { // 204, or a page where an answer should be
		e.Category, e.Permanent, e.RetryAfter = "protocol", false, 0
	}
	e.Message = a.message(object)
	e.Diagnostics = printable.Clip(strings.TrimSpace(printable.Text(string(a.Body))), 1800)
	e.Unknown = maybeDone[a.Status]
	if e.Category == "config" && (a.Status < 400 || a.Status == http.StatusNotImplemented) {
		e.Permanent = true // this server is not the one; at others a user can correct the name or the address
	}
	told := headerWait(a.Status, a.Header, c.Now) > 0
	if e.Category == "billing" && slices.Contains(c.Types, ambiguous) && told {
		e.Category = "rate_limited"
	}
	c.waitBy(a, e)
	c.advice(a, e)
	return e
}

// ambiguous is the one code that servers give for an empty account, as OpenAI does, and for a limit of so much a
// minute: then they say when to come again.
const ambiguous = "insufficient_quota"

// waitBy takes over when the server says to come again.
func (c Case) waitBy(a Answer, e *nodes.Error) {
	if until, ok := planLimit(a.Header, c.Now); ok && e.Category == "rate_limited" {
		e.Category = "quota_wait"
		e.WaitUntil, e.RetryAfter = until, 0
		return
	}
	d := headerWait(a.Status, a.Header, c.Now)
	switch {
	case d == 0:
	case e.Category == "quota_wait":
		e.WaitUntil = c.Now.Add(d)
	case e.Category == "rate_limited" || e.Category == "transient":
		e.RetryAfter = d
	}
}

// advice obeys the server's own word on whether to try again. What only a user can correct stays so, but
// for a login that the server says to try again.
func (c Case) advice(a Answer, e *nodes.Error) {
	word := strings.ToLower(strings.TrimSpace(a.Header.Get("X-Should-Retry")))
	if e.Category == "auth" && word != "true" || e.Category == "billing" || e.Category == "quota_wait" {
		return
	}
	switch word {
	case "false":
		if e.Category == "transient" {
			e.Category = "protocol"
		}
		e.Permanent, e.RetryAfter = true, 0
	case "true":
		if e.Category != "rate_limited" && e.Category != "transient" {
			e.Category, e.RetryAfter = "transient", headerWait(a.Status, a.Header, c.Now)
		}
		e.Permanent = false
	}
}

// Describe says in a few words what an answer is that should be another one.
func (a Answer) Describe() string { return a.message(ErrorObject{}) }

// message is one line: status, what the server calls it, what it says, and its name for the exchange.
func (a Answer) message(object ErrorObject) string {
	msg := fmt.Sprintf("HTTP %d", a.Status)
	switch {
	case object.Message != "":
		msg += " " + object.text()
	case len(bytes.TrimSpace(a.Body)) == 0:
		msg += strings.TrimRight(" "+http.StatusText(a.Status), " ") + ", without a body"
		if to := a.Header.Get("Location"); to != "" {
			msg += ": a redirection to " + printable.Clip(WithoutQuery(to), 100) + " is not followed"
		}
	default:
		msg += " " + cmp.Or(MediaType(a.Header), "without a content type") + ": " + headline(string(a.Body))
	}
	if id := cmp.Or(object.Request, a.requestID()); id != "" {
		msg += " (request " + id + ")"
	}
	return printable.Clip(printable.Line(msg), 390)
}

// requestID is the server's name for the exchange, for asking its operator; empty = none.
func (a Answer) requestID() string {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "Cf-Ray"} {
		if id := a.Header.Get(name); id != "" {
			return printable.Clip(id, 100)
		}
	}
	return ""
}

// MediaType is the media type that a header names, in lower case, without parameters.
func MediaType(h http.Header) string {
	text := h.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(text); err == nil {
		return t
	}
	t, _, _ := strings.Cut(text, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// page reports whether the body is a web page.
func (a Answer) page() bool {
	if t := MediaType(a.Header); t == "text/html" || t == "application/xhtml+xml" {
		return true
	}
	start := strings.ToLower(strings.TrimSpace(printable.Clip(string(a.Body), 200)))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

var (
	title  = lazily(`(?is)<title[^>]*>(.*?)</title>`)
	markup = lazily(`(?is)<(script|style)\b.*?</(script|style)>|<[^>]*>|<[^<>]*$`)
)

// headline is a short, clean beginning of a text or page.
func headline(text string) string {
	if m := title().FindStringSubmatch(text); m != nil && strings.TrimSpace(m[1]) != "" {
		text = m[1]
	}
	return printable.Clip(printable.Line(markup().ReplaceAllString(text, " ")), 150)
}

// WithoutQuery is an address without its query, which may hold secrets.
func WithoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	shown := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}
	return shown.String() // some name a path of the same server only
}
