package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// anthropic speaks the Messages API.
var anthropic = httpAPI{
	base: "https://api.anthropic.com",
	keys: []apiKey{{"ANTHROPIC_API_KEY", "X-Api-Key", ""}, {"ANTHROPIC_AUTH_TOKEN", "Authorization", "Bearer "}},
	path: func(_ *question, base string) string {
		if strings.HasSuffix(base, "/v1") {
			return "/messages"
		}
		return "/v1/messages"
	},
	fixed:  map[string]string{"Anthropic-Version": "2023-06-01"},
	body:   messagesBody,
	answer: func(*question) apiReader { return &messages{texts: map[int64]*strings.Builder{}} },
}

// messagesMost is the longest answer in tokens where the settings name none: the API wants a number.
const messagesMost = 32000

// messagesBody asks without thinking: that is off unless params turn it on.
func messagesBody(q *question, c *content) map[string]any {
	message := map[string]any{"role": "user", "content": q.prompt}
	if !c.plain() {
		message["content"] = messagesBlocks(q, c.parts...)
	}
	body := map[string]any{
		"model": q.set.Model, "max_tokens": q.set.MaxOutputTokens, "stream": true, "messages": []any{message},
	}
	switch {
	case c.system.mark:
		body["system"] = messagesBlocks(q, c.system)
	case q.system != "":
		body["system"] = q.system
	}
	if sh := q.set.native(); sh != nil {
		body["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema", "schema": sh.Strict(false)}}
	}
	if q.set.Temperature != nil {
		body["temperature"] = *q.set.Temperature
	}
	return body
}

// messagesBlocks are content blocks. One with a mark is kept, with all before it, for five minutes or an hour since it was
// last read; up to its model's least length (1,024 to 4,096 tokens) the service overlooks the mark.
func messagesBlocks(q *question, parts ...contentPart) (blocks []any) {
	for _, p := range parts {
		b := map[string]any{"type": "text", "text": p.text}
		if p.media != "" {
			b = map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": p.media, "data": p.data}}
		}
		if p.mark {
			kept := map[string]any{"type": "ephemeral"}
			if q.set.Cache == "1h" {
				kept["ttl"] = "1h"
			}
			b["cache_control"] = kept
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// messages reads an answer of the Messages API.
type messages struct {
	texts   map[int64]*strings.Builder // of text blocks
	order   []int64
	stop    string
	stopped bool // a stop reason was given, or the message ended with none
	closed  bool
	model   string
	usage   nodes.Usage
	odd     bool        // some of it was no count
	counted bool        // the tokens of the answer were told, not only those of its beginning
	before  nodes.Usage // of messages that broke off, and another one began
	calls   int
}

func (m *messages) event(o object) {
	switch o.str("type") {
	case "message_start":
		msg := o.object("message")
		if len(m.order) > 0 {
			m.begin()
		}
		m.model = msg.str("model")
		m.count(msg.object("usage"))
	case "content_block_start":
		m.block(o.count("index"), o.object("content_block"))
	case "content_block_delta":
		if d := o.object("delta"); d.str("type") == "text_delta" {
			m.text(o.count("index"), d.str("text"))
		}
	case "message_delta":
		m.count(o.object("usage"))
		m.counted = m.counted || o.object("usage").has("output_tokens")
		if d := o.object("delta"); d.has("stop_reason") {
			m.stop, m.stopped = d.str("stop_reason"), true
		}
	case "message_stop":
		m.closed = true
	}
}

// begin forgets a message of which the half has come: a gateway has asked another server.
func (m *messages) begin() {
	m.usage.Output = max(m.usage.Output, tokensOf(m.joined()))
	m.before = m.before.Plus(m.usage)
	m.usage, m.counted, m.stop, m.stopped = nodes.Usage{}, false, "", false
	m.texts, m.order = map[int64]*strings.Builder{}, nil
}

func (m *messages) done() {}

func (m *messages) whole(o object) bool {
	if !o.has("content") && !o.has("stop_reason") {
		return false
	}
	m.model, m.stop, m.stopped, m.closed, m.counted = o.str("model"), o.str("stop_reason"), true, true, true
	m.count(o.object("usage"))
	for i, raw := range o.list("content") {
		var b object
		if json.Unmarshal(raw, &b) == nil {
			m.block(int64(i), b)
		}
	}
	return true
}

func (m *messages) block(index int64, b object) {
	switch kind := b.str("type"); {
	case kind == "text":
		m.text(index, b.str("text"))
	case strings.HasSuffix(kind, "tool_use"):
		m.calls++
	}
}

func (m *messages) text(index int64, s string) {
	b := m.texts[index]
	if b == nil {
		b = &strings.Builder{}
		m.texts[index] = b
		m.order = append(m.order, index)
	}
	b.WriteString(s)
}

// count takes usage as told so far: the counts of a stream are running totals.
func (m *messages) count(u object) {
	m.odd = m.odd || !u.countable("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
	kept := u.object("cache_creation") // the sum, by how long it is kept
	m.odd = m.odd || !kept.countable("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
	hour := max(m.usage.CacheWriteHour, kept.count("ephemeral_1h_input_tokens"))
	m.usage = nodes.Usage{
		Input:      max(m.usage.Input, u.count("input_tokens")),
		CacheRead:  max(m.usage.CacheRead, u.count("cache_read_input_tokens")),
		CacheWrite: max(m.usage.CacheWrite, u.count("cache_creation_input_tokens"), hour+kept.count("ephemeral_5m_input_tokens")),
		Output:     max(m.usage.Output, u.count("output_tokens")), CacheWriteHour: hour,
	}
}

// ended: a stream that closes in order without a stop reason has ended, for a reason nobody knows.
func (m *messages) ended() (reason, closed bool) { return m.stopped || m.closed, m.closed }

func (m *messages) fill(q *question, r *reply) *nodes.Error {
	r.Text, r.ToolCalls = m.joined(), m.calls
	m.total(r)
	if m.model != "" {
		r.Models = []string{m.model}
	}
	r.Finish = "stop"
	switch m.stop {
	case "end_turn", "stop_sequence":
	case "max_tokens", "model_context_window_exceeded":
		r.Finish, r.Cut = "length", limit(m.stop, r.Usage.Output, q)
	case "tool_use", "pause_turn":
		r.Finish = "tool_calls"
		return nodes.Fail("protocol", "the model stopped in the middle of a turn: stop reason "+m.stop)
	case "refusal":
		return nodes.Permanent(nodes.Fail("refused", "the model refused: "+orElse(printable.Clip(strings.TrimSpace(r.Text), 200), "without a word")))
	default:
		r.Cut = "unknown stop reason " + orElse(m.stop, "null")
	}
	return nil
}

func (m *messages) joined() string {
	var text strings.Builder
	for _, index := range m.order {
		text.WriteString(m.texts[index].String())
	}
	return text.String()
}

// total sets the usage of all that was said.
func (m *messages) total(r *reply) {
	u := m.usage
	if n := tokensOf(r.Text); m.stopped && !m.counted && u != (nodes.Usage{}) && n > u.Output {
		u.Output = n
		r.Warnings = append(r.Warnings, fmt.Sprintf("the answer's tokens were not told; taken as %d", n))
	}
	if m.before != (nodes.Usage{}) {
		r.Warnings = append(r.Warnings, "the stream began anew in the middle; the last message counts, and what all of them used")
	}
	r.usage(m.before.Plus(u), !m.odd)
}

// limit names a limit of length, the tokens used and the most that were allowed.
func limit(reason string, used int64, q *question) string {
	if q.set.MaxOutputTokens > 0 {
		return fmt.Sprintf("%s: %d tokens of at most %d", reason, used, q.set.MaxOutputTokens)
	}
	return fmt.Sprintf("%s: %d tokens", reason, used)
}
