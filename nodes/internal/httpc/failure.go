package httpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/proc"
)

// mostError is how much of the body of an error is read.
const mostError = 64 << 10

// Failure says what an answer that is none means, by its status, its headers and what its body says.
// It reads and closes the body. ev holds the runner's clock.
func (a *Answer) Failure(ev evidence.Case) *nodes.Error {
	raw, _ := io.ReadAll(io.LimitReader(a, mostError)) // what there is of it
	_ = a.Close()
	t, told := ReadTrouble(raw)
	page := !told && a.page(raw)
	ev.Status, ev.HTML = a.Status, page
	switch {
	case told:
		ev.Types, ev.Text = strings.Fields(t.Kind), t.Message+"\n"+string(raw)
	case !page:
		ev.Text = string(raw)
	}
	if strings.TrimSpace(ev.Text) == "" {
		ev.Text = http.StatusText(a.Status)
	}
	e := ev.Error()
	if a.Status < 300 { // 204, or a page where an answer should be
		e.Category, e.Permanent, e.RetryAfter = "protocol", false, 0
	}
	e.Message = a.message(t, told, raw)
	e.Diagnostics = printable.Clip(strings.TrimSpace(proc.Printable(string(raw))), 1800)
	e.Unknown = MaybeDone(a.Status)
	if e.Category == "config" && (a.Status < 400 || a.Status == http.StatusNotImplemented) {
		e.Permanent = true // this server is not the one; at others a person can mend the name or the address
	}
	if e.Category == "billing" && slices.Contains(ev.Types, ambiguous) && a.Header.Get("Retry-After") != "" {
		e.Category = "rate_limited"
	}
	a.wait(e)
	a.advice(e)
	return e
}

// ambiguous is the one code that servers give for an empty account, as OpenAI does, and for a limit of so much a minute:
// then they say when to come again.
const ambiguous = "insufficient_quota"

// wait takes over when the server says to come again.
func (a *Answer) wait(e *nodes.Error) {
	if until, ok := planLimit(a.Header, a.now); ok && e.Category == "rate_limited" {
		e.Category = "quota_wait"
		e.WaitUntil, e.RetryAfter = until, 0
		return
	}
	d := Wait(a.Status, a.Header, a.now)
	switch {
	case d == 0:
	case e.Category == "quota_wait":
		e.WaitUntil = a.now.Add(d)
	case e.Category == "rate_limited" || e.Category == "transient":
		e.RetryAfter = d
	}
}

// advice obeys the server's own word on whether to try again. What only a person can mend stays so, but
// for a login that the server says to try again.
func (a *Answer) advice(e *nodes.Error) {
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
			e.Category, e.RetryAfter = "transient", Wait(a.Status, a.Header, a.now)
		}
		e.Permanent = false
	}
}

// MaybeDone reports whether a server may have done, and charged for, what was asked, though it
// answers with this status: somebody between gave up waiting for it.
func MaybeDone(status int) bool {
	return status == 504 || status == 524
}

// message is one line: status, what the server calls it, what it says, and its name for the exchange.
func (a *Answer) message(t Trouble, told bool, raw []byte) string {
	msg := fmt.Sprintf("HTTP %d", a.Status)
	id := a.RequestID()
	switch {
	case told:
		msg += " " + t.text()
		id = first(t.Request, id)
	case len(bytes.TrimSpace(raw)) == 0:
		msg += strings.TrimRight(" "+http.StatusText(a.Status), " ") + ", without a body"
		if to := a.Header.Get("Location"); to != "" {
			msg += ": a redirection to " + printable.Clip(shown(to), 100) + " is not followed"
		}
	default:
		msg += " " + first(a.Type(), "without a content type") + ": " + headline(string(raw))
	}
	if id != "" {
		msg += " (request " + id + ")"
	}
	return line(msg, 390)
}

// Describe says in a few words what an answer of status 200 is that should be something else. raw is
// the beginning of its body.
func (a *Answer) Describe(raw []byte) string { return a.message(Trouble{}, false, raw) }

// page reports whether a body is a web page.
func (a *Answer) page(raw []byte) bool {
	if t := a.Type(); t == "text/html" || t == "application/xhtml+xml" {
		return true
	}
	start := strings.ToLower(strings.TrimSpace(printable.Clip(string(raw), 200)))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

var (
	title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	quiet = regexp.MustCompile(`(?is)<(script|style)\b.*?</(script|style)>|<[^>]*>|<[^<>]*$`)
)

// headline is a short, clean beginning of a text or page.
func headline(text string) string {
	if m := title.FindStringSubmatch(text); m != nil && strings.TrimSpace(m[1]) != "" {
		text = m[1]
	}
	return line(quiet.ReplaceAllString(text, " "), 150)
}

func line(text string, most int) string {
	return printable.Clip(strings.Join(strings.Fields(proc.Printable(text)), " "), most)
}

// A Trouble is what an API's error object says.
type Trouble struct {
	Kind    string // overloaded_error, insufficient_quota, ...
	Message string
	Request string // the server's name for the exchange
	Status  int    // that the kind stands for; 0 = none
}

// ReadTrouble reads an error object: {"error": {"type", "code", "message"}} in any of the shapes in use,
// {"error": "text"}, {"type": "error", ...}. ok is false when raw is something else.
func ReadTrouble(raw []byte) (t Trouble, ok bool) {
	var o map[string]json.RawMessage
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '[' { // some send a list of one
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			raw = list[0]
		}
	}
	if json.Unmarshal(raw, &o) != nil {
		return t, false
	}
	t.Request = first(text(o["request_id"]), text(o["requestId"]))
	inner := o["error"]
	switch {
	case present(inner):
		var e map[string]json.RawMessage
		if json.Unmarshal(inner, &e) == nil {
			t.read(e)
		} else {
			t.Message = first(text(inner), string(inner))
			t.Kind = first(text(o["code"]), text(o["status"]))
		}
	case text(o["type"]) == "error", present(o["message"]) && (present(o["code"]) || present(o["status"]) || present(o["statusCode"]) || text(o["object"]) == "error"):
		t.read(o)
	case present(o["detail"]) && len(o) <= 2:
		t.Message = first(text(o["detail"]), string(o["detail"]))
	default:
		return t, false
	}
	if t.Message == "" {
		t.Message = first(text(o["message"]), "no message")
	}
	if t.Status == 0 {
		t.Status = statusOf(t.Kind)
	}
	return t, true
}

func (t *Trouble) read(e map[string]json.RawMessage) {
	t.Message = text(e["message"])
	t.Request = first(t.Request, text(e["request_id"]))
	for _, name := range []string{"type", "code", "status"} {
		v := text(e[name])
		if n, err := strconv.Atoi(v); err == nil {
			if n >= 300 && n < 600 && t.Status == 0 {
				t.Status = n
			}
			continue
		}
		if v == "" || v == "error" || strings.Contains(t.Kind, v) {
			continue
		}
		t.Kind = strings.TrimSpace(t.Kind + " " + v)
	}
	if n, err := strconv.Atoi(text(e["statusCode"])); err == nil && t.Status == 0 {
		t.Status = n
	}
}

// Failure says what an error object means that came inside an answer of status 200.
func (t Trouble) Failure(ev evidence.Case, raw []byte) *nodes.Error {
	ev.Status, ev.Types, ev.Text = t.Status, strings.Fields(t.Kind), t.Message+"\n"+string(raw[:min(len(raw), mostError)])
	e := ev.Error()
	e.Message = line(t.text(), 300)
	if t.Request != "" {
		e.Message += " (request " + printable.Clip(t.Request, 100) + ")"
	}
	return e
}

func (t Trouble) text() string {
	if t.Kind == "" {
		return t.Message
	}
	return t.Kind + ": " + t.Message
}

// kinds are the statuses that error types stand for where they come without one.
var kinds = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "invalid_api_key": 401, "billing_error": 402, "insufficient_quota": 402,
	"permission_error": 403, "permission_denied": 403, "not_found_error": 404, "model_not_found": 404, "request_too_large": 413,
	"rate_limit_error": 429, "rate_limit_exceeded": 429, "resource_exhausted": 429, "api_error": 500, "server_error": 500,
	"internal_server_error": 500, "internal": 500, "unavailable": 503, "service_unavailable": 503, "timeout_error": 504,
	"deadline_exceeded": 504, "overloaded_error": 529, "overloaded": 529, "content_filter": 451, "invalid_prompt": 400,
}

func statusOf(kind string) int {
	for _, word := range strings.Fields(strings.ToLower(kind)) {
		if s := kinds[word]; s != 0 {
			return s
		}
	}
	return 0
}

func present(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) && !bytes.Equal(raw, []byte("false")) && !bytes.Equal(raw, []byte(`""`))
}

// text returns a string or a number as text, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if len(raw) < 40 && json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
