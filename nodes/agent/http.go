package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/prompt"
)

// An httpAPI is a provider that is asked by one HTTP request and answers with a stream of events.
//
// It uses net/http behind package httpc and not the vendors' clients: those send a paid request again
// by themselves, end their retries at the head of the answer, and lose bodies. Here every
// request is one attempt of the machine.
type httpAPI struct {
	base string // address of the vendor's own service
	// keys are the secrets that hold the key where the settings name none, by how it is sent.
	keys []apiKey
	// path is what follows the base address, of which it gets the path.
	path func(q *question, base string) string
	// fixed are headers of every request.
	fixed map[string]string
	body  func(q *question, c *content) map[string]any
	// answer returns a reader of one answer.
	answer func(q *question) apiReader
}

// An apiKey is a secret and the header that takes it.
type apiKey struct{ secret, header, prefix string }

// An apiReader reads what one kind of API answers.
type apiReader interface {
	// event takes the next event of a stream.
	event(object)
	// done takes the mark that some streams end with.
	done()
	// whole takes an answer that came in one piece, and reports whether it is one.
	whole(object) bool
	// ended reports whether the provider said why it stopped, and closed whether it ended the
	// stream in order.
	ended() (reason, closed bool)
	// fill completes the reply, and says how the provider failed by its own terms.
	fill(q *question, r *reply) *nodes.Error
}

func (a httpAPI) address() string { return a.base }

func (a httpAPI) ask(ctx context.Context, q *question) (*reply, error) {
	req, err := a.request(q)
	if err != nil {
		return nil, err
	}
	spooled, err := newSpooled(q.task.Spool)
	if err != nil {
		return nil, err
	}
	defer spooled.Close()
	c := &httpc.Client{Head: q.task.Silence, Idle: q.task.Silence, MostBody: q.set.MaxOutputMB << 20, Now: q.now, Resend: 2}
	answer, err := c.Do(ctx, req)
	r := &reply{}
	if err != nil {
		errors.As(err, &r.Failure)
		r.Finish = "error"
		r.freeUnless(r.Failure.Unknown)
		return r, nil
	}
	defer answer.Close()
	r.Status = answer.Status
	if answer.Status != http.StatusOK {
		r.Failure, r.Finish = answer.Failure(q.evidence()), "error"
		r.freeUnless(r.Failure.Unknown || answer.Status < 300)
		return r, nil
	}
	kept, err := q.task.Keep("transcript.txt")
	if err != nil {
		return nil, fmt.Errorf("keep transcript.txt: %w", err)
	}
	if err := spooled.head(answer); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	h := &hearing{q: q, answer: answer, from: bufio.NewReader(io.TeeReader(answer, io.MultiWriter(spooled, kept))), reader: a.answer(q)}
	h.hear(r)
	return r, kept.Close()
}

// freeUnless books a cost of nothing when the provider did not begin to answer.
func (r *reply) freeUnless(spent bool) {
	if !spent {
		free := 0.0
		r.CostUSD = &free
	}
}

func (a httpAPI) request(q *question) (*httpc.Request, error) {
	if q.set.Model == "" {
		return nil, nodes.Permanent(nodes.Fail("config", "model: missing; provider "+q.set.Provider+" has no default"))
	}
	address, err := a.url(q)
	if err != nil {
		return nil, err
	}
	r := &httpc.Request{Method: http.MethodPost, URL: address, Header: http.Header{}}
	if q.task.Beat != nil {
		r.Beat = func() { q.task.Beat("") }
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	for name, value := range a.fixed {
		r.Header.Set(name, value)
	}
	for name, value := range q.set.Headers {
		r.Header.Set(name, value)
	}
	if err := a.authorize(q, r); err != nil {
		return nil, err
	}
	if name := q.set.IdempotencyHeader; name != "" {
		// The same for an attempt that is made again because its end was never recorded.
		r.Header.Set(name, "dagrun-"+digest(fmt.Sprint(q.task.Seed, q.task.Node, q.task.Generation, q.task.Failures, q.prompt))[:40])
		r.Repeatable = true
	}
	c, err := q.content()
	if err != nil {
		return nil, err
	}
	body := a.body(q, c)
	q.set.reason(body)
	for name, value := range q.set.Params {
		if body[name] = value; strings.TrimSpace(string(value)) == "null" {
			delete(body, name)
		}
	}
	r.Body, err = json.Marshal(body)
	return r, err
}

// url puts the API's path behind that of the base address, unless it ends so already, and before its query: some services
// name the deployment in the path and the version in the query.
func (a httpAPI) url(q *question) (string, error) {
	u, err := url.Parse(orElse(q.set.BaseURL, a.base))
	if err != nil {
		return "", nodes.Permanent(&nodes.Error{Category: "config", Message: "baseURL", Err: err})
	}
	base := strings.TrimRight(u.Path, "/")
	if path := a.path(q, base); !strings.HasSuffix(base, path) {
		u = u.JoinPath(path)
	}
	return u.String(), nil
}

// authorize sets the headers that hold secrets.
func (a httpAPI) authorize(q *question, r *httpc.Request) error {
	set := func(header, prefix, secret string) error {
		value, err := q.task.Secret(secret)
		if err == nil {
			r.Header.Set(header, prefix+value)
			r.Secrets = append(r.Secrets, header)
		}
		return err
	}
	named := false
next:
	for _, name := range slices.Sorted(maps.Keys(q.set.Secrets)) {
		for _, k := range a.keys {
			if k.secret == name {
				if err := set(k.header, k.prefix, q.set.Secrets[name]); err != nil {
					return err
				}
				named = true
				continue next
			}
		}
		if err := set(name, "", q.set.Secrets[name]); err != nil { // a header's name
			return err
		}
		named = true
	}
	if named {
		return nil
	}
	var missing error
	for _, k := range a.keys {
		err := set(k.header, k.prefix, k.secret)
		if err == nil {
			return nil
		}
		if missing == nil {
			missing = err
		}
	}
	if q.set.BaseURL != "" {
		return nil // a server of one's own may want none
	}
	return missing
}

// A hearing is the reading of one answer of status 200.
type hearing struct {
	q      *question
	answer *httpc.Answer
	from   *bufio.Reader
	reader apiReader
	events int
	odd    oddities // of the objects that came
	// skipped counts lines of data that are no part of the answer.
	skipped int
	// status is the one that an error object stands for which the service sent; 0 = none.
	status int
}

// hear reads to the end and judges. The text so far is kept whatever happens.
func (h *hearing) hear(r *reply) {
	if r.Failure = h.read(r); r.Failure == nil {
		return
	}
	r.Finish = "error"
	refused := evidence.Refused(r.Failure.Category) || h.status == http.StatusServiceUnavailable || h.status == 529
	r.freeUnless(!refused || r.Text != "" || r.Usage != (nodes.Usage{}))
}

func (h *hearing) read(r *reply) *nodes.Error {
	start, err := h.begin()
	if err != nil && len(start) == 0 && !errors.Is(err, io.EOF) {
		return asFailure(err)
	}
	switch kind := h.answer.Type(); {
	case len(start) == 0:
		return nodes.Fail("protocol", "the answer of status 200 is empty")
	case kind == "text/html" || start[0] == '<':
		return h.noAnswer(start)
	case start[0] == '{' || start[0] == '[':
		return h.document(r)
	case kind == "text/event-stream" || eventStart.Match(start):
		return h.stream(r)
	default:
		return h.noAnswer(start)
	}
}

// eventStart is how a stream of events begins.
var eventStart = regexp.MustCompile(`^(?:data|event|id|retry)?:`)

// begin returns the first bytes behind blanks, which some servers send to keep a connection open.
func (h *hearing) begin() ([]byte, error) {
	for {
		c, err := h.from.ReadByte()
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte([]byte(" \t\r\n\xef\xbb\xbf"), c) < 0 {
			break
		}
	}
	if err := h.from.UnreadByte(); err != nil {
		return nil, err
	}
	return h.from.Peek(512) // an error comes again when this has been read
}

func (h *hearing) noAnswer(first []byte) *nodes.Error {
	e := h.answer.Describe(first)
	return &nodes.Error{Category: "protocol", Message: e + ", where the API's answer should be"}
}

// document reads an answer in one piece.
func (h *hearing) document(r *reply) *nodes.Error {
	raw, err := io.ReadAll(h.from)
	if err != nil && !json.Valid(raw) {
		return asFailure(err)
	}
	if err != nil {
		r.Warnings = append(r.Warnings, "the connection ended badly behind the answer: "+err.Error())
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil && raw[0] != '[' {
		return &nodes.Error{Category: "transient", Message: fmt.Sprintf("the answer is no JSON (%d bytes)", len(raw)), Err: err}
	}
	h.odd.look(raw)
	trouble, told := httpc.ReadTrouble(raw)
	var failure *nodes.Error
	switch whole := h.reader.whole(o); {
	case whole:
		failure = h.fill(r)
	case !told:
		return h.noAnswer(raw)
	}
	if told && failure == nil {
		h.status = trouble.Status
		failure = trouble.Failure(h.q.evidence(), raw)
	}
	return failure
}

// mostEvent is the longest event of a stream.
const mostEvent = 16 << 20

func (h *hearing) stream(r *reply) *nodes.Error {
	events := httpc.NewEvents(h.from, mostEvent)
	failure := h.listen(events)
	reason, closed := h.reader.ended()
	own := h.fill(r) // text and usage, whatever became of it
	switch {
	case failure == nil && reason:
		return own
	case reason:
		r.Warnings = append(r.Warnings, "the stream ended badly behind the answer: "+failure.Message)
		return own
	case failure != nil:
		h.estimate(r)
		return failure
	case h.events == 0:
		return nodes.Fail("protocol", "the stream of status 200 holds no event")
	case closed:
		h.estimate(r)
		return nodes.Fail("transient", fmt.Sprintf("the stream was closed without a reason to stop, after %d bytes of text", len(r.Text)))
	default:
		h.estimate(r)
		return nodes.Fail("transient", fmt.Sprintf("the stream ended in the middle, after %d bytes of text", len(r.Text)))
	}
}

// listen hands the events to the reader until the end, an error or a line that cannot be read. The end
// is what the provider says is one: some connections stay open behind it.
func (h *hearing) listen(events *httpc.Events) *nodes.Error {
	for {
		if _, closed := h.reader.ended(); closed {
			return nil
		}
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return asFailure(err)
		}
		data := bytes.TrimSpace(ev.Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			h.reader.done()
			continue
		}
		if len(data) == 0 {
			continue
		}
		if failure := h.take(ev, data); failure != nil {
			return failure
		}
	}
}

// take hands one event to the reader. What is JSON but no object belongs to no API: a sign of life.
func (h *hearing) take(ev httpc.Event, data []byte) *nodes.Error {
	if ev.Name == "error" || bytes.Contains(data, []byte(`"error"`)) {
		if t, told := httpc.ReadTrouble(inner(data)); told {
			h.status = t.Status
			return t.Failure(h.q.evidence(), data)
		}
	}
	var o object
	err := json.Unmarshal(data, &o)
	switch {
	case ev.Name == "error" && o == nil:
		said := h.q.evidence()
		said.Text = string(data)
		return said.Error()
	case err != nil && json.Valid(data), err == nil && o == nil:
		return nil
	case err != nil && ev.Open:
		return nil // cut off, not broken: the end tells
	case err != nil && !bytes.ContainsAny(data, `{}[]"`):
		h.skipped++ // a sign of life that some gateways send as data: ": keepalive", "ping"
		return nil
	case err != nil:
		return &nodes.Error{Category: "transient", Message: "a line of the stream is broken, text may be missing: " + printable.Clip(string(data), 100), Err: err}
	}
	h.events++
	h.odd.look(data)
	if o.str("type") == "" && ev.Name != "" {
		o["type"], _ = json.Marshal(ev.Name)
	}
	h.reader.event(o)
	return nil
}

// inner returns data unless it is the event of a Responses stream that holds the object which failed: the
// reader judges that.
func inner(data []byte) []byte {
	var o object
	if json.Unmarshal(data, &o) == nil && o.has("response") {
		return nil
	}
	return data
}

func (h *hearing) fill(r *reply) *nodes.Error {
	failure := h.reader.fill(h.q, r)
	r.Warnings = append(r.Warnings, h.odd.warnings(r.Text)...)
	if h.skipped > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the stream held %d lines of data that are no JSON; they were taken for signs of life", h.skipped))
	}
	reason, closed := h.reader.ended()
	if failure == nil && reason && !closed {
		r.Warnings = append(r.Warnings, "the stream ended without its closing mark; the answer is whole")
	}
	if (r.Usage == nodes.Usage{}) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the provider reported no usage, so the cost is not known (the answer has about %d tokens)", tokensOf(r.Text)))
	}
	return failure
}

// estimate puts the tokens of a text that broke off in the place of a count that never came, when the
// provider had begun to count.
func (h *hearing) estimate(r *reply) {
	if n := tokensOf(r.Text); r.Usage != (nodes.Usage{}) && n > r.Usage.Output {
		r.Usage.Output = n
		r.Warnings = append(r.Warnings, fmt.Sprintf("the answer broke off before its tokens were counted; taken as %d", n))
	}
}

func tokensOf(text string) int64 { return prompt.EstimateTokens(int64(len([]rune(text)))) }

func asFailure(err error) *nodes.Error {
	var e *nodes.Error
	if errors.As(err, &e) {
		return e
	}
	return &nodes.Error{Category: "transient", Message: err.Error()}
}
