package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// claudeOut reads what `claude -p` prints with --output-format json or stream-json: events, of which
// the last of type result tells how it ended. Which events and fields exist changes between
// versions; unknown ones are skipped.
type claudeOut struct {
	texts     []string // of the turns since the last result; a tool call begins a new one
	open      bool     // the last of texts may go on
	lastID    string   // of the message that the last piece belonged to
	lastPiece string
	answered  []string // models in assistant messages
	events    int      // assistant events
	toolCalls int

	results  int
	result   object
	turns    []string // texts as they were at the result
	cost     float64
	costSeen bool
	costLast float64
	warnings []string
	synth    string // an error that the CLI tells as an assistant message
	init     string // model of the session
}

func (c *claudeOut) event(o object) {
	switch o.str("type") {
	case "system":
		if o.str("subtype") == "init" {
			c.init = o.str("model")
		}
	case "assistant":
		c.assistant(o)
	case "user":
		if !o.yes("isSynthetic") { // a tool's result; "go on, you were cut" is synthetic
			c.open = false
		}
	case "result":
		c.results++
		c.result, c.turns = o, c.texts
		c.texts, c.open = nil, false
		c.book(o)
	}
}

func (c *claudeOut) assistant(o object) {
	m := o.object("message")
	model := m.str("model")
	if model == "<synthetic>" || o.yes("is_api_error_message") || o.yes("isApiErrorMessage") {
		c.synth = joinText(m)
		return
	}
	if o.has("parent_tool_use_id") {
		return // a sub-agent talks to the agent, not to us
	}
	c.events++
	if model != "" && !slices.Contains(c.answered, model) {
		c.answered = append(c.answered, model)
	}
	for _, raw := range m.list("content") {
		var block object
		_ = json.Unmarshal(raw, &block)
		switch block.str("type") {
		case "text":
			c.piece(m.str("id"), block.str("text"))
		case "tool_use":
			c.toolCalls++
			c.open = false
		}
	}
}

// piece adds a piece of text. The same piece of the same message again is a repeat, no continuation.
func (c *claudeOut) piece(id, text string) {
	if text == "" || id != "" && id == c.lastID && text == c.lastPiece {
		return
	}
	c.lastID, c.lastPiece = id, text
	if !c.open || len(c.texts) == 0 {
		c.texts = append(c.texts, "")
		c.open = true
	}
	c.texts[len(c.texts)-1] += text
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

// book adds what a result reports: its cost is the process's total so far. One lower than the
// one before belongs to a new session and counts whole.
func (c *claudeOut) book(o object) {
	total, ok := o.num("total_cost_usd")
	switch {
	case !o.has("total_cost_usd"):
		return
	case !ok || !sane(total):
		c.warnings = append(c.warnings, fmt.Sprintf("the cost reported, %s, is no amount of money; it counts as unknown", printable.Clip(string(o["total_cost_usd"]), 40)))
		return
	}
	if c.costSeen && total < c.costLast {
		c.warnings = append(c.warnings, fmt.Sprintf("the cost reported fell from %g to %g; both are booked", c.costLast, total))
		c.costLast = 0
	}
	c.cost += total - c.costLast
	c.costLast, c.costSeen = total, true
}

// fill completes a reply from a result event, and says how the agent failed by its own terms.
func (c *claudeOut) fill(r *reply, ev evidence.Case) *nodes.Error {
	o := c.result
	r.Warnings = append(r.Warnings, c.warnings...)
	r.ToolCalls = c.toolCalls
	if c.costSeen {
		cost := c.cost
		r.CostUSD = &cost
	}
	c.usage(r)
	for _, raw := range o.list("permission_denials") {
		var d object
		var name string
		if json.Unmarshal(raw, &d) == nil || json.Unmarshal(raw, &name) == nil {
			r.Denials = append(r.Denials, orElse(orElse(d.str("tool_name"), name), "a tool"))
		}
	}
	if c.results > 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d results in one run; the last one counts", c.results))
	}
	r.Status = o.status("api_error_status")
	if e := c.failure(o, r, ev); e != nil {
		r.Finish = "error"
		r.Text = lastOf(c.turns)
		return e
	}
	c.answer(o, r)
	if o.has("structured_output") {
		r.Object = o["structured_output"]
	}
	return c.stop(o, r)
}

func (c *claudeOut) failure(o object, r *reply, ev evidence.Case) *nodes.Error {
	subtype := o.str("subtype")
	var said []string
	for _, raw := range o.list("errors") {
		var s string
		var told object
		switch {
		case json.Unmarshal(raw, &s) == nil:
			said = append(said, s)
		case json.Unmarshal(raw, &told) == nil:
			said = append(said, orElse(told.str("message"), string(raw)))
		}
	}
	for _, s := range []string{o.str("result"), c.synth, o.str("api_error_type"), o.str("api_error"), o.str("terminal_reason")} {
		if s != "" && s != "completed" {
			said = append(said, s)
		}
	}
	ev.Status, ev.Text = r.Status, strings.Join(said, "\n")
	switch {
	case strings.HasPrefix(subtype, "error_max_turns"):
		return &nodes.Error{Category: "budget", Permanent: true, Message: fmt.Sprintf("turn limit reached after %d turns", o.count("num_turns"))}
	case strings.HasPrefix(subtype, "error_max_budget"):
		return &nodes.Error{Category: "budget", Permanent: true, Message: fmt.Sprintf("the agent's own money limit stopped it at $%g", c.costLast)}
	case subtype == "error_max_structured_output_retries":
		return &nodes.Error{Category: "bad_answer", Message: "the agent gave up: no answer fitted the schema: " + printable.Clip(ev.Text, 300)}
	case o.str("stop_reason") == "refusal":
		return &nodes.Error{Category: "refused", Permanent: true, Message: "the model refused: " + printable.Clip(o.str("result"), 200)}
	case strings.HasPrefix(o.str("terminal_reason"), "aborted"):
		return &nodes.Error{Category: "killed", Message: "the agent was interrupted (" + o.str("terminal_reason") + ")"}
	case o.str("terminal_reason") == "prompt_too_long":
		return &nodes.Error{Category: "input_too_big", Permanent: true, Message: printable.Clip(o.str("result"), 300)}
	case o.yes("is_error"), strings.HasPrefix(subtype, "error"):
		if ev.Text == "" {
			ev.Text = orElse(strings.TrimPrefix(subtype, "success"), "an error without a message")
		}
		return ev.Error()
	}
	if n, ok := o.num("num_turns"); ok && n == 0 && c.events == 0 {
		return &nodes.Error{Category: "protocol", Permanent: o.has("result"), Message: "the agent answered without asking the model: " + printable.Clip(o.str("result"), 200)}
	}
	return nil
}

// answer finds the whole answer: the result field may hold its last, or its first, piece only.
func (c *claudeOut) answer(o object, r *reply) {
	text, said, late := resultText(o), lastOf(c.turns), lastOf(c.texts)
	r.Text = text
	trimmed, joined := strings.TrimSpace(text), strings.TrimSpace(said)
	switch {
	case joined == "" && trimmed == "" && late != "":
		r.Text = late
		r.Warnings = append(r.Warnings, "the answer came behind an empty result")
	case joined == "" || joined == trimmed:
		if o.count("num_turns") > 1 && c.events == 0 && trimmed != "" {
			r.Warnings = append(r.Warnings, "several turns, of which the output shows only the last: the answer may be its tail")
		}
	case strings.HasPrefix(joined, trimmed) || strings.HasSuffix(joined, trimmed):
		r.Text = said
		r.Warnings = append(r.Warnings, fmt.Sprintf("the result holds %d of the answer's %d bytes; the pieces were joined", len(trimmed), len(joined)))
	case strings.Contains(trimmed, joined):
	default:
		r.Earlier = append(r.Earlier, said)
	}
	for i := len(c.turns) - 2; i >= 0; i-- {
		if strings.TrimSpace(c.turns[i]) != "" {
			r.Earlier = append(r.Earlier, c.turns[i])
		}
	}
	if late != "" {
		r.Earlier = append(r.Earlier, late)
	}
}

// resultText returns the answer of a result event: a text, a list of text blocks, or what a JSON
// schema was asked for.
func resultText(o object) string {
	text := o.str("result")
	if text == "" && o.has("result") {
		text = joinText(object{"content": o["result"]})
	}
	if text == "" && o.has("structured_output") {
		text = string(o["structured_output"])
	}
	return text
}

// stop judges the stop reason.
func (c *claudeOut) stop(o object, r *reply) *nodes.Error {
	r.Finish = "stop"
	switch reason := o.str("stop_reason"); reason {
	case "", "end_turn", "stop_sequence":
	case "max_tokens", "model_context_window_exceeded":
		r.Finish, r.Cut = "length", reason
	case "tool_use":
		if r.Object != nil { // a shaped answer is the input of a tool: that call is the end
			break
		}
		fallthrough
	case "pause_turn":
		r.Finish = "tool_calls"
		return &nodes.Error{Category: "protocol", Message: "the agent ended in the middle of a turn: stop reason " + reason}
	default:
		r.Cut = "unknown stop reason " + reason
	}
	return nil
}

func (c *claudeOut) usage(r *reply) {
	var sum nodes.Usage
	good := true
	models := c.result.object("modelUsage")
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models.object(name)
		good = good && m.countable("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
		sum.Input += m.count("inputTokens")
		sum.Output += m.count("outputTokens")
		sum.CacheRead += m.count("cacheReadInputTokens")
		sum.CacheWrite += m.count("cacheCreationInputTokens")
		r.Models = append(r.Models, name)
		if usd, ok := m.num("costUSD"); ok && sane(usd) {
			if r.ByModel == nil {
				r.ByModel = map[string]float64{}
			}
			r.ByModel[name] = usd
		}
	}
	if len(models) == 0 {
		r.Models = c.answered
	}
	if u := c.result.object("usage"); sum == (nodes.Usage{}) && good {
		good = u.countable("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_read_tokens", "cache_creation_input_tokens", "cache_write_tokens")
		sum = nodes.Usage{
			Input: u.count("input_tokens"), Output: u.count("output_tokens"),
			CacheRead:  max(u.count("cache_read_input_tokens"), u.count("cache_read_tokens")),
			CacheWrite: max(u.count("cache_creation_input_tokens"), u.count("cache_write_tokens")),
		}
	}
	r.usage(sum, good)
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}
