package evidence

import (
	"testing"
	"time"
)

// What agents and APIs say, in the words in which it was reported (anthropics/claude-code, openai/codex,
// google-gemini/gemini-cli and users of the APIs behind them), and what it means. wait is the moment of a
// plan limit, or the delay of another failure.
func TestMessagesAsReported(t *testing.T) {
	const (
		google    = `You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.`
		exhausted = `"status": "RESOURCE_EXHAUSTED"`
	)
	tests := []struct {
		from                 *Table
		status               int
		text, category, wait string
	}{
		// plan limits of claude
		{Claude, 429, "You've hit your limit · resets 11pm (America/Anchorage)", "quota_wait", "2026-03-11T07:00:00Z"},
		{Claude, 429, "You're out of extra usage · resets Mar 12, 8pm (Europe/Budapest)", "quota_wait", "2026-03-12T19:00:00Z"},
		{Claude, 0, "You're out of extra usage · resets 10:30pm (Europe/Rome)", "quota_wait", "2026-03-10T21:30:00Z"},
		{Claude, 0, "Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max or turn on /extra-usage", "quota_wait", "2026-03-11T01:00:00Z"},
		{Claude, 429, "You've hit your weekly limit · resets Mar 27 at 4:30am (Asia/Calcutta)", "quota_wait", "2026-03-26T23:00:00Z"},
		{Claude, 429, "You've hit your session limit · resets 8:30pm (Asia/Tokyo)", "quota_wait", "2026-03-10T12:02:00Z"},
		{Claude, 429, "You've hit your weekly limit · resets Mar 15 at 7pm", "quota_wait", "2026-03-15T19:00:00Z"},
		{Claude, 0, "You’ve hit your Opus limit · resets 3pm (UTC)", "quota_wait", "2026-03-10T15:00:00Z"},
		{Claude, 0, "5-hour limit reached ∙ resets 1am", "quota_wait", "2026-03-11T01:00:00Z"},
		{Claude, 0, "Claude AI usage limit reached|1773151200", "quota_wait", "2026-03-10T14:00:00Z"},
		{Claude, 400, `API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."}}`, "quota_wait", "2026-04-01T00:00:00Z"},
		// other limits than those of a plan
		{Claude, 0, "You've reached your output token limit for this response.", "truncated", ""},
		{Claude, 0, "You have reached your rate limit, please slow down.", "rate_limited", ""},
		{Claude, 0, "You've hit your spending limit for this month.", "billing", ""},
		// throttling of claude that speaks of limits
		{Claude, 0, "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited", "rate_limited", ""},
		{Claude, 429, "API Error: Rate limit reached", "rate_limited", ""},
		{Claude, 429, "This request would exceed your account's rate limit. Please try again later.", "rate_limited", ""},
		// an account that may not do this at all
		{Claude, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}`, "billing", ""},
		{Claude, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Usage credits are required for long context requests."}}`, "billing", ""},
		{Claude, 400, "Credit balance is too low", "billing", ""},
		{OpenAI, 400, `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`, "billing", ""},
		{OpenAI, 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":null}}`, "billing", ""},
		{OpenAI, 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}`, "billing", ""},
		// logins that ended
		{Claude, 401, `API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired. Please obtain a new token or refresh your existing token."}} · Please run /login`, "auth", ""},
		{Claude, 0, "Please run /login · API Error: 401 {\"error\":{\"type\":\"authentication_error\",\"message\":\"Invalid authentication credentials\"}}", "auth", ""},
		{Claude, 403, `Please run /login · API Error: 403 {"type":"error","error":{"type":"permission_error","message":"Account is no longer a member of the organization associated with this token."}}`, "auth", ""},
		{Claude, 403, "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access", "auth", ""},
		{Claude, 0, "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access", "auth", ""},
		{Claude, 400, "API Error: 400 This organization has been disabled.", "auth", ""},
		{Claude, 0, "Invalid API key · Fix external API key", "auth", ""},
		{Codex, 0, "Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.", "auth", ""},
		{Codex, 0, "Your access token could not be refreshed. Please log out and sign in again.", "auth", ""},
		{Codex, 0, "Failed to refresh token: 401 Unauthorized: Your refresh token has already been used to generate a new access token. Please try signing in again.", "auth", ""},
		{Codex, 0, "exceeded retry limit, last status: 401 Unauthorized, request id: 99438b5929d256ae-OSL", "auth", ""},
		{Gemini, 0, "Cached credentials are not valid: invalid_grant", "auth", ""},
		{Gemini, 0, "Please set an Auth method in your /home/u/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY", "auth", ""},
		{Gemini, 0, "Opening authentication page in your browser. Do you want to continue? [Y/n]: FatalCancellationError: Authentication cancelled by user.", "auth", ""},
		{Gemini, 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, "auth", ""},
		{Gemini, 400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, "auth", ""},
		{OpenAI, 401, `{"error":{"message":"Incorrect API key provided: sk-xx. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","code":"invalid_api_key"}}`, "auth", ""},
		// plan limits of codex
		{Codex, 0, "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 6:44 PM.", "quota_wait", "2026-03-10T18:44:00Z"},
		{Codex, 0, "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try again at Mar 25th, 2026 8:19 PM.", "quota_wait", "2026-03-25T20:19:00Z"},
		{Codex, 0, "You've hit your usage limit. Try again in 3 days 4 hours 9 minutes.", "quota_wait", "2026-03-13T16:09:00Z"},
		{Codex, 0, "You've hit your usage limit. To get more access now, send a request to your admin or try again in 1 hour 12 minutes.", "quota_wait", "2026-03-10T13:12:00Z"},
		// throttling of codex
		{Codex, 0, "stream disconnected before completion: Rate limit is exceeded. Try again in 17 seconds.", "rate_limited", "17s"},
		{Codex, 0, "stream disconnected before completion: Rate limit reached for organization org-x on tokens per min (TPM): Limit 250000, Used 250000, Requested 89623. Please try again in 21.509s. Visit https://platform.openai.com/account/rate-limits to learn more.", "rate_limited", "21.509s"},
		{Codex, 0, "stream disconnected before completion: Rate limit reached for m (for limit n) in organization org-x on tokens per min (TPM): Limit 40000000, Used 40000000, Requested 24866. Please try again in 37ms.", "rate_limited", "37ms"},
		{Codex, 0, "stream disconnected before completion: An error occurred while processing your request. You can retry your request, or contact us through our help center at help.openai.com if the error persists.", "transient", ""},
		{Claude, 0, "API Error: The response stopped arriving. The response above may be incomplete.", "transient", ""},
		// google: a minute's quota comes back by itself, a day's at midnight; the sentence is the same
		{Gemini, 429, google + "\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000\nPlease retry in 43.5s.\n" + exhausted + ` "quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier"`, "rate_limited", "43.5s"},
		{Gemini, 429, google + "\n" + exhausted + ` "quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier" "retryDelay": "26s"`, "rate_limited", "26s"},
		{Gemini, 429, `{"error":{"code":429,"message":"` + google + `","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"20"}]}]}}`, "quota_wait", "2026-03-10T12:01:00Z"},
		{Gemini, 429, google + "\ncode: 429 " + exhausted, "rate_limited", ""},
		{Gemini, 0, "Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Gemini 2.5 Pro Requests per day per user per tier' of service 'cloudcode-pa.googleapis.com' for consumer 'project_number:6'.", "quota_wait", "2026-03-10T12:01:00Z"},
		{Gemini, 429, "Quota exceeded for quota metric 'Generate Content API requests per minute' and limit 'GenerateContent request limit per minute for a region' of service 'generativelanguage.googleapis.com'.", "rate_limited", ""},
		{Gemini, 429, "Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.", "rate_limited", ""},
		{Gemini, 0, "You have exhausted your capacity on this model. Your quota will reset after 18h31m9s.", "quota_wait", "2026-03-11T06:31:09Z"},
		{Gemini, 0, "You have exhausted your daily quota on this model.", "quota_wait", "2026-03-10T12:01:00Z"},
	}
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for _, tt := range tests {
		e := Case{From: tt.from, Status: tt.status, Text: tt.text, Now: now, Tries: 1}.Error()
		wait := ""
		switch {
		case !e.WaitUntil.IsZero():
			wait = e.WaitUntil.Format(time.RFC3339)
		case e.RetryAfter > 0:
			wait = e.RetryAfter.String()
		}
		if e.Category != tt.category || wait != tt.wait {
			t.Errorf("%d %q:\n %s %s, want %s %s", tt.status, tt.text, e.Category, wait, tt.category, tt.wait)
		}
	}
}
