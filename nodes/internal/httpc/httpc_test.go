package httpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func client() *Client {
	return &Client{Resend: 2, pause: time.Millisecond}
}

func post(url string) *Request {
	return &Request{Method: "POST", URL: url, Body: []byte(`{"q":1}`), Header: http.Header{"X-Api-Key": {"hidden"}}, Secrets: []string{"X-Api-Key"}}
}

func asError(t *testing.T, err error) *nodes.Error {
	t.Helper()
	var e *nodes.Error
	if !errors.As(err, &e) {
		t.Fatalf("no *nodes.Error: %v", err)
	}
	return e
}

// A paid request is sent once, whatever becomes of it: dropped after it was sent, before an
// answer, in the middle of one. R-1
func TestPaidRequestIsSentOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answer   exchange.Response
		category string
		unknown  bool
	}{
		{"dropped", exchange.Response{End: "drop-after-request", AfterMS: 20}, "answer_lost", true},
		{"cut body", exchange.Response{Status: 200, Headers: map[string]string{"content-length": "500"}, RawBody: "half", End: "close"}, "transient", true},
		{"reset body", exchange.Response{Status: 200, Headers: map[string]string{"content-length": "500"}, RawBody: "half", End: "reset"}, "transient", true},
		{"503", exchange.Response{Status: 503}, "transient", false},
		{"504", exchange.Response{Status: 504}, "transient", true},
		// somebody between gave up waiting: the work may have been done
		{"408", exchange.Response{Status: 408}, "transient", false},
		{"499", exchange.Response{Status: 499}, "transient", false},
		{"524", exchange.Response{Status: 524}, "transient", true},
		{"307", exchange.Response{Status: 307, Headers: map[string]string{"location": "/other"}}, "config", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := exchange.Serve(t, "", tt.answer)
			a, err := client().Do(context.Background(), post(s.URL))
			if err == nil && a.Status != 200 {
				err = a.Failure(evidence.Case{Now: now})
			} else if err == nil {
				_, err = io.ReadAll(a)
				_ = a.Close()
			}
			e := asError(t, err)
			if e.Category != tt.category || e.Unknown != tt.unknown {
				t.Errorf("%s unknown=%v (%v), want %s %v", e.Category, e.Unknown, e, tt.category, tt.unknown)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// What reached nobody, or may be repeated, is sent again a few times inside the call.
func TestResend(t *testing.T) {
	drop := exchange.Response{End: "drop-after-request"}
	s := exchange.Serve(t, "", drop, drop, exchange.Response{Status: 200, RawBody: "fine"})
	r := post(s.URL)
	r.Repeatable = true
	a, err := client().Do(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for i, got := range s.Requests() {
		if !bytes.Equal(got.Body, r.Body) {
			t.Errorf("request %d had the body %q", i, got.Body)
		}
	}
	if n := len(s.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}

	_, err = client().Do(context.Background(), post("http://"+exchange.Nobody(t)))
	if e := asError(t, err); e.Category != "transient" || e.Unknown || !strings.Contains(e.Message, "not reached") {
		t.Errorf("nobody there: %s unknown=%v %v", e.Category, e.Unknown, e)
	}
}

// Limits: no head, no further byte, too long a body, the attempt's own time, a cancel.
func TestLimits(t *testing.T) {
	stall := exchange.Response{Status: 200, Headers: map[string]string{"content-length": "500"}, RawBody: "half", End: "stall"}
	read := func(t *testing.T, ctx context.Context, c *Client, answer exchange.Response, begun ...func()) *nodes.Error {
		t.Helper()
		s := exchange.Serve(t, "", answer)
		a, err := c.Do(ctx, post(s.URL))
		if err == nil {
			defer a.Close()
			if _, err = io.ReadFull(a, make([]byte, 4)); err == nil {
				for _, f := range begun {
					f()
				}
				_, err = io.ReadAll(a)
			}
		}
		return asError(t, err)
	}
	c := client()
	c.Silence = time.Second // a machine with other work to do needs as long to begin
	if e := read(t, context.Background(), c, stall); e.Category != "stalled" || !strings.Contains(e.Message, "nothing came for 1s") {
		t.Errorf("idle: %s %v", e.Category, e)
	}
	late, pass := nodetest.Deadline()
	if e := read(t, late, client(), stall, pass); e.Category != "stalled" || !strings.Contains(e.Message, "the time that an attempt may take was over") {
		t.Errorf("over time in the body: %s %v", e.Category, e)
	}
	c = client()
	c.MostBody = 100
	if e := read(t, context.Background(), c, exchange.Response{Status: 200, RawBody: strings.Repeat("x", 101)}); e.Category != "output_limit" || !e.Permanent {
		t.Errorf("too long: %s %v", e.Category, e)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	if e := read(t, ctx, client(), stall); e.Category != "killed" || !strings.Contains(e.Message, "enough") {
		t.Errorf("cancelled: %s %v", e.Category, e)
	}
}

// A body that was compressed unasked is read as what it holds, as it comes; one that is damaged is no answer.
func TestCompressedAnswer(t *testing.T) {
	gz := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return b.String()
	}
	whole := gz(strings.Repeat("page ", 1000))
	for _, tt := range []struct{ name, body, asked, encoding, category string }{
		{"whole", whole, "", "gzip", ""},
		{"old name", whole, "", "X-GZIP", ""},
		{"not said", whole, "", "", "other"},
		{"asked for", whole, "gzip", "gzip", "other"},
		{"cut", whole[:len(whole)/2], "", "gzip", "transient"},
		{"cut in its head", whole[:5], "", "gzip", "transient"},
		{"damaged", whole[:20] + "xxxxxxxxxx" + whole[30:], "", "gzip", "protocol"},
		{"another", "page page page", "", "gzip", "protocol"},
		{"empty", "", "", "gzip", "empty"},
		{"bomb", gz(strings.Repeat("\x00", 1<<20)), "", "gzip", "output_limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := exchange.Serve(t, "", exchange.Response{Status: 200, Headers: map[string]string{"content-encoding": tt.encoding, "content-type": "text/plain"}, RawBody: tt.body})
			r := post(s.URL)
			if tt.asked != "" {
				r.Header.Set("Accept-Encoding", tt.asked)
			}
			c := client()
			c.MostBody = 100 << 10
			a, err := c.Do(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, err := io.ReadAll(a)
			got := "other"
			switch {
			case err != nil:
				got = asError(t, err).Category
			case len(b) == 0:
				got = "empty"
			case string(b) == strings.Repeat("page ", 1000):
				got = ""
			}
			if got != tt.category {
				t.Errorf("%q, want %q: %v", got, tt.category, err)
			}
		})
	}
}

// A server that has the request and gives no answer: the wait is over, or the attempt's own time.
func TestNoHead(t *testing.T) {
	ctx, pass := nodetest.Deadline()
	hold := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/late" {
			pass()
		}
		<-hold
	}))
	defer srv.Close()
	defer close(hold)
	c := client()
	c.Silence = 30 * time.Millisecond
	_, err := c.Do(context.Background(), post(srv.URL))
	if e := asError(t, err); e.Category != "stalled" || !e.Unknown || !strings.Contains(e.Message, "no answer within") {
		t.Errorf("%s unknown=%v %v", e.Category, e.Unknown, e)
	}
	_, err = client().Do(ctx, post(srv.URL+"/late"))
	if e := asError(t, err); e.Category != "stalled" || !e.Unknown || !strings.Contains(e.Message, "time that an attempt may take") {
		t.Errorf("over time: %s unknown=%v %v", e.Category, e.Unknown, e)
	}
}

// A body may come as slowly as it likes, as long as something comes before Idle is over.
func TestIdle(t *testing.T) {
	for _, tt := range []struct {
		pauses []time.Duration
		want   string
	}{
		{[]time.Duration{0, 19 * time.Second, 19 * time.Second}, ""},
		{[]time.Duration{0, 21 * time.Second}, "nothing came for 20s after 4 bytes"},
		{[]time.Duration{21 * time.Second}, "nothing came for 20s after 0 bytes"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			from, to := io.Pipe()
			context.AfterFunc(ctx, func() { _ = to.CloseWithError(ctx.Err()) }) // as a connection does
			var server sync.WaitGroup
			server.Go(func() {
				for _, d := range tt.pauses {
					time.Sleep(d)
					_, _ = to.Write([]byte("half"))
				}
				_ = to.Close()
			})
			b := newBody(ctx, cancel, from, &Client{Silence: 20 * time.Second}, nil)
			_, err := io.ReadAll(b)
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("%v: %v, want %q", tt.pauses, err, tt.want)
			}
			_ = b.Close()
			server.Wait()
		})
	}
}

// A certificate that nobody vouches for and an address that is none do not mend themselves.
func TestMistakesAreFinal(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	srv.Config.ErrorLog = nil
	for _, url := range []string{srv.URL, "ftp://127.0.0.1/x", "http://", "http://user:pw@127.0.0.1/", "http://127.0.0.1:1/\x7f", "127.0.0.1:80"} {
		_, err := client().Do(context.Background(), post(url))
		if e := asError(t, err); e.Category != "config" || !e.Permanent || strings.Contains(e.Error(), "pw@") {
			t.Errorf("%q: %s permanent=%v %v", url, e.Category, e.Permanent, e)
		}
	}
}

// A GET follows redirections; secrets stay with the host they are for.
func TestRedirects(t *testing.T) {
	other := exchange.Serve(t, "", exchange.Response{Status: 200, RawBody: "there"})
	s := exchange.Serve(t, "", exchange.Response{Status: 302, Headers: map[string]string{"location": other.URL + "/x"}})
	r := post(s.URL)
	r.Method, r.Body = "GET", nil
	a, err := client().Do(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got := other.Requests(); a.Status != 200 || len(got) != 1 || got[0].Path != "/x" {
		t.Fatalf("%d after %v", a.Status, got)
	}
	if got := other.Requests()[0].Header; got.Get("X-Api-Key") != "" {
		t.Errorf("the secret went to another host: %v", got)
	}
	round := exchange.Serve(t, "", exchange.Response{Status: 302, Headers: map[string]string{"location": "/again"}})
	r.URL = round.URL
	if _, err = client().Do(context.Background(), r); asError(t, err).Category != "config" {
		t.Errorf("a round of redirections: %v", err)
	}
}
