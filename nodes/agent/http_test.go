package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

func sse(lines ...string) exchange.Response {
	text := ""
	for _, l := range lines {
		text += "data: " + l + "\n\n"
	}
	return exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream; charset=utf-8"}, RawBody: text}
}

var (
	goodMessage = sse(
		`{"type":"message_start","message":{"model":"model-a-20260101","usage":{"input_tokens":100,"cache_read_input_tokens":900,"cache_creation_input_tokens":30,"output_tokens":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"fi"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ne"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":50}}`,
		`{"type":"message_stop"}`)
	goodChat = sse(`{"model":"model-b","choices":[{"index":0,"delta":{"content":"fine"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":900}}}`, `[DONE]`)
	goodResponse = sse(`{"type":"response.created","response":{"status":"in_progress"}}`, `{"type":"response.output_text.delta","delta":"fine"}`,
		`{"type":"response.completed","response":{"status":"completed","model":"model-b","error":null,"output":[{"type":"reasoning"},{"type":"message","status":"completed","content":[{"type":"output_text","text":"fi"},{"type":"output_text","text":"ne"}]}],"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":900},"output_tokens":50}}}`)
)

func askAPI(t *testing.T, with m, answer exchange.Response, change ...func(*nodes.Task, *nodetest.Host)) (*exchange.Server, *nodes.Result, *nodetest.Host, error) {
	t.Helper()
	s := exchange.Serve(t, "", answer)
	with["baseURL"] = s.URL + "/v1"
	if with["prompt"] == nil {
		with["prompt"] = m{"text": "/help me"}
	}
	task, host := nodetest.New(t, "agent", with)
	task.Timeout = 20 * time.Second
	for _, f := range change {
		f(task, host)
	}
	res, err := Kind.Run(context.Background(), task)
	return s, res, host, err
}

// What is sent, to whom, and what of the answer is kept and told. V-1
func TestAPIRequests(t *testing.T) {
	tests := []struct {
		name   string
		with   m
		answer exchange.Response
		path   string
		header map[string]string
		body   string
		usage  nodes.Usage
	}{
		{"anthropic", m{"provider": "anthropic", "model": "model-a", "system": m{"text": "Be brief."}, "temperature": 0.5}, goodMessage,
			"/v1/messages", map[string]string{"X-Api-Key": "key1", "Anthropic-Version": "2023-06-01"},
			`{"max_tokens":32000,"messages":[{"content":"/help me","role":"user"}],"model":"model-a","stream":true,"system":"Be brief.","temperature":0.5}`,
			nodes.Usage{Input: 100, CacheRead: 900, CacheWrite: 30, Output: 50}},
		{"openai", m{"provider": "openai", "model": "model-b", "system": m{"text": "Be brief."}, "maxOutputTokens": 5, "params": m{"stream_options": nil, "seed": 7}}, goodChat,
			"/v1/chat/completions", map[string]string{"Authorization": "Bearer key2"},
			`{"max_tokens":5,"messages":[{"content":"Be brief.","role":"system"},{"content":"/help me","role":"user"}],"model":"model-b","seed":7,"stream":true}`,
			nodes.Usage{Input: 100, CacheRead: 900, Output: 50}},
		{"responses", m{"provider": "openai", "api": "responses", "model": "model-b", "system": m{"text": "Be brief."}, "maxOutputTokens": 5}, goodResponse,
			"/v1/responses", map[string]string{"Authorization": "Bearer key2"},
			`{"input":"/help me","instructions":"Be brief.","max_output_tokens":5,"model":"model-b","store":false,"stream":true}`,
			nodes.Usage{Input: 100, CacheRead: 900, Output: 50}},
		// Q5: effort and thinking by each API's own names.
		{"anthropic thinks", m{"provider": "anthropic", "model": "model-a", "effort": "low", "thinking": 2048}, goodMessage, "/v1/messages", nil,
			`{"max_tokens":32000,"messages":[{"content":"/help me","role":"user"}],"model":"model-a","output_config":{"effort":"low"},"stream":true,"thinking":{"budget_tokens":2048,"type":"enabled"}}`,
			nodes.Usage{Input: 100, CacheRead: 900, CacheWrite: 30, Output: 50}},
		{"anthropic adapts", m{"provider": "anthropic", "model": "model-a", "thinking": "adaptive"}, goodMessage, "/v1/messages", nil,
			`{"max_tokens":32000,"messages":[{"content":"/help me","role":"user"}],"model":"model-a","stream":true,"thinking":{"type":"adaptive"}}`,
			nodes.Usage{Input: 100, CacheRead: 900, CacheWrite: 30, Output: 50}},
		{"openai effort", m{"provider": "openai", "model": "model-b", "effort": "high", "params": m{"stream_options": nil}}, goodChat, "/v1/chat/completions", nil,
			`{"messages":[{"content":"/help me","role":"user"}],"model":"model-b","reasoning_effort":"high","stream":true}`,
			nodes.Usage{Input: 100, CacheRead: 900, Output: 50}},
		{"responses effort", m{"provider": "openai", "api": "responses", "model": "model-b", "effort": "max"}, goodResponse, "/v1/responses", nil,
			`{"input":"/help me","model":"model-b","reasoning":{"effort":"max"},"store":false,"stream":true}`,
			nodes.Usage{Input: 100, CacheRead: 900, Output: 50}},
		{"named secrets", m{"provider": "openai", "model": "model-b", "secrets": m{"api-key": "azure", "OPENAI_API_KEY": "mine"}, "headers": m{"X-Team": "a"}, "idempotencyHeader": "Idempotency-Key"}, goodChat,
			"/v1/chat/completions", map[string]string{"Authorization": "Bearer m1", "Api-Key": "a1", "X-Team": "a"},
			`{"messages":[{"content":"/help me","role":"user"}],"model":"model-b","stream":true,"stream_options":{"include_usage":true}}`,
			nodes.Usage{Input: 100, CacheRead: 900, Output: 50}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, res, host, err := askAPI(t, tt.with, tt.answer, func(_ *nodes.Task, h *nodetest.Host) {
				h.Secrets = map[string]string{"ANTHROPIC_API_KEY": "key1", "OPENAI_API_KEY": "key2", "azure": "a1", "mine": "m1"}
			})
			if err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[0]
			if got.Path != tt.path || got.Method != "POST" || string(got.Body) != tt.body {
				t.Errorf("%s %s\n got %s\nwant %s", got.Method, got.Path, got.Body, tt.body)
			}
			for name, want := range tt.header {
				if got.Header.Get(name) != want {
					t.Errorf("header %s: %q, want %q", name, got.Header.Get(name), want)
				}
			}
			if key := got.Header.Get("Idempotency-Key"); (key != "") != (tt.with["idempotencyHeader"] != nil) {
				t.Errorf("key %q", key)
			}
			if res.Usage != tt.usage || res.CostUSD != nil || len(res.Warnings) > 0 {
				t.Errorf("usage %+v cost %v warnings %v", res.Usage, res.CostUSD, res.Warnings)
			}
			if host.Kept["raw-output.txt"] != "fine" || host.Kept["prompt.md"] != "/help me" || host.Kept[nodes.SavedName] == "" || !strings.Contains(host.Kept["transcript.txt"], "data: ") {
				t.Errorf("kept %v", host.Kept)
			}
			for name, text := range host.Kept {
				if strings.Contains(text, "key1") || strings.Contains(text, "key2") {
					t.Errorf("%s holds a key", name)
				}
			}
			if host.Types() != "LLM_CALL_STARTED LLM_CALL_FINISHED" || host.Facts[0]["provider_base_url"] != s.URL+"/v1" {
				t.Errorf("facts %v", host.Facts)
			}
			if host.Beats == 0 {
				t.Error("no sign of life")
			}
		})
	}
}

// M3: what is written to be kept for an hour is counted apart; OpenAI's newest models count writes too.
func TestCacheWrites(t *testing.T) {
	const end = `"content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn"`
	for _, tt := range []struct {
		provider, answer string
		want             nodes.Usage
	}{
		{"anthropic", `{` + end + `,"usage":{"input_tokens":5,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":2}}`,
			nodes.Usage{Input: 5, CacheWrite: 30, CacheWriteHour: 20, Output: 2}},
		{"anthropic", `{` + end + `,"usage":{"input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":2}}`,
			nodes.Usage{Input: 5, CacheWrite: 30, CacheWriteHour: 20, Output: 2}},
		{"anthropic", `{` + end + `,"usage":{"input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":-20},"output_tokens":2}}`, nodes.Usage{}},
		{"openai", `{"choices":[{"message":{"content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}}`,
			nodes.Usage{Input: 10, CacheRead: 60, CacheWrite: 30, Output: 2}},
	} {
		_, res, _, err := askAPI(t, m{"provider": tt.provider, "model": "model-a"}, exchange.Response{Status: 200, Body: json.RawMessage(tt.answer)})
		if err != nil || res.Usage != tt.want {
			t.Errorf("%s: %+v %v, want %+v", tt.answer, res.Usage, err, tt.want)
		}
	}
}

// Q7: the API's path comes behind that of the base address and before its query.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ provider, api, base, want string }{
		{"anthropic", "", "", "https://api.anthropic.com/v1/messages"},
		{"anthropic", "", "https://x.test/", "https://x.test/v1/messages"},
		{"anthropic", "", "https://x.test/anthropic/v1/", "https://x.test/anthropic/v1/messages"},
		{"anthropic", "", "https://x.test/v1?key=a%20b", "https://x.test/v1/messages?key=a%20b"},
		{"anthropic", "", "https://x.test/v1/messages?beta=true", "https://x.test/v1/messages?beta=true"},
		{"openai", "chat", "", "https://api.openai.com/v1/chat/completions"},
		{"openai", "chat", "https://a.openai.azure.com/openai/deployments/gpt?api-version=2026-01-01", "https://a.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2026-01-01"},
		{"openai", "chat", "https://x.test/openai/deployments/a%2Fb/chat/completions?api-version=1", "https://x.test/openai/deployments/a%2Fb/chat/completions?api-version=1"},
		{"openai", "responses", "https://x.test/v1", "https://x.test/v1/responses"},
	} {
		s := &settings{Provider: tt.provider, API: tt.api, BaseURL: tt.base}
		p, err := providerOf(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.(httpAPI).url(&question{set: s})
		if err != nil || got != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.base, got, err, tt.want)
		}
	}
}

// A repeat of an attempt whose end was never recorded has the same key, another attempt another one.
func TestIdempotencyKey(t *testing.T) {
	key := func(failures, attempt int, prompt string) string {
		s, _, _, err := askAPI(t, m{"provider": "openai", "model": "model-b", "idempotencyHeader": "Idempotency-Key", "prompt": m{"text": prompt}}, goodChat,
			func(task *nodes.Task, _ *nodetest.Host) { task.Failures, task.Attempt = failures, attempt })
		if err != nil {
			t.Fatal(err)
		}
		return s.Requests()[0].Header.Get("Idempotency-Key")
	}
	first := key(0, 1, "a")
	if first != key(0, 2, "a") {
		t.Error("a lost attempt is asked again under another key")
	}
	if first == key(1, 2, "a") || first == key(0, 1, "b") {
		t.Error("other questions have the same key")
	}
}

// Answers in the shapes that compatible servers send, good and bad.
func TestAPIAnswers(t *testing.T) {
	with := func(provider string) m {
		w := m{"provider": provider, "model": "model-b"}
		if provider == "responses" {
			w["provider"], w["api"] = "openai", "responses"
		}
		return w
	}
	whole := func(body string) exchange.Response {
		return exchange.Response{Status: 200, Body: json.RawMessage(body)}
	}
	head := `{"type":"message_start","message":{"model":"model-b","usage":{"input_tokens":10,"output_tokens":1}}}`
	tests := []struct {
		name, provider string
		answer         exchange.Response
		category       string
		words          string // in the message, or in a warning
		text           string
	}{
		{"keep-alive blanks", "openai", exchange.Response{Status: 200, RawBody: "\n\n \n" + `{"choices":[{"message":{"content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`}, "", "", "fine"},
		{"no content type", "openai", exchange.Response{Status: 200, RawBody: goodChat.RawBody}, "", "", "fine"},
		{"comments first", "openai", exchange.Response{Status: 200, RawBody: ": PROCESSING\n\n" + goodChat.RawBody}, "", "", "fine"},
		{"drip", "openai", exchange.Response{Status: 200, Headers: goodChat.Headers, RawBody: goodChat.RawBody, Drip: &exchange.Drip{Bytes: 13, EveryMS: 1}}, "", "", "fine"},
		{"second choice", "openai", sse(`{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "[DONE]"), "", "", "fine"},
		{"content in parts", "openai", whole(`{"choices":[{"message":{"content":[{"type":"text","text":"fi"},{"type":"text","text":"ne"}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`), "", "", "fine"},
		{"refusal", "openai", whole(`{"choices":[{"message":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}]}`), "refused", "I will not.", ""},
		{"filter", "openai", sse(`{"choices":[{"index":0,"delta":{"content":"fi"},"finish_reason":"content_filter"}]}`), "refused", "filter", "fi"},
		{"tool", "openai", whole(`{"choices":[{"message":{"content":"","tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}]}`), "protocol", "tool_calls", ""},
		{"no choices", "openai", whole(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0}}`), "no_artifact", "empty", ""},
		{"null content", "openai", whole(`{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}`), "no_artifact", "empty", ""},
		{"error of status 200", "openai", whole(`{"error":{"message":"busy","code":503}}`), "transient", "busy", ""},
		{"error and choices", "openai", sse(`{"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}`, `{"error":{"code":502,"message":"upstream"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), "transient", "upstream", "half"},
		{"error text", "openai", sse(`{"error":"insufficient_quota"}`), "billing", "insufficient_quota", ""},
		{"another object", "openai", whole(`{"status":"ok"}`), "protocol", "application/json", ""},
		{"text", "openai", exchange.Response{Status: 200, RawBody: "it works"}, "protocol", "it works", ""},
		{"two objects in a line", "openai", sse(`{"choices":[{"index":0,"delta":{"content":"a"}}]}{"choices":[]}`), "transient", "broken", ""},
		{"signs of life as data", "openai", sse(": keepalive", `{"choices":[{"index":0,"delta":{"content":"fi"}}]}`, "ping", ": OPENROUTER PROCESSING", `{"choices":[{"index":0,"delta":{"content":"ne"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "[DONE]"), "", "3 lines of data that are no JSON", "fine"}, // X1, a-api/18
		{"signs of life alone", "openai", sse("ping", "ping"), "protocol", "no event", ""},
		{"cut at its begin", "openai", sse(`"delta":{"content":"a"}}]}`), "transient", "broken", ""}, // a-api/19
		{"a cut list", "openai", sse(`["a",`), "transient", "broken", ""},
		{"cut in a line", "openai", exchange.Response{Status: 200, Headers: goodChat.Headers, RawBody: `data: {"choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"del`}, "transient", "in the middle", "half"},
		{"no blank line at the end", "openai", exchange.Response{Status: 200, Headers: goodChat.Headers, RawBody: strings.TrimRight(goodChat.RawBody, "\n")}, "", "", "fine"},
		{"usage with more cached", "openai", whole(`{"choices":[{"message":{"content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}`), "", "more cached tokens", "fine"},
		{"other model", "openai", whole(`{"model":"small-c","choices":[{"message":{"content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`), "", "small-c answered", "fine"},
		{"unknown finish", "openai", whole(`{"choices":[{"message":{"content":"fine"},"finish_reason":"odd"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`), "truncated", "odd", "fine"},
		{"ping only, then cut", "anthropic", sse(`{"type":"ping"}`), "transient", "in the middle", ""},
		{"error behind the answer", "anthropic", sse(head, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"fine"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"error","error":{"type":"api_error","message":"x"}}`), "", "behind the answer", "fine"},
		{"authentication error", "anthropic", sse(head, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`), "auth", "authentication_error: x", ""},
		{"prompt too long", "anthropic", whole(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3 > 2"}}`), "input_too_big", "too long", ""},
		{"two text blocks", "anthropic", whole(`{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"fi"},{"type":"text","text":"ne"}],"stop_reason":"end_turn","model":"model-b","usage":{"input_tokens":1,"output_tokens":1}}`), "", "", "fine"},
		{"incomplete without a reason", "responses", whole(`{"status":"incomplete","output":[{"type":"message","content":[{"type":"output_text","text":"ha"}]}]}`), "truncated", "incomplete", "ha"},
		{"incomplete item", "responses", whole(`{"status":"completed","output":[{"type":"message","status":"incomplete","content":[{"type":"output_text","text":"ha"}]}]}`), "truncated", "incomplete", "ha"},
		{"failed event", "responses", sse(`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}}`), "rate_limited", "slow", ""},
		{"error event", "responses", sse(`{"type":"error","code":"server_error","message":"x","sequence_number":1}`), "transient", "server_error: x", ""},
		{"refusing part", "responses", whole(`{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}`), "refused", "no", ""},
		{"never completed", "responses", sse(`{"type":"response.output_text.delta","delta":"ha"}`), "transient", "in the middle", "ha"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, res, host, err := askAPI(t, with(tt.provider), tt.answer)
			said := fmt.Sprint(err, res.Warnings)
			if nodetest.Category(err) != tt.category || !strings.Contains(said, tt.words) {
				t.Errorf("%q: %s, want %q %q", nodetest.Category(err), said, tt.category, tt.words)
			}
			if tt.category == "" && tt.words == "" && len(res.Warnings) > 0 {
				t.Errorf("warnings %v", res.Warnings)
			}
			if host.Kept["raw-output.txt"] != tt.text {
				t.Errorf("kept %q, want %q", host.Kept["raw-output.txt"], tt.text)
			}
		})
	}
}

// What an answer cost that broke off is more than nothing, and what was never asked costs nothing. R-7
func TestCostOfFailures(t *testing.T) {
	begun := sse(`{"type":"message_start","message":{"model":"model-a","usage":{"input_tokens":10,"output_tokens":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+strings.Repeat("word ", 40)+`"}}`)
	_, res, _, _ := askAPI(t, m{"provider": "anthropic", "model": "model-a"}, begun)
	if want := (nodes.Usage{Input: 10, Output: 50}); res.Usage != want || res.CostUSD != nil {
		t.Errorf("usage %+v cost %v, want %+v", res.Usage, res.CostUSD, want)
	}
	for status, free := range map[int]bool{429: true, 529: true, 500: true, 401: true, 504: false, 524: false} {
		_, res, host, err := askAPI(t, m{"provider": "anthropic", "model": "model-a"}, exchange.Response{Status: status})
		if (res.CostUSD != nil && *res.CostUSD == 0) != free || err == nil {
			t.Errorf("%d: cost %v", status, res.CostUSD)
		}
		if got := host.Facts[1]["http_status"]; got != float64(status) {
			t.Errorf("recorded status %v, want %d", got, status)
		}
	}
	// M2: an error object of status 200 is a refusal too, where nothing came before it.
	for _, tt := range []struct {
		provider string
		answer   exchange.Response
		free     bool
	}{
		{"anthropic", sse(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), true},
		{"openai", exchange.Response{Status: 200, Body: json.RawMessage(`{"error":{"code":"insufficient_quota","message":"x"}}`)}, true},
		{"openai", exchange.Response{Status: 200, Body: json.RawMessage(`{"error":{"code":"server_error","message":"x"}}`)}, true},
		{"openai", exchange.Response{Status: 200, Body: json.RawMessage(`{"error":{"type":"timeout_error","message":"x"}}`)}, false},
		{"anthropic", sse(`{"type":"message_start","message":{"usage":{"input_tokens":10}}}`, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), false},
		{"openai", sse(`{"choices":[{"index":0,"delta":{"content":"half"}}]}`, `{"error":{"code":429,"message":"x"}}`), false},
		{"openai", sse(`{"choices":[{"index":0,"delta":{"content":"half"}}]}`), false},
	} {
		_, res, _, err := askAPI(t, m{"provider": tt.provider, "model": "model-a"}, tt.answer)
		if (res.CostUSD != nil && *res.CostUSD == 0) != tt.free || err == nil {
			t.Errorf("%s: cost %v, error %v", tt.answer.RawBody, res.CostUSD, err)
		}
	}
	_, res, _, err := askAPI(t, m{"provider": "anthropic", "model": "model-a"}, exchange.Response{End: "drop-after-request"})
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "answer_lost" || !e.Unknown || res.CostUSD != nil {
		t.Errorf("lost: %v, cost %v", err, res.CostUSD)
	}
}

// Mistakes that a plan shows, and those that only a run can.
func TestAPISettings(t *testing.T) {
	for _, tt := range []struct {
		with m
		want []string
	}{
		{m{"provider": "anthropic", "model": "x", "prompt": m{"text": "p"}}, nil},
		{m{"provider": "anthropic", "prompt": m{"text": "p"}}, []string{"model"}},
		{m{"provider": "openai", "model": "x", "prompt": m{"text": "p"}, "baseURL": "localhost:1"}, []string{"baseURL"}},
		{m{"provider": "openai", "model": "x", "prompt": m{"text": "p"}, "baseURL": "${params.url}"}, nil},
		{m{"provider": "openai", "model": "x", "prompt": m{"text": "p"}, "tools": []string{"Read"}, "report": "r.md"}, []string{"tools"}},
	} {
		raw, _ := json.Marshal(tt.with)
		tr, err := Kind.Describe(raw)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range tr.Problems {
			got = append(got, p.Path)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: problems %v, want %v", raw, tr.Problems, tt.want)
		}
		if tt.with["provider"] == "anthropic" && tr.Prompt.MaxOutput != messagesMost {
			t.Errorf("the plan takes the answer to have %d tokens at most", tr.Prompt.MaxOutput)
		}
	}
	task, _ := nodetest.New(t, "agent", m{"provider": "anthropic", "model": "x", "prompt": m{"text": "p"}})
	if _, err := (Kind).Run(context.Background(), task); nodetest.Category(err) != "config" || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
}
