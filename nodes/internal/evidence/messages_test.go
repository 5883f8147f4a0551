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
		status               int
		text, category, wait string
	}{
		// plan limits of claude
		{429, "You've hit your limit · resets 11pm (America/Anchorage)", "quota_wait", "2026-03-11T07:00:00Z"},
		{429, "You're out of extra usage · resets Mar 12, 8pm (Europe/Budapest)", "quota_wait", "2026-03-12T19:00:00Z"},
		{0, "You're out of extra usage · resets 10:30pm (Europe/Rome)", "quota_wait", "2026-03-10T21:30:00Z"},
		{0, "Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max or turn on /extra-usage", "quota_wait", "2026-03-11T01:00:00Z"},
		{429, "You've hit your weekly limit · resets Mar 27 at 4:30am (Asia/Calcutta)", "quota_wait", "2026-03-26T23:00:00Z"},
		{429, "You've hit your session limit · resets 8:30pm (Asia/Tokyo)", "quota_wait", "2026-03-10T12:02:00Z"},
		{429, "You've hit your weekly limit · resets Mar 15 at 7pm", "quota_wait", "2026-03-15T19:00:00Z"},
		{0, "You’ve hit your Opus limit · resets 3pm (UTC)", "quota_wait", "2026-03-10T15:00:00Z"},
		{0, "5-hour limit reached ∙ resets 1am", "quota_wait", "2026-03-11T01:00:00Z"},
		{0, "Claude AI usage limit reached|1773151200", "quota_wait", "2026-03-10T14:00:00Z"},
		{400, `API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."}}`, "quota_wait", "2026-04-01T00:00:00Z"},
		// other limits than those of a plan
		{0, "You've reached your output token limit for this response.", "truncated", ""},
		{0, "You have reached your rate limit, please slow down.", "rate_limited", ""},
		{0, "You've hit your spending limit for this month.", "billing", ""},
		// throttling of claude that speaks of limits
		{0, "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited", "rate_limited", ""},
		{429, "API Error: Rate limit reached", "rate_limited", ""},
		{429, "This request would exceed your account's rate limit. Please try again later.", "rate_limited", ""},
		// an account that may not do this at all
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}`, "billing", ""},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Usage credits are required for long context requests."}}`, "billing", ""},
		{400, "Credit balance is too low", "billing", ""},
		{400, `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`, "billing", ""},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":null}}`, "billing", ""},
		{402, `{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}`, "billing", ""},
		// logins that ended
		{401, `API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired. Please obtain a new token or refresh your existing token."}} · Please run /login`, "auth", ""},
		{0, "Please run /login · API Error: 401 {\"error\":{\"type\":\"authentication_error\",\"message\":\"Invalid authentication credentials\"}}", "auth", ""},
		{403, `Please run /login · API Error: 403 {"type":"error","error":{"type":"permission_error","message":"Account is no longer a member of the organization associated with this token."}}`, "auth", ""},
		{403, "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access", "auth", ""},
		{0, "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access", "auth", ""},
		{400, "API Error: 400 This organization has been disabled.", "auth", ""},
		{0, "Invalid API key · Fix external API key", "auth", ""},
		{0, "Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.", "auth", ""},
		{0, "Your access token could not be refreshed. Please log out and sign in again.", "auth", ""},
		{0, "Failed to refresh token: 401 Unauthorized: Your refresh token has already been used to generate a new access token. Please try signing in again.", "auth", ""},
		{0, "exceeded retry limit, last status: 401 Unauthorized, request id: 99438b5929d256ae-OSL", "auth", ""},
		{0, "Cached credentials are not valid: invalid_grant", "auth", ""},
		{0, "Please set an Auth method in your /home/u/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY", "auth", ""},
		{0, "Opening authentication page in your browser. Do you want to continue? [Y/n]: FatalCancellationError: Authentication cancelled by user.", "auth", ""},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, "auth", ""},
		{400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, "auth", ""},
		{401, `{"error":{"message":"Incorrect API key provided: sk-xx. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","code":"invalid_api_key"}}`, "auth", ""},
		// plan limits of codex
		{0, "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 6:44 PM.", "quota_wait", "2026-03-10T18:44:00Z"},
		{0, "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try again at Mar 25th, 2026 8:19 PM.", "quota_wait", "2026-03-25T20:19:00Z"},
		{0, "You've hit your usage limit. Try again in 3 days 4 hours 9 minutes.", "quota_wait", "2026-03-13T16:09:00Z"},
		{0, "You've hit your usage limit. To get more access now, send a request to your admin or try again in 1 hour 12 minutes.", "quota_wait", "2026-03-10T13:12:00Z"},
		// throttling of codex
		{0, "stream disconnected before completion: Rate limit is exceeded. Try again in 17 seconds.", "rate_limited", "17s"},
		{0, "stream disconnected before completion: Rate limit reached for organization org-x on tokens per min (TPM): Limit 250000, Used 250000, Requested 89623. Please try again in 21.509s. Visit https://platform.openai.com/account/rate-limits to learn more.", "rate_limited", "21.509s"},
		{0, "stream disconnected before completion: Rate limit reached for m (for limit n) in organization org-x on tokens per min (TPM): Limit 40000000, Used 40000000, Requested 24866. Please try again in 37ms.", "rate_limited", "37ms"},
		{0, "stream disconnected before completion: An error occurred while processing your request. You can retry your request, or contact us through our help center at help.openai.com if the error persists.", "transient", ""},
		{0, "API Error: The response stopped arriving. The response above may be incomplete.", "transient", ""},
		// google: a minute's quota comes back by itself, a day's at midnight; the sentence is the same
		{429, google + "\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000\nPlease retry in 43.5s.\n" + exhausted + ` "quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier"`, "rate_limited", "43.5s"},
		{429, google + "\n" + exhausted + ` "quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier" "retryDelay": "26s"`, "rate_limited", "26s"},
		{429, google + "\n" + exhausted + ` "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "20"`, "quota_wait", "2026-03-10T12:01:00Z"},
		{429, google + "\ncode: 429 " + exhausted, "quota_wait", "2026-03-10T12:01:00Z"},
		{0, "Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Gemini 2.5 Pro Requests per day per user per tier' of service 'cloudcode-pa.googleapis.com' for consumer 'project_number:6'.", "quota_wait", "2026-03-10T12:01:00Z"},
		{429, "Quota exceeded for quota metric 'Generate Content API requests per minute' and limit 'GenerateContent request limit per minute for a region' of service 'generativelanguage.googleapis.com'.", "rate_limited", ""},
		{429, "Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.", "rate_limited", ""},
		{0, "You have exhausted your capacity on this model. Your quota will reset after 18h31m9s.", "quota_wait", "2026-03-11T06:31:09Z"},
		{0, "You have exhausted your daily quota on this model.", "quota_wait", "2026-03-10T12:01:00Z"},
	}
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for _, tt := range tests {
		e := Case{Status: tt.status, Text: tt.text, Now: now, Zone: time.UTC, Tries: 1}.Error()
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

// Moments and lengths of time in the ways in which they are written, on a runner in New York.
func TestResetFormats(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York") // four hours behind on that day
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	const none = ""
	tests := []struct{ text, want string }{
		// without a zone the runner's own
		{"resets 6 PM", "10T22:00"}, {"resets 6 PM today", "10T22:00"}, {"try again at 18:44", "10T22:44"}, {"resets 0:30", "11T04:30"}, {"available again at noon", "10T16:00"},
		{"wait until 4:05pm", "10T20:05"}, {"resets at 3 pm (your local time)", "10T19:00"}, {"resets March 12th at 5:30 p.m.", "12T21:30"}, {"resets Monday 9am", "16T13:00"},
		{"resets tomorrow at 9am", "11T13:00"}, {"resets at 18:44:10", "10T22:44"},
		// letters, distances and names of zones
		{"resets at 3:00 PM PST", "10T23:00"}, {"resets 3pm PDT", "10T22:00"}, {"resets 3pm PT", "10T22:00"}, {"resets 3pm ET", "10T19:00"}, {"resets 3pm EST", "10T20:00"},
		{"resets 3pm (EDT)", "10T19:00"}, {"resets 15:00 CET", "10T14:00"}, {"resets 3pm (PST)", "10T23:00"}, {"resets 3pm GMT+2", "10T13:00"}, {"resets 15:00 (UTC+2)", "10T13:00"},
		{"resets 3pm UTC+02:30", "10T12:30"}, {"resets 9pm JST", "10T12:02"}, {"resets 10pm JST", "10T13:00"}, {"resets at midnight UTC", "11T00:00"}, {"resets 15:00 GMT", "10T15:00"},
		{"resets 12am (America/Los_Angeles)", "11T07:00"}, {"resets 11:59pm (Etc/GMT+8)", "11T07:59"}, {"resets Mon 9:00 AM (Europe/Paris)", "16T08:00"},
		{"Your limit will reset at 2pm (America/Sao_Paulo).", "10T17:00"},
		{"resets 3pm (Europe/Barcelona)", none}, {"resets 3pm (XYZ)", none},
		// dates
		{"resets 12 Mar 17:30 UTC", "12T17:30"}, {"resets 10 Mar 2026, 15:00 UTC", "10T15:00"}, {"resets Tue, 10 Mar 2026 15:00:00 GMT", "10T15:00"},
		{"usage limit. retry-after: Tue, 10 Mar 2026 15:00:00 GMT", "10T15:00"}, {"You will regain access on 2026-03-20 at 00:00 UTC.", "20T00:00"},
		{"resets at 2026-03-10 15:00:00 +0100", "10T14:00"}, {"resets at 2026-03-10T15:00:00.000Z", "10T15:00"}, {`"resets_at": "2026-03-10T15:00:00+00:00"`, "10T15:00"},
		// lengths of time
		{"Retry in 2 hours and 5 minutes", "10T14:05"}, {"resets in 2h 15m", "10T14:15"}, {"resets in 45 min", "10T12:45"}, {"resets in 1 day, 3 hours", "11T15:00"},
		{"resets in: 90m", "10T13:30"}, {"Limit resets in 02:15:30", "10T14:15"}, {"try again in 1:30", "10T13:30"}, {"usage limit reached; retry after 3600", "10T13:00"},
		// numbers
		{"reset at 1773151200", "10T14:00"}, {"reset_at: 1773151200000", "10T14:00"}, {`"resetsAt":1773151200`, "10T14:00"}, {`"resets_in_seconds": 7200.5`, "10T14:00"},
		// nothing that can be read, or believed
		{"resets 25:00", none}, {"resets 13pm", none}, {"resets in -5 minutes", none}, {"resets in 0 seconds", none}, {"resets in 99999 days", none}, {`"resets_at": null`, none},
		{"resets Jan 1, 2027, 12am (UTC)", none}, {"resets soon", none},
		// days that the calendar does not have
		{"resets Nov 31 at 3pm (UTC)", none}, {"resets Apr 31 at 3pm (UTC)", none}, {"resets Feb 29 at 3pm (UTC)", none}, {"resets 31 April 2026 at 3pm (UTC)", none},
	}
	for _, tt := range tests {
		until, ok := Reset(tt.text, now, zone)
		got := until.Format("02T15:04")
		if !ok {
			got = none
		}
		if got != tt.want {
			t.Errorf("%q: %s, want %s", tt.text, got, tt.want)
		}
	}
}

// Messages are for people: the words inside JSON, not the JSON.
func TestMessageInsideJSON(t *testing.T) {
	for text, want := range map[string]string{
		`API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."},"request_id":"r"} · Please run /login`:        "API Error: 401 OAuth token has expired. · Please run /login",
		`{"error":{"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Resource has been exhausted (e.g. check quota).\"\n  }\n}\n","code":429}}`: "Resource has been exhausted (e.g. check quota).",
		`✕ [API Error: [{"error": {"code": 429, "message": "Resource exhausted."}}]]`:                                                                              "✕ [API Error: Resource exhausted.",
		`{"error":"rate limit exceeded"}`:                      `{"error":"rate limit exceeded"}`,
		`{"type":"error","error":{"type":"overloaded_error"}}`: "overloaded_error",
		`unexpected status 500: {"x":1}`:                       `unexpected status 500: {"x":1}`,
		`{"error":{"message":"cut`:                             `{"error":{"message":"cut`,
		"":                                                     "no message",
	} {
		if e := (Case{Text: text, Now: time.Now(), Zone: time.UTC}).Error(); e.Message != want {
			t.Errorf("%q:\n %q, want %q", text, e.Message, want)
		}
	}
}
