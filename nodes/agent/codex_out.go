package agent

import (
	"fmt"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// codexFormat is what `codex exec --json` prints. An error event is no end: only turn.completed and
// turn.failed are.
var codexFormat = format{
	table: evidence.Codex, stream: true,
	last: func(o object) bool { return o.str("type") == "turn.completed" || o.str("type") == "turn.failed" },
	read: events{
		"turn.started":   func(t *transcript, _ object) { t.begun = len(t.endings) > 0 },
		"item.completed": codexItem,
		"error":          func(t *transcript, o object) { t.tell(o) },
		"turn.completed": func(t *transcript, o object) {
			codexCount(t, o.object("usage"))
			t.end(ending{})
		},
		"turn.failed": func(t *transcript, o object) {
			codexCount(t, o.object("usage"))
			failure := t.failure(o)
			if failure.Text == "" && len(t.told) > 0 {
				failure = &t.told[len(t.told)-1]
			}
			t.end(ending{failure: failure})
		},
	}.read,
}

func codexItem(t *transcript, o object) {
	switch item := o.object("item"); item.str("type") {
	case "agent_message":
		t.open = false
		t.say("", item.str("text"))
	case "error":
		t.remarks = append(t.remarks, t.failure(item).Text)
	case "reasoning", "":
	default:
		t.tools++
	}
}

// tell notes an error that the program may get over.
func (t *transcript) tell(o object) { t.told = append(t.told, *t.failure(o)) }

// failure reads what an event says of an error, wherever that stands in it.
func (t *transcript) failure(o object) *evidence.Case {
	e := o.object("error")
	text := orElse(orElse(e.str("message"), o.str("error")), o.str("message"))
	types := []string{e.str("code"), e.str("type"), e.str("status"), o.str("code")}
	if e != nil && text == "" {
		text = orElse(types[0], types[1])
	}
	for _, name := range []string{"resets_at", "resets_in_seconds"} {
		if e.has(name) {
			text += fmt.Sprintf("\n%q: %s", name, e[name]) // where the waits are read
		}
	}
	return t.fail(max(e.status("code"), e.status("status")), text, types...)
}

// codexCount sorts the tokens into disjoint classes: cached ones are part of the input. They are totals of
// the thread.
func codexCount(t *transcript, u object) {
	in, read, write := u.count("input_tokens"), u.count("cached_input_tokens"), u.count("cache_write_input_tokens")
	fresh := in - read - write
	if fresh < 0 {
		t.warn("more cached tokens (%d) than input tokens (%d) were reported", read+write, in)
		fresh = 0
	}
	t.count(nodes.Usage{Input: fresh, CacheRead: read, CacheWrite: write, Output: u.count("output_tokens")},
		u.countable("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"))
}
