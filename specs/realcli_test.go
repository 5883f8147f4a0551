//go:build realcli

package specs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// D-5, A-6: both pipelines of documents run whole with the real claude, which asks a loopback API that answers as the
// simulated agent did. They end with the same files.
func TestRealCLIPipelines(t *testing.T) {
	claude := program.Claude(t, "2.1.332")
	t.Run("literature", func(t *testing.T) {
		sim := literature(t, "")
		sim.run(0)
		api := &messages{t: t, turns: turnsOf(t, sim.site)}
		real := &litRun{site: newSite(t), answers: map[string][]string{}, spec: literatureSpec(t, "")}
		rewrite(t, real.spec, func(s string) string { return api.serve(t, claude, s) })
		real.run(0, api.args...)
		api.done(t, real.site)
		same(t, sim.site, real.site)
	})
	t.Run("documentation", func(t *testing.T) {
		t.Parallel()
		sim, real := newSite(t), newSite(t)
		sim.must("apply", launch, "--seed", "7", "--quiet")
		api := &messages{t: t, turns: turnsOf(t, sim)}
		spec := editIn(t, launch, "spec.cue", func(s string) string { return api.serve(t, claude, s) })
		real.must(append([]string{"apply", filepath.Dir(spec), "--seed", "7", "--quiet"}, api.args...)...)
		api.done(t, real)
		same(t, sim, real)
	})
}

// A messages is a Messages API that answers each question as the simulated agent did.
type messages struct {
	t     *testing.T
	args  []string // that have a pipeline ask it
	mu    sync.Mutex
	turns map[string][]turn // that are left
	calls int
}

var providerLine = regexp.MustCompile(`(?m)^(\s+)provider:\s+("\$\{params\.agent\.provider\}"|[&*]provider.*)$`)

// serve starts it, and has the agents of a specification ask it by way of a program.
func (m *messages) serve(t *testing.T, program, spec string) string {
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.args = []string{"--set", "agent.provider=claude", "--set", "agent.model=claude-sonnet-4-5"}
	return providerLine.ReplaceAllString(spec, fmt.Sprintf("${0}\n${1}argv: [%q]\n${1}baseURL: %q\n"+
		`${1}env: {ANTHROPIC_API_KEY: "dummy", HTTPS_PROXY: "", HTTP_PROXY: "", NO_PROXY: "127.0.0.1"}`, program, server.URL))
}

// done proves that each question was asked, once.
func (m *messages) done(t *testing.T, s *site) {
	t.Helper()
	for asked, left := range m.turns {
		if len(left) > 0 {
			t.Errorf("%s was not asked: %.200s", left[0].Node, asked)
		}
	}
	ended := 0
	for _, e := range s.events() {
		if e.Type == "LLM_CALL_FINISHED" {
			ended++
		}
	}
	if ended < 8 || ended != m.calls {
		t.Errorf("%d calls of the program have ended, of %d that it made", ended, m.calls)
	}
	t.Logf("%d calls of the real program, one request each", ended)
}

func (m *messages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		http.NotFound(w, r)
		return
	}
	var body struct {
		System   json.RawMessage
		Messages []struct{ Content json.RawMessage }
		Tools    []struct {
			Name   string
			Schema struct{ Properties map[string]any } `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		m.t.Errorf("no request: %v", err)
	}
	said := ""
	for _, content := range append([]json.RawMessage{body.System}, func() (list []json.RawMessage) {
		for _, one := range body.Messages {
			list = append(list, one.Content)
		}
		return list
	}()...) {
		list, _ := parts(content) // a request without a system text has none
		for _, p := range list {
			said += p.Text + "\n\n"
		}
	}
	one, ok := m.take(said)
	if !ok {
		m.t.Errorf("the simulated agent was not asked this:\n%s", tail(said))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	text, object := one.text, map[string]json.RawMessage{}
	choose := func(names []string) string {
		for _, name := range names {
			if v, ok := one.Result.Values[name]; ok {
				object[name] = v
			}
		}
		b, _ := json.Marshal(object)
		return string(b)
	}
	for _, tool := range body.Tools {
		if tool.Name == "StructuredOutput" {
			m.answer(w, text, choose(slices.Collect(maps.Keys(tool.Schema.Properties))))
			return
		}
	}
	if _, form, shaped := strings.Cut(said, block); shaped {
		_, form, _ = strings.Cut(form, schema)
		var shape struct{ Properties map[string]any }
		if err := json.NewDecoder(strings.NewReader(form)).Decode(&shape); err != nil {
			m.t.Errorf("%s: %v in %s", one.Node, err, form)
		}
		text += "\n```json\n" + choose(slices.Collect(maps.Keys(shape.Properties))) + "\n```\n"
	}
	m.answer(w, text, "")
}

// take finds the turn whose question is in a request: the specification's own texts may stand in it as the system's, and
// the rest as the user's.
func (m *messages) take(said string) (turn, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	best := ""
	for asked, left := range m.turns {
		holds := len(left) > 0 && len(asked) > len(best)
		for _, piece := range strings.Split(asked, "\n\n") {
			holds = holds && strings.Contains(said, strings.TrimSpace(piece))
		}
		if holds {
			best = asked
		}
	}
	left := m.turns[best]
	if len(left) == 0 {
		return turn{}, false
	}
	m.turns[best] = left[1:]
	return left[0], true
}

func (m *messages) answer(w http.ResponseWriter, text, object string) {
	type o = map[string]any
	usage, stop := o{"input_tokens": 12, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}, "end_turn"
	w.Header().Set("content-type", "text/event-stream")
	send := func(v o) {
		raw, _ := json.Marshal(v)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", v["type"], raw)
	}
	send(o{"type": "message_start", "message": o{"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
		"content": []o{}, "stop_reason": nil, "usage": usage}})
	if object != "" {
		stop = "tool_use"
		send(o{"type": "content_block_start", "index": 0, "content_block": o{"type": "tool_use", "id": "t1", "name": "StructuredOutput", "input": o{}}})
		send(o{"type": "content_block_delta", "index": 0, "delta": o{"type": "input_json_delta", "partial_json": object}})
	} else {
		send(o{"type": "content_block_start", "index": 0, "content_block": o{"type": "text", "text": ""}})
		send(o{"type": "content_block_delta", "index": 0, "delta": o{"type": "text_delta", "text": text}})
	}
	send(o{"type": "content_block_stop", "index": 0})
	send(o{"type": "message_delta", "delta": o{"stop_reason": stop}, "usage": usage})
	send(o{"type": "message_stop"})
}
