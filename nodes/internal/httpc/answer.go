package httpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// An Answer is what came back: a head, and a body that is read as it comes. It belongs to
// one goroutine.
type Answer struct {
	Status int
	Header http.Header
	URL    string // where it came from, after redirections

	body *body
	now  time.Time
}

// Read reads the body. An error other than io.EOF is a *nodes.Error: transient when the body
// breaks off, stalled when nothing comes any more or ctx's time is over, killed, or protocol when it
// is too long.
func (a *Answer) Read(p []byte) (int, error) { return a.body.Read(p) }

// Close ends the connection.
func (a *Answer) Close() error { return a.body.Close() }

// Reread is an answer whose head and body were kept.
func Reread(status int, header http.Header, body io.Reader, now time.Time) *Answer {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Answer{Status: status, Header: header, body: newBody(ctx, cancel, io.NopCloser(body), &Client{}, nil), now: now}
}

// Type is the body's media type in lower case, without parameters.
func (a *Answer) Type() string {
	text := a.Header.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(text); err == nil {
		return t
	}
	t, _, _ := strings.Cut(text, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// RequestID is the server's name for the exchange, for asking its operator; empty = none.
func (a *Answer) RequestID() string {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "Cf-Ray"} {
		if id := a.Header.Get(name); id != "" {
			return printable.Clip(id, 100)
		}
	}
	return ""
}

// A body is a response body with a limit on silence and one on length.
type body struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	from   io.ReadCloser
	idle   time.Duration
	most   int64
	read   int64
	beat   func()
	timer  *time.Timer
	once   sync.Once
}

func newBody(ctx context.Context, cancel context.CancelCauseFunc, from io.ReadCloser, c *Client, beat func()) *body {
	b := &body{ctx: ctx, cancel: cancel, from: from, idle: or(c.Idle, 5*time.Minute), most: or(c.MostBody, 256<<20), beat: beat}
	b.timer = time.AfterFunc(b.idle, func() { cancel(errIdle) })
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if n > 0 {
		b.timer.Reset(b.idle)
		b.read += int64(n)
		if b.beat != nil {
			b.beat()
		}
	}
	if b.read > b.most {
		return 0, nodes.Permanent(nodes.Fail("protocol", fmt.Sprintf("the answer is longer than %d MB", b.most>>20)))
	}
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	return n, b.failure(err)
}

func (b *body) failure(err error) *nodes.Error {
	e := &nodes.Error{Category: "transient", Unknown: true}
	switch {
	case errors.Is(context.Cause(b.ctx), errIdle):
		e.Category, e.Message = "stalled", fmt.Sprintf("nothing came for %v after %d bytes of the answer", b.idle, b.read)
	case b.ctx.Err() != nil:
		e.Category, e.Message = ended(b.ctx), fmt.Sprintf("%v, after %d bytes of the answer", context.Cause(b.ctx), b.read)
	case errors.Is(err, errDamaged):
		e.Category, e.Message = "protocol", err.Error()
	default:
		e.Message = fmt.Sprintf("the answer broke off after %d bytes: %v", b.read, err)
	}
	return e
}

// Close may be called twice.
func (b *body) Close() (err error) {
	b.once.Do(func() {
		b.timer.Stop()
		b.cancel(nil)
		err = b.from.Close()
	})
	return err
}
