package evidence

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Table lists what one program or API is known to say when it fails: as recorded
// (nodes/agent/testdata/recordings, by version), as its published source has it, or as its users reported. It is
// read only where that program or API reports a failure. What is not listed has the category that
// its type, its status or the end of the program gives.
type Table struct {
	Name     string
	Versions string // whose outputs these are
	// patterns are compiled when the first failure is read: most commands meet none, and would pay for them at
	// their start.
	patterns func() patterns
	// ignored are the beginnings of lines that say nothing about a failure.
	ignored []string
	// exits are the exit statuses that the program documents.
	exits map[int]string
}

// A known is what known outputs mean. Letters count regardless of case; * stands for up to 40 characters of a line.
// The category unsent is transient, and the request did not reach the service.
type known struct {
	category string
	texts    []string
}

// patterns are what a Table looks for in a text.
type patterns struct {
	statuses *regexp.Regexp // the words before a status of HTTP; nil: there are none
	outputs  []output
}

type output struct {
	category string
	unsent   bool
	text     *regexp.Regexp
}

func newTable(t Table, statuses string, lists ...[]known) *Table {
	t.patterns = sync.OnceValue(func() patterns { return compiled(statuses, lists) })
	return &t
}

func compiled(statuses string, lists [][]known) (p patterns) {
	if statuses != "" {
		p.statuses = regexp.MustCompile(`(?i)(?:` + statuses + `)\(?([345]\d\d)\b`)
	}
	for _, k := range slices.Concat(lists...) {
		out := output{category: k.category, unsent: k.category == "unsent"}
		if out.unsent {
			out.category = "transient"
		}
		for _, text := range k.texts {
			out.text = regexp.MustCompile(`(?i)` + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `[^\n]{0,40}?`))
			p.outputs = append(p.outputs, out)
		}
	}
	return p
}

// The tables of the programs and APIs that are built in.
var (
	Claude = newTable(Table{Name: "claude", Versions: "2.1.197, 2.1.332",
		ignored: []string{"Approaching ", "You've used "},
	}, `error:? |rejected |unexpected status `, claudeOutputs, anthropicOutputs)

	Codex = newTable(Table{Name: "codex", Versions: "0.171.0",
		ignored: []string{
			"WARNING: proceeding, even though we could not create PATH aliases", "Reading prompt from stdin", "Reconnecting... ",
		},
		exits: map[int]string{2: "config"},
	}, `unexpected status |last status: |\(status |failed to refresh token: `, codexOutputs)

	Gemini = newTable(Table{Name: "gemini", Versions: "0.61.0",
		ignored: []string{"Warning: ", "Ripgrep is not available"},
		// 145 = 401 modulo 256
		exits: map[int]string{41: "auth", 145: "auth", 42: "config", 44: "config", 52: "config", 53: "budget"},
	}, `error: |got status: |with status |^`, geminiOutputs)

	// Wrapped is for a program that is not built in and has failed: most are scripts around one of those, and hand on
	// what it said. Exit statuses are the script's own.
	Wrapped = newTable(Table{Name: "a known agent in another program"},
		`error:? |rejected |unexpected status |last status: |\(status |got status: |with status `,
		claudeOutputs, anthropicOutputs, codexOutputs, geminiOutputs)

	Anthropic = newTable(Table{Name: "anthropic"}, "", anthropicOutputs)
	OpenAI    = newTable(Table{Name: "openai"}, "", openaiOutputs)
)

var claudeOutputs = []known{
	{"quota_wait", []string{"out of extra usage"}},
	{"billing", []string{"extra usage is required", "usage credits are required"}},
	{"truncated", []string{"output token limit"}},
	{"billing", []string{"spending limit"}},
	{"quota_wait", []string{"usage limit reached", "you've hit your *limit", "you've reached your *limit",
		"limit reached *resets", "your limit will reset"}},
	{"budget", []string{"exceeded usd budget", "reached maximum budget", "reached maximum number of turns",
		"reached max turns"}},
	{"input_too_big", []string{"request too large", "piped stdin input exceeds"}},
	{"truncated", []string{"output token maximum", "reached its context window limit"}},
	{"refused", []string{"violate our usage policy"}},
	{"auth", []string{"not logged in", "please run /login", "failed to authenticate", "invalid api key",
		"oauth token *expired", "refresh token was already used", "has disabled claude subscription access",
		"your account has been disabled"}},
	{"config", []string{"issue with the selected model", "error: unknown option", "error: option '",
		"input must be provided", "input contained only whitespace", "requires --verbose",
		"local issuer certificate", "self-signed certificate"}},
	{"rate_limited", []string{"temporarily limiting requests", "rate limit"}},
	{"unsent", []string{"ECONNREFUSED", "(ConnectionRefused)"}},
	{"transient", []string{"connection_failed", "execution error", "overloaded"}},
}

// anthropicOutputs are said by the API with the type of a bad request, and by programs that pass them on.
var anthropicOutputs = []known{
	{"billing", []string{"credit balance is too low"}},
	{"quota_wait", []string{"reached your specified api usage limits"}},
	{"input_too_big", []string{"prompt is too long", "exceed context limit"}},
	{"config", []string{"maximum allowed number of output tokens"}},
	{"refused", []string{"content filtering policy"}},
	{"auth", []string{"organization has been disabled"}},
}

// openaiOutputs are those of servers that speak the chat API without its error codes.
var openaiOutputs = []known{
	{"input_too_big", []string{"maximum context length", "exceeds the context window"}},
	{"rate_limited", []string{"rate limit exceeded"}},
	{"auth", []string{"api key not valid"}},
}

// codexOutputs are the messages in the published source of its errors.
var codexOutputs = []known{
	{"quota_wait", []string{"you've hit your usage limit"}},
	{"billing", []string{"your workspace is out of credits", "you hit your spend cap",
		"quota exceeded. check your plan and billing", "to use codex with your chatgpt plan"}},
	{"input_too_big", []string{"ran out of room in the model's context window",
		"input exceeds the maximum length"}},
	{"truncated", []string{"reason: max_output_tokens"}},
	{"refused", []string{"reason: content_filter"}},
	{"auth", []string{"access token could not be refreshed", "failed to refresh token"}},
	{"config", []string{"not supported when using codex with a chatgpt account", "missing environment variable"}},
	{"rate_limited", []string{"selected model is at capacity", "rate limit reached for",
		"rate limit is exceeded"}},
	{"transient", []string{"experiencing high demand", "stream disconnected before completion", "stream error: ",
		"connection failed", "connection reset by peer"}},
}

var geminiOutputs = []known{
	{"quota_wait", []string{"exhausted your daily quota", "exhausted your capacity on this model",
		"usage limit reached for", "per day per user"}},
	{"auth", []string{"api key not valid", "api key expired", "set an auth method", "authentication cancelled",
		"cached credentials are not valid"}},
	{"config", []string{"unknown argument", "no input provided via stdin"}},
	{"input_too_big", []string{"exceeds the maximum number of tokens"}},
	{"budget", []string{"max session turns"}},
	{"rate_limited", []string{"resource has been exhausted", "resource exhausted"}},
}

// A meaning is what an error type says: its category, and the status of HTTP that it stands for where a service sends
// it without one; 0 = none.
type meaning struct {
	category string
	status   int
}

// types are what the error types, codes and reasons of the APIs and programs mean, in small letters. One place for all:
// gateways hand on each other's words.
var types = meanings(map[meaning]string{
	{"protocol", 400}: "invalid_request_error invalid_prompt",
	// Anthropic, claude's own words, OpenAI, Google, gemini's own words
	{"auth", 401}: "authentication_error authentication_failed oauth_org_not_allowed cloud_credential_error " +
		"account_on_hold verification_required invalid_api_key account_deactivated unauthenticated api_key_invalid " +
		"fatalauthenticationerror validationrequirederror",
	{"auth", 403}: "permission_error permission_denied",
	{"billing", 402}: "billing_error insufficient_quota billing_hard_limit_reached billing_not_active " +
		"usage_not_included no_quota insufficient_g1_credits_balance",
	{"config", 404}: "not_found_error model_not_found not_found modelnotfounderror " +
		"fatalinputerror fatalconfigerror",
	{"input_too_big", 413}: "request_too_large prompt_too_long context_length_exceeded string_above_max_length",
	{"rate_limited", 429}: "rate_limit_error rate_limit rate_limit_exceeded slow_down resource_exhausted " +
		"retryablequotaerror",
	{"quota_wait", 429}: "usage_limit_reached quota_exhausted quota_per_day terminalquotaerror",
	{"refused", 451}:    "content_filter content_policy_violation",
	{"transient", 0}:    "connection_failed",
	{"transient", 500}:  "api_error server_error internal internal_server_error",
	{"transient", 503}:  "unavailable service_unavailable server_is_overloaded",
	{"transient", 504}:  "timeout_error deadline_exceeded",
	{"transient", 529}:  "overloaded_error overloaded",
	{"truncated", 0}:    "max_output_tokens",
	{"budget", 0}:       "budget_exhausted max_turns fatalturnlimitederror",
	{"killed", 0}:       "fatalcancellationerror",
})

func meanings(words map[meaning]string) map[string]meaning {
	byWord := map[string]meaning{}
	for m, list := range words {
		for _, word := range strings.Fields(list) {
			byWord[word] = m
		}
	}
	return byWord
}

// status returns the status that the program puts into its messages, else 0.
func (t *Table) status(text string) int {
	if t == nil || t.patterns().statuses == nil {
		return 0
	}
	if m := t.patterns().statuses.FindStringSubmatch(head(text, 4000)); m != nil {
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
	for _, o := range t.patterns().outputs {
		if at := o.text.FindStringIndex(text); at != nil {
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

// relevant returns a text without the lines that are to be ignored.
func (t *Table) relevant(text string) string {
	if t == nil || len(t.ignored) == 0 {
		return text
	}
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		plain := strings.TrimSpace(strings.ReplaceAll(line, "’", "'"))
		if !slices.ContainsFunc(t.ignored, func(begin string) bool { return strings.HasPrefix(plain, begin) }) {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}
