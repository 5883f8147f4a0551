//go:build realcli

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	testprogram "dagrun.dev/internal/testing/program"
)

// A workAPI asks for one file after another until it is asked to finish. It keeps what it was asked.
type workAPI struct{ bodies []string }

func (f *workAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		http.NotFound(w, r)
		return
	}
	f.bodies = append(f.bodies, string(raw))
	n := len(f.bodies)
	var body struct{ Messages []json.RawMessage }
	if json.Unmarshal(raw, &body) != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	usage := m{"input_tokens": 12000, "output_tokens": 7000}
	args, _ := json.Marshal(m{"file_path": fmt.Sprintf("part%d.md", n), "content": "half"})
	block := m{"type": "tool_use", "id": fmt.Sprintf("t%d", n), "name": "Write", "input": m{}}
	delta, stop := m{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	asked := string(body.Messages[len(body.Messages)-1])
	if strings.Contains(asked, "Finish the work now") && !strings.Contains(r.URL.Path, "/stubborn/") {
		block, delta, stop = m{"type": "text", "text": ""}, m{"type": "text_delta", "text": "The whole answer."}, "end_turn"
	}
	w.Header().Set("content-type", "text/event-stream")
	start := messageStart("claude-sonnet-4-5")
	start["message"].(m)["id"], start["message"].(m)["usage"] = fmt.Sprintf("m%d", n), usage
	for _, e := range []m{
		start, {"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": m{"stop_reason": stop}, "usage": usage}, {"type": "message_stop"},
	} {
		data, _ := json.Marshal(e)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	}
}

// Q5: real agents go on with what a limit cut, with what they remember, and report the costs of each part once.
func TestRealCLISession(t *testing.T) {
	versions := realCLIs
	if os.Getenv("DAGRUN_REAL_CLI") != "" {
		versions = []string{"given"}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			program := testprogram.Claude(t, version)
			for _, tt := range []struct {
				name, path, limit string
				value             any
				last              string // category of the attempts after the first
				calls             [3]int
			}{
				{"turns", "ok", "maxTurns", 1, "", [3]int{1, 1, 0}},
				// 2.1.197 forgets the call after which it was cut, not those before.
				{"money", "ok", "maxUSD", 0.2, "", [3]int{2, 1, 0}},
				{"turns, three times", "stubborn", "maxTurns", 1, cutShort, [3]int{1, 1, 1}},
				{"money, three times", "stubborn", "maxUSD", 0.2, cutShort, [3]int{2, 2, 2}},
			} {
				t.Run(tt.name, func(t *testing.T) {
					testRealSession(t, program, tt.path, m{tt.limit: tt.value}, tt.last, tt.calls)
				})
			}
		})
	}
}

func testRealSession(t *testing.T, program, path string, with m, last string, calls [3]int) {
	api := &workAPI{}
	server := httptest.NewServer(api)
	defer server.Close()
	with["provider"], with["argv"], with["model"] = "claude", []string{program}, "claude-sonnet-4-5"
	with["session"], with["prompt"], with["tools"] = "continue", m{"text": "Write a long answer."}, []string{"Write"}
	with["baseURL"] = server.URL + "/" + path
	with["env"] = m{"ANTHROPIC_API_KEY": "dummy", "HTTPS_PROXY": "", "HTTP_PROXY": "", "NO_PROXY": "127.0.0.1"}
	_, host := nodetest.New(t, "agent", with)
	carried, failed, before := t.TempDir(), map[string]int{}, 0
	for i, want := range calls {
		if want == 0 {
			return
		}
		task := host.Task(t, "agent", with)
		task.Attempt, task.FailedWith = i+1, failed
		task.Timeout, task.Grace = 2*time.Minute, 5*time.Second
		task.Carry = func() (string, error) { return carried, nil }
		ctx, cancel := context.WithTimeout(t.Context(), task.Timeout)
		res, err := Kind.Run(ctx, task)
		cancel()
		category := cutShort
		if i > 0 {
			category = last
		}
		if got := nodetest.Category(err); got != category {
			t.Fatalf("attempt %d: %q (%v), want %q\n%s", i+1, got, err, category, host.Kept["transcript.jsonl"])
		}
		made := len(api.bodies) - before
		before = len(api.bodies)
		if cost := 0.141 * float64(made); made != want || res.CostUSD == nil || math.Abs(*res.CostUSD-cost) > 1e-9 ||
			res.Usage.Output != int64(7000*made) {
			t.Errorf("attempt %d: %d calls, want %d; cost %v %+v", i+1, made, want, res.CostUSD, res.Usage)
		}
		asked := api.bodies[before-1]
		if i > 0 && (!strings.Contains(asked, "Write a long answer.") || !strings.Contains(asked, "part1.md")) {
			t.Errorf("attempt %d does not remember: %s", i+1, asked)
		}
		failed[category]++
		files, _ := filepath.Glob(filepath.Join(carried, "*", workName, "part*.md"))
		if i > 0 && path == "stubborn" && len(files) == 0 {
			t.Errorf("attempt %d: nothing is there of what was written", i+1)
		}
	}
}
