package run

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

var record = flag.String("record", "", "write a recorded log, named vN/NAME, into testdata/logs: a run of recordings")

// recordings are the runs that can be recorded, by name. A new type of event gets a short one of its own.
var recordings = map[string]func(*testing.T, *Run){
	"long-night": longNight, "fatal": fatal, "asleep": asleep, "part": part, "kept-not": keptNot, "told": told,
	"published": published,
}

const recordedLogs = "../../testdata/logs"

// Logs that earlier versions wrote replay for ever, to the same end. A change of the format adds a folder, a new
// type of event a run to the newest; none is ever changed.
func TestRecordedLogsReplay(t *testing.T) {
	if *record != "" {
		writeRecorded(t, filepath.Join(recordedLogs, *record))
	}
	dirs, err := filepath.Glob(recordedLogs + "/v*/*")
	if err != nil || len(dirs) < 2 {
		t.Fatalf("%d recorded logs, %v", len(dirs), err)
	}
	seen := map[machine.Type]bool{}
	for _, dir := range dirs {
		name, _ := filepath.Rel(recordedLogs, dir)
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			if err := os.CopyFS(out+"/"+Dir, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			o := Options{Dir: out, Now: start0.Add(48 * time.Hour)}
			st, _, err := Replay(o, false)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(dir + "/summary.txt")
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(st); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			o.Observe = func(e *machine.Event, _ bool) { seen[e.Type] = true }
			r, rep, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Source != "log" || rep.Cut != "" {
				t.Errorf("%+v", rep)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, typ := range machine.Types() { // V-1
		if !seen[typ] {
			t.Errorf("no recorded log holds %s: add a run that makes it to recordings, and write it with "+
				"go test ./dag/run -run RecordedLogs -record v3/NAME", typ)
		}
	}
}

// summary is what must stay the same about a recorded run, in words that no refactoring changes.
func summary(st *machine.State) string {
	var b strings.Builder
	v := st.Run()
	fmt.Fprintf(&b, "run %s %s, %d events, spent %v\n", v.ID, v.Status, v.Seq, st.Ledger().Spent.USD)
	for i := range int32(st.Graph().Len()) {
		n := st.NodeAt(i)
		fmt.Fprintf(&b, "%s: %v, generation %d, attempt %d, cost %v\n", n.Node.ID, statusName(n.Status), n.Generation, n.Attempt, n.Cost)
	}
	return b.String()
}

func statusName(s machine.Status) string {
	switch s {
	case machine.Completed:
		return "completed"
	case machine.Failed:
		return "failed"
	case machine.Skipped:
		return "skipped"
	case machine.Cancelled:
		return "cancelled"
	}
	return "open"
}

// writeRecorded makes one of recordings and writes its log and its summary.
func writeRecorded(t *testing.T, dir string) {
	if _, err := os.Stat(dir); err == nil {
		t.Fatalf("%s is there: recorded logs are never renewed", dir)
	}
	play := recordings[filepath.Base(dir)]
	if play == nil {
		t.Fatalf("%s is none of recordings", filepath.Base(dir))
	}
	out := t.TempDir()
	g := nightPlan(t, "")
	if filepath.Base(dir) == "told" {
		p := *g.Plan
		p.Notify = []dag.Notify{{Kind: "exec", With: []byte(`{"run":"cat"}`)}}
		var err error
		if g, err = dag.NewGraph(&p); err != nil {
			t.Fatal(err)
		}
	}
	plan := New{Graph: g, RunID: "0a1b2c3d-0a1b-4c3d-8e9f-001122334455", Seed: 7}
	r, err := Create(Options{Dir: out, Now: start0}, plan)
	if err != nil {
		t.Fatal(err)
	}
	play(t, r)
	text := summary(r.State())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	os.Remove(out + "/" + Dir + "/snapshot.json")
	os.Remove(out + "/" + Dir + "/snapshot.json.bak")
	os.Remove(out + "/" + Dir + "/state.json")
	os.Remove(out + "/" + Dir + "/state.json.bak")
	os.Remove(out + "/" + Dir + "/events.ndjson.synced")
	os.Remove(out + "/" + Dir + "/lock")
	if err := os.CopyFS(dir, os.DirFS(out+"/"+Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func nightPlan(t *testing.T, argument string) *dag.Graph {
	p := &dag.Plan{
		Format: dag.Format, Name: "night", Budget: dag.Budget{WarnUSD: 1e6, CapUSD: 10e6},
		Breakers:   []dag.Breaker{{Name: "api", Failures: 1, OpenFor: dag.Duration(time.Hour), Probes: 1, WhenOpen: "wait"}},
		Categories: []dag.Category{{Name: "overloaded", Class: "transient", Then: "retry", Breaker: 1}, {Name: "config", Class: "fatal", Then: "fail"}},
		Nodes: []dag.Node{
			{ID: "ask", Kind: "agent", Effect: "idempotent", Breaker: "api", Reserve: dag.Amount{USD: 2e6}, When: "true", Outputs: map[string]string{"items": "list"},
				Retry: dag.Retry{Attempts: 3, Base: dag.Duration(5 * time.Second)}, With: []byte(`{"prompt":"` + argument + `"}`)},
			{ID: "each", Kind: "exec", Effect: "pure", Needs: []string{"ask"}, Foreach: &dag.Foreach{In: "nodes['ask'].out.items", Var: "item", Key: "item", Template: []byte(`{}`), Most: 5}},
			{ID: "page", Kind: "exec", Effect: "idempotent", Needs: []string{"each"}, Writes: []string{"page.html"}, OnFail: "compensate", Retry: dag.Retry{Attempts: 1},
				Undo: &dag.Undo{Kind: "exec", Rewind: "each", Most: 2}},
			{ID: "sign", Kind: "approval", Effect: "pure", Needs: []string{"page"}},
		},
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A player records bodies a minute apart.
type player struct {
	t  *testing.T
	r  *Run
	at time.Time
}

func (p *player) play(bodies ...machine.Body) {
	p.t.Helper()
	for _, b := range bodies {
		p.at = p.at.Add(time.Minute)
		if err := p.r.RecordDurable(p.at, b); err != nil {
			p.t.Fatalf("%T: %v", b, err)
		}
	}
}

func (p *player) settle(node string, o machine.Outcome) {
	p.t.Helper()
	p.at = p.at.Add(time.Second)
	p.play(p.r.State().Settle(node, o, p.at).Body)
}

func longNight(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	call := func(id string) *machine.LLMCallStartedBody {
		return &machine.LLMCallStartedBody{CallID: id, Node: "ask", Model: "m", ProviderBaseURL: "cli:sim", PromptHash: "ph", MaxTokens: 100}
	}
	p.play(
		&machine.RunStateChangedBody{Old: "CREATED", New: "DRAFTING"},
		&machine.QueuedBody{Nodes: []string{"ask"}, Reason: "condition"},
		&machine.StartedBody{Node: "ask", Generation: 1, Attempt: 1, Reserve: dag.Amount{USD: 2e6}},
		call("ask.1.1"),
		&machine.LLMCallFailedBody{CallID: "ask.1.1", Node: "ask", LatencyMS: 12, ErrorClass: "HTTPError", ErrorSummary: "overloaded", Retryable: true, HTTPStatus: 529},
	)
	p.settle("ask", machine.Outcome{Status: dag.StatusFailed, Category: "overloaded", Message: "529 \u2028 \"overloaded\""})
	p.play(
		&machine.BreakerChangedBody{Breaker: "api", State: "open", Until: p.at.Add(time.Hour), Counts: machine.Counts{Requests: 1, Failures: 1, ConsecBad: 1}, Cause: "overloaded"},
		&machine.RunPausedBody{Reason: "breaker", Node: "ask", Message: "the breaker api is open"},
		&machine.RunResumedBody{By: "resume"},
		&machine.BreakerChangedBody{Breaker: "api", State: "half-open"},
		&machine.StartedBody{Node: "ask", Generation: 1, Attempt: 2, Reserve: dag.Amount{USD: 2e6}},
		call("ask.1.2"),
		&machine.LLMCallFinishedBody{CallID: "ask.1.2", Node: "ask", LatencyMS: 1200, TokenUsage: machine.TokenUsage{Input: 10, Output: 20, Total: 30}, FinishReason: "stop", OutputHash: "oh", APICostUSD: 1500000},
	)
	p.settle("ask", machine.Outcome{Status: dag.StatusCompleted, Body: machine.FinishedBody{
		CostUSD: 1500000, CostKind: "reported", Usage: machine.Usage{Input: 10, Output: 20}, Fingerprint: "f",
		Values: map[string]raw{"items": raw(`["a","b"]`)}, Notes: []machine.LogLine{{Log: "quality", Type: "validation", Fields: raw(`{"ok":true}`)}},
	}})
	p.play(
		&machine.BreakerChangedBody{Breaker: "api", State: "closed"},
		&machine.BudgetWarnedBody{Limit: "usd", SpentUSD: 1500000},
		&machine.LimitsChangedBody{Budget: dag.Budget{WarnUSD: 4e6, CapUSD: 20e6}, By: "user"},
		&machine.PlanExtendedBody{Node: "each", Generation: 1, Nodes: []dag.Node{
			{ID: "each/a", Kind: "exec", Effect: "pure", Needs: []string{"each"}}, {ID: "each/b", Kind: "exec", Effect: "pure", Needs: []string{"each"}},
		}},
	)
	for _, id := range []string{"each/a", "each/b"} {
		p.play(&machine.StartedBody{Node: id, Generation: 1, Attempt: 1})
		p.settle(id, machine.Outcome{Status: dag.StatusCompleted})
	}
	p.play(
		&machine.GateRunBody{Node: "each/a", Gate: "dpr", Start: true},
		&machine.GateRunBody{Node: "each/a", Gate: "dpr", Status: "pass", Details: raw(`{"value":1}`)},
		&machine.IssueBody{Node: "each/b", IssueID: "i1", Title: "too wide", Severity: "high"},
		&machine.IssueBody{Node: "each/b", IssueID: "i1", Resolved: true},
		&machine.StartedBody{Node: "page", Generation: 1, Attempt: 1},
	)
	p.settle("page", machine.Outcome{Status: dag.StatusFailed, Category: "overloaded", Message: "no page"})
	p.play(
		&machine.CompensationBody{Node: "page", Reason: "no page"},
		&machine.CompensationBody{Node: "page", Status: dag.StatusCompleted, Done: true},
		&machine.RewoundBody{To: "each", Nodes: []string{"each", "page"}, Reason: "no page", For: "page"},
		&machine.PlanExtendedBody{Node: "each", Generation: 2, Nodes: []dag.Node{{ID: "each/a", Kind: "exec", Effect: "pure", Needs: []string{"each"}}}},
		&machine.StartedBody{Node: "each/a", Generation: 2, Attempt: 1},
	)
	p.settle("each/a", machine.Outcome{Status: dag.StatusCompleted})
	p.play(&machine.StartedBody{Node: "page", Generation: 2, Attempt: 1})
	staged := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(staged, []byte("<p>page</p>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := stored(r, map[string]string{"page.html": staged})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(Attempt{Node: "page", Generation: 2, Attempt: 1}, out, func(b ...machine.Body) error {
		p.play(b...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.settle("page", machine.Outcome{Status: dag.StatusCompleted})
	if _, err := r.Checkpoint(p.at, "cp-1", "", nil); err != nil {
		t.Fatal(err)
	}
	p.play(
		&machine.EscalationOpenedBody{ID: "q1", Kind: "approval", Node: "sign", Message: "ship it?", Options: []string{"yes", "no"}, Recommended: "yes", Deadline: p.at.Add(time.Hour)},
		&machine.EscalationAnsweredBody{ID: "q1", Answer: "yes", By: "user"},
	)
	p.settle("sign", machine.Outcome{Status: dag.StatusCompleted, Body: machine.FinishedBody{Values: map[string]raw{"answer": raw(`"yes"`)}}})
	if _, err := r.Revert(p.at, "cp-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Submit(p.at, &machine.PartSelectedBody{By: "apply"}, nightPlan(t, "better"), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.AdoptSubmitted(p.at); err != nil {
		t.Fatal(err)
	}
	p.play(
		&machine.FinishedBody{Node: "ask", Generation: 2, Status: dag.StatusSkipped, Final: true, Message: "when is false"},
		&machine.FinishedBody{Node: "each", Generation: 3, Status: dag.StatusSkipped, Final: true},
		&machine.FinishedBody{Node: "page", Generation: 3, Status: dag.StatusSkipped, Final: true},
		&machine.FinishedBody{Node: "sign", Generation: 2, Status: dag.StatusSkipped, Final: true},
		&machine.PROpenedBody{Node: "sign", URL: "https://example.com/pr/1"},
		&machine.RunStateChangedBody{Old: "DRAFTING", New: "DONE", Stable: true},
		&machine.RunEndedBody{Skipped: 4, CostUSD: 1500000},
	)
}

func part(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	p.play(
		&machine.PartSelectedBody{Part: dag.Selection{Until: []string{"ask"}}, By: "apply", SavedPlan: "EXAMPLE"},
		&machine.QueuedBody{Nodes: []string{"ask"}, Reason: "condition"},
		&machine.StartedBody{Node: "ask", Generation: 1, Attempt: 1, Reserve: dag.Amount{USD: 2e6}},
	)
	p.settle("ask", machine.Outcome{Status: dag.StatusCompleted})
	p.play(
		&machine.RunPausedBody{Reason: machine.PausePart, Message: "the selected part (--until ask) is done; 3 nodes are left out"},
		&machine.PartSelectedBody{Part: dag.Selection{Only: []string{"ask"}}, Rerun: []string{"ask"}, By: "resume"},
		&machine.RunResumedBody{By: "resume"},
		&machine.RewoundBody{To: "ask", Nodes: []string{"ask"}, Reason: "restarted by the user", Asked: true},
		&machine.QueuedBody{Nodes: []string{"ask"}, Reason: "condition"},
		&machine.StartedBody{Node: "ask", Generation: 2, Attempt: 1, Reserve: dag.Amount{USD: 2e6}},
	)
	p.settle("ask", machine.Outcome{Status: dag.StatusCompleted})
	p.play(&machine.RunPausedBody{Reason: machine.PausePart, Message: "the selected part (--only ask) is done; 3 nodes are left out"})
}

// asks begins the first attempt of the node ask, breaks ends the run by its failure.
func (p *player) asks() {
	p.play(
		&machine.QueuedBody{Nodes: []string{"ask"}, Reason: "condition"},
		&machine.StartedBody{Node: "ask", Generation: 1, Attempt: 1, Reserve: dag.Amount{USD: 2e6}},
	)
}

func (p *player) breaks() {
	p.settle("ask", machine.Outcome{Status: dag.StatusFailed, Category: "config", Message: "no such model", Permanent: true})
	p.play(&machine.RunEndedBody{Failed: true, Reason: "node ask: no such model", CostUSD: p.r.State().Ledger().Spent.USD})
}

func fatal(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	p.asks()
	p.play(&machine.RunInterruptedBody{Running: 1})
	p.settle("ask", machine.Outcome{Status: dag.StatusLost, Message: "the process that ran it died"})
	p.play(
		&machine.RunResumedBody{By: "resume", Lost: 1},
		&machine.StartedBody{Node: "ask", Generation: 1, Attempt: 2, Reserve: dag.Amount{USD: 2e6}},
	)
	p.breaks()
}

// asleep is a run whose machine slept through the night.
func asleep(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	p.asks()
	p.at = p.at.Add(8 * time.Hour)
	p.play(&machine.RunSuspendedBody{IdleMS: 8 * 3600 * 1000})
	p.breaks()
}

// keptNot is a run of whose work it is known that it has ended well, and which failed all the same.
func keptNot(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	p.asks()
	p.play(&machine.TookEffectBody{Node: "ask", Generation: 1, Attempt: 1, How: "exit status 0"})
	p.breaks()
}

type raw = json.RawMessage

// told is a run of whose end somebody was told, and of whose failure nobody could be.
func told(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	p.asks()
	p.breaks()
	list := r.State().Notices()
	p.play(
		&machine.NotifiedBody{Of: list[0].Of, Tries: 5, Error: "exit status 1"},
		&machine.NotifiedBody{Of: list[1].Of, Tries: 1},
	)
}

// published is a run that put a file beside the specification, took it back for an attempt that was lost, and put another
// there.
func published(t *testing.T, r *Run) {
	p := &player{t, r, start0}
	file := machine.PublishedFile{Path: "docs/page.md", Digest: strings.Repeat("ab", 32), Size: 7}
	p.asks()
	p.play(&machine.PublishedBody{Node: "ask", Generation: 1, Attempt: 1, Files: []machine.PublishedFile{file}})
	p.settle("ask", machine.Outcome{Status: dag.StatusLost, Message: "the process that ran it died"})
	p.play(
		&machine.PublishedBody{Node: "ask", Generation: 1, Attempt: 1, Settled: machine.SettledBack,
			Files: []machine.PublishedFile{file}},
		&machine.RunResumedBody{By: "resume", Lost: 1},
		&machine.StartedBody{Node: "ask", Generation: 1, Attempt: 2, Reserve: dag.Amount{USD: 2e6}},
		&machine.PublishedBody{Node: "ask", Generation: 1, Attempt: 2, Files: []machine.PublishedFile{
			{Path: "docs/page.md", Digest: strings.Repeat("cd", 32), Size: 8},
			{Path: "docs/mine.md", Digest: strings.Repeat("cd", 32), Size: 8, Previous: strings.Repeat("ef", 32), Left: true},
		}},
	)
	p.settle("ask", machine.Outcome{Status: dag.StatusCompleted})
}
