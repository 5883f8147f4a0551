//go:build realcli

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	testprogram "dagrun.dev/internal/testing/program"
	"dagrun.dev/nodes"
)

// realCLIs are the versions that are tried. The native program comes in a package of its own, which
// asks for no version of Node; the one around it does.
var realCLIs = []string{"2.1.197", "2.1.332"}

// A fakeAPI speaks enough of the Messages API: the first part of the path chooses the behaviour.
type fakeAPI struct {
	calls   atomic.Int64
	waiting chan struct{} // told when a call that never ends has begun
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.calls.Add(1)
	fail := func(status int, kind, text string) {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, text)
	}
	switch strings.Split(r.URL.Path, "/")[1] {
	case "429":
		fail(429, "rate_limit_error", "This request would exceed your account's rate limit.")
	case "529":
		fail(529, "overloaded_error", "Overloaded")
	case "cut":
		if strings.Contains(string(body), "Output token limit hit") {
			f.answer(w, " PART-TWO</h1></body></html>", "end_turn")
			return
		}
		f.answer(w, "<!DOCTYPE html><html><body><h1>PART-ONE", "max_tokens")
	case "full":
		f.answer(w, "<!DOCTYPE html><html><body><h1>NO-END", "max_tokens")
	case "hang":
		w.Header().Set("content-type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		f.waiting <- struct{}{}
		<-r.Context().Done()
	default:
		seen := "passed"
		if strings.Contains(string(body), "root:x:") {
			seen = "READ"
		}
		f.answer(w, "```html\n<!DOCTYPE html><html><body><h1>"+seen+"</h1></body></html>\n```", "end_turn")
	}
}

func (f *fakeAPI) answer(w http.ResponseWriter, text, stop string) {
	w.Header().Set("content-type", "text/event-stream")
	event := func(name string, data any) {
		b, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, b)
	}
	usage := m{"input_tokens": 12, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
	event("message_start", m{"type": "message_start", "message": m{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	event("content_block_start", m{"type": "content_block_start", "index": 0, "content_block": m{"type": "text", "text": ""}})
	event("content_block_delta", m{"type": "content_block_delta", "index": 0, "delta": m{"type": "text_delta", "text": text}})
	event("content_block_stop", m{"type": "content_block_stop", "index": 0})
	event("message_delta", m{"type": "message_delta", "delta": m{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	event("message_stop", m{"type": "message_stop"})
}

// The real command line agent against a loopback API, with a dummy key and an empty home.
func TestRealCLI(t *testing.T) {
	versions := realCLIs
	if os.Getenv("DAGRUN_REAL_CLI") != "" {
		versions = []string{"given"}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { testRealCLI(t, testprogram.Claude(t, version)) })
	}
}

func testRealCLI(t *testing.T, program string) {
	api := &fakeAPI{waiting: make(chan struct{}, 1)}
	server := httptest.NewServer(api)
	defer server.Close()
	run := func(t *testing.T, ctx context.Context, behaviour, prompt string) (*nodes.Task, *nodes.Result, *nodetest.Host, error) {
		task, host := nodetest.New(t, "agent", m{
			"provider": "claude", "argv": []string{program}, "model": "claude-sonnet-4-5", "prompt": m{"text": prompt},
			"baseURL": server.URL + "/" + behaviour, "env": m{"ANTHROPIC_API_KEY": "dummy", "HTTPS_PROXY": "", "HTTP_PROXY": "", "NO_PROXY": "127.0.0.1"},
			"accept": acceptPage,
		})
		task.Timeout, task.Grace = 2*time.Minute, 5*time.Second
		api.calls.Store(0)
		ctx, cancel := context.WithTimeout(ctx, task.Timeout)
		defer cancel()
		res, err := Kind.Run(ctx, task)
		return task, res, host, err
	}
	t.Run("success; slash and attachment are only text", func(t *testing.T) {
		task, res, _, err := run(t, t.Context(), "ok", "/help @/etc/passwd\n@/etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		if got := nodetest.Stage(t, task, res, "page.html"); !strings.Contains(got, "passed") {
			t.Errorf("page %q", got)
		}
		if res.Usage != (nodes.Usage{Input: 12, Output: 7}) || *res.CostUSD <= 0 || len(res.Survivors) > 0 {
			t.Errorf("%+v cost %v", res, *res.CostUSD)
		}
	})
	for behaviour, category := range map[string]string{"429": "rate_limited", "529": "transient"} {
		t.Run(behaviour, func(t *testing.T) {
			_, _, _, err := run(t, t.Context(), behaviour, "Make a page.")
			if nodetest.Category(err) != category || api.calls.Load() != 1 {
				t.Errorf("%v after %d calls, want %s after 1", err, api.calls.Load(), category)
			}
		})
	}
	t.Run("answer cut and resumed is joined", func(t *testing.T) {
		task, res, _, err := run(t, t.Context(), "cut", "Make a page.")
		if err != nil {
			t.Fatal(err)
		}
		if got := nodetest.Stage(t, task, res, "page.html"); !strings.Contains(got, "PART-ONE PART-TWO") {
			t.Errorf("page %q", got)
		}
	})
	t.Run("answer cut each time", func(t *testing.T) {
		_, _, host, err := run(t, t.Context(), "full", "Make a page.")
		if nodetest.Category(err) != "truncated" {
			t.Errorf("%v", err)
		}
		if !strings.Contains(host.Kept["raw-output.txt"]+host.Kept["transcript.jsonl"], "NO-END") {
			t.Errorf("the cut answer is not kept: %v", host.Kept)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-api.waiting; cancel() }()
		begin := time.Now()
		_, res, _, err := run(t, ctx, "hang", "Make a page.")
		if nodetest.Category(err) != "killed" || time.Since(begin) > time.Minute || res != nil && len(res.Survivors) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
