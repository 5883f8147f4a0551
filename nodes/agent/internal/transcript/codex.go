package transcript

import (
	"cmp"
	"fmt"

	"dagrun.dev/nodes/internal/evidence"
)

// Codex is what `codex exec --json` prints. An error event is no end: only turn.completed and
// turn.failed are.
var Codex = Format{
	Table: evidence.Codex, Stream: true,
	Last: func(o object) bool { return o.Str("type") == "turn.completed" || o.Str("type") == "turn.failed" },
	Read: events{
		"turn.started":   func(t *Transcript, _ object) { t.begun = len(t.endings) > 0 },
		"item.completed": codexItem,
		"error":          func(t *Transcript, o object) { t.reported = append(t.reported, *t.failureIn(o)) },
		"turn.completed": func(t *Transcript, o object) {
			codexCount(t, o.Object("usage"))
			t.end(ending{})
		},
		"turn.failed": func(t *Transcript, o object) {
			codexCount(t, o.Object("usage"))
			t.endFailed(t.failureIn(o))
		},
	}.read,
}

func codexItem(t *Transcript, o object) {
	switch item := o.Object("item"); item.Str("type") {
	case "agent_message":
		t.open = false
		t.say("", item.Str("text"))
	case "error":
		t.remarks = append(t.remarks, t.failureIn(item).Text)
	case "reasoning", "":
	default:
		t.tools++
	}
}

// endFailed ends with a failure. One without words is the one that was reported before it.
func (t *Transcript) endFailed(c *evidence.Case) {
	if n := len(t.reported); c.Text == "" && n > 0 {
		c = &t.reported[n-1]
	}
	var e ending
	e.fails(c)
	t.end(e)
}

// failureIn reads what an event says of an error, wherever that stands in it.
func (t *Transcript) failureIn(o object) *evidence.Case {
	e := o.Object("error")
	text := cmp.Or(e.Str("message"), o.Str("error"), o.Str("message"))
	types := []string{e.Str("code"), e.Str("type"), e.Str("status"), o.Str("code")}
	if e != nil && text == "" {
		text = cmp.Or(types[0], types[1])
	}
	for _, name := range []string{"resets_at", "resets_in_seconds"} {
		if e.Has(name) {
			text += fmt.Sprintf("\n%q: %s", name, e[name]) // where the waits are read
		}
	}
	return t.fail(max(e.Status("code"), e.Status("status")), text, types...)
}

// codexCount takes the tokens, which are totals of the thread; cached ones are part of the input.
func codexCount(t *Transcript, u object) {
	sum := t.disjoint(u.Count("input_tokens"), u.Count("cached_input_tokens"), u.Count("cache_write_input_tokens"),
		u.Count("output_tokens"))
	t.count(sum, u.Countable("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"))
}
