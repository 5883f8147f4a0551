package evidence

import (
	"testing"
	"time"
)

// Sentences as agents and APIs print them: whether one that stands alone in the place of an answer is an
// error, what it means, and how long it asks to wait.
func TestSentences(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		head             bool
		text, want, wait string
	}{
		{true, "Limit reached · resets 11:30am (Asia/Calcutta) · /upgrade to Max or turn on /extra-usage", "quota_wait", "11T06:00"},
		{true, "You've hit your limit · resets 1:30am (Asia/Dhaka)", "quota_wait", "10T19:30"},
		{true, "Claude usage limit reached. Your limit will reset at 3pm (America/Bogota).", "quota_wait", "10T20:00"},
		{true, "stream disconnected before completion: Rate limit is exceeded. Try again in 17 seconds.", "rate_limited", "17s"},
		{true, "stream disconnected before completion: stream closed before response.completed", "transient", ""},
		{true, "stream disconnected before completion: An error occurred while processing your request. You can retry your request, or contact us through our help center at help.openai.com if the error persists. Please include the request ID x in your message.", "transient", ""},
		{true, "unexpected status 400 Bad Request: {\"detail\":\"The 'gpt-5.1-codex' model is not supported when using Codex with a ChatGPT account.\"}", "config", ""},
		{true, `{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"The 'gpt-5' model is not supported when using Codex with a ChatGPT account."}}`, "config", ""},
		{true, "API Error: 401 — OAuth token has expired. Please obtain a new token or refresh your existing token.", "auth", ""},
		{true, "Claude OAuth token expired. Run `claude` to refresh.", "auth", ""},
		{true, "API Error: 400 messages.7.content.12: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", "protocol", ""},
		{true, "✕ [API Error: got status: 429 Too Many Requests. {\"error\":{\"message\":\"{\\n  \\\"error\\\": {\\n    \\\"code\\\": 429,\\n    \\\"message\\\": \\\"You exceeded your current quota.\\\",\\n \\\"status\\\": \\\"RESOURCE_EXHAUSTED\\\", \\\"quotaId\\\": \\\"GenerateRequestsPerDayPerProjectPerModel\\\"", "quota_wait", "10T12:01"},
		{false, "Attempt 1 failed with status 429. Retrying with backoff... _GaxiosError: [{\"error\": {\"code\": 429,\"message\": \"No capacity available for model gemini-3-flash-preview on the server\",\"status\": \"RESOURCE_EXHAUSTED\"}}]", "rate_limited", ""},
		{true, "Usage limit reached for gemini-3-flash-preview.", "quota_wait", "10T12:01"},
		{false, "Unknown arguments: output-format, outputFormat", "config", ""},
		{true, "Failed to authenticate: OAuth session expired and could not be refreshed", "auth", ""},
		{true, "Please set an Auth method in your /root/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY", "auth", ""},
		{false, "Approaching usage limit · resets at 2am\nError: connect ECONNREFUSED 127.0.0.1:443", "transient", ""},
		{false, "You've used 90% of your session limit · resets 3pm (UTC)\nError: socket hang up", "transient", ""},
		{false, "Approaching usage limit · resets at 2am\nYou've hit your limit · resets 3pm (UTC)", "quota_wait", "10T15:00"},
		{false, "You've used 90% of your weekly limit · resets Mar 12\nYou've hit your session limit · resets 3pm (UTC)", "quota_wait", "10T15:00"},
		{false, "You've used 100% of your session limit · resets 3pm (UTC)", "quota_wait", "10T15:00"},
		{false, "You've used 75% of your weekly limit · resets Mar 12 at 3pm (UTC)\nprocess exited", "transient", ""},
		{true, "You've reached your Fable 5 limit. Run /usage-credits to continue or switch models with /model.", "quota_wait", "10T12:01"},
		{true, "You've reached your Opus 4.5 limit · resets Mar 12 at 9am (UTC)", "quota_wait", "12T09:00"},
		{true, "API Error: Claude's response exceeded the 8000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable.", "truncated", ""},
		{true, "API Error (claude-opus): 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}", "rate_limited", ""},
		{true, "Error: Reached max turns (30)", "budget", ""},
		{true, "Quota exceeded. Check your plan and billing details.", "billing", ""},
		{true, "Your workspace is out of credits. Add credits to continue.", "billing", ""},
		{true, "We're currently experiencing high demand, which may cause temporary errors.", "transient", ""},
		{true, "You've hit your usage limit. To get more access now, send a request to your admin or try again at 3:41 PM.", "quota_wait", "10T15:41"},
		{true, "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 3 days 2 hours 5 minutes.", "quota_wait", "13T14:05"},
		{true, "You've hit your usage limit for GPT-5.3-Codex-Spark. Switch to another model now, or try again at Mar 15th, 2026 2:03 AM.", "quota_wait", "15T02:03"},
		{true, "API Error: 403 {\"error\":{\"type\":\"forbidden\",\"message\":\"Request not allowed\"}} · Please run /login", "auth", ""},
		{true, "API Error: Unable to connect to API (ConnectionRefused)", "transient", ""},
		{true, "API Error: Unable to connect to API (FailedToOpenSocket)", "transient", ""},
		{true, "API Error: The socket connection was closed unexpectedly. For more information, pass `verbose: true`", "transient", ""},
		{true, "API Error: Request was aborted.", "transient", ""},
		{true, "API Error: Stream idle timeout - partial response received", "transient", ""},
		{true, "API Error: Connection error.", "transient", ""},
		{true, "API Error: terminated", "transient", ""},
		{true, "Your account has been disabled after an automatic review of your recent activities.", "auth", ""},
		{true, "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy (https://www.anthropic.com/legal/aup).", "refused", ""},
		{true, "Codex ran out of room in the model's context window. Start a new conversation or clear earlier history before retrying.", "input_too_big", ""},
		{true, "Error running remote compact task: Codex ran out of room in the model's context window.", "input_too_big", ""},
		{true, "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header, url: https://api.openai.com/v1/responses", "auth", ""},
		{true, "unexpected status 403 Forbidden: <!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title>", "transient", ""},
		{true, "exceeded retry limit, last status: 503 Service Unavailable", "transient", ""},
		{true, "Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute_per_project_per_base_model with base model: gemini-2.5-pro. Please submit a quota increase request.", "rate_limited", ""},
		{true, "API Error: 413 {\"error\":{\"type\":\"request_too_large\",\"message\":\"Request exceeds the maximum size\"}}", "input_too_big", ""},
		{true, "API Error: 400 {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.\"}}", "quota_wait", "01T00:00"},
		{true, "API Error: 404 {\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: claude-foo\"}}", "config", ""},
		{true, "API Error: 400 {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Output blocked by content filtering policy\"}}", "refused", ""},
		{true, "Invalid API key · Please run /login", "auth", ""},
		{true, "There's an issue with the selected model (x). It may not exist or you may not have access to it.", "config", ""},
		{true, "Error: unable to get local issuer certificate", "config", ""},
		{true, "API Error: self-signed certificate in certificate chain", "config", ""},
		{true, "usage limit reached|1773159000", "quota_wait", "10T16:10"},
		{true, "Claude AI usage limit reached|1773159000000", "quota_wait", "10T16:10"},
		{true, "Claude AI usage limit reached|0", "quota_wait", "10T12:01"},
		{true, "Claude AI usage limit reached|9999999999", "quota_wait", "10T12:01"},
		{true, "5-hour limit reached ∙ resets 3:00:00 PM", "quota_wait", "10T15:00"},
		{true, "Weekly limit reached ∙ resets Mar 14, 3pm (Europe/Kyiv)", "quota_wait", "14T13:00"},
		{true, "You've hit your weekly limit · resets 9pm (America/Argentina/Buenos_Aires)", "quota_wait", "11T00:00"},
		{true, "You've hit your limit · resets 3pm (America/Port-au-Prince)", "quota_wait", "10T19:00"},
		{true, "You've hit your limit · resets 6:30pm (GMT+5:30)", "quota_wait", "10T13:00"},
		{true, "You've hit your limit · resets 6:30pm (UTC+05:30)", "quota_wait", "10T13:00"},
		{true, "You've hit your session limit · resets 4pm (Asia/Kuala_Lumpur)", "quota_wait", "11T08:00"},
		{true, "You've hit your limit · resets in 4h 59m 12s", "quota_wait", "10T16:59"},
		{true, "You've hit your limit. Try again in 5 days 22h", "quota_wait", "16T10:00"},
		{true, "You've hit your limit · resets next Monday", "quota_wait", "10T12:01"},
		{true, "You've hit your limit · resets 17 Mar, 15:00 CEST", "quota_wait", "17T13:00"},
		{true, "You've hit your limit · resets Mar 12, 1 AM PDT", "quota_wait", "12T08:00"},
		{true, "You've hit your usage limit. Please try again after 14:05 UTC.", "quota_wait", "10T14:05"},
		{true, "Rate limit exceeded, retry after 2026-03-10T12:05:00Z", "rate_limited", "5m0s"},
		{true, "Rate limit exceeded: retry_after_ms=1500", "rate_limited", "1.5s"},
		{true, "Rate limit exceeded. Retry-After: 1500ms", "rate_limited", "1.5s"},
		{true, "Error: 429 Too many requests, please slow down (wait 2 min)", "rate_limited", "2m0s"},
		{true, "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 8s.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}", "rate_limited", "8s"},
		{true, "Error code: 429 - {'error': {'message': 'You exceeded your current quota, please check your plan and billing details.', 'type': 'insufficient_quota'}}", "billing", ""},
		{true, "API Error: 402 Payment Required", "billing", ""},
		{true, "anthropic.BadRequestError: Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'Your credit balance is too low to access the Anthropic API.'}}", "billing", ""},
		{true, "anthropic.APIStatusError: {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}", "rate_limited", ""},
	} {
		if got := Head(tt.text); got != tt.head {
			t.Errorf("%.110q: an error alone is %v, want %v", tt.text, got, tt.head)
		}
		e := Case{Text: tt.text, Now: now, Zone: time.UTC, Tries: 1}.Error()
		wait := ""
		switch {
		case !e.WaitUntil.IsZero():
			wait = e.WaitUntil.Format("02T15:04")
		case e.RetryAfter > 0:
			wait = e.RetryAfter.String()
		}
		if e.Category != tt.want || wait != tt.wait {
			t.Errorf("%.110q: %s %s, want %s %s", tt.text, e.Category, wait, tt.want, tt.wait)
		}
	}
}
