package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/prompt"
)

// The payloads of LLM_CALL_*; the host adds node and call_id.

type callStarted struct {
	Model           string   `json:"model"`
	ProviderBaseURL string   `json:"provider_base_url"`
	PromptHash      string   `json:"prompt_hash"`
	Temperature     *float64 `json:"temperature,omitempty"`
	MaxTokens       int64    `json:"max_tokens"`
	ToolSchemaHash  string   `json:"tool_schema_hash,omitempty"`
	PromptTokens    int64    `json:"prompt_tokens_estimate,omitempty"`
}

type tokenUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Total  int64 `json:"total_tokens"`
}

type callFinished struct {
	LatencyMS      int64      `json:"latency_ms"`
	TokenUsage     tokenUsage `json:"token_usage"`
	FinishReason   string     `json:"finish_reason"`
	OutputHash     string     `json:"output_hash"`
	APICostUSD     float64    `json:"api_cost_usd,omitempty"`
	ToolCallsCount int        `json:"tool_calls_count,omitempty"`
}

type callFailed struct {
	LatencyMS    int64  `json:"latency_ms"`
	ErrorClass   string `json:"error_class"`
	ErrorSummary string `json:"error_summary"`
	Retryable    bool   `json:"retryable"`
	ErrorDetails string `json:"error_details,omitempty"`
	HTTPStatus   int    `json:"http_status,omitempty"`
}

func started(p provider, q *question) callStarted {
	c := callStarted{
		Model: cmp.Or(q.set.Model, "default"), ProviderBaseURL: p.address(),
		PromptHash: digest(q.prompt()), MaxTokens: q.set.MaxOutputTokens, Temperature: q.set.Temperature,
		PromptTokens: prompt.EstimateTokens(int64(utf8.RuneCountInString(q.prompt()))),
	}
	switch {
	case q.set.BaseURL != "":
		c.ProviderBaseURL = q.set.BaseURL
	case q.set.Provider == "sim":
		c.ProviderBaseURL = "cli:sim"
	}
	if len(q.set.Tools) > 0 {
		c.ToolSchemaHash = digest(strings.Join(q.set.Tools, ","))
	}
	return c
}

func finished(r *reply) callFinished {
	in := r.Usage.Input + r.Usage.CacheRead + r.Usage.CacheWrite
	c := callFinished{
		LatencyMS:    r.Latency.Milliseconds(),
		TokenUsage:   tokenUsage{Input: in, Output: r.Usage.Output, Total: in + r.Usage.Output},
		FinishReason: cmp.Or(r.Finish, "stop"), OutputHash: digest(r.Text), ToolCallsCount: r.ToolCalls,
	}
	if r.CostUSD != nil {
		c.APICostUSD = *r.CostUSD
	}
	return c
}

// stops are the categories that no further attempt helps with as things are.
var stops = map[string]bool{
	"auth": true, "billing": true, "budget": true, "config": true, "input_too_big": true, "refused": true,
}

func failed(e *nodes.Error, status int, latency time.Duration) callFailed {
	return callFailed{
		LatencyMS: latency.Milliseconds(), ErrorClass: e.Category, ErrorSummary: e.Message,
		Retryable: !e.Permanent && !stops[e.Category], ErrorDetails: e.Diagnostics, HTTPStatus: status,
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
