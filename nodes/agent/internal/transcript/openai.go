package transcript

import (
	"cmp"
	"encoding/json"
	"strings"

	"dagrun.dev/nodes/internal/evidence"
)

// Chat is what OpenAI's chat completions API sends, and that of many servers.
var Chat = Format{
	Table: evidence.OpenAI, Stream: true,
	Read: func(t *Transcript, o object) { chatChoices(t, o, "delta") },
	Whole: func(t *Transcript, o object) bool {
		if len(o.List("choices")) == 0 && o.Object("usage") == nil {
			return false
		}
		chatChoices(t, o, "message")
		return true
	},
}

func chatChoices(t *Transcript, o object, part string) {
	if len(t.models) == 0 {
		t.answered(o.Str("model"))
	}
	c := t.call("")
	// A piece of its own, or one with each piece: the last one counts. Groq and Moonshot put it elsewhere.
	used := []object{o.Object("x_groq").Object("usage"), o.Object("usage")}
	for _, choice := range o.Objects("choices") {
		if choice == nil || choice.Count("index") != 0 {
			continue
		}
		used = append(used, choice.Object("usage"))
		d := choice.Object(part)
		if whole := choice.Object("message"); d == nil && whole != nil { // some servers stream one piece that is all of it
			d, t.turns, t.open = whole, nil, false
		}
		text := texts(d)
		t.say("", text)
		c.wrote(text)
		t.refusal += d.Str("refusal")
		t.tools += len(d.List("tool_calls"))
		if choice.Has("error") {
			t.breaks(choice["error"])
		}
		if choice.Has("finish_reason") && string(choice["finish_reason"]) != `""` { // some send one with each piece
			t.stop, t.stopped = choice.Str("finish_reason"), true
			c.counted = true
		}
	}
	for _, u := range used {
		if u != nil {
			t.openaiUsage(c, u, "prompt_tokens", "completion_tokens")
		}
	}
}

// openaiUsage takes the tokens of a call: what was read from a cache, or written to one, is part of the input.
func (t *Transcript) openaiUsage(c *call, u object, input, output string) {
	if t.used == nil {
		t.used = object{}
	}
	for name, count := range u { // a report may hold one of the counts only
		if u.Has(name) {
			t.used[name] = count
		}
	}
	u = t.used
	d := u.Object(input + "_details")
	read := max(d.Count("cached_tokens"), u.Count("prompt_cache_hit_tokens"))
	c.usage = t.disjoint(u.Count(input), read, d.Count("cache_write_tokens"), u.Count(output))
	t.odd = u.Has(output) && !u.Has(input) || !u.Countable(input, output, "prompt_cache_hit_tokens") ||
		!d.Countable("cached_tokens", "cache_write_tokens")
}

// breaks takes an error object that stands inside the answer.
func (t *Transcript) breaks(raw json.RawMessage) {
	whole, _ := json.Marshal(map[string]json.RawMessage{"error": raw})
	object, ok := evidence.ReadError(whole)
	if !ok {
		t.broken = t.fail(0, "the provider says that it failed, and not why")
		return
	}
	c := t.failure.Of(object, whole)
	t.broken = &c
}

// Responses is what OpenAI's Responses API sends.
var Responses = Format{
	Table: evidence.OpenAI, Stream: true,
	Read: events{
		"response.created":       func(t *Transcript, o object) { t.answered(o.Object("response").Str("model")) },
		"response.refusal.delta": func(t *Transcript, o object) { t.refusal += o.Str("delta") },
		"response.output_text.delta": func(t *Transcript, o object) {
			t.say("", o.Str("delta"))
			t.call("").wrote(o.Str("delta"))
		},
		"response.output_item.done": func(t *Transcript, o object) { t.items = append(t.items, o.Object("item")) },
		"response.completed":        responseEnd,
		"response.incomplete":       responseEnd,
		"response.failed":           responseEnd,
		"response.cancelled":        responseEnd,
		"response.done":             responseEnd,
	}.read,
	Whole: func(t *Transcript, o object) bool {
		if !o.Has("output") && !o.Has("status") {
			return false
		}
		responseResult(t, o)
		return true
	},
}

func responseEnd(t *Transcript, o object) {
	responseResult(t, o.Object("response"))
	t.stopped, t.closed = true, true
}

// responseResult takes the object that holds all of the answer. It goes by the worst of what that says: its error, its
// status, why it is incomplete, its items. The name of the event counts for nothing.
func responseResult(t *Transcript, o object) {
	if model := o.Str("model"); model != "" {
		t.models = []string{model}
	}
	c := t.call("")
	c.counted = true
	t.openaiUsage(c, o.Object("usage"), "input_tokens", "output_tokens")
	whole := responseItems(t, o)
	status, reason := o.Str("status"), o.Object("incomplete_details").Str("reason")
	switch {
	case o.Has("error") || status == "failed":
		t.breaks(o["error"])
	case stops[reason] != stopUnknown:
		t.stop = reason
	case status != "cancelled" && (status == "incomplete" || reason != "" || !whole):
		t.stop = "incomplete"
	default:
		t.stop = status
	}
}

// responseItems joins the texts of all items, in order: they count more than the pieces that came before. Some servers
// send the items one by one and leave them out of the object at the end. whole is false when an item says that it is
// not.
func responseItems(t *Transcript, o object) (whole bool) {
	whole = true
	items := o.Objects("output")
	if len(items) == 0 {
		items = t.items
	}
	var text strings.Builder
	for _, item := range items {
		switch kind := item.Str("type"); {
		case kind == "message":
			whole = whole && item.Str("status") != "incomplete" && item.Str("status") != "in_progress"
			text.WriteString(texts(item))
			for _, part := range item.Objects("content") {
				if part.Str("type") == "refusal" {
					t.refusal = cmp.Or(part.Str("refusal"), "without a word")
				}
			}
		case strings.HasSuffix(kind, "_call"):
			t.tools++
		}
	}
	if text.Len() > 0 {
		t.turns = []string{text.String()}
	}
	return whole
}
