package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/prompt"
)

// spoolOf runs one attempt and returns what its spool held: the files that a dead host would leave.
func spoolOf(t *testing.T, with m) (spool string, res *nodes.Result, err error) {
	t.Helper()
	task, _ := nodetest.New(t, "agent", with)
	task.Spool = t.TempDir()
	res, err = Kind.Run(context.Background(), task)
	return task.Spool, res, err
}

// rescue ends an attempt by the first n bytes of a file of its spool; n < 0 takes all.
func rescue(t *testing.T, with m, spool, file string, n int) (*nodes.Result, *nodetest.Host, error) {
	t.Helper()
	task, host := nodetest.New(t, "agent", with)
	task.Spool = t.TempDir()
	entries, err := os.ReadDir(spool)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(spool, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == file && n >= 0 {
			b = b[:n]
		}
		if err := os.WriteFile(filepath.Join(task.Spool, e.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := rescued(task)
	return res, host, err
}

func printing(parse, stdout string) m {
	return m{
		"provider": "command", "argv": []string{"/bin/sh", "-c", `cat > /dev/null; printf %s "$OUT"`}, "prompt": m{"text": "x"}, "to": "answer.txt",
		"command": m{"parse": parse}, "env": m{"OUT": stdout}, "accept": acceptPage,
	}
}

// What a dead host left is the end of an attempt only where it proves one: cut at every byte it gives
// nothing, or what the attempt itself would have given. DESIGN 13.20
func TestRescueAtEveryByte(t *testing.T) {
	quoted, _ := json.Marshal(page)
	claude := fmt.Sprintf(`{"type":"system","subtype":"init","model":"a"}
{"type":"assistant","message":{"id":"1","model":"a","content":[{"type":"text","text":%s}]}}
{"type":"result","subtype":"success","is_error":false,"result":%s,"num_turns":1,"stop_reason":"end_turn","total_cost_usd":0.25,"usage":{"input_tokens":3,"output_tokens":4}}
`, quoted, quoted)
	refused := `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded","api_error_status":529,"total_cost_usd":0.5}` + "\n"
	codex := fmt.Sprintf("{\"type\":\"turn.started\"}\n{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":%s}}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":5}}\n", quoted)
	tests := []struct {
		name, parse, out string
		proof            string // what the output must hold to the end of
	}{
		{"claude", "claude-stream", claude, `"output_tokens":4}}`},
		{"claude, a failure", "claude-stream", refused, "0.5}"},
		{"codex", "codex-jsonl", codex, `"input_tokens":5}}`},
		{"gemini", "gemini-json", fmt.Sprintf(`{"session_id":"s","response":%s,"stats":{}}`, quoted), "}"},
		{"text", "text", "Here it is:\n" + page + "\nDone.", "</html>"},
		{"shaped answer", "text", inBlock(reviewed) + "\n", fence},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			with := printing(tt.parse, tt.out)
			writes := "page.html"
			if strings.Contains(tt.out, "POLISH") {
				with["answer"], writes = reviewShape, "answer.txt"
				delete(with, "accept")
			}
			spool, want, wantErr := spoolOf(t, with)
			from := strings.LastIndex(tt.out, tt.proof) + len(tt.proof)
			for n := 0; n <= len(tt.out); n++ {
				res, host, err := rescue(t, with, spool, "stdout", n)
				if n < from {
					if res != nil || err != nil || host.Types() != "" {
						t.Fatalf("cut at %d of %d: %+v %v %s", n, len(tt.out), res, err, host.Types())
					}
					continue
				}
				if nodetest.Category(err) != nodetest.Category(wantErr) || res == nil || !reflect.DeepEqual(res.CostUSD, want.CostUSD) || res.Usage != want.Usage {
					t.Fatalf("cut at %d of %d: %+v %v, want %+v %v", n, len(tt.out), res, err, want, wantErr)
				}
				if err == nil && (res.Writes[writes] == "" || res.Values["decision"] != want.Values["decision"] || host.Types() != "LLM_CALL_FINISHED") || err != nil && host.Types() != "LLM_CALL_FAILED" {
					t.Fatalf("cut at %d of %d: writes %v, facts %s", n, len(tt.out), res.Writes, host.Types())
				}
			}
		})
	}
}

// The same for a streamed answer: without its stop reason it proves nothing but what it used, when its head came (M6).
func TestRescueOfAStreamAtEveryByte(t *testing.T) {
	quoted, _ := json.Marshal(page)
	anthropic := fmt.Sprintf(`event: message_start
data: {"type":"message_start","message":{"model":"a","usage":{"input_tokens":10,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50}}

event: message_stop
data: {"type":"message_stop"}

`, quoted)
	whole := fmt.Sprintf(`{"model":"a","choices":[{"index":0,"message":{"content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":50}}`, quoted)
	for _, tt := range []struct{ name, provider, kind, body, head, proof string }{
		{"anthropic", "anthropic", "text/event-stream", anthropic, `"output_tokens":1}}}`, `"output_tokens":50}}`},
		{"chat in one piece", "openai", "application/json", whole, "}", "}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("content-type", tt.kind)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			with := m{"provider": tt.provider, "model": "a", "baseURL": server.URL, "prompt": m{"text": "x"}, "to": "answer.txt", "accept": acceptPage}
			spool, want, err := spoolOf(t, with)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(spool, spooledName))
			if err != nil {
				t.Fatal(err)
			}
			from := strings.LastIndex(string(b), tt.proof) + len(tt.proof)
			head := strings.LastIndex(string(b), tt.head) + len(tt.head)
			for n := range len(b) + 1 {
				res, host, err := rescue(t, with, spool, spooledName, n)
				switch {
				case head <= n && n < from:
					used := nodes.Usage{Input: 10, Output: 1}
					if res != nil && res.Usage.Output > 1 { // estimated from the text that came
						used.Output = prompt.EstimateTokens(int64(len(page)))
					}
					if nodetest.Category(err) != "lost" || res.Usage != used || res.CostUSD != nil || len(res.Writes) > 0 || host.Types() != "" {
						t.Fatalf("cut at %d of %d: %+v %v, facts %s", n, len(b), res, err, host.Types())
					}
				case err != nil, (res != nil) != (n >= from):
					t.Fatalf("cut at %d of %d: %+v %v", n, len(b), res, err)
				case res != nil && (res.Usage != want.Usage || res.Writes["page.html"] == "" || host.Types() != "LLM_CALL_FINISHED"):
					t.Fatalf("cut at %d of %d: %+v, facts %s", n, len(b), res, host.Types())
				}
			}
		})
	}
}

// A report that the attempt was to write is part of its end: where the folder is gone with the dead
// host, the attempt is not ended by what the agent said. P-13
func TestRescueOfAReport(t *testing.T) {
	with := printing("claude-json", `{"type":"result","subtype":"success","is_error":false,"result":"see the report","num_turns":1}`)
	delete(with, "accept")
	with["report"] = "report.md"
	spool, _, err := spoolOf(t, with)
	if err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		task, host := nodetest.New(t, "agent", with)
		task.Spool = spool
		if there {
			if err := os.MkdirAll(filepath.Join(task.Scratch, workName), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(task.Scratch, workName, "report.md"), []byte("the report"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		res, err := rescued(task)
		switch {
		case err != nil, (res != nil) != there:
			t.Errorf("folder there %v: %+v %v", there, res, err)
		case there && host.Kept["raw-output.txt"] != "the report":
			t.Errorf("kept %q", host.Kept["raw-output.txt"])
		}
	}
}

// A secret that is not known any more cannot be masked: nothing is kept.
func TestRescueWithoutItsSecret(t *testing.T) {
	with := printing("text", page)
	with["secrets"] = m{"TOKEN": "token"}
	task, host := nodetest.New(t, "agent", with)
	task.Spool = t.TempDir()
	for _, name := range []string{"stdout", "stderr"} {
		if err := os.WriteFile(filepath.Join(task.Spool, name), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := rescued(task); res != nil || err != nil || len(host.Kept) > 0 {
		t.Errorf("%+v %v, kept %v", res, err, host.Kept)
	}
	host.Secrets["token"] = "xyz"
	if res, err := rescued(task); res == nil || err != nil {
		t.Errorf("%+v %v", res, err)
	}
}

// What is paid and passes its checks is kept, with a warning, however the agent ended; the text of one
// that may have been cut only where its end shows.
func TestTextAgentThatEndsBadly(t *testing.T) {
	sections := []m{{"validate": m{"checks": []m{{"minChars": 3}}}}}
	for _, tt := range []struct {
		name, script, category string
		accept                 []m
	}{
		{"page, status 1", `printf %s "$OUT"; exit 1`, "", acceptPage},
		{"page, status 1 and a reason", `printf %s "$OUT"; echo 'Error: 429 rate limit' >&2; exit 1`, "", acceptPage},
		{"half a page, status 1", `printf %.50s "$OUT"; exit 1`, "exit_nonzero", acceptPage},
		{"half a page and a reason", `printf %.50s "$OUT"; echo 'Error: 429 rate limit' >&2; exit 1`, "rate_limited", acceptPage},
		{"other checks, status 1", `printf %s "$OUT"; exit 1`, "exit_nonzero", sections},
		{"no checks, status 1", `printf %s "$OUT"; exit 1`, "exit_nonzero", nil},
		{"page, signal", `printf %s "$OUT"; kill -9 $$`, "", acceptPage},
		{"other checks, signal", `printf %s "$OUT"; kill -9 $$`, "killed", sections},
		{"an error only, status 1", `echo 'API Error: 529 Overloaded'; exit 1`, "transient", sections},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			with := printing("text", page)
			with["argv"] = []string{"/bin/sh", "-c", "cat > /dev/null; " + tt.script}
			with["accept"] = tt.accept
			task, host := nodetest.New(t, "agent", with)
			res, err := Kind.Run(context.Background(), task)
			if got := nodetest.Category(err); got != tt.category {
				t.Fatalf("%q (%v), want %q", got, err, tt.category)
			}
			want := "LLM_CALL_STARTED LLM_CALL_FINISHED"
			if err != nil {
				want = "LLM_CALL_STARTED LLM_CALL_FAILED"
			} else if len(res.Warnings) == 0 {
				t.Error("no warning")
			}
			if host.Types() != want {
				t.Errorf("facts %s, want %s", host.Types(), want)
			}
		})
	}
}

// the moment at which a plan's limit is renewed, where a field alone tells it.
func TestPlanLimitInAField(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	task, _ := nodetest.New(t, "agent", printing("claude-stream",
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1773151200}}`+"\n"+
			`{"type":"result","is_error":true,"result":"x","api_error_status":429,"num_turns":1}`))
	_, err := WithClock(func() time.Time { return now }).Run(context.Background(), task)
	var e *nodes.Error
	if !errors.As(err, &e) || e.WaitUntil.Sub(now).Round(5*time.Minute) != 2*time.Hour {
		t.Errorf("%+v", e)
	}
}
