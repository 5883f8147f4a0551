package evidence

import (
	"regexp"
	"strings"
)

// A Table lists what one program or API is known to say when it fails: as recorded
// (nodes/agent/testdata/recordings, by version), as its published source has it, or as its users reported. It is
// read only where that program or API tells of a failure. What is not listed has the category that
// its type, its status or the end of the program gives.
type Table struct {
	Name     string
	Versions string // whose outputs these are
	// statuses are the words before a status of HTTP.
	statuses *regexp.Regexp
	outputs  []output
	// noise are the beginnings of lines on stderr that say nothing about a failure.
	noise []string
	// exits are the exit statuses that the program documents.
	exits map[int]string
}

// An output is a known text: text holds it, regardless of case; * stands for up to 40 characters of a line.
type output struct {
	text, category string
	unsent         bool // the request did not reach the service
	re             *regexp.Regexp
}

func newTable(t Table, statuses string, tables ...[]output) *Table {
	if statuses != "" {
		t.statuses = regexp.MustCompile(`(?i)(?:` + statuses + `)\(?([345]\d\d)\b`)
	}
	for _, list := range tables {
		for _, o := range list {
			words := strings.Split(o.text, "*")
			for i := range words {
				words[i] = regexp.QuoteMeta(words[i])
			}
			o.re = regexp.MustCompile(`(?i)` + strings.Join(words, `[^\n]{0,40}?`))
			t.outputs = append(t.outputs, o)
		}
	}
	return &t
}

// The tables of the programs and APIs that are built in.
var (
	Claude = newTable(Table{Name: "claude", Versions: "2.1.197, 2.1.332",
		noise: []string{"Approaching ", "You've used "},
	}, `error:? |rejected |unexpected status `, claudeOutputs, anthropicOutputs)

	Codex = newTable(Table{Name: "codex", Versions: "0.171.0",
		noise: []string{"WARNING: proceeding, even though we could not create PATH aliases", "Reading prompt from stdin", "Reconnecting... "},
		exits: map[int]string{2: "config"},
	}, `unexpected status |last status: |\(status |failed to refresh token: `, codexOutputs)

	Gemini = newTable(Table{Name: "gemini", Versions: "0.61.0",
		noise: []string{"Warning: ", "Ripgrep is not available"},
		exits: map[int]string{41: "auth", 145: "auth", 42: "config", 44: "config", 52: "config", 53: "budget"}, // 145 = 401 modulo 256
	}, `error: |got status: |with status |^`, geminiOutputs)

	Anthropic = newTable(Table{Name: "anthropic"}, "", anthropicOutputs)
	OpenAI    = newTable(Table{Name: "openai"}, "", openaiOutputs)
)

var claudeOutputs = []output{
	{text: "out of extra usage", category: "quota_wait"},
	{text: "extra usage is required", category: "billing"},
	{text: "usage credits are required", category: "billing"},
	{text: "output token limit", category: "truncated"},
	{text: "spending limit", category: "billing"},
	{text: "usage limit reached", category: "quota_wait"},
	{text: "you've hit your *limit", category: "quota_wait"},
	{text: "you've reached your *limit", category: "quota_wait"},
	{text: "limit reached *resets", category: "quota_wait"},
	{text: "your limit will reset", category: "quota_wait"},
	{text: "exceeded usd budget", category: "budget"},
	{text: "reached maximum budget", category: "budget"},
	{text: "reached maximum number of turns", category: "budget"},
	{text: "reached max turns", category: "budget"},
	{text: "request too large", category: "input_too_big"},
	{text: "piped stdin input exceeds", category: "input_too_big"},
	{text: "output token maximum", category: "truncated"},
	{text: "reached its context window limit", category: "truncated"},
	{text: "violate our usage policy", category: "refused"},
	{text: "not logged in", category: "auth"},
	{text: "please run /login", category: "auth"},
	{text: "failed to authenticate", category: "auth"},
	{text: "invalid api key", category: "auth"},
	{text: "oauth token *expired", category: "auth"},
	{text: "refresh token was already used", category: "auth"},
	{text: "has disabled claude subscription access", category: "auth"},
	{text: "your account has been disabled", category: "auth"},
	{text: "issue with the selected model", category: "config"},
	{text: "error: unknown option", category: "config"},
	{text: "error: option '", category: "config"},
	{text: "input must be provided", category: "config"},
	{text: "input contained only whitespace", category: "config"},
	{text: "requires --verbose", category: "config"},
	{text: "local issuer certificate", category: "config"},
	{text: "self-signed certificate", category: "config"},
	{text: "temporarily limiting requests", category: "rate_limited"},
	{text: "rate limit", category: "rate_limited"},
	{text: "ECONNREFUSED", category: "transient", unsent: true},
	{text: "(ConnectionRefused)", category: "transient", unsent: true},
	{text: "connection_failed", category: "transient"},
	{text: "execution error", category: "transient"},
	{text: "overloaded", category: "transient"},
}

// anthropicOutputs are told by the API with the type of a bad request, and by programs that pass them on.
var anthropicOutputs = []output{
	{text: "credit balance is too low", category: "billing"},
	{text: "reached your specified api usage limits", category: "quota_wait"},
	{text: "prompt is too long", category: "input_too_big"},
	{text: "exceed context limit", category: "input_too_big"},
	{text: "maximum allowed number of output tokens", category: "config"},
	{text: "content filtering policy", category: "refused"},
	{text: "organization has been disabled", category: "auth"},
}

// openaiOutputs are those of servers that speak the chat API without its error codes.
var openaiOutputs = []output{
	{text: "maximum context length", category: "input_too_big"},
	{text: "exceeds the context window", category: "input_too_big"},
	{text: "rate limit exceeded", category: "rate_limited"},
	{text: "api key not valid", category: "auth"}, // Google's, with the type of a bad request
}

// codexOutputs are the messages in the published source of its errors.
var codexOutputs = []output{
	{text: "you've hit your usage limit", category: "quota_wait"},
	{text: "your workspace is out of credits", category: "billing"},
	{text: "you hit your spend cap", category: "billing"},
	{text: "quota exceeded. check your plan and billing", category: "billing"},
	{text: "to use codex with your chatgpt plan", category: "billing"},
	{text: "ran out of room in the model's context window", category: "input_too_big"},
	{text: "input exceeds the maximum length", category: "input_too_big"},
	{text: "reason: max_output_tokens", category: "truncated"},
	{text: "reason: content_filter", category: "refused"},
	{text: "access token could not be refreshed", category: "auth"},
	{text: "failed to refresh token", category: "auth"},
	{text: "not supported when using codex with a chatgpt account", category: "config"},
	{text: "missing environment variable", category: "config"},
	{text: "selected model is at capacity", category: "rate_limited"},
	{text: "rate limit reached for", category: "rate_limited"},
	{text: "rate limit is exceeded", category: "rate_limited"},
	{text: "experiencing high demand", category: "transient"},
	{text: "stream disconnected before completion", category: "transient"},
	{text: "stream error: ", category: "transient"},
	{text: "connection failed", category: "transient"},
	{text: "connection reset by peer", category: "transient"},
}

var geminiOutputs = []output{
	{text: "exhausted your daily quota", category: "quota_wait"},
	{text: "exhausted your capacity on this model", category: "quota_wait"},
	{text: "usage limit reached for", category: "quota_wait"},
	{text: "per day per user", category: "quota_wait"},
	{text: "api key not valid", category: "auth"},
	{text: "api key expired", category: "auth"},
	{text: "set an auth method", category: "auth"},
	{text: "authentication cancelled", category: "auth"},
	{text: "cached credentials are not valid", category: "auth"},
	{text: "unknown argument", category: "config"},
	{text: "no input provided via stdin", category: "config"},
	{text: "exceeds the maximum number of tokens", category: "input_too_big"},
	{text: "max session turns", category: "budget"},
	{text: "resource has been exhausted", category: "rate_limited"},
	{text: "resource exhausted", category: "rate_limited"},
}

// categories are what the error types, codes and reasons of the APIs and programs mean, in small letters.
var categories = map[string]string{
	// Anthropic, and claude's own words for the same
	"invalid_request_error": "protocol", "authentication_error": "auth", "permission_error": "auth", "billing_error": "billing",
	"not_found_error": "config", "request_too_large": "input_too_big", "rate_limit_error": "rate_limited", "api_error": "transient",
	"overloaded_error": "transient", "timeout_error": "transient", "authentication_failed": "auth", "oauth_org_not_allowed": "auth",
	"cloud_credential_error": "auth", "account_on_hold": "auth", "verification_required": "auth", "rate_limit": "rate_limited",
	"overloaded": "transient", "server_error": "transient", "connection_failed": "transient", "max_output_tokens": "truncated",
	"prompt_too_long": "input_too_big", "budget_exhausted": "budget", "max_turns": "budget",
	// OpenAI, and servers that speak its API
	"invalid_api_key": "auth", "account_deactivated": "auth", "insufficient_quota": "billing", "billing_hard_limit_reached": "billing",
	"billing_not_active": "billing", "usage_not_included": "billing", "usage_limit_reached": "quota_wait", "rate_limit_exceeded": "rate_limited",
	"slow_down": "rate_limited", "context_length_exceeded": "input_too_big", "string_above_max_length": "input_too_big",
	"model_not_found": "config", "content_filter": "refused", "content_policy_violation": "refused", "server_is_overloaded": "transient",
	// Google, and gemini's own words for the same
	"unauthenticated": "auth", "permission_denied": "auth", "api_key_invalid": "auth", "not_found": "config", "resource_exhausted": "rate_limited",
	"quota_exhausted": "quota_wait", "quota_per_day": "quota_wait", "no_quota": "billing", "insufficient_g1_credits_balance": "billing",
	"unavailable": "transient", "internal": "transient", "deadline_exceeded": "transient", "fatalauthenticationerror": "auth",
	"validationrequirederror": "auth", "terminalquotaerror": "quota_wait", "retryablequotaerror": "rate_limited", "modelnotfounderror": "config",
	"fatalinputerror": "config", "fatalconfigerror": "config", "fatalturnlimitederror": "budget", "fatalcancellationerror": "killed",
}

// status returns the status that the program puts into its messages, else 0.
func (t *Table) status(text string) int {
	if t == nil || t.statuses == nil {
		return 0
	}
	if m := t.statuses.FindStringSubmatch(head(text, 4000)); m != nil {
		return httpStatus(m[1])
	}
	return 0
}

// output returns the first known output in a text, with the line it stands on.
func (t *Table) output(text string) (out output, line string) {
	if t == nil {
		return output{}, ""
	}
	text = strings.ReplaceAll(head(text, mostText), "’", "'")
	for _, o := range t.outputs {
		if at := o.re.FindStringIndex(text); at != nil {
			begin := strings.LastIndexByte(text[:at[0]], '\n') + 1
			line, _, _ = strings.Cut(text[begin:], "\n")
			return o, line
		}
	}
	return output{}, ""
}

// Exit returns the category that an exit status of the program documents, "" for none.
func (t *Table) Exit(status int) string {
	if t == nil {
		return ""
	}
	return t.exits[status]
}

// quiet returns a text without the lines that are known to say nothing.
func (t *Table) quiet(text string) string {
	if t == nil || len(t.noise) == 0 {
		return text
	}
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		plain := strings.TrimSpace(strings.ReplaceAll(line, "’", "'"))
		noisy := false
		for _, begin := range t.noise {
			noisy = noisy || strings.HasPrefix(plain, begin)
		}
		if !noisy {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}
