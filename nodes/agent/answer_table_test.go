package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

const (
	fits  = `{"decision":"POLISH","score":null}`
	unfit = `{"decision":"MAYBE","score":null}`
)

func inBlock(object string) string { return "Thought.\n" + fence + "json\n" + object + "\n" + fence }

// A speaker is a provider and what it prints or sends in each case, as the real ones were seen to do (see
// answerSettings). A case that it does not know is left out.
type speaker struct {
	with  m
	reply map[string]string // by fits, unfit, cut, refused, limit, two
	http  bool
}

func jsonLines(lines ...any) string {
	var b strings.Builder
	for _, l := range lines {
		raw, _ := json.Marshal(l)
		b.Write(append(raw, '\n'))
	}
	return b.String()
}

// claudeSays is a call of the tool that takes a shaped answer, and the result.
func claudeSays(input string, result m) string {
	r := m{"type": "result", "subtype": "success", "is_error": false, "num_turns": 2, "stop_reason": "tool_use", "total_cost_usd": 0.01,
		"usage": m{"input_tokens": 12, "output_tokens": 7}}
	for k, v := range result {
		r[k] = v
	}
	return jsonLines(m{"type": "assistant", "message": m{"id": "m1", "model": "c", "content": []m{{"type": "tool_use", "name": "StructuredOutput", "input": json.RawMessage(input)}}}}, r)
}

func codexSays(text string, last m) string {
	return jsonLines(m{"type": "turn.started"}, m{"type": "item.completed", "item": m{"type": "agent_message", "text": text}}, last)
}

func event(v any) string {
	raw, _ := json.Marshal(v)
	return "data: " + string(raw) + "\n\n"
}

func messagesSay(text, stop string) string {
	return event(m{"type": "message_start", "message": m{"model": "a", "usage": m{"input_tokens": 12, "output_tokens": 1}}}) +
		event(m{"type": "content_block_delta", "index": 0, "delta": m{"type": "text_delta", "text": text}}) +
		event(m{"type": "message_delta", "delta": m{"stop_reason": stop}, "usage": m{"output_tokens": 7}}) + event(m{"type": "message_stop"})
}

func chatSays(delta m, finish string) string {
	return event(m{"model": "b", "choices": []m{{"index": 0, "delta": delta}}}) + event(m{"choices": []m{{"index": 0, "delta": m{}, "finish_reason": finish}}}) +
		event(m{"choices": []m{}, "usage": m{"prompt_tokens": 12, "completion_tokens": 7}}) + "data: [DONE]\n\n"
}

func responsesSay(part m, more m) string {
	r := m{"status": "completed", "model": "b", "output": []m{{"type": "message", "status": "completed", "content": []m{part}}}, "usage": m{"input_tokens": 12, "output_tokens": 7}}
	for k, v := range more {
		r[k] = v
	}
	return event(m{"type": "response.completed", "response": r})
}

func speakers() map[string]speaker {
	done := m{"type": "turn.completed", "usage": m{"input_tokens": 12, "output_tokens": 7}}
	gemini := func(text string) string {
		return jsonLines(m{"response": text, "stats": m{"models": m{"g": m{"tokens": m{"prompt": 12, "candidates": 7}}}}})
	}
	part := func(text string) m { return m{"type": "output_text", "text": text} }
	maxTurns := m{"subtype": "error_max_turns", "is_error": true, "terminal_reason": "max_turns"}
	cutTurn := m{"subtype": "error_max_turns", "is_error": true, "terminal_reason": "max_turns", "stop_reason": "max_tokens"}
	good := claudeSays(fits, m{"result": fits, "structured_output": json.RawMessage(fits)})
	return map[string]speaker{
		"claude": {with: m{"provider": "claude"}, reply: map[string]string{
			"fits": good, "unfit": claudeSays(unfit, maxTurns), "cut": claudeSays(`{"__unparsedToolInput":{"raw":"{\"deci"}}`, cutTurn),
			"refused": claudeSays("{}", m{"is_error": true, "stop_reason": "refusal", "result": "No."}),
			"limit":   claudeSays(fits, m{"subtype": "error_max_budget_usd", "is_error": true}),
			"two":     good + jsonLines(m{"type": "result", "subtype": "error_during_execution", "is_error": true, "total_cost_usd": 0.01}),
		}},
		"codex": {with: m{"provider": "codex"}, reply: map[string]string{
			"fits": codexSays(fits, done), "unfit": codexSays(unfit, done),
			"cut":     codexSays(fits[:9], m{"type": "turn.failed", "error": m{"message": "Incomplete response returned, reason: max_output_tokens"}}),
			"refused": jsonLines(m{"type": "turn.started"}, done),
			"two":     codexSays(fits, done) + jsonLines(m{"type": "turn.started"}, m{"type": "turn.failed", "error": m{"message": "stream disconnected"}}),
		}},
		"gemini": {with: m{"provider": "gemini"}, reply: map[string]string{
			"fits": gemini(inBlock(fits)), "unfit": gemini(inBlock(unfit)), "cut": gemini(inBlock(fits)[:40]), "refused": gemini(""),
			"two": gemini(inBlock(fits)) + gemini(""),
		}},
		"command": {with: m{"provider": "command"}, reply: map[string]string{
			"fits": inBlock(fits), "unfit": inBlock(unfit), "cut": inBlock(fits)[:40], "refused": "I cannot do that.", "two": inBlock(fits) + "\n" + inBlock(fits),
		}},
		"anthropic": {http: true, with: m{"provider": "anthropic", "model": "a"}, reply: map[string]string{
			"fits": messagesSay(fits, "end_turn"), "unfit": messagesSay(unfit, "end_turn"), "cut": messagesSay(fits[:9], "max_tokens"),
			"refused": messagesSay("", "refusal"), "limit": messagesSay(fits, "max_tokens"), "two": messagesSay(fits, "end_turn") + messagesSay(unfit, "end_turn"),
		}},
		"chat": {http: true, with: m{"provider": "openai", "model": "b"}, reply: map[string]string{
			"fits": chatSays(m{"content": fits}, "stop"), "unfit": chatSays(m{"content": unfit}, "stop"), "cut": chatSays(m{"content": fits[:9]}, "length"),
			"refused": chatSays(m{"refusal": "No."}, "stop"), "limit": chatSays(m{"content": fits}, "length"),
		}},
		"responses": {http: true, with: m{"provider": "openai", "model": "b", "api": "responses"}, reply: map[string]string{
			"fits": responsesSay(part(fits), nil), "unfit": responsesSay(part(unfit), nil),
			"cut":     responsesSay(part(fits[:9]), m{"status": "incomplete", "incomplete_details": m{"reason": "max_output_tokens"}}),
			"refused": responsesSay(m{"type": "refusal", "refusal": "No."}, nil),
			"limit":   responsesSay(part(fits), m{"status": "incomplete", "incomplete_details": m{"reason": "max_output_tokens"}}),
		}},
		"sim": {with: m{"provider": "sim"}, reply: map[string]string{
			"fits": "", "unfit": "*:bad_answer", "cut": "*:max_tokens", "refused": "*:refused",
		}},
	}
}

// attempt makes one attempt, which says that it would be followed by another one or not.
func (s speaker) attempt(t *testing.T, reply, feedback string, again bool) (*nodes.Result, string, error) {
	with := m{"prompt": m{"text": "Decide."}, "answer": reviewShape}
	for k, v := range s.with {
		with[k] = v
	}
	calls := filepath.Join(t.TempDir(), "calls")
	var server *exchange.Server
	task, host := nodetest.New(t, "agent", nil)
	switch {
	case s.http:
		server = exchange.Serve(t, "", exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream"}, RawBody: reply})
		with["baseURL"] = server.URL
	case with["provider"] == "sim":
		answers := simAnswer(inBlock(fits), "")
		if err := os.WriteFile(filepath.Join(task.SpecDir, "answers.yaml"), []byte(strings.Replace(answers, "0.25", "0.01", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		with["sim"] = m{"answers": "answers.yaml", "faults": reply}
		with["pass"] = []string{"GORACE"}
	default:
		out := filepath.Join(filepath.Dir(calls), "out")
		if err := os.WriteFile(out, []byte(reply), 0o600); err != nil {
			t.Fatal(err)
		}
		with["argv"] = []string{"/bin/sh", "-c", "echo >> " + calls + "; cat " + out, "sh"}
	}
	raw, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	task.With, task.Feedback, task.Timeout, task.Grace = raw, feedback, time.Minute, 200*time.Millisecond
	task.Again = func(category string) bool { return again && category == "bad_answer" }
	res, err := Kind.Run(t.Context(), task)
	n := strings.Count(host.Types(), "LLM_CALL_STARTED")
	if server != nil {
		n = len(server.Requests())
	} else if b, failed := os.ReadFile(calls); failed == nil {
		n = len(b)
	}
	if n != 1 {
		t.Errorf("%d calls in one attempt", n)
	}
	if prompt := host.Kept["prompt.md"]; feedback != "" && !strings.Contains(prompt, feedback) {
		t.Errorf("the prompt does not say %q:\n%s", feedback, prompt)
	}
	if host.Kept["raw-output.txt"] == "" && err == nil {
		t.Error("the answer was not kept")
	}
	return res, cost1(res), err
}

func cost1(res *nodes.Result) string {
	switch {
	case res.CostUSD != nil:
		return fmt.Sprintf("$%g", *res.CostUSD)
	case res.Usage != (nodes.Usage{}):
		return fmt.Sprintf("%d+%d", res.Usage.Input, res.Usage.Output)
	}
	return "?"
}

// every provider in every case: the outcome (the decision, or the category of the failure), what each call
// cost, and * for a warning.
func TestAnswerTable(t *testing.T) {
	table := []struct {
		provider, fits, once, never, cut, refused, limit, two string
	}{
		{"claude", "POLISH $0.01", "POLISH $0.01 $0.01", "bad_answer $0.01 $0.01", "truncated $0.01", "refused $0.01", "POLISH $0.01 *", "POLISH $0.01 *"},
		{"codex", "POLISH 12+7", "POLISH 12+7 12+7", "bad_answer 12+7 12+7", "truncated ?", "no_artifact 12+7", "", "POLISH 12+7 *"},
		{"gemini", "POLISH 12+7", "POLISH 12+7 12+7", "bad_answer 12+7 12+7", "bad_answer 12+7 12+7", "no_artifact 12+7", "", "POLISH 12+7 *"},
		{"command", "POLISH ?", "POLISH ? ?", "bad_answer ? ?", "bad_answer ? ?", "bad_answer ? ?", "", "bad_answer ? ?"},
		{"sim", "POLISH $0.01", "POLISH $0.01 $0.01", "bad_answer $0.01 $0.01", "truncated $0.01", "refused $0", "", ""},
		{"anthropic", "POLISH 12+7", "POLISH 12+7 12+7", "bad_answer 12+7 12+7", "truncated 12+7", "refused 12+7", "POLISH 12+7 *", "POLISH 12+7"},
		{"chat", "POLISH 12+7", "POLISH 12+7 12+7", "bad_answer 12+7 12+7", "truncated 12+7", "refused 12+7", "POLISH 12+7 *", ""},
		{"responses", "POLISH 12+7", "POLISH 12+7 12+7", "bad_answer 12+7 12+7", "truncated 12+7", "refused 12+7", "POLISH 12+7 *", ""},
	}
	t.Setenv("ANTHROPIC_API_KEY", "k")
	all := speakers()
	for _, row := range table {
		s := all[row.provider]
		for _, c := range []struct{ name, first, second, want string }{
			{"fits", "fits", "fits", row.fits}, {"once", "unfit", "fits", row.once}, {"never", "unfit", "unfit", row.never}, {"cut", "cut", "cut", row.cut},
			{"refused", "refused", "refused", row.refused}, {"limit", "limit", "limit", row.limit}, {"two", "two", "two", row.two},
		} {
			first, known := s.reply[c.first]
			if !known || c.want == "" {
				if known != (c.want != "") {
					t.Errorf("%s/%s: the case is not whole", row.provider, c.name)
				}
				continue
			}
			t.Run(row.provider+"/"+c.name, func(t *testing.T) {
				res, cost, err := s.attempt(t, first, "", true)
				if nodetest.Category(err) == "bad_answer" {
					var more string
					res, more, err = s.attempt(t, s.reply[c.second], err.Error(), false)
					cost += " " + more
				}
				got := nodetest.Category(err)
				if err == nil {
					got = fmt.Sprint(res.Values["decision"])
				}
				if got += " " + cost; err == nil && len(res.Warnings) > 0 {
					got += " *"
				}
				if got != c.want {
					t.Errorf("got %s, want %s: %v %q", got, c.want, err, res.Warnings)
				}
			})
		}
	}
}
