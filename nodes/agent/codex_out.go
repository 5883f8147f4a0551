package agent

import (
	"fmt"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// codexOut reads what `codex exec --json` prints. An error event is no end: only turn.completed
// and turn.failed are.
type codexOut struct {
	texts     []string
	told      []string // error events
	remarks   []string // items that are errors, which may be mere warnings
	failed    string   // message of turn.failed
	ended     string   // completed | failed | ""
	usage     object   // totals of the thread; the last one counts
	toolCalls int
}

// noWords stands for what a failed turn does not say.
const noWords = "no message"

func (c *codexOut) event(o object) {
	switch o.str("type") {
	case "item.completed":
		item := o.object("item")
		switch item.str("type") {
		case "agent_message":
			if text := item.str("text"); text != "" {
				c.texts = append(c.texts, text)
			}
		case "error":
			c.remarks = append(c.remarks, errorText(item))
		case "reasoning", "":
		default:
			c.toolCalls++
		}
	case "error":
		c.told = append(c.told, errorText(o))
	case "turn.started":
		c.ended = ""
	case "turn.completed":
		c.ended = "completed"
		if u := o.object("usage"); u != nil {
			c.usage = u
		}
	case "turn.failed":
		c.ended, c.failed = "failed", orElse(errorText(o), noWords)
		if u := o.object("usage"); u != nil {
			c.usage = u
		}
	}
}

// fill completes a reply when the run came to an end of its own.
func (c *codexOut) fill(r *reply, ev evidence.Case) *nodes.Error {
	r.ToolCalls = c.toolCalls
	c.count(r)
	r.Text = lastOf(c.texts)
	for i := len(c.texts) - 2; i >= 0; i-- {
		r.Earlier = append(r.Earlier, c.texts[i])
	}
	if c.ended == "failed" {
		ev.Text = c.failed
		if ev.Text == noWords {
			ev.Text = orElse(lastOf(c.told), noWords)
		}
		r.Finish = "error"
		return ev.Error()
	}
	if c.failed != "" {
		r.Warnings = append(r.Warnings, "a turn failed before the last one: "+printable.Clip(c.failed, 200))
	}
	for _, e := range append(c.remarks, c.told...) {
		r.Warnings = append(r.Warnings, "the agent reported: "+printable.Clip(e, 200))
	}
	r.Finish = "stop"
	if ev.Text = lastOf(c.told); r.Text == "" && ev.Text != "" {
		r.Told = ev.Error()
	}
	return nil
}

// errorText returns what an event says of an error, wherever that stands in it.
func errorText(o object) string {
	e := o.object("error")
	var said []string
	for _, s := range []string{e.str("message"), o.str("error"), o.str("message"), e.str("code"), e.str("type")} {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, "\n")
}

// count sorts the tokens into disjoint classes: cached ones are part of the input.
func (c *codexOut) count(r *reply) {
	in, read, write := c.usage.count("input_tokens"), c.usage.count("cached_input_tokens"), c.usage.count("cache_write_input_tokens")
	fresh := in - read - write
	if fresh < 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("more cached tokens (%d) than input tokens (%d) were reported", read+write, in))
		fresh = 0
	}
	r.usage(nodes.Usage{Input: fresh, CacheRead: read, CacheWrite: write, Output: c.usage.count("output_tokens")},
		c.usage.countable("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"))
}
