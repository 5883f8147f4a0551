package httpc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/exchange"
)

func failure(t *testing.T, r exchange.Response) *nodes.Error {
	t.Helper()
	s := exchange.Serve(t, "", r)
	a, err := client().Do(context.Background(), post(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	return a.Failure(evidence.Case{From: evidence.Anthropic, Now: now, Zone: time.UTC, Tries: 1})
}

// How long a server asks to wait, header by header. R-2
func TestWait(t *testing.T) {
	h := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		h    http.Header
		want string
	}{
		{h("Retry-After", "7"), "7s"}, {h("Retry-After", " 7 "), "7s"}, {h("Retry-After", "1.5"), "1.5s"}, {h("Retry-After", "0"), "0s"},
		{h("Retry-After", "3600"), "1h0m0s"}, {h("Retry-After", "86400"), "24h0m0s"}, {h("Retry-After", "99999999999999"), "0s"},
		{h("Retry-After", "99999999999999999999999999"), "0s"}, {h("Retry-After", "-5"), "0s"}, {h("Retry-After", "1e3"), "0s"},
		{h("Retry-After", "NaN"), "0s"}, {h("Retry-After", "Inf"), "0s"}, {h("Retry-After", "0x10"), "0s"}, {h("Retry-After", "5, 9"), "9s"},
		{h("Retry-After", "30s"), "30s"}, {h("Retry-After", "1m30s"), "1m30s"}, {h("Retry-After", "1500ms"), "1.5s"}, {h("Retry-After", "-30s"), "0s"}, {h("Retry-After", "9999h"), "9999h0m0s"},
		{h("Retry-After", "soon"), "0s"}, {h("Retry-After", "1d"), "24h0m0s"}, {h("Retry-After", "9999d"), "0s"},
		{h("Anthropic-Ratelimit-Unified-Reset", "99999999999", "X-Ratelimit-Reset-Requests", "9s"), "9s"},
		{h("Retry-After", "5", "Retry-After", "9"), "9s"}, {h("Retry-After", ""), "0s"}, {h("Retry-After", "0.01"), "500ms"}, {h("Retry-After", "1,5"), "5s"},
		{h("Retry-After", fmt.Sprint(now.Add(time.Minute).Unix())), "1m0s"},
		{h("Retry-After", in(40*time.Second)), "40s"}, {h("Retry-After", in(-40*time.Second)), "0s"},
		{h("Retry-After", now.Add(40*time.Second).Format(time.RFC850)), "40s"}, {h("Retry-After", now.Add(40*time.Second).Format(time.ANSIC)), "40s"},
		{h("Retry-After", now.Add(40*time.Second).Format(time.RFC1123Z)), "40s"}, {h("Retry-After", "2026-03-10T12:00:40Z"), "40s"},
		{h("Retry-After", "Fri, 99 Foo 2026 99:99:99 GMT"), "0s"}, {h("Retry-After", "Wed, 10 Mar 2100 12:00:00 GMT"), "0s"},
		// the server's clock is two minutes ahead; far away clocks are not believed
		{h("Retry-After", in(150*time.Second), "Date", in(120*time.Second)), "30s"},
		{h("Retry-After", in(30*time.Second), "Date", in(100*24*time.Hour)), "30s"},
		{h("Retry-After-Ms", "1400.5", "Retry-After", "30"), "1.4005s"}, {h("Retry-After-Ms", "soon", "Retry-After", "3"), "3s"},
		{h("Retry-After-Ms", "-1", "Retry-After", "3"), "3s"}, {h("Retry-After-Ms", "250", "Retry-After", "1"), "500ms"},
		{h("Retry-After", "3", "X-Ratelimit-Reset", "60"), "3s"},
		// the limit that is used up counts, else the one that takes longest
		{h("X-Ratelimit-Reset-Tokens", "6m0s", "X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Remaining-Tokens", "5"), "1s"},
		{h("X-Ratelimit-Reset-Tokens", "6m0s", "X-Ratelimit-Reset-Requests", "1s"), "6m0s"},
		{h("X-Ratelimit-Reset-Requests", "1d2h"), "26h0m0s"}, {h("X-Ratelimit-Reset", "1773144060"), "1m0s"},
		{h("Anthropic-Ratelimit-Unified-5h-Reset", "1773144060", "Anthropic-Ratelimit-Unified-5h-Status", "rejected",
			"Anthropic-Ratelimit-Unified-7d-Reset", "1773500000", "Anthropic-Ratelimit-Unified-7d-Status", "allowed_warning"), "1m0s"},
		{h("Ratelimit", `"default";r=0;t=50`), "50s"}, {h("Ratelimit", "limit=10, remaining=0, reset=50"), "50s"}, {h("Ratelimit-Reset", "50"), "50s"},
		{h(), "0s"},
	}
	for _, tt := range tests {
		if got := Wait(429, tt.h, now); got.String() != tt.want {
			t.Errorf("%v: %v, want %s", tt.h, got, tt.want)
		}
	}
	for _, status := range []int{408, 409, 500, 502, 503, 504, 529} { // not only on 429 and 503
		if got := Wait(status, h("Retry-After", "7"), now); got != 7*time.Second {
			t.Errorf("%d: %v", status, got)
		}
	}
	if got := Wait(500, h("X-Ratelimit-Reset", "60"), now); got != 0 {
		t.Errorf("a limit that is not used up: %v", got)
	}
}

// Error objects in the shapes that are in use.
func TestTroubles(t *testing.T) {
	tests := []struct {
		status int
		body   string
		cat    string
		final  bool
		words  string
	}{
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"x"},"request_id":"req_1"}`, "transient", false, "HTTP 529 overloaded_error: x (request req_1)"},
		{500, `{"type":"error","error":{"type":"billing_error","message":"credit"}}`, "billing", false, "billing_error: credit"},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, "billing", false, "insufficient_quota: You"},
		{429, `{"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}`, "rate_limited", false, "requests rate_limit_exceeded: slow"},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`, "input_too_big", true, "context"},
		{400, `{"error":"bad request"}`, "protocol", true, "HTTP 400 bad request"},
		{404, `{"error":{"message":"The model x does not exist","code":"model_not_found"}}`, "config", false, "model_not_found"},
		{503, `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, "transient", false, "UNAVAILABLE: The model"},
		{401, `{"message":"No API key found in request","code":401}`, "auth", false, "No API key"},
		{422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, "protocol", true, "field required"},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, "billing", false, "credit balance"},
		{429, `{"error":{"type":"usage_limit_reached","message":"limit","resets_in_seconds":120}}`, "quota_wait", false, "usage_limit_reached"},
		{500, "upstream connect error", "transient", false, "upstream connect error"},
		{502, "", "transient", false, "HTTP 502 Bad Gateway, without a body"},
		{520, "<html><head><title>example.com | 520: Web server is returning an unknown error</title></head></html>", "transient", false, "520: Web server"},
		{401, "\x1b[31mno\x00", "auth", false, "no"},
	}
	for _, tt := range tests {
		e := failure(t, exchange.Response{Status: tt.status, RawBody: tt.body})
		if e.Category != tt.cat || e.Permanent != tt.final || !strings.Contains(e.Message, tt.words) {
			t.Errorf("%d %s:\n %s permanent=%v %q, want %s %v %q", tt.status, tt.body, e.Category, e.Permanent, e.Message, tt.cat, tt.final, tt.words)
		}
		if strings.ContainsAny(e.Message, "\x1b\x00\n") || len(e.Message) > 400 {
			t.Errorf("message %q", e.Message)
		}
	}
}

// Plan limits are told from throttling by their own headers; they wait and use no attempt.
func TestPlanLimit(t *testing.T) {
	e := failure(t, exchange.Response{Status: 429, Headers: map[string]string{
		"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1773144600",
	}, Body: json.RawMessage(`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}`)})
	if e.Category != "quota_wait" || !e.WaitUntil.Equal(now.Add(10*time.Minute)) {
		t.Errorf("%s until %v", e.Category, e.WaitUntil)
	}
	e = failure(t, exchange.Response{Status: 429, Headers: map[string]string{
		"anthropic-ratelimit-unified-status": "allowed", "anthropic-ratelimit-unified-reset": "1773144600", "retry-after": "5",
	}, Body: json.RawMessage(`{"type":"error","error":{"type":"rate_limit_error","message":"too many requests a minute"}}`)})
	if e.Category != "rate_limited" || e.RetryAfter != 5*time.Second {
		t.Errorf("%s after %v", e.Category, e.RetryAfter)
	}
}

// The server's word wins over its status, in both directions; no money stays no money.
func TestShouldRetry(t *testing.T) {
	for _, tt := range []struct {
		status   int
		word     string
		body     string
		category string
		final    bool
	}{
		{401, "true", `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, "transient", false},
		{403, "TRUE", `{"type":"error","error":{"type":"permission_error","message":"x"}}`, "transient", false},
		{401, "false", `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, "auth", false},
		{401, "", `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, "auth", false},
		{400, "true", `{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`, "transient", false},
		{500, "false", `{"type":"error","error":{"type":"api_error","message":"x"}}`, "protocol", true},
		{402, "true", `{"type":"error","error":{"type":"billing_error","message":"x"}}`, "billing", false},
	} {
		e := failure(t, exchange.Response{Status: tt.status, Headers: map[string]string{"x-should-retry": tt.word}, RawBody: tt.body})
		if e.Category != tt.category || e.Permanent != tt.final {
			t.Errorf("%d %q: %s permanent=%v, want %s %v", tt.status, tt.word, e.Category, e.Permanent, tt.category, tt.final)
		}
	}
}

func TestRedirectionIsNamed(t *testing.T) {
	for to, want := range map[string]string{
		"/x": "a redirection to /x is", "/x?key=1#f": "a redirection to /x is", "x/y": "a redirection to x/y is", "//other.example/x": "a redirection to //other.example/x is",
		"https://u:p@other.example/x?key=1": "a redirection to https://other.example/x is",
	} {
		e := failure(t, exchange.Response{Status: 307, Headers: map[string]string{"location": to}})
		if !strings.Contains(e.Message, want) {
			t.Errorf("%s: %q, want %q", to, e.Message, want)
		}
	}
}
