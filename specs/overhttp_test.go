package specs_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A-2, T3: the whole pipeline with its hardening runs with the providers that are asked over HTTP, and ends as it does with
// the simulated agent, whose answers a server gives in its place. Who looks at the page is sent it and its pictures; nobody
// is offered tools.
func TestHardenedOverHTTP(t *testing.T) {
	sim := shortenedRun(t)
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			over := overHTTP[provider]
			r := &relay{t: t, sim: sim, over: over, turns: turnsOf(t, sim)}
			server := httptest.NewServer(r)
			defer server.Close()
			spec := shortened(t)
			rewrite(t, spec, func(s string) string {
				line := "\t\tprovider: \"${params.agent.provider}\"\n"
				return strings.Replace(s, line, line+"\t\tbaseURL: \""+server.URL+"\"\n", 1)
			})
			s := newSite(t)
			out, err := s.dagrun([]string{over.key + "=sk-of-a-test"}, "apply", spec, "--seed", "7", "--quiet",
				"--set", "agent.provider="+provider, "--set", "agent.model="+over.model)
			if err != nil {
				t.Fatalf("%v\n%s", err, tail(out))
			}
			for asked, left := range r.turns {
				if len(left) > 0 {
					t.Errorf("%s was not asked: %.100s", left[0].Node, asked)
				}
			}
			same(t, sim, s)
			sameEnds(t, sim, s)
			priced(t, s, over)
		})
	}
}

// An overHTTPCase is what is known of a provider beforehand.
type overHTTPCase struct {
	key, model string
	marks      bool    // borders of the prompt are marked
	usd        float64 // of one answer, by the prices of the model
	events     string  // of an answer, with a text in them
}

var overHTTP = map[string]overHTTPCase{
	"anthropic": {"ANTHROPIC_API_KEY", "claude-sonnet-4-6", true, (100*3 + 2000*0.3 + 400*3.75 + 300*15) / 1e6,
		`data: {"type":"message_start","message":{"model":"claude-sonnet-4-6","usage":{"input_tokens":100,"cache_read_input_tokens":2000,"cache_creation_input_tokens":400}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":300}}

data: {"type":"message_stop"}

`},
	"openai": {"OPENAI_API_KEY", "gpt-5.4", false, (500*2.5 + 2000*0.25 + 300*15) / 1e6,
		`data: {"model":"gpt-5.4","choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}

data: {"model":"gpt-5.4","choices":[],"usage":{"prompt_tokens":2500,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":2000}}}

data: [DONE]

`},
}

// A turn is what the simulated agent was asked once, and what it answered: text, and the values of the object beside it.
type turn struct {
	Node   string
	Result struct{ Values map[string]json.RawMessage }
	text   string
}

// block is how a prompt begins to ask for a block of JSON, and schema what stands before its schema.
const block, schema = "\n\n---\nEnd your answer with exactly one block of JSON", "JSON Schema:\n\n"

// turnsOf returns the turns of a run by what was asked, without the block that was asked for.
func turnsOf(t *testing.T, s *site) map[string][]turn {
	t.Helper()
	turns := map[string][]turn{}
	read := func(dir, name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	err := filepath.WalkDir(s.out, func(name string, _ fs.DirEntry, err error) error {
		if dir, file := filepath.Split(name); err == nil && file == "raw-output.txt" {
			var one turn
			if err := json.Unmarshal([]byte(read(dir, "result.json")), &one); err != nil {
				return err
			}
			one.text, _, _ = strings.Cut(read(dir, file), "```json\n{")
			asked, _, _ := strings.Cut(read(dir, "prompt.md"), block)
			turns[asked] = append(turns[asked], one)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return turns
}

// A relay is a server that answers each question as the simulated agent did.
type relay struct {
	t    *testing.T
	sim  *site
	over overHTTPCase

	mu    sync.Mutex
	turns map[string][]turn // that are left
}

// A part is a content block of either API.
type part struct {
	Type, Text string
	Source     struct{ Data string }
	ImageURL   struct{ URL string } `json:"image_url"`
	Mark       json.RawMessage      `json:"cache_control"`
}

// parts reads a content, which is a list of blocks or one text.
func parts(raw json.RawMessage) (list []part, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []part{{Type: "text", Text: text}}, nil
	}
	return list, json.Unmarshal(raw, &list)
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, _ := io.ReadAll(req.Body)
	var body map[string]json.RawMessage
	var messages []struct{ Content json.RawMessage }
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(body["messages"], &messages) != nil {
		r.t.Errorf("no request: %.300s", raw)
	}
	for _, field := range []string{"tools", "tool_choice", "output_config", "response_format"} { // each object stands beside a text
		if body[field] != nil {
			r.t.Errorf("%s is in the request: %s", field, body[field])
		}
	}
	list, err := parts(messages[len(messages)-1].Content)
	if err != nil {
		r.t.Error(err)
	}
	answer, ok := r.answer(list)
	if !ok {
		w.WriteHeader(http.StatusUnauthorized) // pauses the run
		return
	}
	quoted, _ := json.Marshal(answer)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, r.over.events, quoted)
}

// answer finds the turn that asked for the same, and gives its answer in the form that is asked for.
func (r *relay) answer(list []part) (string, bool) {
	var own strings.Builder
	given, marks := map[string]string{}, 0
	for i, p := range list {
		if len(p.Mark) > 0 {
			marks++
		}
		name, isFile := strings.CutPrefix(p.Text, `<file name="`)
		switch {
		case p.Type != "text":
			picture, err := base64.StdEncoding.DecodeString(p.Source.Data + strings.TrimPrefix(p.ImageURL.URL, "data:image/png;base64,"))
			if err != nil {
				r.t.Error(err)
			}
			given[strings.TrimSuffix(list[i-1].Text, ":")] = string(picture)
		case isFile:
			name, text, _ := strings.Cut(name, "\">\n")
			given[name] = strings.TrimSuffix(text, "</file>\n")
		case i+1 < len(list) && list[i+1].Type != "text": // the name of a picture
		default:
			own.WriteString(p.Text)
		}
	}
	asked, form, shaped := strings.Cut(own.String(), block)
	left := r.turns[asked]
	if len(left) == 0 {
		r.t.Errorf("the simulated agent was not asked this:\n%s", tail(asked))
		return "", false
	}
	one := left[0]
	r.turns[asked] = left[1:]
	if want := r.over.marks && !strings.HasSuffix(one.Node, "/weaver"); want != (marks > 0) || marks > 4 { // its prompt has no border
		r.t.Errorf("%s is asked with %d marks", one.Node, marks)
	}
	r.looks(one.Node, given)
	if !shaped {
		return one.text, true
	}
	_, form, _ = strings.Cut(form, schema)
	var shape struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(form), &shape); err != nil {
		r.t.Errorf("%s: %v in %s", one.Node, err, form)
	}
	object := map[string]json.RawMessage{}
	for name := range shape.Properties {
		if v, ok := one.Result.Values[name]; ok {
			object[name] = v
		}
	}
	said, _ := json.Marshal(object)
	return fmt.Sprintf("%s\n```json\n%s\n```\n", one.text, said), true
}

// looks proves that who looks at the page is sent it as it was then, and the pictures of all of it, and others nothing.
func (r *relay) looks(id string, given map[string]string) {
	for cycle, page := range map[int]string{1: "_orchestrator/cycles/cycle-1/refine-1/artifact-backup.html", 2: "artifact.html"} {
		if !strings.HasPrefix(id, h(cycle, "auditor-")) && id != h(cycle, "weaver") {
			continue
		}
		want := []string{"page.html"}
		taken, _ := filepath.Glob(filepath.Join(r.sim.out, fmt.Sprintf("_orchestrator/screenshots/cycle-%d/[vf]*.png", cycle)))
		for _, name := range taken {
			want = append(want, "pictures/"+filepath.Base(name))
		}
		var got []string
		for name, content := range given {
			got = append(got, name)
			if strings.HasSuffix(name, ".png") && http.DetectContentType([]byte(content)) != "image/png" {
				r.t.Errorf("%s: %s is no picture", id, name)
			}
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) || len(taken) < 2 {
			r.t.Errorf("%s is sent %v, want %v", id, got, want)
		}
		if given["page.html"] != strings.TrimSuffix(r.sim.read(page), "\n")+"\n" {
			r.t.Errorf("%s is sent another page", id)
		}
		return
	}
	if len(given) > 0 {
		r.t.Errorf("%s is sent %d files", id, len(given))
	}
}

// T3: however long the page is, a request holds its pictures: anthropic takes 100, and of more than 20 none with a side above
// 2000 pixels.
func TestPicturesFitIntoARequest(t *testing.T) {
	p := basePlan(t).Plan
	s := with[struct {
		Viewports      []struct{ Width, Height int }
		Tile, MaxTiles int
	}](t, node(t, p, h(1, "capture")))
	for _, v := range s.Viewports {
		if most := max(v.Width, v.Height, s.Tile); most > 2000 {
			t.Errorf("pictures of %v have a side of %d pixels", v, most)
		}
	}
	for _, name := range []string{"auditor-A", "auditor-I", "weaver"} {
		given := with[struct{ Give []struct{ Send []string } }](t, node(t, p, h(1, name))).Give[1]
		if got := strings.Join(given.Send, " "); got != "viewport-* full-*" || len(s.Viewports)*(1+s.MaxTiles) > 100 {
			t.Errorf("%s is sent %s, up to %d pictures", name, got, len(s.Viewports)*(1+s.MaxTiles))
		}
	}
}

// sameEnds proves that all nodes ended alike in two runs, with the same values but for the model and the blank lines around a report.
func sameEnds(t *testing.T, want, got *site) {
	t.Helper()
	a, b := finished(want.events()), finished(got.events())
	if len(a) != len(b) {
		t.Errorf("%d nodes have ended, want %d", len(b), len(a))
	}
	for id, e := range a {
		x, y := e.Payload, b[id].Payload
		for _, own := range []string{"model", "chars"} {
			delete(x.Values, own)
			delete(y.Values, own)
		}
		if x.Status != y.Status || x.Attempt != y.Attempt || !reflect.DeepEqual(x.Values, y.Values) {
			t.Errorf("%s: %s in attempt %d with %s, want %s in attempt %d with %s", id, y.Status, y.Attempt, y.Values, x.Status, x.Attempt, x.Values)
		}
		if !slices.Equal(x.Warnings, y.Warnings) {
			t.Errorf("%s warns %q, want %q", id, y.Warnings, x.Warnings)
		}
	}
}

// priced proves that each answer costs what the prices of its model say.
func priced(t *testing.T, s *site, over overHTTPCase) {
	t.Helper()
	n := 0
	for line := range strings.Lines(s.read("_orchestrator/logs/cost.jsonl")) {
		var cost struct {
			Node, Model, CostKind string
			CostUSD               float64
		}
		if err := json.Unmarshal([]byte(line), &cost); err != nil {
			t.Fatal(err)
		}
		if n++; cost.Model != over.model || cost.CostKind != "priced" || math.Abs(cost.CostUSD-over.usd) > 2e-6 {
			t.Errorf("%+v, want $%.6f", cost, over.usd)
		}
	}
	if n == 0 {
		t.Error("no costs")
	}
}
