// Package http is the kind of node that sends one HTTP request and keeps what is answered. It does
// not retry, and it understands nothing of the answer but its status and named fields of JSON.
package http

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/httpc"
)

//go:embed schema.cue
var schema string

// Kind is the kind "http".
var Kind = nodes.Kind{Name: "http", Schema: schema,
	Parse: accept.Parser(func() *settings { return &settings{Method: http.MethodGet, MaxMB: 256} })}

// Message has the request send the message, by POST unless another method is named that sends something.
func (s *settings) Message(with json.RawMessage, message []byte) (_ json.RawMessage, err error) {
	if s.safe() {
		if with, err = nodes.WithField(with, "method", http.MethodPost); err != nil {
			return nil, err
		}
	}
	return nodes.WithField(with, "body", map[string]any{"json": json.RawMessage(message)})
}

// Run sends the request once.
func (s *settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	req, err := s.request(t)
	if err != nil {
		return nil, err
	}
	c := &httpc.Client{Silence: t.Silence, MostBody: s.MaxMB << 20}
	if t.Begin != nil {
		t.Begin()
	}
	answer, err := c.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	if !s.expected(answer.Status) {
		return nil, s.unexpected(answer, evidence.Case{Now: time.Now(), Tries: t.Attempt})
	}
	if t.TookEffect != nil {
		if err := t.TookEffect(fmt.Sprintf("HTTP status %d", answer.Status)); err != nil {
			return nil, err
		}
	}
	return s.take(t, answer)
}

func (s *settings) request(t *nodes.Task) (*httpc.Request, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nodes.Permanent(&nodes.Error{Category: "config", Message: "url", Err: err})
	}
	if len(s.Query) > 0 {
		q := u.Query()
		for name, raw := range s.Query {
			q.Set(name, accept.Plain(raw))
		}
		u.RawQuery = q.Encode()
	}
	r := &httpc.Request{Method: s.Method, URL: u.String(), Header: http.Header{}, Beat: t.Beat}
	for name, raw := range s.Headers {
		r.Header.Set(name, accept.Plain(raw))
		credential.MaskNamed(t, name, accept.Plain(raw))
	}
	for name, secret := range s.Secrets {
		value, err := t.Secret(secret)
		if err != nil {
			return nil, err
		}
		r.Header.Set(name, value)
		r.Secrets = append(r.Secrets, name)
	}
	if s.Bearer != "" {
		value, err := t.Secret(s.Bearer)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+value)
		r.Secrets = append(r.Secrets, "Authorization")
	}
	credential.MaskURL(t, r.URL)
	return r, s.content(t, r)
}

// content sets the body.
func (s *settings) content(t *nodes.Task, r *httpc.Request) error {
	b, kind := s.Body, "text/plain; charset=utf-8"
	switch {
	case b == nil:
		return nil
	case b.JSON != nil:
		r.Body, kind = b.JSON, "application/json"
	default:
		f, err := b.Open(t)
		if err != nil {
			return nodes.Permanent(err.(*nodes.Error))
		}
		defer f.Close()
		if r.Body, err = io.ReadAll(io.LimitReader(f, s.MaxMB<<20+1)); err != nil {
			return err
		}
		if int64(len(r.Body)) > s.MaxMB<<20 {
			return nodes.Permanent(nodes.Failf("config", "the body is longer than %d MB (maxMB)", s.MaxMB))
		}
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", cmp.Or(b.Type, kind))
	}
	return nil
}

func (s *settings) expected(status int) bool {
	if len(s.Expect) == 0 {
		return status >= 200 && status < 300
	}
	return slices.Contains(s.Expect, status)
}

// unexpected is the failure of a status that is not among the expected ones.
func (s *settings) unexpected(a *httpc.Answer, ev evidence.Case) error {
	e := a.Failure(ev)
	if a.Status < 300 {
		e.Permanent = true // it was done, in another way than the spec says
	}
	if len(s.Expect) > 0 {
		e.Message += fmt.Sprintf("; want %v", s.Expect)
	}
	return e
}

// take keeps the body and reads the values in it. The body goes to a file as it comes: its length costs no memory.
func (s *settings) take(t *nodes.Task, a *httpc.Answer) (*nodes.Result, error) {
	res := &nodes.Result{Values: map[string]any{"status": a.Status, "content_type": a.Type()}, Writes: map[string]string{}}
	f, err := os.OpenFile(filepath.Join(t.Scratch, "response"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return res, err
	}
	defer f.Close()
	n, err := io.Copy(f, a)
	res.Values["bytes"] = n
	if err != nil {
		return res, err
	}
	body := func() io.Reader { return io.NewSectionReader(f, 0, n) }
	if len(s.Values) > 0 {
		err = s.values(body(), res)
	}
	if err == nil && s.To != "" {
		res.Writes[s.To] = s.To
		return res, t.Stage(s.To, body())
	}
	if n > 0 {
		t.KeepBeside(res, "response.txt", body())
	}
	return res, err
}
