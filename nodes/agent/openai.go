package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/internal/shape"
)

// openai speaks the chat completions API, which many servers offer, or the Responses API.
var openai = httpAPI{
	base: "https://api.openai.com/v1",
	keys: []apiKey{{"OPENAI_API_KEY", "Authorization", "Bearer "}},
	path: func(q *question, _ string) string {
		if q.set.API == "responses" {
			return "/responses"
		}
		return "/chat/completions"
	},
	body: func(q *question, c *content) map[string]any {
		body := chatBody(q, c)
		if q.set.API == "responses" {
			body = responsesBody(q, c)
		}
		if len(q.borders) > 0 && q.set.BaseURL == "" && q.set.Cache != "off" {
			// Requests with one key go to one server, which knows the beginning. Servers of others refuse unknown fields.
			body["prompt_cache_key"] = "dagrun-" + digest(q.system + q.blocks()[0])[:40]
		}
		return body
	},
	answer: func(q *question) apiReader {
		if q.set.API == "responses" {
			return &responses{}
		}
		return &chat{}
	},
}

// openaiParts are content parts of one of the two APIs. A mark is what models since gpt-5.6 want at the end of what they
// are to keep; others keep what they like by themselves.
func openaiParts(text, image string, parts ...contentPart) (list []any) {
	for _, p := range parts {
		m := map[string]any{"type": text, "text": p.text}
		if url := "data:" + p.media + ";base64," + p.data; p.media != "" && image == "image_url" {
			m = map[string]any{"type": image, "image_url": map[string]any{"url": url}}
		} else if p.media != "" {
			m = map[string]any{"type": image, "image_url": url}
		}
		if p.mark {
			m["prompt_cache_breakpoint"] = map[string]any{"mode": "explicit"}
		}
		list = append(list, m)
	}
	return list
}

func chatBody(q *question, c *content) map[string]any {
	system, user := any(q.system), any(q.prompt)
	if c.system.mark {
		system = openaiParts("text", "image_url", c.system)
	}
	if !c.plain() {
		user = openaiParts("text", "image_url", c.parts...)
	}
	list := []any{map[string]any{"role": "system", "content": system}, map[string]any{"role": "user", "content": user}}
	if q.system == "" {
		list = list[1:]
	}
	body := map[string]any{
		"model": q.set.Model, "stream": true, "stream_options": map[string]any{"include_usage": true}, "messages": list,
	}
	if n := q.set.MaxOutputTokens; n > 0 {
		body["max_completion_tokens"] = n
		if q.set.BaseURL != "" { // the name that servers of others know
			delete(body, "max_completion_tokens")
			body["max_tokens"] = n
		}
	}
	if sh := q.set.native(); sh != nil {
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": strictFormat(sh)}
	}
	if q.set.Temperature != nil {
		body["temperature"] = *q.set.Temperature
	}
	return body
}

func responsesBody(q *question, c *content) map[string]any {
	body := map[string]any{"model": q.set.Model, "stream": true, "store": false, "input": q.prompt}
	if !c.plain() {
		body["input"] = []any{map[string]any{"role": "user", "content": openaiParts("input_text", "input_image", c.parts...)}}
	}
	if q.system != "" {
		body["instructions"] = q.system
	}
	if q.set.MaxOutputTokens > 0 {
		body["max_output_tokens"] = q.set.MaxOutputTokens
	}
	if sh := q.set.native(); sh != nil {
		format := strictFormat(sh)
		format["type"] = "json_schema"
		body["text"] = map[string]any{"format": format}
	}
	if q.set.Temperature != nil {
		body["temperature"] = *q.set.Temperature
	}
	return body
}

// strictFormat asks for an answer of a shape; the name has no meaning.
func strictFormat(sh *shape.Shape) map[string]any {
	return map[string]any{"name": "answer", "strict": true, "schema": sh.Strict(true)}
}

// chat reads an answer of the chat completions API.
type chat struct {
	text, refusal strings.Builder
	finish        string
	stopped       bool
	closed        bool
	model         string
	usage         object // the last one counts
	calls         int
	err           json.RawMessage // of the choice
}

func (c *chat) event(o object) { c.take(o, "delta") }
func (c *chat) done()          { c.closed = true }

func (c *chat) whole(o object) bool {
	if len(o.list("choices")) == 0 && o.object("usage") == nil {
		return false
	}
	c.take(o, "message")
	c.stopped, c.closed = true, true
	return true
}

func (c *chat) take(o object, part string) {
	if m := o.str("model"); m != "" && c.model == "" {
		c.model = m
	}
	if u := o.object("usage"); u != nil {
		c.usage = u
	}
	for _, raw := range o.list("choices") { // none in the piece with the usage
		var choice object
		if json.Unmarshal(raw, &choice) != nil || choice.count("index") != 0 {
			continue
		}
		d := choice.object(part)
		c.text.WriteString(contentText(d))
		c.refusal.WriteString(d.str("refusal"))
		c.calls += len(d.list("tool_calls"))
		if choice.has("error") {
			c.err = choice["error"]
		}
		if choice.has("finish_reason") && string(choice["finish_reason"]) != `""` { // some send one with each piece
			c.finish, c.stopped = choice.str("finish_reason"), true
		}
	}
}

// contentText is a text, or a list of parts of which some are text.
func contentText(d object) string {
	if s := d.str("content"); s != "" {
		return s
	}
	var b strings.Builder
	for _, raw := range d.list("content") {
		var part object
		if json.Unmarshal(raw, &part) == nil && (part.str("type") == "text" || part.str("type") == "output_text") {
			b.WriteString(part.str("text"))
		}
	}
	return b.String()
}

func (c *chat) ended() (reason, closed bool) { return c.stopped, c.closed }

func (c *chat) fill(q *question, r *reply) *nodes.Error {
	r.Text, r.ToolCalls, r.Finish = c.text.String(), c.calls, "stop"
	if c.model != "" {
		r.Models = []string{c.model}
	}
	disjoint(r, c.usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details")
	if said := strings.TrimSpace(c.refusal.String()); said != "" {
		return nodes.Permanent(nodes.Fail("refused", "the model refused: "+printable.Clip(said, 200)))
	}
	if c.err != nil {
		return troubled(q, c.err)
	}
	switch strings.ToLower(c.finish) { // servers in front of other APIs hand their words on
	case "stop", "eos", "end_turn", "stop_sequence":
	case "length", "max_tokens", "max_output_tokens":
		r.Finish, r.Cut = "length", limit(c.finish, r.Usage.Output, q)
	case "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "refusal":
		return nodes.Permanent(nodes.Fail("refused", "a content filter stopped the answer"))
	case "tool_calls", "function_call":
		r.Finish = "tool_calls"
		return nodes.Fail("protocol", "the model asked for a tool: finish reason "+c.finish)
	case "error":
		return nodes.Fail("transient", fmt.Sprintf("the provider broke off after %d bytes of text: finish reason error", len(r.Text)))
	default:
		r.Cut = "unknown finish reason " + orElse(c.finish, "null")
	}
	return nil
}

// disjoint sorts tokens into classes that do not overlap: what was read from a cache, or written to one, is part of the input.
func disjoint(r *reply, u object, input, output, details string) {
	in, part := u.count(input), u.object(details)
	cached, written := max(part.count("cached_tokens"), u.count("prompt_cache_hit_tokens")), part.count("cache_write_tokens")
	if cached+written > in {
		r.Warnings = append(r.Warnings, fmt.Sprintf("more cached tokens (%d) than input tokens (%d) were reported", cached+written, in))
	}
	r.usage(nodes.Usage{Input: max(0, in-cached-written), CacheRead: cached, CacheWrite: written, Output: u.count(output)},
		u.countable(input, output, "prompt_cache_hit_tokens") && part.countable("cached_tokens", "cache_write_tokens"))
}

// responses reads an answer of the Responses API.
type responses struct {
	pieces  strings.Builder // of text, as they came
	refusal strings.Builder
	result  object // the object that the last event, or the whole answer, holds
	ending  bool   // one that ends came
	calls   int
}

func (p *responses) event(o object) {
	switch kind := o.str("type"); kind {
	case "response.output_text.delta":
		p.pieces.WriteString(o.str("delta"))
	case "response.refusal.delta":
		p.refusal.WriteString(o.str("delta"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		p.result, p.ending = o.object("response"), true
	case "response.created", "response.in_progress", "response.queued":
		p.result = o.object("response")
	}
}

func (p *responses) done() {}

func (p *responses) whole(o object) bool {
	if !o.has("output") && !o.has("status") {
		return false
	}
	p.result, p.ending = o, true
	return true
}

func (p *responses) ended() (reason, closed bool) { return p.ending, p.ending }

func (p *responses) fill(q *question, r *reply) *nodes.Error {
	r.Finish = "stop"
	text, refusal, whole := p.output()
	if r.Text = text; r.Text == "" {
		r.Text = p.pieces.String()
	}
	r.ToolCalls = p.calls
	if m := p.result.str("model"); m != "" {
		r.Models = []string{m}
	}
	disjoint(r, p.result.object("usage"), "input_tokens", "output_tokens", "input_tokens_details")
	return p.judge(q, r, orElse(refusal, p.refusal.String()), whole)
}

// output joins the texts of all items, in order. whole is false when an item says that it is not.
func (p *responses) output() (text, refusal string, whole bool) {
	var b strings.Builder
	whole = true
	for _, raw := range p.result.list("output") {
		var item object
		if json.Unmarshal(raw, &item) != nil {
			continue
		}
		switch kind := item.str("type"); {
		case kind == "message":
			if s := item.str("status"); s == "incomplete" || s == "in_progress" {
				whole = false
			}
			b.WriteString(contentText(item))
			for _, raw := range item.list("content") {
				var part object
				if json.Unmarshal(raw, &part) == nil && part.str("type") == "refusal" {
					refusal = orElse(part.str("refusal"), "without a word")
				}
			}
		case strings.HasSuffix(kind, "_call"):
			p.calls++
		}
	}
	return b.String(), refusal, whole
}

// judge goes by the worst of what the object says: its status, its error, why it is incomplete,
// its items. The name of the event counts for nothing.
func (p *responses) judge(q *question, r *reply, refusal string, whole bool) *nodes.Error {
	status := p.result.str("status")
	details := p.result.object("incomplete_details").str("reason")
	switch {
	case p.result.has("error") || status == "failed":
		return troubled(q, p.result["error"])
	case details == "content_filter":
		return nodes.Permanent(nodes.Fail("refused", "a content filter stopped the answer"))
	case refusal != "":
		return nodes.Permanent(nodes.Fail("refused", "the model refused: "+printable.Clip(refusal, 200)))
	case status == "cancelled":
		return nodes.Fail("transient", "the provider cancelled the answer")
	case status == "incomplete" || details != "" || !whole:
		r.Finish, r.Cut = "length", limit(orElse(details, "incomplete"), r.Usage.Output, q)
	case status == "completed":
	default:
		r.Cut = "unknown status " + orElse(status, "null")
	}
	return nil
}

// troubled is what an error object inside an answer means.
func troubled(q *question, e json.RawMessage) *nodes.Error {
	raw, _ := json.Marshal(map[string]json.RawMessage{"error": e})
	t, told := httpc.ReadTrouble(raw)
	if !told {
		return nodes.Fail("transient", "the provider says that it failed, and not why")
	}
	return t.Failure(q.evidence(), raw)
}
