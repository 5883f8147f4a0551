package transcript

import (
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// Messages is what Anthropic's Messages API sends.
var Messages = Format{
	Table: evidence.Anthropic, Stream: true,
	Read: func(t *Transcript, o object) {
		if o.Str("type") == "message_start" && len(t.turns) > 0 {
			t.restart()
		}
		messagesTokens(t, o)
		messages.read(t, o)
	},
	Whole: messagesWhole,
}

var messages = events{
	"message_start":       func(t *Transcript, o object) { t.answered(o.Object("message").Str("model")) },
	"content_block_start": func(t *Transcript, o object) { messagesBlock(t, o.Object("content_block")) },
	"content_block_delta": func(t *Transcript, o object) {
		if d := o.Object("delta"); d.Str("type") == "text_delta" {
			t.say("", d.Str("text"))
		}
	},
	"message_delta": func(t *Transcript, o object) {
		if d := o.Object("delta"); d.Has("stop_reason") {
			t.stop, t.stopped = d.Str("stop_reason"), true
		}
	},
	// A stream that closes in order without a stop reason has ended, for an unknown reason.
	"message_stop": func(t *Transcript, _ object) { t.stopped, t.closed = true, true },
}

// restart forgets a message of which the half has come: a gateway has asked another server. What it used stays.
func (t *Transcript) restart() {
	t.warn("the stream began anew in the middle; the last message counts, and what all of them used")
	for _, c := range t.calls {
		c.closed = true
	}
	t.turns, t.open, t.models, t.stop, t.stopped = nil, false, nil, "", false
}

func messagesWhole(t *Transcript, o object) bool {
	if !o.Has("content") && !o.Has("stop_reason") {
		return false
	}
	t.answered(o.Str("model"))
	t.stop = o.Str("stop_reason")
	messagesReport(t, o.Str("id"), o.Object("usage"))
	for _, block := range o.Objects("content") {
		messagesBlock(t, block)
	}
	return true
}

func messagesBlock(t *Transcript, b object) {
	switch kind := b.Str("type"); {
	case kind == "text":
		t.say("", b.Str("text"))
	case strings.HasSuffix(kind, "tool_use"):
		t.tools++
	}
}

// messagesTokens takes what an event of the API says of the tokens of a call, before its answer is whole.
func messagesTokens(t *Transcript, o object) {
	if o.Str("type") == "message_start" {
		m := o.Object("message")
		messagesReport(t, m.Str("id"), m.Object("usage"))
		return
	}
	if len(t.calls) == 0 {
		return
	}
	c := t.calls[len(t.calls)-1]
	switch o.Str("type") {
	case "content_block_start":
		c.wrote(o.Object("content_block").Str("text"))
	case "content_block_delta":
		d := o.Object("delta")
		c.wrote(d.Str("text"), d.Str("thinking"), d.Str("partial_json"))
		c.streamed = true
	case "message_delta":
		u := o.Object("usage")
		messagesReport(t, c.id, u)
		c.counted = c.counted || u.Has("output_tokens")
	}
}

// messagesReport takes a report of the tokens of a call.
func messagesReport(t *Transcript, id string, u object) {
	used, good := messagesUsage(u)
	t.odd = t.odd || !good && t.format.Whole != nil // a program counts again at its end
	t.call(id).take(used)
}

// messagesUsage reads the API's object of tokens; good is false where one of them is no count.
func messagesUsage(u object) (sum nodes.Usage, good bool) {
	kept := u.Object("cache_creation") // the sum, by how long it is kept
	hour := kept.Count("ephemeral_1h_input_tokens")
	good = kept.Countable("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens") &&
		u.Countable("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_read_tokens",
			"cache_creation_input_tokens", "cache_write_tokens")
	return nodes.Usage{
		Input: u.Count("input_tokens"), Output: u.Count("output_tokens"),
		CacheRead: max(u.Count("cache_read_input_tokens"), u.Count("cache_read_tokens")),
		CacheWrite: max(u.Count("cache_creation_input_tokens"), u.Count("cache_write_tokens"),
			hour+kept.Count("ephemeral_5m_input_tokens")),
		CacheWriteHour: hour,
	}, good
}
