package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/internal/mask"
	"dagrun.dev/nodes"
)

// A doer does what a test says.
type doer func(ctx context.Context, t *nodes.Task) (*nodes.Result, error)

func (doer) Traits() nodes.Traits                                            { return nodes.Traits{Effect: "pure"} }
func (d doer) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { return d(ctx, t) }

// bodies returns the payloads of one type that a stage's run recorded.
func bodies[T machine.Body](s *stage) (out []T) {
	for _, b := range s.bodies {
		if b, ok := b.(T); ok {
			out = append(out, b)
		}
	}
	return out
}

// A secret that an attempt was given is masked in everything that is kept: values, messages,
// files, artifacts, entries, facts (B-14).
func TestSecretsAreMasked(t *testing.T) {
	const secret = "hunter2-hunter2"
	onStage(t, &dag.Plan{
		Accumulators: []dag.Accumulator{{Name: "notes", Path: "notes.md"}},
		Nodes: []dag.Node{
			{ID: "good", Kind: "agent", Writes: []string{"page.txt"}, Appends: []string{"notes"}, Outputs: map[string]string{"v": "string"}, Secrets: []string{"key"}},
			{ID: "bad", Kind: "agent", Needs: []string{"good"}, OnFail: "continue", Secrets: []string{"key"}},
		},
	}, func(s *stage) {
		s.opts.Secret = func(name string) (string, error) { return secret, nil }
		s.kinds = []nodes.Kind{kindOf("agent", doer(func(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
			key, err := t.Secret("key")
			if err != nil {
				return nil, err
			}
			w, err := t.Keep("raw.txt")
			if err != nil {
				return nil, err
			}
			_, err = io.WriteString(w, "the key is "+key)
			if err := errors.Join(err, w.Close()); err != nil {
				return nil, err
			}
			if err := t.Emit("LLM_CALL_STARTED", map[string]any{"model": "m " + key, "provider_base_url": "u", "prompt_hash": "h", "temperature": 0, "max_tokens": 1}); err != nil {
				return nil, err
			}
			if t.Node == "bad" {
				return nil, &nodes.Error{Category: "refused", Message: "no " + key, Diagnostics: key}
			}
			if err := os.WriteFile(filepath.Join(t.Out, "page.txt"), []byte(key), 0o600); err != nil {
				return nil, err
			}
			return &nodes.Result{
				Values: map[string]any{"v": key}, Writes: map[string]string{"page.txt": "page.txt"},
				Entries: []nodes.Entry{{Accumulator: "notes", Text: key}}, Warnings: []string{key},
			}, nil
		}))}
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("%+v", v)
		}
		found := 0
		err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), secret) {
				t.Errorf("%s holds the secret", path)
			}
			found += strings.Count(string(data), mask.Shown)
			return err
		})
		if err != nil || found < 8 {
			t.Errorf("%d masks, %v", found, err)
		}
	})
}

// W-6: the end of an attempt names what it left in its node's folder by content, also under the name that a later
// attempt has given it, and verify notices when that is changed or gone.
func TestKeptFilesAreFacts(t *testing.T) {
	s := newStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "agent", Retry: dag.Retry{Attempts: 2, Delays: []dag.Duration{1}}}}})
	s.kinds = []nodes.Kind{kindOf("agent", doer(func(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
		w, err := t.Keep("raw.txt")
		if err != nil {
			return nil, err
		}
		_, err = io.WriteString(w, strings.Repeat("x", t.Attempt))
		if err := errors.Join(err, w.Close()); err != nil || t.Attempt == 2 {
			return &nodes.Result{}, err
		}
		return nil, nodes.Fail("transient", "once more")
	}))}
	if v := s.carryOn(); v.Status != machine.RunDone {
		t.Fatalf("%+v", v)
	}
	var kept []machine.KeptFile
	for _, b := range bodies[*machine.FinishedBody](s) {
		kept = append(kept, b.Kept...)
	}
	if len(kept) != 2 || kept[0].Name != "raw-FAILED-1.txt" || kept[0].Size != 1 || kept[1].Name != "raw.txt" || kept[1].Size != 2 {
		t.Fatalf("%+v", kept)
	}
	fails := func() (names []string) {
		list, err := run.Verify(s.options(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if !c.Pass {
				names = append(names, c.Name)
			}
		}
		return names
	}
	if got := fails(); len(got) > 0 {
		t.Fatalf("verify finds %v", got)
	}
	folder := filepath.Join(s.dir, run.Dir, "nodes", "a")
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(filepath.Join(folder, "raw-FAILED-1.txt"), []byte("y"), 0o600) },
		func() error {
			return errors.Join(os.WriteFile(filepath.Join(folder, "raw-FAILED-1.txt"), []byte("x"), 0o600), os.Remove(filepath.Join(folder, "raw.txt")))
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got := fails(); !slices.Equal(got, []string{"kept files"}) {
			t.Errorf("verify finds %v", got)
		}
	}
}

// A kind records the facts that kinds may, with node and call id from the host, and no
// others.
func TestEmit(t *testing.T) {
	ofKinds := regexp.MustCompile("^(LLM_CALL_.*|GATE_RUN_.*|ISSUE_.*|PR_OPENED)$")
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "agent"}}}, func(s *stage) {
		var taken []machine.Type
		var malformed error
		s.kinds = []nodes.Kind{kindOf("agent", doer(func(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
			for _, typ := range machine.Types() {
				if !ofKinds.MatchString(string(typ)) && !strings.Contains(fmt.Sprint(t.Emit(string(typ), nil)), "records no "+string(typ)) {
					taken = append(taken, typ)
				}
			}
			malformed = t.Emit("LLM_CALL_FAILED", map[string]any{"no_such_field": 1})
			return nil, t.Emit("LLM_CALL_FAILED", map[string]any{"node": "another", "latency_ms": 5, "error_class": "x", "error_summary": "y", "retryable": true})
		}))}
		s.carryOn()
		if taken != nil || malformed == nil {
			t.Errorf("taken: %v, %v; what kinds may record stands at Emit in nodes/nodes.go, in facts of dag/attempt/task.go, and here",
				taken, malformed)
		}
		got := bodies[*machine.LLMCallFailedBody](s)
		if len(got) != 1 || got[0].Node != "a" || got[0].CallID != "a.1.1" || !got[0].Retryable {
			t.Errorf("recorded %+v", got)
		}
	})
}

// Values must have the declared types; what is not declared is dropped with a warning; an artifact
// outside writes or outside the folder is refused for good.
func TestResultsAreHeldToTheDeclaration(t *testing.T) {
	for name, c := range map[string]struct {
		result   nodes.Result
		category string
	}{
		"another type": {nodes.Result{Values: map[string]any{"n": "three"}}, "protocol"},
		"a fraction":   {nodes.Result{Values: map[string]any{"n": 2.5}}, "protocol"},
		"undeclared":   {nodes.Result{Values: map[string]any{"m": 1, "n": 3}}, ""},
		"foreign":      {nodes.Result{Writes: map[string]string{"other.txt": "x"}}, "config"},
		"outside":      {nodes.Result{Writes: map[string]string{"page.txt": "../x"}}, "config"},
		"missing":      {nodes.Result{Writes: map[string]string{"page.txt": "x"}}, "no_artifact"},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "agent", OnFail: "continue", Writes: []string{"page.txt"}, Outputs: map[string]string{"n": "int"}}}}, func(s *stage) {
				s.kinds = []nodes.Kind{kindOf("agent", doer(func(context.Context, *nodes.Task) (*nodes.Result, error) { return &c.result, nil }))}
				s.carryOn()
				got := bodies[*machine.FinishedBody](s)
				if len(got) != 1 || got[0].Category != c.category {
					t.Fatalf("%+v", got)
				}
				if name == "undeclared" && (len(got[0].Warnings) != 1 || string(got[0].Values["n"]) != "3" || len(got[0].Values) != 1) {
					t.Errorf("%+v", got[0])
				}
			})
		})
	}
}

// Control nodes are carried out from the run's state: a route records decision, rule, reason and
// further values, a milestone moves the declared state, a checkpoint keeps what its ancestors wrote.
func TestControlNodes(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", Writes: []string{"a.txt"}, Outputs: map[string]string{"n": "int"}},
		{ID: "way", Kind: "route", Needs: []string{"a"}, With: json.RawMessage(`{"rules":[
			{"name":"few","when":"nodes['a'].out.n < 3","then":"stop"},
			{"name":"many","when":"nodes['a'].out.n >= 3","then":"go","reason":"there are ${nodes['a'].out.n}"}],
			"else":"stop","values":{"twice":"nodes['a'].out.n * 2"}}`),
			Outputs: map[string]string{"decision": "string", "rule": "string", "reason": "string", "twice": "int"}},
		{ID: "save", Kind: "checkpoint", Needs: []string{"way"}, With: json.RawMessage(`{"id":"cp-1"}`)},
		{ID: "there", Kind: "milestone", Needs: []string{"save"}, With: json.RawMessage(`{"state":"HALF_WAY","stable":true}`)},
		{ID: "meet", Kind: "join", Needs: []string{"there"}},
		{ID: "never", Needs: []string{"way"}, When: "nodes['way'].out.decision == 'stop'"},
	}}, func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunDone || v.State != "HALF_WAY" || v.Stable != "HALF_WAY" {
			t.Fatalf("%+v", v)
		}
		for _, b := range bodies[*machine.FinishedBody](s) {
			if b.Node != "way" {
				continue
			}
			for name, want := range map[string]string{"decision": `"go"`, "rule": `"many"`, "reason": `"there are 3"`, "twice": "6"} {
				if got := string(b.Values[name]); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
		}
		if got := bodies[*machine.CheckpointBody](s); len(got) != 1 || got[0].ID != "cp-1" {
			t.Errorf("checkpoints %+v", got)
		}
		if _, ok := s.at["skipped never.0"]; !ok {
			t.Errorf("never was not skipped:\n%s", strings.Join(s.log, "\n"))
		}
	})
}

// V-1: milestones say which issues are open and that a pull request was opened; each change is one fact, said once.
func TestIssuesAndPullRequests(t *testing.T) {
	stone := func(id, with string, needs ...string) dag.Node {
		return dag.Node{ID: id, Kind: "milestone", Needs: needs, Dynamic: strings.Contains(with, "${"), With: json.RawMessage(with)}
	}
	onStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", Outputs: map[string]string{"n": "int"}},
		stone("first", `{"issues":{"scope":"page","open":["${string(nodes['a'].out.n)}",{"id":"links","title":"A link leads nowhere","severity":"error"}]}}`, "a"),
		stone("other", `{"issues":{"open":["links","links"]}}`, "first"),
		stone("second", `{"state":"CHECKED","issues":{"scope":"page","open":["links"]}}`, "other"),
		stone("asked", `{"state":"ASKED","pullRequest":{"url":"u${nodes['a'].out.n}","branch":"b","commit":"c"}}`, "second"),
		stone("again", `{"pullRequest":{"url":"u","branch":"b"}}`, "asked"),
	}}, func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunDone || v.State != "ASKED" {
			t.Fatalf("%+v", v)
		}
		var got []string
		for _, b := range bodies[*machine.IssueBody](s) {
			got = append(got, fmt.Sprint(b.Node, b.IssueID, b.Resolved, b.Title))
		}
		if want := "firstpage/3false, firstpage/linksfalseA link leads nowhere, otherother/linksfalse, secondpage/3true"; strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
		if got := bodies[*machine.PROpenedBody](s); len(got) != 2 || got[0].URL != "u3" || got[0].Branch != "b" || got[0].Commit != "c" || got[0].Node != "asked" {
			t.Errorf("%+v", got)
		}
	})
}

// A breaker that one run left open holds back the next one (B-6).
func TestBreakersOutliveARun(t *testing.T) {
	plan := func(step string) *dag.Plan {
		return &dag.Plan{
			Breakers: []dag.Breaker{{Name: "api", Failures: 1, OpenFor: dag.Duration(time.Hour), Probes: 1, WhenOpen: "wait", Key: "https://api.example"}},
			Nodes:    []dag.Node{{ID: "a", Breaker: "api", OnFail: "continue", With: script(step)}},
		}
	}
	onStage(t, plan("fail:transient"), func(s *stage) {
		kept, err := statedir.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.opts.Breakers = kept
		s.carryOn()
		time.Sleep(20 * time.Minute)

		next := newStage(t, plan("ok"))
		next.opts.Breakers = kept
		next.carryOn()
		next.wantAt("start a.1", 40*time.Minute, 40*time.Minute+time.Second)
		after, ok, err := kept.Breaker("https://api.example")
		if err != nil || !ok || after.State != "closed" {
			t.Errorf("kept %+v, %v, %v", after, ok, err)
		}
	})
}

// A result that a dead process had finished and kept is adopted: the answer is not bought twice,
// its artifact and value are those of the lost attempt (§ adoption, S-5).
func TestFinishedResultIsAdopted(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", Kind: "agent", Writes: []string{"page.txt"}, Outputs: map[string]string{"v": "string"}, Reserve: dag.Amount{USD: 2e6}},
	}}, func(s *stage) {
		calls := 0
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt = interrupt
		s.kinds = []nodes.Kind{kindOf("agent", doer(func(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
			calls++
			if err := os.WriteFile(filepath.Join(t.Out, "page.txt"), []byte("paid for"), 0o600); err != nil {
				return nil, err
			}
			cost := 1.25
			res := &nodes.Result{Values: map[string]any{"v": "x"}, Writes: map[string]string{"page.txt": "page.txt"}, CostUSD: &cost}
			w, err := t.Keep(nodes.SavedName)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(nodes.SaveResult(w, t, res), w.Close()); err != nil {
				return nil, err
			}
			interrupt <- time.Now() // the process ends before the end is recorded
			interrupt <- time.Now()
			<-ctx.Done()
			return nil, ctx.Err()
		}))}
		r := s.open()
		if err := s.run(r); !errors.Is(err, ErrHard) {
			t.Fatal(err)
		}
		r.Abandon()
		s.opts.Interrupt = nil
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("%+v", v)
		}
		got := bodies[*machine.FinishedBody](s)
		if calls != 1 || len(got) != 1 || got[0].Status != "completed" || got[0].CostUSD != 1_250_000 || string(got[0].Values["v"]) != `"x"` {
			t.Errorf("%d calls, %+v", calls, got)
		}
		if data, err := os.ReadFile(filepath.Join(s.dir, "page.txt")); string(data) != "paid for" || err != nil {
			t.Errorf("artifact %q, %v", data, err)
		}
	})
}

// Parallel starts cannot jointly pass the cap: the run pauses before the call that could, and goes
// on when the cap is raised.
func TestBudget(t *testing.T) {
	node := func(id string) dag.Node {
		return dag.Node{ID: id, Kind: "agent", Reserve: dag.Amount{USD: 1e6}}
	}
	onStage(t, &dag.Plan{Budget: dag.Budget{CapUSD: 2_500_000}, Nodes: []dag.Node{node("a"), node("b"), node("c"), node("d")}}, func(s *stage) {
		var calls atomic.Int32
		s.opts.Jobs = 4
		s.kinds = []nodes.Kind{kindOf("agent", doer(func(context.Context, *nodes.Task) (*nodes.Result, error) {
			calls.Add(1)
			cost := 1.0
			return &nodes.Result{CostUSD: &cost}, nil
		}))}
		if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "budget" || calls.Load() != 2 {
			t.Fatalf("%d calls, %+v", calls.Load(), v)
		}
		r, _, err := run.Open(s.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.RecordDurable(time.Now(), &machine.LimitsChangedBody{Budget: dag.Budget{CapUSD: 4e6}, By: "test"}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if v := s.carryOn(); v.Status != machine.RunDone || calls.Load() != 4 {
			t.Errorf("%d calls, %+v", calls.Load(), v)
		}
	})
}

// The next attempt is told of a failure where its category says so.
func TestFailuresAreToldWhereTheirCategoryAsks(t *testing.T) {
	p := &dag.Plan{
		Categories: []dag.Category{{Name: "told", Class: "transient", Then: "retry", Feedback: true}, {Name: "silent", Class: "transient", Then: "retry"}},
		Nodes:      []dag.Node{{ID: "a", Kind: "agent", Retry: dag.Retry{Attempts: 4}}},
	}
	onStage(t, p, func(s *stage) {
		var told []string
		s.kinds = []nodes.Kind{kindOf("agent", doer(func(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
			told = append(told, t.Feedback)
			return &nodes.Result{}, []error{nodes.Fail("told", "no page"), nodes.Fail("silent", "overloaded"), nil}[t.Attempt-1]
		}))}
		s.carryOn()
		if got := strings.Join(told, "|"); got != "|no page|" {
			t.Errorf("told %q", got)
		}
	})
}
