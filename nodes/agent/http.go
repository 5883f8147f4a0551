package agent

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/httpc"
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
	path string // what follows the base address
	// fixed are headers of every request.
	fixed map[string]string
	body  func(q *question, c *content) map[string]any
	// format is how the service reports.
	format *transcript.Format
}

// An apiKey is a secret and the header that takes it.
type apiKey struct{ secret, header, prefix string }

func (a httpAPI) address() string { return a.base }

func (a httpAPI) ask(ctx context.Context, q *question) (*reply, error) {
	req, err := a.request(q)
	if err != nil {
		return nil, err
	}
	spool, err := newSpooled(q.task.Spool)
	if err != nil {
		return nil, err
	}
	defer spool.Close()
	c := &httpc.Client{Silence: q.task.Silence, MostBody: q.set.MaxOutputMB << 20, Resend: 2}
	if q.task.Begin != nil {
		q.task.Begin()
	}
	answer, err := c.Do(ctx, req)
	r := &reply{Finish: "error"}
	if err != nil {
		errors.As(err, &r.Failure)
		r.Refused = !r.Failure.Unknown // it did not reach the service
		r.Price()
		return r, nil
	}
	defer answer.Close()
	r.Status = answer.Status
	if answer.Status != http.StatusOK {
		r.Failure = answer.Failure(q.evidence(a.format.Table))
		r.Refused = !r.Failure.Unknown && answer.Status >= 300
		r.Price()
		return r, nil
	}
	aside := &sideFile{name: "transcript.txt"}
	aside.to, aside.err = q.task.Keep(aside.name)
	spool.head(answer)
	readAnswer(a.format, q, answer, io.TeeReader(answer, io.MultiWriter(spool, aside)), r)
	for _, f := range []*sideFile{aside, spool} {
		if err := f.Close(); err != nil {
			r.Warn("lost: keep %s: %v", f.name, err)
		}
	}
	return r, nil
}

func (a httpAPI) request(q *question) (*httpc.Request, error) {
	if q.set.Model == "" {
		return nil, nodes.Permanent(nodes.Fail("config", "model: missing; provider "+q.set.Provider+" has no default"))
	}
	address, err := a.url(q)
	if err != nil {
		return nil, err
	}
	r := &httpc.Request{Method: http.MethodPost, URL: address, Header: http.Header{}, Beat: q.task.Beat}
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
		t := q.task
		key := digest(fmt.Sprint(t.Seed, t.Node, t.Generation, t.Failures, q.prompt()))
		r.Header.Set(name, "dagrun-"+key[:40])
		r.Repeatable = true
	}
	c, err := q.content()
	if err != nil {
		return nil, err
	}
	body := a.body(q, c)
	put(body, "temperature", q.set.Temperature)
	q.set.reason(body)
	for name, value := range q.set.Params {
		if body[name] = value; strings.TrimSpace(string(value)) == "null" {
			delete(body, name)
		}
	}
	r.Body, err = json.Marshal(body)
	return r, err
}

// url puts the API's path behind that of the base address, as far as it does not end so already, and before its query:
// some services name the deployment in the path and the version in the query.
func (a httpAPI) url(q *question) (string, error) {
	u, err := url.Parse(cmp.Or(q.set.BaseURL, a.base))
	if err != nil {
		return "", nodes.Permanent(&nodes.Error{Category: "config", Message: "baseURL", Err: err})
	}
	base, path := strings.TrimRight(u.Path, "/"), a.path
	if strings.HasSuffix(base, "/v1") {
		path = strings.TrimPrefix(path, "/v1")
	}
	if !strings.HasSuffix(base, path) {
		u = u.JoinPath(path)
	}
	return u.String(), nil
}

// authorize sets the headers that hold secrets.
func (a httpAPI) authorize(q *question, r *httpc.Request) error {
	set := func(k apiKey, secret string) error {
		value, err := q.task.Secret(secret)
		if err == nil {
			r.Header.Set(k.header, k.prefix+value)
			r.Secrets = append(r.Secrets, k.header)
		}
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(q.set.Secrets)) {
		key := apiKey{header: name}
		if i := slices.IndexFunc(a.keys, func(k apiKey) bool { return k.secret == name }); i >= 0 {
			key = a.keys[i]
		}
		if err := set(key, q.set.Secrets[name]); err != nil {
			return err
		}
	}
	if len(q.set.Secrets) > 0 {
		return nil
	}
	var missing error
	for _, k := range a.keys {
		err := set(k, k.secret)
		if err == nil {
			return nil
		}
		missing = cmp.Or(missing, err)
	}
	if q.set.BaseURL != "" {
		return nil // a server of one's own may want none
	}
	return missing
}

// recall reads an answer again that was being read when the process died.
func (a httpAPI) recall(q *question) (*reply, error) {
	if err := a.authorize(q, &httpc.Request{Header: http.Header{}}); err != nil { // so that the key is masked
		return nil, err
	}
	f, err := regular.Open(filepath.Join(q.task.Spool, spooledName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := bufio.NewReader(f)
	line, err := from.ReadBytes('\n')
	if err != nil {
		return nil, err // no answer had begun
	}
	var head answerHead
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	answer := httpc.Reread(head.Status, head.Header, from)
	defer answer.Close()
	r := &reply{Status: head.Status}
	if readAnswer(a.format, q, answer, answer, r); !r.Ended {
		return r, nil
	}
	err = q.task.KeepFrom("transcript.txt", io.NewSectionReader(f, int64(len(line)), 1<<62))
	return r, errors.Join(err, lasted(r, q.task.Spool, spooledName))
}
