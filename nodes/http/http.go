// Package http is the kind of node that sends one HTTP request and keeps what is answered. It does
// not retry, and it understands nothing of the answer but its status and named fields of JSON.
package http

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
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

// Kind is the kind "http". The zero value is ready for use.
type Kind struct {
	now func() time.Time // the runner's clock; nil = time.Now
}

// Name returns "http".
func (Kind) Name() string { return "http" }

// Schema returns the CUE source of #Http.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of checked settings.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := read(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	return s.traits(), nil
}

// Run sends the request once.
func (k Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, err := read(t.With)
	if err != nil {
		return nil, err
	}
	if k.now == nil {
		k.now = time.Now
	}
	req, err := s.request(t)
	if err != nil {
		return nil, err
	}
	c := &httpc.Client{Head: t.Silence, Idle: t.Silence, MostBody: s.MaxMB << 20}
	answer, err := c.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	if !s.expected(answer.Status) {
		return nil, s.unexpected(answer, evidence.Case{Now: k.now(), Zone: time.Local, Tries: t.Attempt})
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
	r := &httpc.Request{Method: s.Method, URL: u.String(), Header: http.Header{}}
	if t.Beat != nil {
		r.Beat = func() { t.Beat("") }
	}
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
func (s *settings) content(t *nodes.Task, r *httpc.Request) (err error) {
	b, kind := s.Body, "text/plain; charset=utf-8"
	if b == nil {
		return nil
	}
	switch {
	case b.JSON != nil:
		r.Body, kind = b.JSON, "application/json"
	case b.Artifact != "":
		r.Body, err = s.slurp(t.Artifact, "artifact", b.Artifact)
	case b.File != "":
		r.Body, err = s.slurp(t.File, "file", b.File)
	case b.Text != nil:
		r.Body = []byte(*b.Text)
	}
	if b.Type != "" {
		kind = b.Type
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", kind)
	}
	return err
}

func (s *settings) slurp(open func(string) (io.ReadCloser, error), what, name string) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, nodes.Permanent(&nodes.Error{Category: "config", Message: what + " " + name, Err: err})
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, s.MaxMB<<20+1))
	if int64(len(b)) > s.MaxMB<<20 {
		return nil, nodes.Permanent(nodes.Fail("config", fmt.Sprintf("%s %s is longer than %d MB (maxMB)", what, name, s.MaxMB)))
	}
	return b, err
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

// take keeps the body and reads the values in it.
func (s *settings) take(t *nodes.Task, a *httpc.Answer) (*nodes.Result, error) {
	res := &nodes.Result{Values: map[string]any{"status": a.Status, "content_type": a.Type()}, Writes: map[string]string{}}
	file := filepath.Join(t.Scratch, "response")
	n, err := save(file, a)
	res.Values["bytes"] = n
	if err != nil {
		return res, err
	}
	if len(s.Values) > 0 {
		if err := s.values(file, res.Values); err != nil {
			return res, errors.Join(err, keep(t, file, n))
		}
	}
	if s.To == "" {
		return res, keep(t, file, n)
	}
	res.Writes[s.To] = s.To
	return res, stage(t.Out, s.To, file)
}

// save writes a body to a file as it comes: its length costs no memory.
func save(path string, from io.Reader) (int64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, from)
	if bad := f.Close(); err == nil {
		err = bad
	}
	return n, err
}

func keep(t *nodes.Task, path string, size int64) error {
	if size == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := t.Keep("response.txt")
	if err != nil {
		return fmt.Errorf("keep response.txt: %w", err)
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, w.Close())
}

// stage copies a file below out and nowhere else: the name is data of the specification.
func stage(out, name, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close()
	local := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(local), 0o700); err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	f, err := root.OpenFile(local, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

func read(with json.RawMessage) (*settings, error) {
	s := &settings{Method: http.MethodGet, MaxMB: 256}
	return s, accept.Decode(with, s)
}
