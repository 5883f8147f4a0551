package simagent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dagrun.dev/nodes"
)

type m = map[string]any

// session stands where the real agent has random ids: the same call says the same bytes.
const session = "00000000-0000-4000-8000-000000000000"

func (a *agent) event(v m) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"type":"error"}` + "\n")
	}
	return append(b, '\n')
}

func (a *agent) hello() []byte {
	tools := a.Tools
	if tools == nil {
		tools = []string{}
	}
	return a.event(m{"type": "system", "subtype": "init", "session_id": session, "model": a.Model, "tools": tools})
}

func (a *agent) says(model, text string) []byte {
	return a.event(m{"type": "assistant", "session_id": session, "message": m{
		"id": "msg_sim", "type": "message", "role": "assistant", "model": model, "stop_reason": nil,
		"content": []m{{"type": "text", "text": text}},
	}})
}

// result is the last line, the object by which claude ends its output.
func (a *agent) result(model string, ans *Answer, change m) []byte {
	u := ans.Usage
	r := m{
		"type": "result", "subtype": "success", "is_error": false, "result": ans.Text, "session_id": session,
		"num_turns": 1, "duration_ms": ans.Delay.Milliseconds(), "duration_api_ms": ans.Delay.Milliseconds(),
		"stop_reason": "end_turn", "terminal_reason": "completed", "total_cost_usd": ans.CostUSD, "permission_denials": []m{},
		"usage": m{
			"input_tokens": u.Input, "output_tokens": u.Output,
			"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		},
		"modelUsage": m{model: m{
			"inputTokens": u.Input, "outputTokens": u.Output,
			"cacheReadInputTokens": u.CacheRead, "cacheCreationInputTokens": u.CacheWrite, "costUSD": ans.CostUSD,
		}},
	}
	for k, v := range change {
		if v == nil {
			delete(r, k)
		} else {
			r[k] = v
		}
	}
	return a.event(r)
}

// A refusal is what the real agent prints when the API refuses.
type refusal struct {
	status     int
	kind, text string
	withArg    string // the text where the rule has an argument
}

var refusals = map[string]refusal{
	"rate_limited": {
		429, "rate_limit_error",
		"API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
		"API Error: Request rejected (429) · rate limit, retry after %s seconds",
	},
	"overloaded": {529, "overloaded_error",
		"API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.", ""},
	"server_error": {500, "api_error", "API Error: 500 Internal server error.", ""},
	"auth": {401, "authentication_error",
		"Failed to authenticate: OAuth session expired and could not be refreshed", ""},
	"billing": {400, "invalid_request_error", "Credit balance is too low", ""},
	"quota_wait": {429, "rate_limit_error",
		"You've hit your limit · resets 12am (UTC)", "You've hit your limit · resets %s"},
	"input_too_big": {400, "invalid_request_error", "Prompt is too long", ""},
}

// before carries out faults that need no answer. over is false for the others.
func (a *agent) before(f *Fault) (status int, over bool) {
	if r, ok := refusals[f.Kind]; ok {
		text := r.text
		if f.Arg != "" && r.withArg != "" {
			text = fmt.Sprintf(r.withArg, f.Arg)
		}
		return a.ends(&Answer{Text: text}, m{
			"is_error": true, "terminal_reason": "api_error", "stop_reason": "stop_sequence",
			"api_error_status": r.status, "api_error_type": r.kind,
		}), true
	}
	switch f.Kind {
	case "refused":
		ans := &Answer{Text: "API Error: the model can't help with this."}
		return a.ends(ans, m{"is_error": true, "stop_reason": "refusal"}), true
	case "max_turns":
		text := fmt.Sprintf("Reached maximum number of turns (%d)", a.MaxTurns)
		return a.limit("error_max_turns", "max_turns", text), true
	case "budget":
		return a.limit("error_max_budget_usd", "budget_exhausted", "Reached maximum budget"), true
	case "exit":
		return number(f.Arg, 255, 1), true
	case "hang":
		a.out.Write(a.hello())
		sleepForEver()
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		a.out.Write(a.hello())
		sleepForEver()
	}
	return 0, false
}

func (a *agent) limit(subtype, reason, text string) int {
	ans := &Answer{Usage: nodes.Usage{Input: tokens(a.prompt)}, CostUSD: float64(tokens(a.prompt)) * priceIn / 1e6}
	return a.ends(ans, m{
		"subtype": subtype, "is_error": true, "terminal_reason": reason, "stop_reason": "tool_use",
		"errors": []string{text}, "result": nil,
	})
}

// ends prints a call that fails, and returns its exit status.
func (a *agent) ends(ans *Answer, change m) int {
	a.out.Write(a.hello())
	a.out.Write(a.result(a.Model, ans, change))
	return 1
}

func sleepForEver() {
	for {
		time.Sleep(time.Hour)
	}
}

// speak prints the answer, with whatever goes wrong while it does.
func (a *agent) speak(ans *Answer, f *Fault) int {
	if f == nil {
		f = &Fault{}
	}
	model, change := a.Model, m{}
	switch f.Kind {
	case "truncated", "max_tokens":
		ans.Text = firstPart(ans.Text)
		if f.Kind == "max_tokens" {
			change["stop_reason"] = "max_tokens"
		}
	case "empty":
		ans.Text = ""
	case "no_artifact":
		ans.Text = cmp.Or(f.Arg, "All done, tell me what to change.")
	case "bad_answer":
		ans.Text = misfit(ans.Text, f.Arg)
	case "other_model":
		model = cmp.Or(f.Arg, "simulated-small")
	case "denied":
		tool := cmp.Or(f.Arg, "Write")
		change["permission_denials"] = []m{{"tool_name": tool, "tool_use_id": "t1", "tool_input": m{}}}
	}
	var b bytes.Buffer
	b.Write(a.hello())
	if f.Kind == "big" {
		block := m{"type": "tool_result", "tool_use_id": "t", "content": strings.Repeat("x", megabytes(f.Arg, 8))}
		b.Write(a.event(m{"type": "user", "message": m{"content": []m{block}}}))
	}
	if ans.Text != "" {
		b.Write(a.says(model, ans.Text))
	}
	b.Write(a.result(model, ans, change))
	return a.print(b.Bytes(), f)
}

// print sends the stream the way the fault says.
func (a *agent) print(stream []byte, f *Fault) int {
	switch f.Kind {
	case "cut":
		a.out.Write(stream[:len(stream)*2/3])
		return 0
	case "crash":
		a.out.Write(stream[:len(stream)/2])
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		sleepForEver()
	case "drip":
		pause, err := time.ParseDuration(f.Arg)
		if err != nil {
			pause = 100 * time.Millisecond
		}
		const pieces = 10
		for i := range pieces {
			a.out.Write(stream[len(stream)*i/pieces : len(stream)*(i+1)/pieces])
			time.Sleep(pause)
		}
		return 0
	case "noise":
		fmt.Fprint(a.out, "Loaded cached credentials {ok}.\n\x1b[31m[warn] {\"settings\":1} ignored\x1b[0m\n")
		fmt.Fprint(a.err, "\x1b]0;title\x07(node:1) Warning: deprecated\n")
		a.out.Write(stream)
		fmt.Fprint(a.out, "update available {2.0}\n")
		return 0
	case "flood":
		line := []byte(strings.Repeat("noise ", 170) + "\n")
		for n := megabytes(f.Arg, 64) / len(line); n > 0; n-- {
			if _, err := a.err.Write(line); err != nil {
				return 1
			}
		}
	case "orphan":
		cmd := exec.Command("/bin/sh", "-c", "trap '' HUP; exec sleep 600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(a.err, "sim-agent:", err)
			return 1
		}
	}
	a.out.Write(stream)
	if f.Kind == "linger" {
		sleepForEver()
	}
	return 0
}

// misfit puts another object into the block of JSON that an answer ends with.
func misfit(text, object string) string {
	object = cmp.Or(object, `{"not_asked_for": true}`)
	if i := strings.LastIndex(text, "```json"); i >= 0 {
		text = text[:i]
	}
	return text + "\n```json\n" + object + "\n```\n"
}

// firstPart cuts a text in the middle, and never between markup that would make it whole.
func firstPart(s string) string {
	cut := strings.ToValidUTF8(s[:len(s)*2/3], "")
	if i := strings.LastIndex(strings.ToLower(cut), "</html"); i >= 0 {
		cut = cut[:i]
	}
	return cut
}

func megabytes(arg string, def int) int { return number(arg, 1024, def) << 20 }

// number reads an argument from 1 to most; def stands for what is none.
func number(arg string, most, def int) int {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > most {
		return def
	}
	return n
}
