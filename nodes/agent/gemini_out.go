package agent

import (
	"maps"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// geminiOut reads what `gemini --output-format json` or stream-json prints: one object with response,
// stats and error, or events. The error object of the first stands on stderr.
type geminiOut struct {
	text   strings.Builder // of assistant messages
	whole  string          // response
	ended  bool
	status string // of the result event
	stats  object
	err    object
	told   []string // error events
	model  string
	tools  int
}

func (g *geminiOut) event(o object) {
	switch o.str("type") {
	case "init":
		g.model = o.str("model")
	case "message":
		if o.str("role") == "assistant" {
			g.text.WriteString(o.str("content"))
		}
	case "tool_use":
		g.tools++
	case "error":
		g.told = append(g.told, errorText(o))
	case "result":
		g.ended, g.status = true, o.str("status")
		g.take(o)
	case "":
		if _, there := o["response"]; there || o.has("error") {
			g.ended, g.whole = true, o.str("response")
			g.take(o)
		}
	}
}

func (g *geminiOut) take(o object) {
	if s := o.object("stats"); s != nil {
		g.stats = s
	}
	if o.has("error") {
		g.err = o.object("error")
		if g.err == nil {
			g.err = object{"message": o["error"]}
		}
	}
}

func (g *geminiOut) fill(r *reply, ev evidence.Case) *nodes.Error {
	r.Text = orElse(g.whole, g.text.String())
	r.ToolCalls = g.tools
	g.count(r)
	if g.err == nil && (g.status == "" || g.status == "success") {
		r.Finish = "stop"
		for _, e := range g.told {
			r.Warnings = append(r.Warnings, "the agent reported: "+printable.Clip(e, 200))
		}
		if ev.Text = lastOf(g.told); r.Text == "" && ev.Text != "" {
			r.Told = ev.Error()
		}
		return nil
	}
	r.Finish = "error"
	code, _ := g.err.num("code")
	if code >= 300 && code < 600 {
		r.Status = int(code)
	}
	ev.Status = r.Status
	ev.Text = strings.TrimSpace(g.err.str("message") + "\n" + g.err.str("type") + " " + g.err.str("status"))
	if ev.Text == "" {
		ev.Text = lastOf(g.told)
	}
	if category := exitCategory(int(code), true); category != "" {
		ev.Else = category
	}
	e := ev.Error()
	if ev.Else != "" && e.Category == ev.Else {
		e.Permanent = e.Category == "budget"
	}
	return e
}

// count sorts the tokens of all models into disjoint classes: cached ones are part of the
// prompt, thoughts are paid as output.
func (g *geminiOut) count(r *reply) {
	models := g.stats.object("models")
	sum, good := nodes.Usage{}, true
	for _, name := range slices.Sorted(maps.Keys(models)) {
		r.Models = append(r.Models, name)
		m := models.object(name)
		t := m.object("tokens")
		if t == nil {
			t = object{"prompt": m["input_tokens"], "candidates": m["output_tokens"], "cached": m["cached"]}
		}
		prompt, cached := t.count("prompt"), t.count("cached")
		if prompt == 0 {
			prompt = t.count("input")
		}
		sum.Input += max(0, prompt-cached)
		sum.CacheRead += cached
		sum.Output += t.count("candidates") + t.count("thoughts")
		good = good && t.countable("prompt", "input", "cached", "candidates", "thoughts")
	}
	r.usage(sum, good)
}
