package httpc

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

func failure(t *testing.T, r exchange.Response) *nodes.Error {
	t.Helper()
	s := exchange.Serve(t, "", r)
	a, err := client().Do(context.Background(), post(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	return a.Failure(evidence.Case{From: evidence.Anthropic, Now: now, Tries: 1})
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
