package transcript

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// Claude is what `claude -p` prints with --output-format stream-json, or json: events, of which the last
// of type result says how it ended. Which events and fields exist changes between versions; unknown
// ones are skipped.
var Claude = Format{
	Table: evidence.Claude, Stream: true,
	Last: func(o object) bool { return o.Str("type") == "result" },
	Read: events{
		"assistant":    claudeAssistant,
		"stream_event": func(t *Transcript, o object) { messagesTokens(t, o.Object("event")) },
		"user": func(t *Transcript, o object) {
			if !o.Yes("isSynthetic") { // a tool's result; "go on, you were cut" is synthetic
				t.open = false
			}
		},
		"rate_limit_event": func(t *Transcript, o object) {
			if info := o.Object("rate_limit_info"); info.Str("status") == "rejected" {
				t.planLimit, _ = json.Marshal(info)
			}
		},
		"result": claudeResult,
	}.read,
}

func claudeAssistant(t *Transcript, o object) {
	m := o.Object("message")
	model := m.Str("model")
	if model == "<synthetic>" || o.Yes("is_api_error_message") || o.Yes("isApiErrorMessage") {
		if c := t.fail(0, texts(m), o.Str("error")); !c.Irrelevant() {
			t.reported = append(t.reported, *c)
		}
		return
	}
	c := t.call(m.Str("id"))
	used, _ := messagesUsage(m.Object("usage"))
	c.take(used)
	sub := o.Has("parent_tool_use_id") // a sub-agent talks to the agent, not to us
	if !sub {
		t.answered(model)
	}
	for _, block := range m.Objects("content") {
		text := block.Str("text")
		if !c.streamed {
			c.wrote(text, block.Str("thinking"), string(block["input"]))
		}
		switch kind := block.Str("type"); {
		case sub:
		case kind == "text":
			t.say(m.Str("id"), text)
		case kind == "tool_use":
			t.tools++
			t.open = false
			if block.Str("name") == "StructuredOutput" {
				t.object = block["input"]
			}
		}
	}
}

func claudeResult(t *Transcript, o object) {
	claudeSums(t, o)
	result, subtype, reason, stop := o.Str("result"), o.Str("subtype"), o.Str("terminal_reason"), o.Str("stop_reason")
	said, types := claudeErrors(o), []string{o.Str("api_error_type"), o.Str("api_error"), reason}
	if result != "" {
		said = append(said, result)
	}
	for _, c := range t.reported {
		said, types = append(said, c.Text), append(types, c.Types...)
	}
	status := o.Status("api_error_status")
	if t.planLimit != nil && (status == 0 || status == http.StatusTooManyRequests) {
		said, types = append(said, string(t.planLimit)), append(types, "usage_limit_reached")
	}
	turns, counted := o.Num("num_turns")
	e := ending{turned: stop == "" || stops[stop] == stopWhole}
	if o.Has("structured_output") {
		e.object = o["structured_output"]
	}
	text := strings.Join(said, "\n")
	switch {
	case strings.HasPrefix(subtype, "error_max_turns"):
		e.failsAs("budget", MaxTurns)
		if stop == "max_tokens" {
			e.cut = stop
		}
	case strings.HasPrefix(subtype, "error_max_budget"):
		e.failsAs("budget", MaxUSD)
	case subtype == "error_max_structured_output_retries":
		e.failsAs("bad_answer", "the agent gave up: no answer fitted the schema: "+printable.Clip(text, 300))
	case stop == "refusal":
		e.refuses(result)
	case strings.HasPrefix(reason, "aborted"):
		e.failsAs("killed", "the agent was interrupted ("+reason+")")
	case o.Yes("is_error"), strings.HasPrefix(subtype, "error"):
		text = cmp.Or(text, strings.TrimPrefix(subtype, "success"), "an error without a message")
		e.fails(t.fail(status, text, types...))
	case counted && turns == 0 && len(t.calls) == 0:
		e.failsAs("protocol", "the agent answered without asking the model: "+printable.Clip(result, 200))
		e.err.Permanent = o.Has("result")
	default:
		e.text = claudeText(o)
		if !e.turned && (stop != "tool_use" || e.object == nil) { // the call of a tool is the end of a shaped answer
			e.stops(stop, e.text)
		}
		if turns > 1 && len(t.calls) == 0 && e.text != "" {
			t.warn("several turns, of which the output shows only the last: the answer may be its tail")
		}
	}
	if e.err != nil {
		t.reported = nil // part of it
	}
	t.end(e)
}

// MaxTurns and MaxUSD are the messages of an agent that a limit of the specification stopped: the fields of the limits.
const MaxTurns, MaxUSD = "maxTurns", "maxUSD"

// claudeErrors are texts, or objects with a message.
func claudeErrors(o object) (said []string) {
	for _, raw := range o.List("errors") {
		var s string
		var e object
		switch {
		case json.Unmarshal(raw, &s) == nil:
			said = append(said, s)
		case json.Unmarshal(raw, &e) == nil:
			said = append(said, cmp.Or(e.Str("message"), string(raw)))
		}
	}
	return said
}

// claudeText returns the answer of a result event: a text, a list of text blocks, or what a JSON
// schema was asked for.
func claudeText(o object) string {
	text := o.Str("result")
	if text == "" && o.Has("result") {
		text = texts(object{"content": o["result"]})
	}
	if text == "" && o.Has("structured_output") {
		text = string(o["structured_output"])
	}
	return text
}

// claudeSums takes what a result reports of money, tokens, models and refused tools.
func claudeSums(t *Transcript, o object) {
	switch total, ok := o.Num("total_cost_usd"); {
	case !o.Has("total_cost_usd"):
	case !ok || !sane(total):
		raw := printable.Clip(string(o["total_cost_usd"]), 40)
		t.warn("the cost reported, %s, is no amount of money; it counts as unknown", raw)
	default:
		t.book(total)
	}
	var sum nodes.Usage
	good := true
	models := o.Object("modelUsage")
	t.billed, t.byModel = nil, nil
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models.Object(name)
		good = good && m.Countable("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
		sum = sum.Plus(nodes.Usage{
			Input: m.Count("inputTokens"), Output: m.Count("outputTokens"), CacheRead: m.Count("cacheReadInputTokens"),
			CacheWrite:     m.Count("cacheCreationInputTokens"),
			CacheWriteHour: m.Count("cacheCreationEphemeral1hInputTokens"),
		})
		t.billed = append(t.billed, name)
		if usd, ok := m.Num("costUSD"); ok && sane(usd) {
			if t.byModel == nil {
				t.byModel = map[string]float64{}
			}
			t.byModel[name] = usd
		}
	}
	if sum == (nodes.Usage{}) && good {
		sum, good = messagesUsage(o.Object("usage"))
	}
	t.count(sum, good)
	for _, raw := range o.List("permission_denials") {
		var d object
		var name string
		if json.Unmarshal(raw, &d) == nil || json.Unmarshal(raw, &name) == nil {
			t.denials = append(t.denials, cmp.Or(d.Str("tool_name"), name, "a tool"))
		}
	}
}

// sane reports whether a number of dollars can be what an attempt cost.
func sane(usd float64) bool { return usd >= 0 && usd <= 1e6 }
