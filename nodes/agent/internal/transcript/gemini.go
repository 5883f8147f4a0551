package transcript

import (
	"maps"
	"slices"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// Gemini is what `gemini --output-format json` or stream-json prints: one object with response, stats and
// error, or events. The error object of the first stands on stderr. It gives no sign of an answer that was
// cut; only the accept steps can see it.
var Gemini = Format{
	Table: evidence.Gemini, ErrorsOnStderr: true,
	Last: func(o object) bool { return o.Str("type") == "result" || !o.Has("type") && o.Has("response") },
	Read: events{
		"message": func(t *Transcript, o object) {
			if o.Str("role") == "assistant" {
				t.say("", o.Str("content"))
			}
		},
		"tool_use": func(t *Transcript, _ object) {
			t.tools++
			t.open = false
		},
		"error":  func(t *Transcript, o object) { t.reported = append(t.reported, *t.failureIn(o)) },
		"result": geminiResult,
		"": func(t *Transcript, o object) {
			if _, there := o["response"]; there || o.Has("error") {
				geminiResult(t, o)
			}
		},
	}.read,
}

func geminiResult(t *Transcript, o object) {
	geminiCount(t, o.Object("stats").Object("models"))
	status := o.Str("status")
	if !o.Has("error") && (status == "" || status == "success") {
		t.end(ending{text: o.Str("response")})
		return
	}
	failure := t.failureIn(o)
	if code := o.Object("error").Count("code"); code > 0 && code < 300 {
		failure.Else = t.failure.From.Exit(int(code)) // it is the status with which the program will exit
	}
	t.endFailed(failure)
}

// geminiCount sums up the tokens of all models: cached ones are part of the prompt, thoughts are paid as output.
func geminiCount(t *Transcript, models object) {
	sum, good := nodes.Usage{}, true
	t.billed = nil
	for _, name := range slices.Sorted(maps.Keys(models)) {
		t.billed = append(t.billed, name)
		m := models.Object(name)
		tokens := m.Object("tokens")
		if tokens == nil {
			tokens = object{"prompt": m["input_tokens"], "candidates": m["output_tokens"], "cached": m["cached"]}
		}
		prompt, cached := tokens.Count("prompt"), tokens.Count("cached")
		if prompt == 0 {
			prompt = tokens.Count("input")
		}
		sum = sum.Plus(nodes.Usage{
			Input: max(0, prompt-cached), CacheRead: cached,
			Output: tokens.Count("candidates") + tokens.Count("thoughts"),
		})
		good = good && tokens.Countable("prompt", "input", "cached", "candidates", "thoughts")
	}
	t.count(sum, good)
}
