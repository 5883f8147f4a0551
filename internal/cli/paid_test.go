package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/internal/testing/program"
)

const paidPage = `<!DOCTYPE html><html lang="en"><head><title>t</title></head><body><h1>ok</h1></body></html>`

// agentWrapper stands in front of the simulated agent. It counts its starts and keeps the agent from
// answering until the test says so; HOLD says what becomes of it after the answer.
const agentWrapper = `#!/bin/sh
echo call >> "$DIR/calls"
"$BIN" sim-agent "$@" > "$DIR/answer"
echo up > "$DIR/started"
while [ ! -e "$DIR/go" ]; do sleep 0.02; done
if [ -e "$DIR/half" ]; then rm "$DIR/half"; head -c 400 "$DIR/answer"; else cat "$DIR/answer"; fi
echo over > "$DIR/answered"
`

// A paidEnd is what a log says of an attempt's end.
type paidEnd struct {
	Status   string
	CostKind string  `json:"cost_kind"`
	CostUSD  float64 `json:"cost_usd"`
}

// A paidRun is a run with one paid node.
type paidRun struct {
	*crash
	cmd *exec.Cmd
}

func newPaidRun(t *testing.T, with object) *paidRun {
	t.Helper()
	p := &paidRun{crash: newFolder(t)}
	p.write("agent.sh", agentWrapper)
	if err := os.Chmod(p.path("agent.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write("answers.yaml", "- answer: |\n    ```html\n    "+paidPage+"\n    ```\n  costUSD: 0.25\n")
	with["prompt"], with["to"] = object{"text": "Make a page."}, "answer.txt"
	with["accept"] = []object{{"extract": object{"html": object{"to": "page.html"}}}}
	if with["provider"] == "sim" {
		with["argv"], with["env"] = []string{p.path("agent.sh")}, object{"DIR": p.dir, "BIN": binary}
	}
	node := object{"kind": "agent", "reserve": object{"usd": 1}, "with": with}
	spec, err := json.Marshal(object{"pipeline": object{"name": "crash", "budget": object{"capUSD": 5}, "nodes": object{"ask": node}}})
	if err != nil {
		t.Fatal(err)
	}
	p.write("spec.yaml", string(spec))
	return p
}

type object = map[string]any

func (p *paidRun) path(name string) string { return filepath.Join(p.dir, name) }

func (p *paidRun) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// begin starts the program without waiting for it.
func (p *paidRun) begin() {
	p.t.Helper()
	p.cmd = program.Command(p.t.Context(), binary, "apply")
	p.cmd.Dir, p.cmd.Env = p.dir, p.env()
	p.cmd.Stderr = said(p.t, "apply")
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *paidRun) exists(name string) func() bool {
	return func() bool { _, err := os.Stat(p.path(name)); return err == nil }
}

func (p *paidRun) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *paidRun) kill() {
	p.signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// stopped reports whether all threads of the program stand still.
func (p *paidRun) stopped() bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(state, "T")
}

// resume goes on to the end and returns what is recorded of the ends of attempts.
func (p *paidRun) resume() []paidEnd {
	p.t.Helper()
	if err := p.dagrun(0, "resume"); err != nil {
		p.t.Fatalf("resume: %v\n%s", err, p.output.String())
	}
	ends := p.ends()
	if got, err := os.ReadFile(p.path("build/crash/page.html")); err != nil || strings.TrimSpace(string(got)) != paidPage {
		p.t.Errorf("page %q %v", got, err)
	}
	if p.exists("build/crash/_orchestrator/spool")() {
		p.t.Error("the spool is still there")
	}
	if err := p.dagrun(0, "verify"); err != nil {
		p.t.Errorf("verify: %v\n%s", err, p.output.String())
	}
	return ends
}

func (p *paidRun) ends() (list []paidEnd) {
	p.t.Helper()
	p.events("WORK_ITEM_FINISHED", func(payload json.RawMessage) {
		var end paidEnd
		if err := json.Unmarshal(payload, &end); err != nil {
			p.t.Fatal(err)
		}
		list = append(list, end)
	})
	return list
}

func (p *paidRun) events(typ string, each func(payload json.RawMessage)) {
	p.t.Helper()
	b, err := os.ReadFile(p.path("build/crash/_orchestrator/events.ndjson"))
	if err != nil {
		p.t.Fatal(err)
	}
	last := time.Time{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var e struct {
			TS      time.Time
			Type    string
			Payload json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatal(err)
		}
		if e.TS.Before(last) {
			p.t.Errorf("%s at %v, after an event at %v", e.Type, e.TS, last)
		}
		if last = e.TS; e.Type == typ {
			each(e.Payload)
		}
	}
}

func (p *paidRun) calls() int {
	b, err := os.ReadFile(p.path("calls"))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Count(string(b), "call")
}

// An agent that answered while the program stood still is not asked again when that is killed: its
// answer is on disk. One that had not finished is, and its cost is assumed. S-5, B-2, DESIGN 13.12, 13.20
func TestAnsweredWhileStopped(t *testing.T) {
	for _, tt := range []struct {
		name, faults string
		whole        bool
		calls        int
		statuses     string
		kinds        string
	}{
		{"whole answer", "", true, 1, "completed", "reported"},
		{"half of it", "", false, 2, "lost completed", "assumed reported"},
		{"a failure that it reported itself", "*:refused*1", true, 1, "failed", "free"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPaidRun(t, object{"provider": "sim", "sim": object{"answers": "answers.yaml", "faults": tt.faults}})
			if !tt.whole {
				p.write("half", "")
			}
			p.begin()
			program.Await(t, "the agent starts", p.exists("started"))
			p.signal(syscall.SIGSTOP)
			program.Await(t, "the program stands still", p.stopped)
			p.write("go", "")
			program.Await(t, "the agent has answered", p.exists("answered"))
			p.kill()
			if tt.faults != "" {
				_ = p.dagrun(0, "resume") // it waits for a person: the answer was a refusal
			} else {
				p.resume()
			}
			var statuses, kinds []string
			for _, e := range p.ends() {
				statuses, kinds = append(statuses, e.Status), append(kinds, e.CostKind)
			}
			if got := strings.Join(statuses, " "); got != tt.statuses || strings.Join(kinds, " ") != tt.kinds {
				t.Errorf("recorded %s, cost %v; want %s, %s\n%s", got, kinds, tt.statuses, tt.kinds, p.output.String())
			}
			if n := p.calls(); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			begun, over := 0, 0
			p.events("LLM_CALL_STARTED", func(json.RawMessage) { begun++ })
			p.events("LLM_CALL_FINISHED", func(json.RawMessage) { over++ })
			p.events("LLM_CALL_FAILED", func(json.RawMessage) { over++ })
			if begun != tt.calls || over != 1 {
				t.Errorf("%d calls begun, %d ended, want %d and 1", begun, over, tt.calls)
			}
		})
	}
}

// A streamed answer is on disk as it comes: a stream whose stop reason had come when the program was
// killed is the answer, one without is asked for again.
func TestKilledWhileAnAnswerStreams(t *testing.T) {
	event := func(w http.ResponseWriter, v any) {
		raw, _ := json.Marshal(v)
		fmt.Fprintf(w, "data: %s\n\n", raw)
		w.(http.Flusher).Flush()
	}
	for _, whole := range []bool{true, false} {
		t.Run(fmt.Sprintf("stop reason %v", whole), func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				first := requests.Add(1) == 1
				_, _ = io.Copy(io.Discard, r.Body) // before that the server does not notice a client that is gone
				w.Header().Set("content-type", "text/event-stream")
				event(w, object{"type": "message_start", "message": object{"model": "model-a", "usage": object{"input_tokens": 10, "output_tokens": 1}}})
				event(w, object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}})
				event(w, object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": paidPage}})
				if whole || !first {
					event(w, object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": 50}})
				}
				if first { // the program is killed before the end
					<-r.Context().Done()
					return
				}
				event(w, object{"type": "message_stop"})
			}))
			defer server.Close()
			p := newPaidRun(t, object{"provider": "anthropic", "model": "model-a", "baseURL": server.URL})
			last := "text_delta"
			if whole {
				last = "message_delta"
			}
			p.begin()
			program.Await(t, "the stream is on disk", func() bool {
				files, _ := filepath.Glob(p.path("build/crash/_orchestrator/spool/*/answer"))
				for _, f := range files {
					if b, _ := os.ReadFile(f); strings.Contains(string(b), last) {
						return true
					}
				}
				return false
			})
			p.kill()
			ends := p.resume()
			want, n := "completed", int64(1)
			if !whole {
				want, n = "lost", 2
			}
			if ends[0].Status != want || requests.Load() != n || len(ends) != int(n) {
				t.Errorf("%d requests, recorded %+v", requests.Load(), ends)
			}
			if !whole && ends[0].CostKind != "assumed" {
				t.Errorf("the lost answer's cost is %q", ends[0].CostKind)
			}
		})
	}
}
