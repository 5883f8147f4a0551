//go:build realcli

package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	testprogram "dagrun.dev/internal/testing/program"
)

// A shapeAPI speaks enough of the Messages and Responses APIs to give an object: by the first part of the path one
// that fits, one that does not, or only a text.
type shapeAPI struct{ calls atomic.Int64 }

func (f *shapeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	f.calls.Add(1)
	object := map[string]string{"fits": fits, "unfit": unfit, "text": "POLISH, I would say."}[strings.Split(r.URL.Path, "/")[1]]
	w.Header().Set("content-type", "text/event-stream")
	send := func(v m) {
		raw, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", v["type"], raw)
	}
	if strings.HasSuffix(r.URL.Path, "/responses") {
		if !strings.Contains(string(body), `"strict":true`) || !strings.Contains(string(body), "codex_output_schema") {
			object = "no schema was sent"
		}
		send(m{"type": "response.created", "response": m{"id": "r"}})
		send(m{"type": "response.output_item.done", "output_index": 0, "item": m{"type": "message", "role": "assistant", "id": "m", "content": []m{{"type": "output_text", "text": object}}}})
		send(m{"type": "response.completed", "response": m{"id": "r", "usage": m{"input_tokens": 12, "input_tokens_details": nil, "output_tokens": 7, "output_tokens_details": nil, "total_tokens": 19}}})
		return
	}
	usage, stop := m{"input_tokens": 12, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}, "tool_use"
	send(m{"type": "message_start", "message": m{"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []m{}, "stop_reason": nil, "usage": usage}})
	if strings.HasPrefix(object, "{") {
		object = strings.Replace(object, `,"score":null`, "", 1) // this schema has no nulls
		send(m{"type": "content_block_start", "index": 0, "content_block": m{"type": "tool_use", "id": "t1", "name": "StructuredOutput", "input": m{}}})
		send(m{"type": "content_block_delta", "index": 0, "delta": m{"type": "input_json_delta", "partial_json": object}})
	} else {
		stop = "end_turn"
		send(m{"type": "content_block_start", "index": 0, "content_block": m{"type": "text", "text": ""}})
		send(m{"type": "content_block_delta", "index": 0, "delta": m{"type": "text_delta", "text": object}})
	}
	send(m{"type": "content_block_stop", "index": 0})
	send(m{"type": "message_delta", "delta": m{"stop_reason": stop}, "usage": usage})
	send(m{"type": "message_stop"})
}

// real agents give a shaped answer, or the reason why it is none, by one call that is booked.
func TestRealCLIShapes(t *testing.T) {
	for _, version := range realCLIs {
		t.Run("claude "+version, func(t *testing.T) {
			realShapes(t, m{"provider": "claude", "argv": []string{testprogram.Claude(t, version)}, "model": "claude-sonnet-4-5"}, "")
		})
	}
	t.Run("codex", func(t *testing.T) {
		realShapes(t, m{"provider": "codex", "argv": []string{installNPM(t, "@openai/codex@0.171.0", "codex")}, "model": "gpt-5"}, "/v1")
	})
}

func realShapes(t *testing.T, with m, path string) {
	api := &shapeAPI{}
	server := httptest.NewServer(api)
	defer server.Close()
	for _, tt := range []struct{ behaviour, category string }{{"fits", ""}, {"unfit", "bad_answer"}, {"text", "bad_answer"}} {
		with["baseURL"] = server.URL + "/" + tt.behaviour + path
		with["prompt"], with["answer"] = m{"text": "Decide."}, reviewShape
		with["env"] = m{"ANTHROPIC_API_KEY": "dummy", "OPENAI_API_KEY": "dummy", "HTTPS_PROXY": "", "HTTP_PROXY": "", "NO_PROXY": "127.0.0.1"}
		task, host := nodetest.New(t, "agent", with)
		task.Timeout, task.Grace = 2*time.Minute, 5*time.Second
		api.calls.Store(0)
		res, err := Kind.Run(t.Context(), task)
		if nodetest.Category(err) != tt.category || api.calls.Load() != 1 {
			t.Errorf("%s: %v after %d calls, want %q after 1\n%v", tt.behaviour, err, api.calls.Load(), tt.category, host.Kept)
			continue
		}
		if err == nil && res.Values["decision"] != "POLISH" {
			t.Errorf("%s: %v", tt.behaviour, res.Values)
		}
		if res.Usage.Input != 12 || res.Usage.Output != 7 || with["provider"] == "claude" && (res.CostUSD == nil || *res.CostUSD <= 0) {
			t.Errorf("%s: %+v %v", tt.behaviour, res.Usage, res.CostUSD)
		}
	}
}
