package httpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

var (
	errRedirects = errors.New("more than 10 redirections")
	errPlain     = errors.New("a redirection from https to http")
	errIdle      = errors.New("no byte for too long")
)

// failure says what it means that there is no answer.
func (s *sending) failure(ctx context.Context, err error) *nodes.Error {
	reached := s.reached.Load()
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which the message has already
	}
	e := &nodes.Error{Category: "transient", Unknown: reached}
	where := s.request.Method + " " + evidence.WithoutQuery(s.request.URL)
	spent := time.Since(s.begin).Round(100 * time.Millisecond)
	switch {
	case ctx.Err() != nil:
		category, why := ended(ctx)
		e.Category, e.Message = category, where+": "+why
	case final(err):
		e.Category, e.Message, e.Permanent, e.Unknown = "config", where+": "+err.Error(), true, false
	case timedOut(err) && reached:
		e.Category, e.Message = "stalled", fmt.Sprintf("%s: no answer within %v", where, spent)
	case reached:
		e.Category = "answer_lost"
		e.Message = fmt.Sprintf("%s: the connection ended %v after the request was sent, without an answer: %v",
			where, spent, err)
		e.Diagnostics = "The server may have done, and charged for, what was asked. When the time is the same at each " +
			"failure, something between here and there (a proxy, a gateway) limits connections."
	default:
		e.Message = fmt.Sprintf("%s: not reached: %v", where, err)
	}
	return e
}

// ended is the category of an attempt whose context is over, and why it is.
func ended(ctx context.Context) (category, why string) {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return "stalled", "the time that an attempt may take was over"
	}
	return "killed", context.Cause(ctx).Error()
}

// final reports errors that come again each time: of the address and of certificates.
func final(err error) bool {
	var (
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		record  tls.RecordHeaderError
		addr    *net.AddrError
	)
	return errors.Is(err, errRedirects) || errors.Is(err, errPlain) ||
		errors.As(err, &cert) || errors.As(err, &unknown) || errors.As(err, &host) ||
		errors.As(err, &record) || errors.As(err, &addr)
}

func timedOut(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
