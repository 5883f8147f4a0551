package agent

import (
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// geminiFormat is what `gemini --output-format json` or stream-json prints: one object with response, stats and
// error, or events. The error object of the first stands on stderr. It gives no sign of an answer that was
// cut; only the accept steps can see it.
var geminiFormat = format{
	table: evidence.Gemini, errorsOnStderr: true,
	last: func(o object) bool { return o.str("type") == "result" || !o.has("type") && o.has("response") },
	read: events{
		"message": func(t *transcript, o object) {
			if o.str("role") == "assistant" {
				t.say("", o.str("content"))
			}
		},
		"tool_use": func(t *transcript, _ object) { t.tools++; t.open = false },
		"error":    func(t *transcript, o object) { t.tell(o) },
		"result":   geminiResult,
		"": func(t *transcript, o object) {
			if _, there := o["response"]; there || o.has("error") {
				geminiResult(t, o)
			}
		},
	}.read,
}

func geminiResult(t *transcript, o object) {
	geminiCount(t, o.object("stats").object("models"))
	status := o.str("status")
	if !o.has("error") && (status == "" || status == "success") {
		t.end(ending{text: o.str("response")})
		return
	}
	failure := t.failure(o)
	if code := o.object("error").count("code"); code > 0 && code < 300 {
		failure.Else = t.ev.From.Exit(int(code)) // it is the status with which the program will exit
	}
	if failure.Text == "" && len(t.told) > 0 {
		failure = &t.told[len(t.told)-1]
	}
	t.end(ending{failure: failure})
}

// geminiCount sorts the tokens of all models into disjoint classes: cached ones are part of the
// prompt, thoughts are paid as output.
func geminiCount(t *transcript, models object) {
	sum, good := nodes.Usage{}, true
	t.modelKeys = nil
	for _, name := range sorted(models) {
		t.modelKeys = append(t.modelKeys, name)
		m := models.object(name)
		tokens := m.object("tokens")
		if tokens == nil {
			tokens = object{"prompt": m["input_tokens"], "candidates": m["output_tokens"], "cached": m["cached"]}
		}
		prompt, cached := tokens.count("prompt"), tokens.count("cached")
		if prompt == 0 {
			prompt = tokens.count("input")
		}
		sum.Input += max(0, prompt-cached)
		sum.CacheRead += cached
		sum.Output += tokens.count("candidates") + tokens.count("thoughts")
		good = good && tokens.countable("prompt", "input", "cached", "candidates", "thoughts")
	}
	t.count(sum, good)
}
