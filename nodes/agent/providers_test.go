package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// spy is an agent that prints how it was started and then a result.
func spy(t *testing.T, result string) (program, record string) {
	t.Helper()
	dir := t.TempDir()
	program, record = filepath.Join(dir, "spy"), filepath.Join(dir, "record")
	script := "#!/bin/sh\nrec=" + record + `
for a in "$@"; do printf 'arg %s\n' "$a" >> $rec; done
env | sort | sed 's/^/env /' >> $rec
printf 'dir %s\n' "$(pwd)" >> $rec
find . -type f | sort | sed 's/^/file /' >> $rec
printf 'head %s\n' "$(cat .git/HEAD)" >> $rec
sed 's/^/stdin /' >> $rec
cat <<'END'
` + result + "\nEND\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, record
}

func spied(t *testing.T, result string, with m, change ...func(*nodes.Task, *nodetest.Host)) (record string, res *nodes.Result, host *nodetest.Host) {
	t.Helper()
	program, file := spy(t, result)
	with["argv"] = []string{program}
	if with["prompt"] == nil {
		with["prompt"] = m{"text": "/help me\n- @/etc/passwd"}
	}
	task, host := nodetest.New(t, "agent", with)
	task.Timeout = 20 * time.Second
	for _, f := range change {
		f(task, host)
	}
	ctx, cancel := context.WithTimeout(context.Background(), task.Timeout)
	defer cancel()
	res, err := Kind.Run(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), res, host
}

func wants(t *testing.T, record string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains("\n"+record, "\n"+want+"\n") {
			t.Errorf("the agent was not given %q in\n%s", want, record)
		}
	}
}

func wantsNot(t *testing.T, record string, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(record, word) {
			t.Errorf("the agent was given %q in\n%s", word, record)
		}
	}
}

// C-11: flags, clean environment, isolated folder, prompt by stdin behind a fixed line.
func TestClaudeIsStartedClean(t *testing.T) {
	for name, value := range map[string]string{
		"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "1", "SOME_TOKEN": "leak", "ANTHROPIC_API_KEY": "key1", "HANDED_ON": "h",
	} {
		t.Setenv(name, value)
	}
	record, res, _ := spied(t, `{"type":"result","subtype":"success","is_error":false,"result":"fine","total_cost_usd":0.1}`, m{
		"provider": "claude", "model": "claude-x", "system": m{"text": "Be brief."}, "maxOutputTokens": 60000, "flags": []string{"--betas", "b"},
		"baseURL": "http://127.0.0.1:1", "pass": []string{"HANDED_ON"}, "env": m{"EXTRA": 5}, "secrets": m{"SECRET": "s"},
		"give": []m{{"file": "guide.md"}}, "maxUSD": 3, "effort": "low", "thinking": "off",
	}, func(task *nodes.Task, h *nodetest.Host) {
		task.Reserve, task.Silence = 0.75, 10*time.Second
		h.Files["guide.md"], h.Secrets["s"] = "g", "hidden"
	})
	wants(t, record, "arg -p", "arg --output-format", "arg stream-json", "arg --verbose", "arg --no-session-persistence", "arg --strict-mcp-config",
		"arg --setting-sources\narg ", "arg --tools\narg ", "arg --max-turns\narg 1", "arg --model\narg claude-x", "arg --system-prompt\narg Be brief.",
		"arg --max-budget-usd\narg 3", "arg --effort\narg low", "env MAX_THINKING_TOKENS=0", "env CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1", "arg --include-partial-messages", "arg --betas\narg b",
		"env CLAUDE_CODE_MAX_RETRIES=0", "env CLAUDE_CODE_DISABLE_ATTACHMENTS=1", "env DISABLE_TELEMETRY=1", "env DISABLE_AUTO_COMPACT=1", "env DISABLE_AUTOUPDATER=1",
		"env CLAUDE_CODE_MAX_OUTPUT_TOKENS=60000", "env API_TIMEOUT_MS=19000", "env ANTHROPIC_BASE_URL=http://127.0.0.1:1", "env ANTHROPIC_API_KEY=key1",
		"env HANDED_ON=h", "env EXTRA=5", "env SECRET=hidden", "file ./.git/HEAD\nfile ./guide.md", "head ref: refs/heads/main",
		"stdin Read the following and answer it.", "stdin /help me")
	wantsNot(t, record, "CLAUDECODE", "ENTRYPOINT", "SSE_PORT", "leak", "arg --allowedTools", "arg /help", "env HOME="+os.Getenv("HOME")+"\n")
	for _, name := range []string{"HOME", "TMPDIR", "CLAUDE_CONFIG_DIR"} {
		if !strings.Contains(record, "env "+name+"=") {
			t.Errorf("%s is not set", name)
		}
	}
	if *res.CostUSD != 0.1 {
		t.Errorf("cost %v", *res.CostUSD)
	}
}

// T1: bare file tools are held to the attempt's folder; a wider grant is what the spec writes out.
func TestClaudeWithTools(t *testing.T) {
	record, _, host := spied(t, `{"type":"result","subtype":"success","is_error":false,"result":"fine"}`, m{
		"provider": "claude", "tools": []string{"Read", "Bash(git log *)", "Bash(ls)", "Write(/data/**)"}, "home": "user",
	})
	wants(t, record, "arg --tools\narg Read,Bash,Write", "arg --allowedTools\narg Read(./**),Bash(git log *),Bash(ls),Write(/data/**),Edit(/data/**)", "arg --max-turns\narg 30", "env HOME="+os.Getenv("HOME"))
	wantsNot(t, record, "CLAUDE_CONFIG_DIR", "arg --system-prompt", "arg --max-budget-usd")
	if hash := host.Facts[0]["tool_schema_hash"]; hash == nil || hash == "" {
		t.Error("no tool_schema_hash")
	}
}

func TestCodexIsStarted(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key2")
	out := `{"type":"thread.started"}` + "\n" + `{"type":"item.completed","item":{"type":"agent_message","text":"fine"}}` + "\n" + `{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}`
	record, res, host := spied(t, out, m{"provider": "codex", "model": "gpt-x", "system": m{"text": "Be brief."}, "baseURL": "http://127.0.0.1:1/v1"})
	wants(t, record, "arg exec", "arg --json", "arg --skip-git-repo-check", "arg --sandbox\narg read-only", "arg -m\narg gpt-x", `arg model_provider="dagrun"`, "env OPENAI_API_KEY=key2", "stdin /help me", "arg features.shell_tool=false", `arg web_search="disabled"`)
	if !strings.HasSuffix(strings.Split(record, "env ")[0], "arg -\n") || !strings.Contains(record, `base_url="http://127.0.0.1:1/v1"`) || !strings.Contains(record, "request_max_retries=0") {
		t.Errorf("arguments\n%s", record)
	}
	if res.Usage != (nodes.Usage{Input: 3, Output: 2}) || res.CostUSD != nil || host.Facts[0]["provider_base_url"] != "http://127.0.0.1:1/v1" {
		t.Errorf("%+v %v", res, host.Facts)
	}
}

func TestCodexRefusesLongPrompts(t *testing.T) {
	task, _ := nodetest.New(t, "agent", m{"provider": "codex", "argv": []string{"/bin/false"}, "prompt": m{"text": strings.Repeat("ä", 1<<20)}})
	if _, err := (Kind).Run(context.Background(), task); nodetest.Category(err) != "input_too_big" {
		t.Errorf("%v", err)
	}
}

func TestGeminiIsStarted(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "key3")
	record, res, _ := spied(t, "Loaded.\n{\n \"response\": \"fine\",\n \"stats\": {\"models\": {\"g\": {\"tokens\": {\"prompt\": 9, \"cached\": 4, \"candidates\": 2, \"thoughts\": 3}}}}\n}", m{"provider": "gemini", "model": "g"})
	wants(t, record, "arg --output-format\narg json", "arg -m\narg g", "env GEMINI_API_KEY=key3", "env GEMINI_CLI_TRUST_WORKSPACE=true", "stdin /help me")
	if res.Usage != (nodes.Usage{Input: 5, CacheRead: 4, Output: 5}) || len(res.Warnings) != 1 {
		t.Errorf("%+v", res)
	}
}

// provider command: placeholders, ways to give the prompt, answers at declared places.
func TestCommandTemplates(t *testing.T) {
	script := func(body string) []string { return []string{"/bin/sh", "-c", body, "sh"} }
	tests := []struct {
		name   string
		argv   []string
		extra  m
		answer string
	}{
		{"file", append(script(`cat "$1"; printf %s "$2"`), "{prompt}", "{model}"), m{"prompt": "file"}, "Read the following and answer it.\n\n-x\nm1"},
		{"argument", script(`printf '[%s]' "$1"`), m{"prompt": "argument"}, "[Read the following and answer it.\n\n-x\n]"},
		{"stdin", script(`cat`), m{}, "Read the following and answer it.\n\n-x\n"},
		{"wrapper", []string{"cat"}, m{}, "wrapped Read the following and answer it.\n\n-x\n"},
		{"json", script(`echo '{"a": {"b": "deep"}, "error": null}'`), m{"parse": "json", "field": "a.b", "errorField": "error"}, "deep"},
		{"json-lines", script(`printf '%s\n' '{"d": {"t": "one "}}' 'noise' '{"d": {"t": "two"}}'`), m{"parse": "json-lines", "field": "d.t"}, "one two"},
	}
	for _, tt := range tests {
		with := m{"provider": "command", "model": "m1", "argv": tt.argv, "prompt": m{"text": "-x\n"}, "command": tt.extra, "to": "a"}
		if tt.name == "wrapper" {
			with["wrapper"] = []string{"/bin/sh", "-c", `printf 'wrapped '; exec "$@"`, "sh"}
		}
		task, _ := nodetest.New(t, "agent", with)
		res, err := Kind.Run(context.Background(), task)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := nodetest.Stage(t, task, res, "a"); got != tt.answer {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.answer)
		}
	}
}

// Declared patterns beat the built-in sentences; what JSON calls an error is one.
func TestCommandFailures(t *testing.T) {
	patterns := []m{
		{"match": "please hold the line", "category": "rate_limited", "wait": "90s"},
		{"match": "come back (later|tomorrow)", "category": "quota_wait", "wait": "2h"},
		{"match": "rate limit", "category": "billing"},
	}
	tests := []struct {
		body, parse string
		category    string
		wait        time.Duration
	}{
		{`echo "Please HOLD the line" >&2; exit 9`, "text", "rate_limited", 90 * time.Second},
		{`echo "come back tomorrow"`, "text", "quota_wait", 2 * time.Hour},
		{`echo "rate limit" >&2; exit 1`, "text", "billing", 0},
		{`echo '{"error": {"message": "rate limit"}, "a": "x"}'`, "json", "billing", 0},
		{`echo '{"error": "boom", "a": ""}'`, "json", "transient", 0},
		{`echo '{"b": 1}'`, "json", "protocol", 0},
		{`echo 'a long answer that mentions a rate limit'; head -c 3000 /dev/zero | tr '\0' x`, "text", "", 0},
	}
	for _, tt := range tests {
		task, _ := nodetest.New(t, "agent", m{
			"provider": "command", "argv": []string{"/bin/sh", "-c", tt.body}, "prompt": m{"text": "x"},
			"command": m{"parse": tt.parse, "field": "a", "errorField": "error", "errors": patterns},
		})
		now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
		_, err := WithClock(func() time.Time { return now }).Run(context.Background(), task)
		if got := nodetest.Category(err); got != tt.category {
			t.Errorf("%s: %q (%v), want %q", tt.body, got, err, tt.category)
			continue
		}
		var e *nodes.Error
		if tt.wait > 0 && errors.As(err, &e) && e.RetryAfter != tt.wait && e.WaitUntil.Sub(now) != tt.wait {
			t.Errorf("%s: retry after %v, wait until %v", tt.body, e.RetryAfter, e.WaitUntil)
		}
	}
}

func TestDescribe(t *testing.T) {
	good := m{
		"provider": "claude", "model": "claude-x", "prompt": m{"file": "p.md", "vars": m{"OLD": m{"artifact": "page.html", "else": ""}, "LOG": m{"accumulator": "log"}}},
		"system": m{"file": "s.md"}, "give": []m{{"artifact": "shot.png"}, {"file": "guide.md"}}, "secrets": m{"KEY": "api"}, "maxOutputTokens": 100,
		"accept": []m{{"extract": m{"html": m{"to": "page.html"}}}, {"accumulate": m{"into": "log"}}}, "to": "answer.md",
	}
	raw, _ := json.Marshal(good)
	tr, err := Kind.Describe(raw)
	if err != nil || len(tr.Problems) > 0 {
		t.Fatalf("%v %v", err, tr.Problems)
	}
	has := func(what string, list []string, names ...string) {
		for _, name := range names {
			if !strings.Contains(" "+strings.Join(list, " ")+" ", " "+name+" ") {
				t.Errorf("%s: no %s in %v", what, name, list)
			}
		}
	}
	has("files", tr.Files, "p.md", "s.md", "guide.md")
	has("reads", tr.Reads, "page.html", "log", "shot.png")
	has("writes", tr.Writes, "page.html", "answer.md")
	has("appends", tr.Appends, "log")
	has("secrets", tr.Secrets, "api")
	if !tr.Paid || tr.Effect != "idempotent" || tr.Prompt.Model != "claude-x" || tr.Prompt.MaxOutput != 100 || tr.Outputs["chars"] != "int" || tr.Outputs["changed"] != "bool" {
		t.Errorf("%+v %+v", tr, tr.Prompt)
	}
	bad := []struct {
		change m
		path   string
	}{
		{m{"accept": []m{{"extract": m{"html": m{"to": "x"}}, "verdict": m{}}}}, "accept.0"},
		{m{"accept": []m{{}}}, "accept.0"},
		{m{"to": "page.html"}, "to"},
		{m{"provider": "command"}, "argv"},
		{m{"provider": "sim"}, "sim.answers"},
		{m{"provider": "sim", "sim": m{"answers": "a", "faults": "*:nonsense"}}, "sim.faults"},
		{m{"give": []m{{"file": "a/x"}, {"file": "b/x"}}}, "give.1"},
		{m{"give": []m{{}}}, "give.0"},
		{m{"give": []m{{"file": "a/x", "send": []string{"*"}}}}, "give.0.send"},
		{m{"give": []m{{"file": "a/x.zip", "unpack": true, "send": []string{"*.png", "[a"}}}}, "give.0.send.1"},
		{m{"system": m{}}, "system"},
		{m{"env": m{"KEY": "v"}}, "secrets.KEY"},
		{m{"prompt": m{"text": "x", "to": "p"}}, "prompt.to"},
		{m{"provider": "command", "argv": []string{"x"}, "command": m{"parse": "json"}}, "command.field"},
		{m{"provider": "command", "argv": []string{"x"}, "command": m{"errors": []m{{"match": "(", "category": "auth"}}}}, "command.errors.0.match"},
	}
	for _, tt := range bad {
		with := m{}
		for k, v := range good {
			with[k] = v
		}
		for k, v := range tt.change {
			with[k] = v
		}
		raw, _ := json.Marshal(with)
		tr, err := Kind.Describe(raw)
		found := false
		for _, p := range tr.Problems {
			found = found || p.Path == tt.path
		}
		if err != nil || !found {
			t.Errorf("%v: no problem at %s: %v %v", tt.change, tt.path, tr.Problems, err)
		}
	}
}

func TestSameModel(t *testing.T) {
	tests := []struct {
		asked, got string
		want       bool
	}{
		{"claude-sonnet-4-5", "claude-sonnet-4-5", true},
		{"claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true},
		{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true},
		{"anthropic/claude-sonnet-4-5", "claude-sonnet-4-5", true},
		{"claude-sonnet-4-5[1m]", "claude-sonnet-4-5", true},
		{"sonnet", "claude-sonnet-4-5", true},
		{"gpt-5", "gpt-5-codex", false},
		{"gpt-5.1", "gpt-5.1-2025-11-13", true},
		{"claude-opus-5", "claude-opus-5-5", false},
		{"claude-opus-4-1", "claude-opus-4", false},
		{"gemini-2.5-pro", "gemini-2.5-pro-002", true},
		{"claude-haiku-4-5", "claude-haiku-4-5@20251001", true},
		{"claude-opus-4-1", "claude-haiku-4-5", false},
		{"gemini-2.5-pro", "gemini-2.5-flash", false},
		{"model-big", "model-small", false},
	}
	for _, tt := range tests {
		if got := sameModel(tt.asked, tt.got); got != tt.want {
			t.Errorf("sameModel(%q, %q) = %v", tt.asked, tt.got, got)
		}
	}
}

// Starts of one program keep their distance, those of another do not wait for them.
func TestStartsKeepTheirDistance(t *testing.T) {
	dir := t.TempDir() // programs that no other test, and no run of this one before, has started
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var at []time.Duration
		for range 4 {
			wg.Go(func() {
				if err := takeTurn(t.Context(), one, 100*time.Millisecond); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(begin))
			})
		}
		wg.Wait()
		if fmt.Sprint(at) != "[0s 100ms 200ms 300ms]" {
			t.Errorf("starts at %v", at)
		}
		if err := takeTurn(t.Context(), other, time.Hour); err != nil || time.Since(begin) != 300*time.Millisecond {
			t.Errorf("another program waited: %v, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := takeTurn(ctx, other, time.Hour); err == nil {
			t.Error("a cancelled wait was no error")
		}
	})
}

// Other shapes of a result.
func TestResultShapes(t *testing.T) {
	tests := []struct{ out, answer string }{
		{`{"type":"result","subtype":"success","is_error":false,"result":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "ab"},
		{`{"type":"result","subtype":"success","is_error":false,"result":"","structured_output":{"score":3}}`, `{"score":3}`},
		{`{"type":"result","is_error":"false","result":"ok"}`, "ok"},
	}
	for _, tt := range tests {
		program, _ := spy(t, tt.out)
		task, _ := nodetest.New(t, "agent", m{"provider": "claude", "prompt": m{"text": "x"}, "argv": []string{program}, "to": "a"})
		res, err := Kind.Run(context.Background(), task)
		if err != nil {
			t.Errorf("%s: %v", tt.out, err)
			continue
		}
		if got := nodetest.Stage(t, task, res, "a"); got != tt.answer {
			t.Errorf("%s: %q", tt.out, got)
		}
	}
}

// B-10: escape sequences in what an agent says do not reach messages.
func TestMessagesAreSafeToPrint(t *testing.T) {
	for _, out := range []string{
		`{"type":"result","subtype":"success","is_error":true,"result":"API Error: \u001b[31m500\u001b[0m \u001b]0;title\u0007 \u202eboom"}`,
		"\x1b[2J\x1b]0;x\x07nonsense\x07",
	} {
		program, _ := spy(t, out)
		task, host := nodetest.New(t, "agent", m{"provider": "claude", "prompt": m{"text": "x"}, "argv": []string{program}})
		res, err := Kind.Run(context.Background(), task)
		var e *nodes.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		said := fmt.Sprint(e.Message, e.Diagnostics, res.Warnings)
		if strings.ContainsAny(said, "\x1b\x07\u202e") {
			t.Errorf("%q", said)
		}
		if !strings.Contains(host.Kept["transcript.jsonl"], out) {
			t.Error("the transcript is not kept as it was")
		}
	}
}

// onDenial and onModelSwitch turn warnings into failures; a flat price costs nothing.
func TestStrictness(t *testing.T) {
	out := `{"type":"result","subtype":"success","is_error":false,"result":"fine","total_cost_usd":3,"permission_denials":[{"tool_name":"Write"}],"modelUsage":{"model-small":{"inputTokens":1,"costUSD":3}}}`
	run := func(change m) (*nodes.Result, error) {
		program, _ := spy(t, out)
		with := m{"provider": "claude", "model": "model-big", "prompt": m{"text": "x"}, "argv": []string{program}}
		for k, v := range change {
			with[k] = v
		}
		task, _ := nodetest.New(t, "agent", with)
		return Kind.Run(context.Background(), task)
	}
	res, err := run(m{})
	if err != nil || len(res.Warnings) != 2 || res.Model != "model-small" || *res.CostUSD != 3 {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := run(m{"onDenial": "fail"}); nodetest.Category(err) != "refused" {
		t.Errorf("%v", err)
	}
	if _, err := run(m{"onModelSwitch": "fail"}); nodetest.Category(err) != "transient" {
		t.Errorf("%v", err)
	}
	if res, err := run(m{"flatRate": true}); err != nil || *res.CostUSD != 0 || len(res.Notes) == 0 {
		t.Errorf("%+v %v", res, err)
	}
}
