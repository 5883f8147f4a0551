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

// A fact is the payload of an LLM_CALL_* event, by the names in the log; the host adds node and call_id.
type fact map[string]any

// put adds a field to an object of JSON only where it says something.
func put[T comparable](f map[string]any, name string, v T) {
	if v != *new(T) {
		f[name] = v
	}
}

func started(q *question) fact {
	address := q.provider.address()
	switch {
	case q.set.BaseURL != "":
		address = q.set.BaseURL
	case q.set.Provider == "sim":
		address = "cli:sim"
	}
	f := fact{
		"model": cmp.Or(q.set.Model, "default"), "provider_base_url": address,
		"prompt_hash": digest(q.prompt()), "max_tokens": q.set.MaxOutputTokens,
	}
	put(f, "temperature", q.set.Temperature)
	put(f, "prompt_tokens_estimate", prompt.EstimateTokens(int64(utf8.RuneCountInString(q.prompt()))))
	if len(q.set.Tools) > 0 {
		f["tool_schema_hash"] = digest(strings.Join(q.set.Tools, ","))
	}
	return f
}

func finished(r *reply) fact {
	in := r.Usage.Input + r.Usage.CacheRead + r.Usage.CacheWrite
	f := fact{
		"latency_ms": r.Latency.Milliseconds(),
		"token_usage": fact{
			"input_tokens": in, "output_tokens": r.Usage.Output, "total_tokens": in + r.Usage.Output,
		},
		"finish_reason": cmp.Or(r.Finish, "stop"), "output_hash": digest(r.Text),
	}
	put(f, "tool_calls_count", r.ToolCalls)
	if r.CostUSD != nil {
		put(f, "api_cost_usd", *r.CostUSD)
	}
	return f
}

// stops are the categories that no further attempt helps with as things are.
var stops = map[string]bool{
	"auth": true, "billing": true, "budget": true, "config": true, "input_too_big": true, "refused": true,
}

func failed(e *nodes.Error, status int, latency time.Duration) fact {
	f := fact{
		"latency_ms": latency.Milliseconds(), "error_class": e.Category, "error_summary": e.Message,
		"retryable": !e.Permanent && !stops[e.Category],
	}
	put(f, "error_details", e.Diagnostics)
	put(f, "http_status", status)
	return f
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
