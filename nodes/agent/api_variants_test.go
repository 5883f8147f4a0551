package agent_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/nodes"
)

// Further shapes of the failures in testdata/api: error objects and limits as the vendors, and servers in
// front of them, tell them, streams that end in every way, and usage that is none.
func TestAPIVariants(t *testing.T) {
	categories := table(t)
	q := func(s string) string { // texts of a page and of half of one inside JSON
		whole, _ := json.Marshal(page)
		part, _ := json.Marshal(half)
		return strings.NewReplacer("@P", string(whole), "@H", string(part)).Replace(s)
	}
	start := `data: {"type":"message_start","message":{"model":"model-a","usage":{"input_tokens":10,"output_tokens":1}}}` + "\n\n"
	text := q(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":@P}}` + "\n\n")
	htext := q(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":@H}}` + "\n\n")
	stop := `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50}}` + "\n\n"
	end := "data: {\"type\":\"message_stop\"}\n\n"
	overl := `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
	sse := map[string]string{"content-type": "text/event-stream"}
	A, C, R := "anthropic-messages", "openai-chat", "openai-responses"
	ct := q(`data: {"model":"model-b","choices":[{"index":0,"delta":{"content":@P}}]}` + "\n\n")
	cstop := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	cusage := `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":50}}` + "\n\n"
	tests := []struct {
		name, want, proto string
		r                 exchange.Response
	}{
		{"529 mid-stream", "transient retry 10+18", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + htext + overl}},
		{"529 after whole text before stop", "transient retry 10+29", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + overl}},
		{"529 after stop reason", "ok_warn 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + stop + overl}},
		{"error event not JSON", "transient retry 10+18", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + htext + "event: error\ndata: upstream connect error\n\n"}},
		{"error event string", "transient retry 31.166s 10+18", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + htext + "event: error\ndata: {\"error\":\"rate limit exceeded, retry after 30 seconds\"}\n\n"}},
		{"rate limit mid-stream with plan words", "rate_limited retry 10+1", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This request would exceed your account's rate limit. Please try again later.\"}}\n\n"}},
		{"billing mid-stream", "billing stop 10+1", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"x\"}}\n\n"}},
		{"usage negative", "ok_warn", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + strings.Replace(stop, "50", "-50", 1) + end}},
		{"usage float", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + strings.Replace(stop, "50", "50.0", 1) + end}},
		{"usage text", "ok_warn", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + strings.Replace(stop, "50", "\"many\"", 1) + end}},
		{"usage missing", "ok_warn", A, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"message_start","message":{"model":"model-a"}}` + "\n\n" + text + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + end}},
		{"CR only", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: strings.ReplaceAll(start+text+stop+end, "\n", "\r")}},
		{"CRLF, BOM, dripped by bytes", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: "\xef\xbb\xbf" + strings.ReplaceAll(start+text+stop+end, "\n", "\r\n"), Drip: &exchange.Drip{Bytes: 3}}},
		{"data without blank", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: strings.ReplaceAll(start+text+stop+end, "data: ", "data:")}},
		{"content type missing", "ok 10+50", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": ""}, RawBody: start + text + stop + end}},
		{"content type text/plain", "ok 10+50", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/plain"}, RawBody: start + text + stop + end}},
		{"comments only", "protocol retry", A, exchange.Response{Status: 200, Headers: sse, RawBody: ": ping\n\n: ping\n\n"}},
		{"huge text", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + fmt.Sprintf(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`+"\n\n", strings.Repeat("x", 3<<20)) + text + stop + end}},
		{"cut in utf-8", "transient retry 10+1", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"gr\xc3"}},
		{"200 JSON error", "transient retry free", A, exchange.Response{Status: 200, Body: json.RawMessage(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)}},
		{"200 null", "protocol retry", A, exchange.Response{Status: 200, Body: json.RawMessage(`null`)}},
		{"200 {}", "protocol retry", A, exchange.Response{Status: 200, Body: json.RawMessage(`{}`)}},
		{"200 []", "protocol retry", A, exchange.Response{Status: 200, Body: json.RawMessage(`[]`)}},
		{"thinking only", "no_artifact retry 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + `data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}` + "\n\n" + stop + end}},
		{"error told as text", "no_artifact retry 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"API Error: 529 Overloaded"}}` + "\n\n" + stop + end}},
		{"chat 200 error object", "rate_limited retry free", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x"}}}`)}},
		{"chat error chunk", "transient retry", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + `data: {"error":{"code":502,"message":"Upstream error"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n"}},
		{"chat usage null in chunks", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: strings.Replace(ct, `"choices"`, `"usage":null,"choices"`, 1) + cstop + cusage + "data: [DONE]\n\n"}},
		{"chat no DONE", "ok_warn 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cstop + cusage}},
		{"chat usage negative", "ok_warn", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cstop + strings.Replace(cusage, "50", "-1", 1) + "data: [DONE]\n\n"}},
		{"chat empty choices whole", "no_artifact retry 1+0", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"choices":[],"usage":{"prompt_tokens":1}}`)}},
		{"chat content null", "no_artifact retry", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}`)}},
		{"chat finish MAX_TOKENS", "truncated fail", C, exchange.Response{Status: 200, Body: json.RawMessage(q(`{"choices":[{"message":{"content":@H},"finish_reason":"MAX_TOKENS"}]}`))}},
		{"chat finish STOP upper", "ok_warn", C, exchange.Response{Status: 200, Body: json.RawMessage(q(`{"choices":[{"message":{"content":@P},"finish_reason":"STOP"}]}`))}},
		{"chat finish SAFETY", "refused fail", C, exchange.Response{Status: 200, Body: json.RawMessage(q(`{"choices":[{"message":{"content":""},"finish_reason":"SAFETY"}]}`))}},
		{"chat finish null whole", "ok_warn", C, exchange.Response{Status: 200, Body: json.RawMessage(q(`{"choices":[{"message":{"content":@P},"finish_reason":null}]}`))}},
		{"chat reasoning only length", "truncated fail 1+4096", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"choices":[{"message":{"content":"","reasoning_content":"hm"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":4096}}`)}},
		{"responses failed rate limit", "rate_limited retry 11.484s free", R, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Rate limit reached for m on tokens per min (TPM). Please try again in 11.054s."}}}` + "\n\n"}},
		{"responses error event top", "transient retry free", R, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"error","code":"server_error","message":"The server had an error","param":null}` + "\n\n"}},
		{"responses failed quota", "billing stop free", R, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}}` + "\n\n"}},
		{"responses context", "input_too_big fail free", R, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}` + "\n\n"}},
		{"responses cut", "transient retry", R, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"type":"response.output_text.delta","delta":@P}` + "\n\n")}},
		{"204", "protocol retry", A, exchange.Response{Status: 204}},
		{"206", "protocol retry", A, exchange.Response{Status: 206, Body: json.RawMessage(`{}`)}},
		{"302", "config fail free", A, exchange.Response{Status: 302, Headers: map[string]string{"location": "https://login.example/"}}},
		{"407", "config stop free", A, exchange.Response{Status: 407}},
		{"418", "protocol fail free", A, exchange.Response{Status: 418, Body: json.RawMessage(`{"error":{"message":"x"}}`)}},
		{"421", "protocol fail free", A, exchange.Response{Status: 421}},
		{"425", "transient retry free", A, exchange.Response{Status: 425}},
		{"451", "refused fail free", A, exchange.Response{Status: 451}},
		{"501", "config fail free", A, exchange.Response{Status: 501}},
		{"505", "transient retry free", A, exchange.Response{Status: 505}},
		{"511 html", "transient retry free", A, exchange.Response{Status: 511, Headers: map[string]string{"content-type": "text/html"}, RawBody: "<html><title>Network Authentication Required</title></html>"}},
		{"522", "transient retry free", A, exchange.Response{Status: 522, RawBody: "error code: 522"}},
		{"524", "transient retry", A, exchange.Response{Status: 524, RawBody: "error code: 524"}},
		{"529 html", "transient retry free", A, exchange.Response{Status: 529, Headers: map[string]string{"content-type": "text/html"}, RawBody: "<html></html>"}},
		{"530", "transient retry free", A, exchange.Response{Status: 530, RawBody: "error code: 1033"}},
		{"599", "transient retry free", A, exchange.Response{Status: 599}},
		{"400 invalid key google", "auth stop free", C, exchange.Response{Status: 400, Body: json.RawMessage(`[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`)}},
		{"429 google minute", "rate_limited retry 45.191s free", C, exchange.Response{Status: 429, Body: json.RawMessage(`[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\nPlease retry in 43.5s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"43s"}]}}]`)}},
		{"429 google day", "quota_wait wait 1m0s free", C, exchange.Response{Status: 429, Body: json.RawMessage(`[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}]`)}},
		{"400 bedrock throttling", "protocol fail free", A, exchange.Response{Status: 400, Headers: map[string]string{"x-amzn-errortype": "ThrottlingException"}, Body: json.RawMessage(`{"message":"Too many requests, please wait before trying again."}`)}},
		{"404 deployment azure", "config stop free", C, exchange.Response{Status: 404, Body: json.RawMessage(`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`)}},
		{"400 content filter azure", "refused fail free", C, exchange.Response{Status: 400, Body: json.RawMessage(`{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400}}`)}},
		{"403 region", "auth stop free", C, exchange.Response{Status: 403, Body: json.RawMessage(`{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}`)}},
		{"503 retry-after date past", "transient retry free", A, exchange.Response{Status: 503, Headers: map[string]string{"retry-after": "Tue, 10 Mar 2026 11:00:00 GMT"}}},
		{"503 retry-after date", "transient retry 20.778s free", A, exchange.Response{Status: 503, Headers: map[string]string{"retry-after": "Tue, 10 Mar 2026 12:00:20 GMT"}}},
		{"503 retry-after huge", "transient wait 8760h0m0s free", A, exchange.Response{Status: 503, Headers: map[string]string{"retry-after": "31536000"}}},
		{"content-length longer", "ok_warn", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json", "content-length": "5000"}, RawBody: q(`{"content":[{"type":"text","text":@P}],"stop_reason":"end_turn"}`)}},
		{"400 too long", "input_too_big fail free", A, exchange.Response{Status: 400, Body: json.RawMessage(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}`)}},
		{"400 max_tokens + input", "input_too_big fail free", A, exchange.Response{Status: 400, Body: json.RawMessage(`{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 32000 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`)}},
		{"400 max_tokens too large", "config stop free", A, exchange.Response{Status: 400, Body: json.RawMessage(`{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3"}}`)}},
		{"null data", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + "event: ping\ndata: null\n\n" + text + stop + end}},
		{"data that is no object", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + "data: []\n\ndata: \"x\"\n\ndata: 5\n\n" + text + stop + end}},
		{"usage in message_start only", "ok_warn 10+29", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + end}},
		{"usage null at the end", "ok_warn 10+29", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}` + "\n\n" + end}},
		{"message_stop twice", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + stop + end + end}},
		{"message_start twice", "ok 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + start + text + stop + end}},
		{"a second message behind half of the first", "ok_warn 20+68", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + htext + start + text + stop + end}},
		{"half a character", "ok_warn 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}` + "\n\n" + stop + end}},
		{"bad UTF-8", "ok_warn 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xff\"}}\n\n" + stop + end}},
		{"usage field twice", "ok_warn 10+60", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + text + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50,"output_tokens":60}}` + "\n\n" + end}},
		{"usage huge", "ok_warn 9007199254740993+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: strings.Replace(start, ":10,", ":9007199254740993,", 1) + text + stop + end}},
		{"max_tokens without text", "truncated fail 10+50", A, exchange.Response{Status: 200, Headers: sse, RawBody: start + strings.Replace(stop, "end_turn", "max_tokens", 1) + end}},
		{"id and retry fields first", "ok 10+50", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": ""}, RawBody: "id: 1\nretry: 3000\n\n" + start + text + stop + end}},
		{"document and junk behind", "transient retry", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json"}, RawBody: q(`{"content":[{"type":"text","text":@P}],"stop_reason":"end_turn"}<!-- served by x -->`)}},
		{"document twice", "transient retry", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json"}, RawBody: q(`{"content":[{"type":"text","text":@P}],"stop_reason":"end_turn"}` + "\n" + `{"content":[{"type":"text","text":@P}],"stop_reason":"end_turn"}`)}},
		{"document, bad UTF-8", "ok_warn 1+2", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json"}, RawBody: q("{\"content\":[{\"type\":\"text\",\"text\":@P},{\"type\":\"text\",\"text\":\"\xff\"}],\"usage\":{\"input_tokens\":1,\"output_tokens\":2},\"stop_reason\":\"end_turn\"}")}},
		{"heartbeat blanks, then a document", "ok_warn", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json"}, RawBody: "\n\n   \n" + q(`{"content":[{"type":"text","text":@P}],"stop_reason":"end_turn"}`)}},
		{"compressed garbage", "protocol retry", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json", "content-encoding": "gzip"}, RawBody: "\x1f\x8b\x08\x00\x00\x00garbage\x1b[31m"}},
		{"compressed garbage unsaid", "protocol retry", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json"}, RawBody: "\x1f\x8b\x08\x00\x00\x00garbage\x1b[31m"}},
		{"compressed answer", "ok 10+50", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream", "content-encoding": "gzip"}, RawBody: gz(start + text + stop + end)}},
		{"compressed error", "rate_limited retry free", A, exchange.Response{Status: 429, Headers: map[string]string{"content-type": "application/json", "content-encoding": "gzip"}, RawBody: gz(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`)}},
		{"compressed billing error", "billing stop free", A, exchange.Response{Status: 400, Headers: map[string]string{"content-type": "application/json", "content-encoding": "gzip"}, RawBody: gz(`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`)}},
		{"brotli", "protocol retry", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json", "content-encoding": "br"}, RawBody: "\x0b\x02\x80hello\x03"}},
		{"chat finish empty, then stop", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: strings.Replace(ct, `}}]`, `},"finish_reason":""}]`, 1) + cstop + cusage + "data: [DONE]\n\n"}},
		{"chat finish empty, then cut", "transient retry", C, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"choices":[{"index":0,"delta":{"content":@H},"finish_reason":""}]}` + "\n\n")}},
		{"chat finish empty, page whole, no end", "transient retry", C, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"choices":[{"index":0,"delta":{"content":@P},"finish_reason":""}]}` + "\n\n")}},
		{"chat error in the choice", "rate_limited retry", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"Rate limit exceeded: limit_rpm"}}]}` + "\n\n"}},
		{"chat error in the choice, no code", "transient retry", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"choices":[{"index":0,"message":{"content":""},"finish_reason":"error","error":{"message":"Upstream error"}}]}`)}},
		{"chat refusal in parts", "refused fail", C, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"choices":[{"index":0,"delta":{"refusal":"I "}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"refusal":"won't"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"}},
		{"chat DONE twice", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cstop + cusage + "data: [DONE]\n\ndata: [DONE]\n\n"}},
		{"chat usage of text", "ok_warn", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cstop + strings.Replace(cusage, "50", `"a lot"`, 1) + "data: [DONE]\n\n"}},
		{"chat usage with half tokens", "ok_warn", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cstop + strings.Replace(cusage, "50", `50.5`, 1) + "data: [DONE]\n\n"}},
		{"chat cut behind usage only", "transient retry 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cusage}},
		{"chat error string", "rate_limited retry free", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"error":"Rate limit exceeded"}`)}},
		{"chat HTML behind a stream type", "protocol retry", C, exchange.Response{Status: 200, Headers: sse, RawBody: "<html><title>502 Bad Gateway</title></html>"}},
		{"responses refusal in pieces only", "refused fail", R, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"response.refusal.delta","delta":"I won't"}` + "\n\n" + `data: {"type":"response.refusal.done","refusal":"I won't"}` + "\n\n" + `data: {"type":"response.completed","response":{"status":"completed","output":[]}}` + "\n\n"}},
		{"responses error event as an object", "rate_limited retry free", R, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"type":"error","error":{"type":"rate_limit_exceeded","message":"slow"}}` + "\n\n"}},
		{"responses items one by one, none at the end", "ok 1+2", R, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"type":"response.output_item.done","item":{"type":"message","status":"completed","content":[{"type":"output_text","text":@P}]}}` + "\n\n" +
			`data: {"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}` + "\n\n")}},
		{"responses refusal in an item of its own", "refused fail 1+2", R, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"type":"response.output_item.done","item":{"type":"message","status":"completed","content":[{"type":"refusal","refusal":"no"}]}}` + "\n\n" +
			`data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}` + "\n\n")}},
		{"responses completed without a response", "ok_warn", R, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"type":"response.output_text.delta","delta":@P}` + "\n\n" + `data: {"type":"response.completed"}` + "\n\n")}},
		{"502 html with 200", "protocol retry", A, exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/html"}, RawBody: "<html><head><title>502 Bad Gateway</title></head></html>"}},
		{"429 retry-after 30s", "rate_limited retry 31.166s free", A, exchange.Response{Status: 429, Headers: map[string]string{"retry-after": "30s"}}},
		{"429 retry-after 1m30s", "rate_limited retry 1m33.497s free", A, exchange.Response{Status: 429, Headers: map[string]string{"retry-after": "1m30s"}}},
		{"429 words with a date", "rate_limited retry 5m3.886s free", A, exchange.Response{Status: 429, Body: json.RawMessage(`{"error":{"message":"Rate limit exceeded, retry after 2026-03-10T12:05:00Z"}}`)}},
		{"429 milliseconds in the body", "rate_limited retry 1.559s free", A, exchange.Response{Status: 429, Body: json.RawMessage(`{"error":{"message":"Rate limit exceeded","retry_after_ms":1500}}`)}},
		{"429 seconds in the body", "rate_limited retry 31.166s free", A, exchange.Response{Status: 429, Body: json.RawMessage(`{"error":{"message":"Rate limit exceeded"},"retry_after":30}`)}},
		{"403 html of a gateway", "transient retry free", A, exchange.Response{Status: 403, Headers: map[string]string{"content-type": "text/html"}, RawBody: "<html><title>Just a moment...</title></html>"}},
		{"400 usage limits of the month", "quota_wait wait 516h0m0s free", A, exchange.Response{Status: 400, Body: json.RawMessage(`{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."}}`)}},
		{"403 billing by its type", "billing stop free", A, exchange.Response{Status: 403, Body: json.RawMessage(`{"type":"error","error":{"type":"billing_error","message":"x"}}`)}},
		{"403 quota by its code", "billing stop free", C, exchange.Response{Status: 403, Body: json.RawMessage(`{"error":{"message":"x","code":"insufficient_quota"}}`)}},
		{"401 context by its code", "input_too_big fail free", C, exchange.Response{Status: 401, Body: json.RawMessage(`{"error":{"message":"x","code":"context_length_exceeded"}}`)}},
		{"404 throttled by its type", "config stop free", C, exchange.Response{Status: 404, Body: json.RawMessage(`{"error":{"message":"x","type":"rate_limit_error"}}`)}},
		{"429 quota with a moment of renewal", "rate_limited retry 8.311s free", C, exchange.Response{Status: 429, Headers: map[string]string{"x-ratelimit-reset-requests": "8s"}, Body: json.RawMessage(`{"error":{"message":"x","code":"insufficient_quota"}}`)}},
		{"429 quota with milliseconds", "rate_limited retry 1.559s free", C, exchange.Response{Status: 429, Headers: map[string]string{"retry-after-ms": "1500"}, Body: json.RawMessage(`{"error":{"message":"x","code":"insufficient_quota"}}`)}},
		{"429 quota with words for a wait", "billing stop free", C, exchange.Response{Status: 429, Headers: map[string]string{"retry-after": "soon"}, Body: json.RawMessage(`{"error":{"message":"x","code":"insufficient_quota"}}`)}},
		{"429 azure milliseconds", "rate_limited retry 2.078s free", C, exchange.Response{Status: 429, Headers: map[string]string{"x-ms-retry-after-ms": "2000"}, Body: json.RawMessage(`{"error":{"message":"x"}}`)}},
		{"503 retry-after date of a named zone", "transient retry free", A, exchange.Response{Status: 503, Headers: map[string]string{"retry-after": "Tue, 10 Mar 2026 13:00:20 CET"}}},
		{"503 retry-after date of UTC", "transient retry 20.778s free", A, exchange.Response{Status: 503, Headers: map[string]string{"retry-after": "Tue, 10 Mar 2026 12:00:20 UTC"}}},
		{"chat the service behind is busy", "rate_limited retry free", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"code\":429,\"message\":\"slow\"}}"}}}`)}},
		{"chat the service behind wants money", "billing stop free", C, exchange.Response{Status: 400, Body: json.RawMessage(`{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"x\"}}"}}}`)}},
		{"chat usage in the choice", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":50}}]}` + "\n\ndata: [DONE]\n\n"}},
		{"chat usage beside the choices", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":50}}}` + "\n\ndata: [DONE]\n\n"}},
		{"chat usage in two halves", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"choices":[],"usage":{"prompt_tokens":10}}` + "\n\n" + ct + cstop + `data: {"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":50}}` + "\n\ndata: [DONE]\n\n"}},
		{"chat usage of the answer alone", "ok_warn", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + cstop + `data: {"choices":[],"usage":{"completion_tokens":50}}` + "\n\ndata: [DONE]\n\n"}},
		{"chat all in one piece of a stream", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: q(`data: {"choices":[{"index":0,"message":{"content":@P},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":50}}`) + "\n\ndata: [DONE]\n\n"}},
		{"chat pieces, then all of it", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: ct + q(`data: {"choices":[{"index":0,"message":{"content":@P},"finish_reason":"stop"}]}`) + "\n\n" + cusage + "data: [DONE]\n\n"}},
		{"chat signs of life in brackets", "ok_warn 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: "data: [HEARTBEAT]\n\n" + ct + "data: [KEEP ALIVE]\n\n" + cstop + cusage + "data: [DONE]\n\n"}},
		{"chat word of a gateway", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"code":200,"message":"success"}` + "\n\n" + ct + cstop + cusage + "data: [DONE]\n\n"}},
		{"chat word of a queue", "ok 10+50", C, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"status":"queued","message":"3 before you"}` + "\n\n" + ct + cstop + cusage + "data: [DONE]\n\n"}},
		{"chat error without a word for it", "rate_limited retry 20.778s free", C, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"statusCode":429,"message":"Rate limit is exceeded. Try again in 20 seconds."}` + "\n\n"}},
		{"chat error that is an object", "auth stop free", C, exchange.Response{Status: 200, Headers: sse, RawBody: `data: {"object":"error","message":"no","type":"AuthError","code":401}` + "\n\n"}},
		{"chat the service behind says text", "transient retry free", C, exchange.Response{Status: 200, Body: json.RawMessage(`{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"429 slow"}}}`)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, b := once(t, categories, tt.proto, tt.r)
			if got := p.ended(b); got != tt.want {
				t.Errorf("%s, want %s (%v)", got, tt.want, p.errs[0])
			}
		})
	}
}

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// ended is what becomes of a first attempt: category, what follows and when where the server says so,
// tokens (input+output), and whether it was free.
func (p *play) ended(b *machine.FinishedBody) string {
	words := []string{b.Category}
	switch after := b.RetryAt.Sub(noon); {
	case b.Status == dag.StatusCompleted:
		words[0] = p.outcome()
	case b.Stop:
		words = append(words, "stop")
	case !b.WaitUntil.IsZero():
		words = append(words, "wait", b.WaitUntil.Sub(noon).String())
	case b.RetryAt.IsZero():
		words = append(words, "fail")
	default:
		words = append(words, "retry")
		if p.errs[0].RetryAfter > 0 {
			words = append(words, after.String())
		}
	}
	if u := p.res.Usage; u != (nodes.Usage{}) {
		words = append(words, fmt.Sprintf("%d+%d", u.Input, u.Output))
	}
	if b.Status != dag.StatusCompleted && b.CostKind == dag.CostReported && b.CostUSD == 0 {
		words = append(words, "free")
	}
	return strings.Join(words, " ")
}
