package evidence

import (
	"os"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// near allows two minutes.
func near(a, b time.Time) bool { return a.Sub(b).Abs() <= 2*time.Minute }

// The table of wall-clock resets: named zones, daylight saving, dates without a year.
func TestResetTable(t *testing.T) {
	b, err := os.ReadFile("testdata/resets.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(b)), "\n")[1:]
	if len(rows) < 16 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		f := strings.Split(row, "\t")
		now, text, want, why := at(t, f[0]), f[2], f[3], f[4]
		zone, err := time.LoadLocation(f[1])
		if err != nil {
			t.Fatal(err)
		}
		e := Case{Text: text, Now: now, Zone: zone, Tries: 1}.Error()
		if e.Category != "quota_wait" {
			t.Errorf("%s: category %s", text, e.Category)
			continue
		}
		wait := e.WaitUntil.Sub(now)
		switch want {
		case "floor":
			if wait < time.Minute || wait > 15*time.Minute {
				t.Errorf("%s at %s: wait %v, want the floor (%s)", text, f[0], wait, why)
			}
		case "fallback":
			if wait < time.Minute || wait > time.Hour {
				t.Errorf("%s: wait %v, want the fallback (%s)", text, wait, why)
			}
			if later := (Case{Text: text, Now: now, Zone: zone, Tries: 3}).Error(); later.WaitUntil.Sub(now) <= wait {
				t.Errorf("%s: the fallback does not grow", text)
			}
		default:
			until := at(t, want)
			missing := strings.Contains(why, "does not exist") && !e.WaitUntil.Before(until.Add(-time.Hour)) && !e.WaitUntil.After(until)
			if !near(e.WaitUntil, until) && !missing {
				t.Errorf("%s at %s: until %v, want %s (%s)", text, f[0], e.WaitUntil, want, why)
			}
		}
	}
}

// More ways to say when: fields, durations, dates, weekdays.
func TestReset(t *testing.T) {
	now := at(t, "2026-03-10T12:00:00Z") // a Tuesday
	tests := []struct{ text, want string }{
		{`{"error":{"type":"usage_limit_reached","resets_at":1773144900,"resets_in_seconds":900}}`, "2026-03-10T12:15:00Z"},
		{`{"resets_at":1773144900123}`, "2026-03-10T12:15:00Z"},
		{`resets_in_seconds: 3600.5`, "2026-03-10T13:00:00Z"},
		{"Claude AI usage limit reached|1773159000", "2026-03-10T16:10:00Z"},
		{"Try again in 2 hours 10 minutes.", "2026-03-10T14:10:00Z"},
		{"Try again in 5 days 22 hours 11 minutes.", "2026-03-16T10:11:00Z"},
		{"try again in 1 day, 2 hours and 3 minutes", "2026-03-11T14:03:00Z"},
		{"Try again in 1 week.", "2026-03-17T12:00:00Z"},
		{"Your quota will reset after 1h2m3s.", "2026-03-10T13:02:03Z"},
		{"Limit resets in 45m", "2026-03-10T12:45:00Z"},
		{"resets in about 3 hrs", "2026-03-10T15:00:00Z"},
		{"Try again at Mar 10th, 2026 8:19 PM.", "2026-03-10T20:19:00Z"},
		{"Try again at 8:19 PM.", "2026-03-10T20:19:00Z"},
		{"try again at 20:19", "2026-03-10T20:19:00Z"},
		{"resets at 10 a.m. (Asia/Tokyo)", "2026-03-11T01:00:00Z"},
		{"resets 11 March 2026 at 09:30 UTC", "2026-03-11T09:30:00Z"},
		{"resets March 11, 9am (UTC)", "2026-03-11T09:00:00Z"},
		{"resets tomorrow at noon (Europe/Berlin)", "2026-03-11T11:00:00Z"},
		{"resets Thursday 3pm (Europe/Berlin)", "2026-03-12T14:00:00Z"},
		{"resets Tue 9am (UTC)", "2026-03-17T09:00:00Z"},
		{"available again at 2026-03-10T15:00:00Z", "2026-03-10T15:00:00Z"},
		{"available again at 2026-03-10T15:00:00+02:00", "2026-03-10T13:00:00Z"},
		{"resets 2026-03-10 15:00", "2026-03-10T15:00:00Z"},
		{"5-hour limit reached ∙ resets 3pm", "2026-03-10T15:00:00Z"},
		{"resets 12:30am (UTC)", "2026-03-11T00:30:00Z"},
		{"resets 11:50am (UTC)", "2026-03-10T12:02:00Z"}, // ten minutes ago: the floor
		{"resets Mar 9 at 8am (UTC)", "2026-03-10T12:02:00Z"},
		{"resets soon", ""},
		{"resets 13pm (UTC)", ""},
		{"resets 10:75 (UTC)", ""},
		{"resets 3pm (Nowhere/Land)", ""},
		{"resets_at: 99999999999999999999", ""},
		{"try again in 99999999 days", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got, ok := Reset(tt.text, now, time.UTC)
		if !ok {
			if tt.want != "" {
				t.Errorf("%q: not read, want %s", tt.text, tt.want)
			}
			continue
		}
		if tt.want == "" || !near(got, at(t, tt.want)) {
			t.Errorf("%q: %v, want %q", tt.text, got, tt.want)
		}
	}
}

func TestDelay(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration
	}{
		{"Please try again in 20s", 20 * time.Second},
		{"try again in 6m0s", 6 * time.Minute},
		{"Rate limit. Retry after 30 seconds", 30 * time.Second},
		{"retry-after: 90", 90 * time.Second},
		{`"retryDelay": "34.5s"`, 34500 * time.Millisecond},
		{"retry in 250ms", 250 * time.Millisecond},
		{"try again in a moment", 0},
		{"in 5 minutes you will see", 0},
		{"retry after -3", 0},
	}
	for _, tt := range tests {
		if got, _ := Delay(tt.text); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

// What a message means, with and without a status. Words beat the status where they say more.
func TestCategories(t *testing.T) {
	tests := []struct {
		status   int
		text     string
		category string
		final    bool
	}{
		{0, "API Error: Rate limit reached", "rate_limited", false},
		{529, "API Error: something", "transient", false},
		{400, "API Error: something", "protocol", true},
		{422, "bad field", "protocol", true},
		{0, "Execution error", "transient", false},
		{0, `litellm.RateLimitError: provider said 429 {"error":{"code":429}}`, "rate_limited", false},
		{0, "Error: 401 token rejected, log in again", "auth", false},
		{0, "Credit balance is too low", "billing", false},
		{0, `API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to use the API."}}`, "billing", false},
		{0, `API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"}}`, "protocol", true},
		{0, `API Error: 403 {"type":"error","error":{"type":"permission_error","message":"key may not use this model"}}`, "auth", false},
		{0, `API Error: 402 Payment Required`, "billing", false},
		{429, "You exceeded your current quota, please check your plan and billing details", "billing", false},
		{429, "quota", "rate_limited", false},
		{429, "You've hit your usage limit. Try again in 2 hours.", "quota_wait", false},
		{429, "This request would exceed your account's rate limit. Please try again later.", "rate_limited", false},
		{0, "You've reached your rate limit", "rate_limited", false},
		{429, "You've hit your limit · resets 3pm (Europe/Berlin)\nrate_limit_error", "quota_wait", false},
		{0, "Failed to authenticate: OAuth session expired and could not be refreshed", "auth", false},
		{0, "Not logged in · Please run /login", "auth", false},
		{0, "Error: refresh token was already used", "auth", false},
		{0, "Please set an Auth method in your settings.json", "auth", false},
		{0, "API key not valid. Please pass a valid API key.", "auth", false},
		{0, "stream disconnected before completion: error sending request", "transient", false},
		{0, "unexpected status 401 Unauthorized", "auth", false},
		{0, `{"error":{"code":"model_not_found","message":"no such model"}}`, "config", false},
		{404, "There's an issue with the selected model (x). It may not exist or you may not have access to it.", "config", false},
		{0, "error: unknown option '--no-such-flag'", "config", false},
		{0, "error: option '--max-turns <turns>' argument 'x' is invalid. must be a number", "config", false},
		{400, "prompt is too long: 1250000 tokens > 200000 maximum", "input_too_big", true},
		{413, "Request too large (max 32MB).", "input_too_big", true},
		{0, "This model's maximum context length is 8192 tokens", "input_too_big", true},
		{0, "Error: piped stdin input exceeds 10MB.", "input_too_big", true},
		{0, "API Error: Claude's response exceeded the 32000 output token maximum.", "truncated", true},
		{0, "Incomplete response returned, reason: max_output_tokens", "truncated", true},
		{0, "API Error: The model has reached its context window limit.", "truncated", true},
		{0, "Error: Exceeded USD budget (1)", "budget", true},
		{0, "Reached maximum number of turns (3)", "budget", true},
		{0, "API Error: Sonnet 4.5 can't help with this.", "refused", true},
		{0, "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy", "refused", true},
		{0, "This request violates the usage policies.", "refused", true},
		{0, "I cannot assist with this request.", "refused", true},
		{0, "API Error: unable to connect, try again", "transient", false},
		{0, "exceeded retry limit, last status: 429 Too Many Requests", "rate_limited", false},
		{0, "Selected model is at capacity. Please try a different model.", "rate_limited", false},
		{0, "overloaded", "rate_limited", false},
		{0, "API Error: 529 Overloaded. This is a server-side issue", "transient", false},
		{0, "API Error: 502 Bad Gateway.", "transient", false},
		{0, "API Error: Connection refused (ECONNREFUSED)", "transient", false},
		{0, "Request timed out", "transient", false},
		{503, "<html>busy</html>", "transient", false},
		{0, "litellm.AuthenticationError: no", "auth", false},
		{0, "litellm.ContextWindowExceededError: too long", "input_too_big", true},
		{0, "litellm.APIConnectionError: no", "transient", false},
		{0, "litellm.ServiceUnavailableError: no", "transient", false},
		{0, "litellm.NotFoundError: no", "config", false},
		{0, "litellm.BudgetExceededError: no", "budget", true},
		{0, "Resource has been exhausted (e.g. check quota).", "rate_limited", false},
		{0, "You have exhausted your capacity on this model. Your quota will reset after 18h31m9s.", "quota_wait", false},
		{0, "Error: Failed to call the api. Caused by: Too Many Requests (status: 429)", "rate_limited", false},
		{0, "Error 503 from upstream", "transient", false},
		{0, "Error: self signed certificate in certificate chain", "config", false},
		{0, "EACCES: permission denied, open 'x'", "transient", false},
		{0, "something nobody has seen before", "transient", false},
	}
	for _, tt := range tests {
		e := Case{Status: tt.status, Text: tt.text, Now: at(t, "2026-03-10T12:00:00Z"), Zone: time.UTC}.Error()
		if e.Category != tt.category || e.Permanent != tt.final {
			t.Errorf("%d %q: %s permanent=%v, want %s %v", tt.status, tt.text, e.Category, e.Permanent, tt.category, tt.final)
		}
		if e.Category == "quota_wait" && e.WaitUntil.IsZero() {
			t.Errorf("%q: no time to wait until", tt.text)
		}
	}
}

func TestGatewayPageIsNotTheAPI(t *testing.T) {
	if c, _ := Status(403, true); c != "transient" {
		t.Errorf("403 with a page: %s", c)
	}
	if e := (Case{Status: 429, Text: "slow down, retry after 12 seconds"}).Error(); e.RetryAfter != 12*time.Second {
		t.Errorf("retry after %v", e.RetryAfter)
	}
}

// An answer that is nothing but an error message, and one that only mentions it.
func TestHead(t *testing.T) {
	tests := []struct {
		text string
		want bool
	}{
		{"API Error: Rate limit reached\n", true},
		{"Execution error", true},
		{"litellm.RateLimitError: provider said 429", true},
		{"You've hit your limit · resets 10pm (America/New_York)", true},
		{"Your limit will reset at 3pm", true},
		{"Not logged in · Please run /login", true},
		{"Unknown command", true},
		{"settings file is corrupt, resetting", true},
		{"Error: Exceeded USD budget (1)", true},
		{"```html\n<!DOCTYPE html><html><body><p>API Error: Rate limit reached</p></body></html>\n```", false},
		{"Traceback (most recent call last):\n  File \"x\"\nValueError: y", true},
		{"The error rate is 3 %.", false},
		{"Errors were found in two places:\n1. ...", false},
		{"DECISION: RELEASE\nScore: 3/4", false},
		{"Error handling is described in section 3.\n" + strings.Repeat("More text. ", 200), false},
		{"stdin bytes: 0; arguments: 0", false},
		{"[API Error: 401 status code (no body)]", true},
		{"✕ [API Error: [{ \"error\": { \"code\": 429 } }]]", true},
		{"■ stream disconnected before completion: Rate limit is exceeded. Try again in 11 seconds.", true},
		{"⎿ API Error: 529 Overloaded", true},
		{"You're out of extra usage · resets 7pm (Europe/Madrid)", true},
		{"5-hour limit reached ∙ resets 1am", true},
		{"Weekly limit reached · resets 10am (Asia/Seoul)", true},
		{"Opus limit reached ∙ resets Oct 9, 5pm", true},
		{"Your organization has disabled Claude subscription access for Claude Code", true},
		{"Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.", true},
		{"You have exhausted your capacity on this model. Your quota will reset after 18h31m9s.", true},
		{"Your account page is ready. Its three parts follow.", false},
		{"Resources are exhausted slowly in this story.", false},
		{"# Stream processing\n\nA stream is read once.", false},
		{"[x] done\n[ ] open", false},
		{"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body></html>", true},
		{"<!DOCTYPE html>\n<html lang=en><head><title>example.com | 502: Bad gateway</title><style>a{}</style></head><body>cloudflare" + strings.Repeat(" more", 900) + "</body></html>", true},
		{"<!DOCTYPE html><html><head><title>503 Service Unavailable</title><style>h1{color:red}</style></head><body><h1>Back soon</h1></body></html>", false},
		{"<!DOCTYPE html><html><head><title>404 Not Found</title></head><body></body></html>", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := Head(tt.text); got != tt.want {
			t.Errorf("Head(%.60q) = %v", tt.text, got)
		}
	}
	if !Denied("I need permission to read notes.md before I can go on.") || Denied("Permission is granted by the licence.") {
		t.Error("Denied")
	}
}

func FuzzReset(f *testing.F) {
	f.Add("resets Mar 15 at 12pm (Europe/London)")
	f.Add("try again in 5 days 22 hours")
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		until, ok := Reset(text, now, time.UTC)
		if ok && (until.Before(now.Add(time.Minute)) || until.Sub(now) > longest) {
			t.Errorf("%q: %v", text, until)
		}
	})
}
