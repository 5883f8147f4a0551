package httpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"dagrun.dev/internal/awake"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// An Answer is what came back: a head, and a body that is read as it comes. It belongs to
// one goroutine.
type Answer struct {
	Status int
	Header http.Header

	body *body
}

// Read reads the body. An error other than io.EOF is a *nodes.Error: transient when the body
// breaks off, stalled when nothing comes any more or ctx's time is over, killed, or protocol when it
// is too long.
func (a *Answer) Read(p []byte) (int, error) { return a.body.Read(p) }

// Close ends the connection.
func (a *Answer) Close() error { return a.body.Close() }

// Reread is an answer whose head and body were kept.
func Reread(status int, header http.Header, body io.Reader) *Answer {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Answer{Status: status, Header: header, body: newBody(ctx, cancel, io.NopCloser(body), &Client{}, nil)}
}

// Type is the body's media type in lower case, without parameters.
func (a *Answer) Type() string { return evidence.MediaType(a.Header) }

// Failure says what an answer means that is not the one that was asked for. It reads the beginning of the body and
// closes it. c holds the runner's clock.
func (a *Answer) Failure(c evidence.Case) *nodes.Error {
	body, _ := io.ReadAll(io.LimitReader(a, evidence.MostBody)) // what there is of it
	_ = a.Close()
	return c.Answered(evidence.Answer{Status: a.Status, Header: a.Header, Body: body})
}

// Describe says in a few words what an answer is that should be another one. body is its beginning.
func (a *Answer) Describe(body []byte) string {
	return evidence.Answer{Status: a.Status, Header: a.Header, Body: body}.Describe()
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
	timer  *awake.Timer
	once   sync.Once
}

func newBody(ctx context.Context, cancel context.CancelCauseFunc, from io.ReadCloser, c *Client, beat func()) *body {
	b := &body{
		ctx: ctx, cancel: cancel, from: from, beat: beat,
		idle: cmp.Or(c.Silence, 5*time.Minute), most: cmp.Or(c.MostBody, 256<<20),
	}
	b.timer = awake.AfterFunc(b.idle, func() { cancel(errIdle) })
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
		return 0, nodes.Permanent(nodes.Failf("output_limit", "the answer is longer than %d MB", b.most>>20))
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
		category, why := ended(b.ctx)
		e.Category, e.Message = category, fmt.Sprintf("%s, after %d bytes of the answer", why, b.read)
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
