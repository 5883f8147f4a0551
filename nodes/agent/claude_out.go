package agent

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// claudeFormat is what `claude -p` prints with --output-format stream-json, or json: events, of which the last
// of type result says how it ended. Which events and fields exist changes between versions; unknown
// ones are skipped.
var claudeFormat = format{
	table: evidence.Claude, stream: true,
	last: func(o object) bool { return o.str("type") == "result" },
	read: events{
		"assistant":    claudeAssistant,
		"stream_event": claudeStream,
		"user": func(t *transcript, o object) {
			if !o.yes("isSynthetic") { // a tool's result; "go on, you were cut" is synthetic
				t.open = false
			}
		},
		"result": claudeResult,
	}.read,
}

func claudeAssistant(t *transcript, o object) {
	m := o.object("message")
	model := m.str("model")
	if model == "<synthetic>" || o.yes("is_api_error_message") || o.yes("isApiErrorMessage") {
		if c := t.fail(0, joinText(m), o.str("error")); !c.Noise() {
			t.told = append(t.told, *c)
		}
		return
	}
	c := t.call(m.str("id"))
	c.take(claudeUsage(m.object("usage")))
	sub := o.has("parent_tool_use_id") // a sub-agent talks to the agent, not to us
	if !sub {
		t.answered(model)
	}
	for _, raw := range m.list("content") {
		var block object
		_ = json.Unmarshal(raw, &block)
		text := block.str("text")
		if !c.streamed {
			c.chars += runes(text) + runes(block.str("thinking")) + int64(len(block["input"]))
		}
		switch kind := block.str("type"); {
		case sub:
		case kind == "text":
			t.say(m.str("id"), text)
		case kind == "tool_use":
			t.tools++
			t.open = false
			if block.str("name") == "StructuredOutput" {
				t.object = block["input"]
			}
		}
	}
}

// claudeStream reads the API's own events, which come with --include-partial-messages: they tell what a
// call used before its answer is whole.
func claudeStream(t *transcript, o object) {
	e := o.object("event")
	if e.str("type") == "message_start" {
		m := e.object("message")
		t.call(m.str("id")).take(claudeUsage(m.object("usage")))
		return
	}
	if len(t.calls) == 0 {
		return
	}
	c := t.calls[len(t.calls)-1]
	switch e.str("type") {
	case "content_block_delta":
		d := e.object("delta")
		c.chars += runes(d.str("text")) + runes(d.str("thinking")) + runes(d.str("partial_json"))
		c.streamed = true
	case "message_delta":
		c.take(claudeUsage(e.object("usage")))
	}
}

// take takes a report of the tokens of a call; later ones are larger.
func (c *modelCall) take(u nodes.Usage) {
	if more(u, c.usage) {
		c.usage = nodes.Usage{
			Input: max(u.Input, c.usage.Input), Output: max(u.Output, c.usage.Output), CacheRead: max(u.CacheRead, c.usage.CacheRead),
			CacheWrite: max(u.CacheWrite, c.usage.CacheWrite), CacheWriteHour: max(u.CacheWriteHour, c.usage.CacheWriteHour),
		}
	}
}

func runes(s string) int64 { return int64(utf8.RuneCountInString(s)) }

func claudeResult(t *transcript, o object) {
	claudeSums(t, o)
	var said []string
	for _, raw := range o.list("errors") {
		var s string
		var e object
		switch {
		case json.Unmarshal(raw, &s) == nil:
			said = append(said, s)
		case json.Unmarshal(raw, &e) == nil:
			said = append(said, orElse(e.str("message"), string(raw)))
		}
	}
	result, subtype, reason, stop := o.str("result"), o.str("subtype"), o.str("terminal_reason"), o.str("stop_reason")
	types := []string{o.str("api_error_type"), o.str("api_error"), reason}
	if result != "" {
		said = append(said, result)
	}
	for _, c := range t.told {
		said, types = append(said, c.Text), append(types, c.Types...)
	}
	turns, counted := o.num("num_turns")
	object := o["structured_output"]
	if !o.has("structured_output") {
		object = nil
	}
	e := ending{object: object, turned: stop == "" || stop == "end_turn" || stop == "stop_sequence"}
	text := strings.Join(said, "\n")
	failure := func(category, message string) {
		e.error = &nodes.Error{Category: category, Message: message, Permanent: evidence.Final(category)}
	}
	switch {
	case strings.HasPrefix(subtype, "error_max_turns"):
		failure("budget", "maxTurns")
		if stop == "max_tokens" {
			e.stop = stop
		}
	case strings.HasPrefix(subtype, "error_max_budget"):
		failure("budget", "maxUSD")
	case subtype == "error_max_structured_output_retries":
		failure("bad_answer", "the agent gave up: no answer fitted the schema: "+printable.Clip(text, 300))
	case stop == "refusal":
		failure("refused", "the model refused: "+printable.Clip(result, 200))
	case strings.HasPrefix(reason, "aborted"):
		failure("killed", "the agent was interrupted ("+reason+")")
	case o.yes("is_error"), strings.HasPrefix(subtype, "error"):
		if text == "" {
			text = orElse(strings.TrimPrefix(subtype, "success"), "an error without a message")
		}
		e.failure = t.fail(o.status("api_error_status"), text, types...)
	case counted && turns == 0 && len(t.calls) == 0:
		failure("protocol", "the agent answered without asking the model: "+printable.Clip(result, 200))
		e.error.Permanent = o.has("result")
	default:
		e.text = claudeText(o)
		claudeStop(&e, stop)
		if turns > 1 && len(t.calls) == 0 && e.text != "" {
			t.warn("several turns, of which the output shows only the last: the answer may be its tail")
		}
	}
	if e.failure != nil || e.error != nil {
		t.told = nil // part of it
	}
	t.end(e)
}

// claudeStop judges why the model stopped. A shaped answer is the input of a tool: that call is the end.
func claudeStop(e *ending, stop string) {
	switch {
	case e.turned, stop == "tool_use" && e.object != nil:
	case stop == "max_tokens", stop == "model_context_window_exceeded":
		e.stop = stop
	case stop == "pause_turn", stop == "tool_use":
		e.error = &nodes.Error{Category: "protocol", Message: "the agent ended in the middle of a turn: stop reason " + stop}
	default:
		e.stop = "unknown stop reason " + stop
	}
}

// claudeText returns the answer of a result event: a text, a list of text blocks, or what a JSON
// schema was asked for.
func claudeText(o object) string {
	text := o.str("result")
	if text == "" && o.has("result") {
		text = joinText(object{"content": o["result"]})
	}
	if text == "" && o.has("structured_output") {
		text = string(o["structured_output"])
	}
	return text
}

func joinText(m object) string {
	var b strings.Builder
	for _, raw := range m.list("content") {
		var block object
		if json.Unmarshal(raw, &block) == nil && block.str("type") == "text" {
			b.WriteString(block.str("text"))
		}
	}
	return b.String()
}

// claudeSums takes what a result reports of money, tokens, models and refused tools.
func claudeSums(t *transcript, o object) {
	switch total, ok := o.num("total_cost_usd"); {
	case !o.has("total_cost_usd"):
	case !ok || !sane(total):
		t.warn("the cost reported, %s, is no amount of money; it counts as unknown", printable.Clip(string(o["total_cost_usd"]), 40))
	default:
		t.book(total)
	}
	var sum nodes.Usage
	good := true
	models := o.object("modelUsage")
	t.modelKeys, t.byModel = nil, nil
	for _, name := range sorted(models) {
		m := models.object(name)
		good = good && m.countable("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
		sum.Input += m.count("inputTokens")
		sum.Output += m.count("outputTokens")
		sum.CacheRead += m.count("cacheReadInputTokens")
		sum.CacheWrite += m.count("cacheCreationInputTokens")
		sum.CacheWriteHour += m.count("cacheCreationEphemeral1hInputTokens")
		t.modelKeys = append(t.modelKeys, name)
		if usd, ok := m.num("costUSD"); ok && sane(usd) {
			if t.byModel == nil {
				t.byModel = map[string]float64{}
			}
			t.byModel[name] = usd
		}
	}
	if u := o.object("usage"); sum == (nodes.Usage{}) && good {
		good = u.countable("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_read_tokens", "cache_creation_input_tokens", "cache_write_tokens")
		sum = claudeUsage(u)
	}
	t.count(sum, good)
	for _, raw := range o.list("permission_denials") {
		var d object
		var name string
		if json.Unmarshal(raw, &d) == nil || json.Unmarshal(raw, &name) == nil {
			t.denials = append(t.denials, orElse(orElse(d.str("tool_name"), name), "a tool"))
		}
	}
}

// claudeUsage reads the API's object of tokens.
func claudeUsage(u object) nodes.Usage {
	return nodes.Usage{
		Input: u.count("input_tokens"), Output: u.count("output_tokens"),
		CacheRead:      max(u.count("cache_read_input_tokens"), u.count("cache_read_tokens")),
		CacheWrite:     max(u.count("cache_creation_input_tokens"), u.count("cache_write_tokens")),
		CacheWriteHour: u.object("cache_creation").count("ephemeral_1h_input_tokens"),
	}
}
