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

// a-cli/13: wall-clock resets, with named zones, daylight saving and dates without a year.
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
		e := Case{From: Claude, Text: text, Now: now.In(zone), Tries: 1}.Error()
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
			if later := (Case{From: Claude, Text: text, Now: now.In(zone), Tries: 3}).Error(); later.WaitUntil.Sub(now) <= wait {
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

// The other formats in which programs and APIs say when: fields, durations, dates.
func TestReset(t *testing.T) {
	now := at(t, "2026-03-10T12:00:00Z") // a Tuesday
	tests := []struct{ text, want string }{
		{`{"error":{"type":"usage_limit_reached","resets_at":1773144900,"resets_in_seconds":900}}`, "2026-03-10T12:15:00Z"},
		{`{"resets_at":1773144900123}`, "2026-03-10T12:15:00Z"},
		{`resets_in_seconds: 3600.5`, "2026-03-10T13:00:00Z"},
		{"Claude AI usage limit reached|1773159000", "2026-03-10T16:10:00Z"},
		{"Claude AI usage limit reached|1773159000000", "2026-03-10T16:10:00Z"},
		{"Try again in 2 hours 10 minutes.", "2026-03-10T14:10:00Z"},
		{"Try again in 5 days 22 hours 11 minutes.", "2026-03-16T10:11:00Z"},
		{"try again in 1 day, 2 hours and 3 minutes", "2026-03-11T14:03:00Z"},
		{"Your quota will reset after 1h2m3s.", "2026-03-10T13:02:03Z"},
		{"Limit resets in 45m", "2026-03-10T12:45:00Z"},
		{"or try again at Mar 10th, 2026 8:19 PM.", "2026-03-10T20:19:00Z"},
		{"Try again at 8:19 PM.", "2026-03-10T20:19:00Z"},
		{"try again at 20:19", "2026-03-10T20:19:00Z"},
		{"available again at 2026-03-10T15:00:00+02:00", "2026-03-10T13:00:00Z"},
		{"You will regain access on 2026-03-20 at 00:00 UTC.", "2026-03-20T00:00:00Z"},
		{"5-hour limit reached ∙ resets 3pm", "2026-03-10T15:00:00Z"},
		{"resets 12:30am (UTC)", "2026-03-11T00:30:00Z"},
		{"resets 11:50am (UTC)", "2026-03-10T12:02:00Z"}, // ten minutes ago: the floor
		{"resets Mar 9 at 8am (UTC)", "2026-03-10T12:02:00Z"},
		{"resets Nov 31 at 3pm (UTC)", ""}, // not in the calendar
		{"resets 6pm (GMT+05:30)", "2026-03-10T12:30:00Z"},
		{"resets 6pm (UTC-3)", "2026-03-10T21:00:00Z"},
		{"resets 6pm (+0200)", "2026-03-10T16:00:00Z"},
		{"resets 6pm EST", "2026-03-10T23:00:00Z"},
		{"resets 18:30 UTC", "2026-03-10T18:30:00Z"},
		{"resets 6pm UTC+2 or later", "2026-03-10T16:00:00Z"},
		{"resets 6pm today", "2026-03-10T18:00:00Z"},
		{"resets March 15 at 12pm (Europe/London)", "2026-03-15T12:00:00Z"},
		{"usage limit reached | 1773149400", "2026-03-10T13:30:00Z"},
		{"resets 6pm (UTC+25)", ""}, // a zone that is not known is no reason to take the runner's
		{"resets 6pm PSTX", ""},
		{"resets 6pm (Ortszeit)", ""},
		{"resets 6pm (../../etc/passwd)", ""},
		{"resets soon", ""},
		{"resets 13pm (UTC)", ""},
		{"resets 10:75 (UTC)", ""},
		{"resets 3pm (Nowhere/Land)", ""},
		{"resets 3 (UTC)", ""},
		{"resets_at: 99999999999999999999", ""},
		{"try again in 99999999 days", ""},
		{"", ""},
		// far away: how long to wait at most is not for this package to say. X4, a-cli/12
		{"Claude AI usage limit reached|1807704000", "2027-04-14T12:00:00Z"},
		{"Try again in 60 days", "2026-05-09T12:00:00Z"},
	}
	for _, tt := range tests {
		got, ok := resetAt(tt.text, now)
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
		if got, _ := delay(tt.text); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

// Types, codes and statuses decide; the table of who speaks says more where it knows the words. A-3, M2
func TestCategories(t *testing.T) {
	type table = *Table
	tests := []struct {
		from     table
		status   int
		types    string
		text     string
		category string
		final    bool
		refused  bool
	}{
		// status
		{nil, 529, "", "something", "transient", false, true},
		{nil, 504, "", "something", "transient", false, false}, // somebody between gave up waiting: it may have run
		{nil, 400, "", "something", "protocol", true, true},
		{nil, 403, "", "<html><title>Just a moment...</title></html>", "transient", false, true},
		{nil, 402, "", "", "billing", false, true},
		// types, in fields or in an object inside the message
		{nil, 429, "insufficient_quota", "", "billing", false, true},
		{nil, 400, "context_length_exceeded", "", "input_too_big", true, true},
		{nil, 0, "", `{"error":{"code":"model_not_found","message":"no such model"}}`, "config", false, true},
		{nil, 0, "", `API Error: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, "transient", false, false},
		{nil, 0, "", `{"error":{"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"slow\"\n  }\n}\n"}}`, "rate_limited", false, true},
		{nil, 429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}`, "quota_wait", false, true},
		{nil, 429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"TokensPerMinute"}]},{"retryDelay":"26s"}]}}`, "rate_limited", false, true},
		{Claude, 0, "connection_failed", "API Error: Connection dropped (ECONNRESET)", "transient", false, false},
		{Claude, 0, "connection_failed", "API Error: Connection refused (ECONNREFUSED)", "transient", false, true},
		{Claude, 400, "invalid_request_error prompt_too_long", "", "input_too_big", true, true},
		// known outputs: only those of the one that speaks, and never against a particular type
		{Claude, 400, "invalid_request_error", "Credit balance is too low", "billing", false, true},
		{nil, 0, "", "Credit balance is too low", "transient", false, false},
		{Codex, 0, "", "Credit balance is too low", "transient", false, false},
		{Claude, 401, "", "You've hit your limit", "auth", false, true},
		{Claude, 429, "rate_limit_error", "You’ve hit your session limit · resets 3pm (Europe/Berlin)", "quota_wait", false, true},
		{Claude, 429, "rate_limit_error", "This request would exceed your account's rate limit.", "rate_limited", false, true},
		{Claude, 0, "", "API Error: 529 Overloaded", "transient", false, true},
		{Claude, 0, "", "API Error: Request rejected (429) · slow down", "rate_limited", false, true},
		{Claude, 0, "", "Not logged in · Please run /login", "auth", false, true},
		{Claude, 0, "max_output_tokens", "API Error: Claude's response exceeded the 32000 output token maximum.", "truncated", true, false},
		{Codex, 0, "", "unexpected status 401 Unauthorized", "auth", false, true},
		{Codex, 0, "", "exceeded retry limit, last status: 429 Too Many Requests", "rate_limited", false, true},
		{Codex, 0, "", "You've hit your usage limit. Try again in 2 hours.", "quota_wait", false, true},
		{Codex, 0, "", "stream disconnected before completion: error sending request", "transient", false, false},
		{Codex, 0, "", "Incomplete response returned, reason: max_output_tokens", "truncated", true, false},
		{Gemini, 0, "", "Attempt 1 failed with status 429. Retrying with backoff...", "rate_limited", false, true},
		{Gemini, 429, "", "You have exhausted your daily quota on this model.", "quota_wait", false, true},
		// lines that a table ignores hides nothing. X2
		{Codex, 0, "", "WARNING: proceeding, even though we could not create PATH aliases: temporary dir\nunexpected status 401 x", "auth", false, true},
		{Claude, 0, "", "Approaching usage limit reached · resets at 2am\nunable to connect", "transient", false, false},
		// prose means nothing
		{Claude, 0, "", "The disk is full of money.", "transient", false, false},
		{nil, 0, "", "rate limit, billing, unauthorized, usage limit reached", "transient", false, false},
	}
	for _, tt := range tests {
		c := Case{From: tt.from, Status: tt.status, Types: strings.Fields(tt.types), Text: tt.text, Now: at(t, "2026-03-10T12:00:00Z")}
		e, refused := c.Judge()
		if e.Category != tt.category || e.Permanent != tt.final || refused != tt.refused {
			t.Errorf("%d %s %q: %s permanent=%v refused=%v, want %s %v %v", tt.status, tt.types, tt.text, e.Category, e.Permanent, refused, tt.category, tt.final, tt.refused)
		}
		if e.Category == "quota_wait" && e.WaitUntil.IsZero() {
			t.Errorf("%q: no time to wait until", tt.text)
		}
	}
}

// A wait that somebody declared counts where the text names none.
func TestAs(t *testing.T) {
	now := at(t, "2026-03-10T12:00:00Z")
	for _, tt := range []struct {
		text, category, want string
		wait                 time.Duration
	}{
		{"come back", "quota_wait", "2026-03-10T13:00:00Z", time.Hour},
		{"come back", "quota_wait", "2026-03-10T12:01:00Z", 0},
		{"try again in 2 hours", "quota_wait", "2026-03-10T14:00:00Z", time.Hour},
	} {
		if e, _ := (Case{Text: tt.text, Now: now}).As(tt.category, tt.wait); !e.WaitUntil.Equal(at(t, tt.want)) {
			t.Errorf("%q: %v, want %s", tt.text, e.WaitUntil, tt.want)
		}
	}
	if e, _ := (Case{Text: "slow", Now: now}).As("rate_limited", time.Minute); e.RetryAfter != time.Minute || e.Message != "slow" {
		t.Errorf("%+v", e)
	}
}

// Messages are for people: the words inside JSON, not the JSON.
func TestMessageInsideJSON(t *testing.T) {
	for text, want := range map[string]string{
		`API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."},"request_id":"r"} · Please run /login`:        "API Error: 401 OAuth token has expired. · Please run /login",
		`{"error":{"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Resource has been exhausted (e.g. check quota).\"\n  }\n}\n","code":429}}`: "Resource has been exhausted (e.g. check quota).",
		`✕ [API Error: [{"error": {"code": 429, "message": "Resource exhausted."}}]]`:                                                                              "✕ [API Error: Resource exhausted.",
		`{"type":"error","error":{"type":"overloaded_error"}}`:                                                                                                     "overloaded_error",
		`unexpected status 500: {"x":1}`: `unexpected status 500: {"x":1}`,
		`{"error":{"message":"cut`:       `{"error":{"message":"cut`,
		"Reading…\nNot logged in":        "Not logged in",
		"":                               "no message",
	} {
		if e := (Case{From: Claude, Text: text, Now: time.Now()}).Error(); e.Message != want {
			t.Errorf("%q:\n %q, want %q", text, e.Message, want)
		}
	}
}

// What is listed must be found by itself, and no list may grow into a reader of prose.
func TestTables(t *testing.T) {
	for i, table := range []*Table{Claude, Codex, Gemini, Anthropic, OpenAI} {
		if len(table.patterns().outputs) > 60 {
			t.Errorf("table %d knows %d outputs; a type, a status or a declared pattern should do", i, len(table.patterns().outputs))
		}
	}
	for table, names := range map[*Table][]string{Claude: {"claude", "anthropic"}, Codex: {"codex"}, Gemini: {"gemini"}, OpenAI: {"openai"}} {
		for _, name := range names {
			if len(lists()[name]) == 0 {
				t.Errorf("known.txt has no list %s", name)
			}
			for _, k := range lists()[name] {
				for _, text := range strings.Split(k.texts, " | ") {
					text = strings.ReplaceAll(text, "*", " weekly ")
					if got, _ := table.output("x\n" + text); got.category != k.category && !got.unsent {
						t.Errorf("%s: %q is %q, want %q", name, text, got.category, k.category)
					}
				}
			}
		}
	}
}

func FuzzReset(f *testing.F) {
	f.Add("resets Mar 15 at 12pm (Europe/London)")
	f.Add("try again in 5 days 22 hours")
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		until, ok := resetAt(text, now)
		if ok && (until.Before(now.Add(time.Minute)) || until.Sub(now) > longest) {
			t.Errorf("%q: %v", text, until)
		}
	})
}

func FuzzCase(f *testing.F) {
	f.Add(`API Error: 401 {"type":"error","error":{"message":"{\"error\":1}"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, table := range []*Table{nil, Claude, Codex, Gemini} {
			if e, _ := (Case{From: table, Text: text, Now: time.Unix(1, 0)}).Judge(); e.Category == "" || e.Message == "" {
				t.Errorf("%q: %+v", text, e)
			}
		}
	})
}
