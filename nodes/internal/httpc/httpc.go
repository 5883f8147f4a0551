// Package httpc is the one HTTP client of the kinds: it sends a request and says what came back,
// as a failure in the words of the category table where it is one.
//
// It does not retry answers: attempts belong to the machine. A request that may have cost
// something is never sent a second time.
package httpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"dagrun.dev/nodes"
)

// A Client sends requests. The zero value is ready for use; it may be used from any goroutine.
type Client struct {
	// Silence is the longest wait for the beginning of an answer, from when the request is sent, and then for the next
	// byte of it; 0 = 15 minutes, then 5. There is no limit on the whole: that is ctx's.
	Silence time.Duration
	// MostBody is how many bytes of a body are read; 0 = 256 MB.
	MostBody int64
	// Resend is how often a request is sent again of which it is certain that it reached nobody, or
	// which is Repeatable and got no answer. Waits between are a second or two.
	Resend int

	pause time.Duration // before the first of them; 0 = half a second
}

// A Request is what to send. It is not changed.
type Request struct {
	Method, URL string
	Header      http.Header
	// Secrets are names of headers that are not handed on to another host.
	Secrets []string
	Body    []byte
	// Repeatable says that sending it twice does what sending it once does: a GET, or a key
	// that the server knows repeats by.
	Repeatable bool
	// Beat is called for every piece of the answer; nil = nobody listens.
	Beat func()
}

// Do sends a request and returns as soon as the head of the answer is there, whatever its
// status. The caller closes the answer. The error is a *nodes.Error:
//
//	config       the address is none, or whoever answers there cannot prove to be it
//	transient    nothing reached the server
//	answer_lost  the request was sent whole, and the connection ended without an answer
//	stalled      no answer within Head, or ctx's time was over
//	killed       ctx was cancelled
//
// Error.Unknown is set when the server may have done what was asked. Where it is not, nothing
// was spent.
func (c *Client) Do(ctx context.Context, r *Request) (*Answer, error) {
	if err := CheckURL(r.URL); err != nil {
		return nil, nodes.Permanent(&nodes.Error{Category: "config", Message: err.Error()})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &sending{client: c, request: r}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: s.wrote})
	req, err := retryablehttp.NewRequestWithContext(traced, r.Method, r.URL, r.Body)
	if err != nil {
		cancel(nil)
		return nil, nodes.Permanent(&nodes.Error{Category: "config", Message: "the request cannot be made: " + err.Error()})
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "dagrun")
	}
	req.GetBody = nil // net/http would send it again by itself
	resp, err := s.retrying().Do(req)
	if err != nil {
		failure := s.failure(ctx, err)
		cancel(nil)
		return nil, failure
	}
	return &Answer{
		Status: resp.StatusCode, Header: resp.Header,
		body: newBody(ctx, cancel, unpacked(r, resp), c, r.Beat),
	}, nil
}

// CheckURL reports what is wrong with the address of a server.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("not an address: " + strings.TrimPrefix(err.Error(), "parse "))
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("want an address that begins with https:// or http://, not %q", text)
	case u.User != nil:
		return errors.New("an address must not hold a user name or password; name a secret instead")
	}
	return nil
}

// transport opens a connection for each request. A kept one may be dead by the time it is used again,
// and net/http would then send the request a second time when it carries a key for repeats.
func (c *Client) transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment, // never for loopback
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: cmp.Or(c.Silence, 15*time.Minute),
		ForceAttemptHTTP2:     true,
		DisableKeepAlives:     true,
		DisableCompression:    true, // a compressed stream arrives in lumps
	}
}

// A sending is one call of Do.
type sending struct {
	client  *Client
	request *Request
	begin   time.Time   // of the last try
	reached atomic.Bool // the last try: the request was handed over whole
}

// retrying is where the retry library is told what it may do.
func (s *sending) retrying() *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: s.client.transport(), CheckRedirect: s.redirect},
		RetryMax:     s.client.Resend,
		RetryWaitMin: cmp.Or(s.client.pause, 500*time.Millisecond),
		RetryWaitMax: 2 * time.Second,
		CheckRetry:   s.again,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		RequestLogHook: func(retryablehttp.Logger, *http.Request, int) {
			s.reached.Store(false)
			s.begin = time.Now()
		},
	}
}

// again decides whether the request is sent once more. An answer is an answer, whatever its status.
func (s *sending) again(ctx context.Context, _ *http.Response, err error) (bool, error) {
	if err == nil || ctx.Err() != nil || final(err) {
		return false, nil
	}
	return !s.reached.Load() || s.request.Repeatable && !timedOut(err), nil
}

func backoff(least, most time.Duration, try int, _ *http.Response) time.Duration {
	return min(least<<min(try, 10), most)
}

func (s *sending) wrote(info httptrace.WroteRequestInfo) {
	if info.Err == nil {
		s.reached.Store(true)
	}
}

// redirect follows a few redirections of requests without a body. What has a body would
// lose it or be sent twice.
func (s *sending) redirect(req *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	switch {
	case via[0].Method != http.MethodGet && via[0].Method != http.MethodHead:
		return http.ErrUseLastResponse
	case len(via) >= 10:
		return errRedirects
	case last.URL.Scheme == "https" && req.URL.Scheme != "https":
		return errPlain
	}
	if !strings.EqualFold(req.URL.Host, via[0].URL.Host) {
		for _, name := range s.request.Secrets {
			req.Header.Del(name)
		}
	}
	return nil
}
