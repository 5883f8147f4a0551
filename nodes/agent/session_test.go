package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// An earlier attempt of a node whose agent may be cut: what the host hands from one to the next.
type cutNode struct {
	host    *nodetest.Host
	with    m
	record  string // of the calls: arguments, working folder and prompt
	carried string
	failed  map[string]int
	attempt int
}

// newCutNode is a node with an agent that remembers its sessions as claude 2.1.332 does, and prints what it is told to.
func newCutNode(t *testing.T, with m) *cutNode {
	t.Helper()
	dir := t.TempDir()
	n := &cutNode{with: with, record: filepath.Join(dir, "record"), carried: filepath.Join(dir, "car[ried")}
	n.failed = map[string]int{}
	_, n.host = nodetest.New(t, "agent", m{})
	program := filepath.Join(dir, "claude")
	err := os.WriteFile(program, []byte(`#!/bin/sh
{ echo "call $*"; echo "files $(ls | tr '\n' ' ')"; sed 's/^/stdin /'; } >> "$RECORD"
while [ $# -gt 0 ]; do
  case "$1" in --session-id) id="$2";; --resume) id="$2";; esac
  shift
done
if [ -n "$id" ]; then
  mkdir -p "$CLAUDE_CONFIG_DIR/projects/p"
  memory="$CLAUDE_CONFIG_DIR/projects/p/$id.jsonl"
  grep -q cost-state "$memory" 2>/dev/null && echo "counted twice" >> "$RECORD"
  printf '{"type":"user"}\n{"type":"cost-state","totalCostUSD":0.1}\n' >> "$memory"
fi
echo half >> half.md
printf '%s\n' "$OUT"
`), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	n.with["provider"], n.with["argv"], n.with["maxTurns"] = "claude", []string{program}, 3
	n.with["give"] = []m{{"file": "guide.md"}}
	n.with["session"] = "continue"
	if n.with["prompt"] == nil {
		n.with["prompt"] = m{"text": "Make a long page."}
	}
	n.host.Files["guide.md"] = "g"
	return n
}

// next makes the next attempt, whose agent prints out.
func (n *cutNode) next(t *testing.T, out string) (*nodes.Result, string, error) {
	t.Helper()
	task := n.task(t, out)
	if err := os.WriteFile(n.record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := Kind.Run(context.Background(), task)
	if err != nil {
		n.failed[nodetest.Category(err)]++
	}
	record, bad := os.ReadFile(n.record)
	if bad != nil {
		t.Fatal(bad)
	}
	return res, string(record), err
}

func (n *cutNode) task(t *testing.T, out string) *nodes.Task {
	t.Helper()
	n.attempt++
	n.with["env"] = m{"OUT": out, "RECORD": n.record}
	task := n.host.Task(t, "agent", n.with)
	task.Attempt, task.FailedWith = n.attempt, n.failed
	task.Carry = func() (string, error) { return n.carried, os.MkdirAll(n.carried, 0o700) }
	return task
}

// What the agent prints at its end.
const (
	cutUsage   = `"total_cost_usd":0.1,"usage":{"input_tokens":9,"output_tokens":1}}`
	cutEnd     = `"is_error":true,"num_turns":4,"stop_reason":"tool_use",` + cutUsage
	cutByTurns = `{"type":"result","subtype":"error_max_turns",` + cutEnd
	cutByMoney = `{"type":"result","subtype":"error_max_budget_usd",` + cutEnd
	ended      = `{"type":"result","subtype":"success",`
	overloaded = ended + `"is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded","total_cost_usd":0}`
	cutOff     = ended + `"is_error":true,"api_error":"connection_failed","result":"Connection lost",` + cutUsage
	wholeWork  = ended + `"num_turns":2,"result":"The whole page.","stop_reason":"end_turn","total_cost_usd":0.2}`
)

// Q5: what the attempts of a node with session continue ask, and how they end.
func TestWorkThatWasCutIsGoneOnWith(t *testing.T) {
	type step struct {
		out      string
		category string
		anew     bool // the whole question is asked, in an empty folder
		warning  string
		before   func(n *cutNode)
	}
	lost := func(n *cutNode) { _ = os.RemoveAll(n.carried) }
	forgotten := func(n *cutNode) {
		files, _ := fs.Glob(os.DirFS(n.carried), "*/"+claudeHome)
		for _, f := range files {
			_ = os.RemoveAll(filepath.Join(n.carried, f))
		}
	}
	longer := func(n *cutNode) { n.with["prompt"] = m{"text": "Make a long page. Soon."} }
	more := func(n *cutNode) { n.with["maxTurns"] = 9 }
	warned := func(warning string, before func(*cutNode)) step {
		return step{out: wholeWork, anew: true, warning: warning, before: before}
	}
	turns := step{out: cutByTurns, category: cutShort, anew: true}
	money := step{out: cutByMoney, category: cutShort, anew: true}
	whole, anew := step{out: wholeWork}, step{out: wholeWork, anew: true}
	for name, steps := range map[string][]step{
		"cut by turns, then by money, then whole": {turns, {out: cutByMoney, category: cutShort}, whole},
		"anything else begins anew":               {turns, {out: cutOff, category: "transient"}, anew},
		"so it does before anything was cut":      {{out: cutOff, category: "transient", anew: true}, turns, whole},
		"a call that is refused loses nothing":    {turns, {out: overloaded, category: "transient"}, whole},
		"the folder was lost":                     {turns, warned("temporary files", lost)},
		"the session was lost":                    {money, warned("session is gone", forgotten)},
		"another question":                        {money, warned("has changed", longer)},
		"more turns for the same question":        {turns, {out: wholeWork, before: more}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newCutNode(t, m{})
			var ids []string
			for i, s := range steps {
				if s.before != nil {
					s.before(n)
				}
				res, record, err := n.next(t, s.out)
				if got := nodetest.Category(err); got != s.category {
					t.Fatalf("attempt %d: %q (%v), want %q", i+1, got, err, s.category)
				}
				var e *nodes.Error
				if errors.As(err, &e) && e.Permanent {
					t.Errorf("attempt %d: %v is permanent", i+1, err)
				}
				if strings.Count(record, "call ") != 1 || strings.Contains(record, "counted twice") {
					t.Errorf("attempt %d: calls\n%s", i+1, record)
				}
				flag, asked, files := "--resume ", "Your work on this was cut", "files guide.md half.md"
				if s.anew {
					flag, asked, files = "--session-id ", "Make a long page.", "files guide.md \n"
				}
				for _, want := range []string{flag, "stdin " + asked, files} {
					if !strings.Contains(record, want) {
						t.Errorf("attempt %d, want %q:\n%s", i+1, want, record)
					}
				}
				if kept := n.host.Kept["prompt.md"]; !strings.HasPrefix(kept, asked) {
					t.Errorf("attempt %d keeps the prompt %q", i+1, kept)
				}
				_, id, _ := strings.Cut(record, flag)
				id, _, _ = strings.Cut(id, " ")
				if slices.Contains(ids, id) == s.anew {
					t.Errorf("attempt %d: session %q after %q", i+1, id, ids)
				}
				ids = append(ids, id)
				said := fmt.Sprint(res.Warnings)
				if !strings.Contains(said, s.warning) || s.warning == "" && strings.Contains(said, "starts over") {
					t.Errorf("attempt %d warns %s, want %q", i+1, said, s.warning)
				}
				// What a process reports is what it has spent itself.
				costs := map[string]float64{cutByTurns: 0.1, cutByMoney: 0.1, wholeWork: 0.2}
				if cost := costs[s.out]; cost > 0 && (res.CostUSD == nil || *res.CostUSD != cost) {
					t.Errorf("attempt %d: cost %v, want %v", i+1, res.CostUSD, cost)
				}
			}
		})
	}
}

// Without the setting a limit is the end, and nothing outlives the attempt.
func TestWorkThatIsNotToBeGoneOnWith(t *testing.T) {
	n := newCutNode(t, m{})
	delete(n.with, "session")
	_, record, err := n.next(t, cutByTurns)
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "budget" || !e.Permanent {
		t.Errorf("%v", err)
	}
	if !strings.Contains(record, "--no-session-persistence") {
		t.Errorf("a session is kept:\n%s", record)
	}
	if _, err := os.Stat(n.carried); err == nil {
		t.Error("a folder is handed on")
	}
}

// A limit that cut a shaped answer, or a report beside one, is a cut too: the values of else are for the last attempt.
func TestCutOfAShapedAnswer(t *testing.T) {
	begun := `{"type":"assistant","message":{"id":"m","model":"a","content":[{"type":"text","text":"I begin."}]}}`
	schema := m{"type": "object", "properties": m{"ok": m{"type": "boolean"}}, "required": []string{"ok"}}
	for _, report := range []string{"", "report.md"} {
		for _, again := range []bool{true, false} {
			n := newCutNode(t, m{"answer": m{"schema": schema, "else": m{"ok": false}}})
			if report != "" {
				n.with["report"] = report
			}
			task := n.task(t, begun+"\n"+cutByTurns)
			task.Again = func(category string) bool { return category != cutShort || again }
			res, err := Kind.Run(context.Background(), task)
			want := cutShort
			if report == "" && !again {
				want = ""
			}
			if got := nodetest.Category(err); got != want || want == "" && res.Values["ok"] != false {
				t.Errorf("report %q, again %v: %q (%v), want %q", report, again, got, err, want)
			}
		}
	}
}

// The process that asked died behind the end of a session that was cut: its successor goes on with the work.
func TestRescueOfWorkThatWasCut(t *testing.T) {
	n := newCutNode(t, m{})
	n.next(t, cutByTurns)
	n.next(t, cutOff) // begins anew next time
	n.next(t, cutOff) // a new session that is not cut
	task := n.task(t, "")
	task.Spool = t.TempDir()
	for name, text := range map[string]string{"stdout": cutByMoney + "\n", "stderr": ""} {
		if err := os.WriteFile(filepath.Join(task.Spool, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := rescued(task)
	if nodetest.Category(err) != cutShort || res == nil || res.CostUSD == nil || *res.CostUSD != 0.1 {
		t.Fatalf("%v %+v", err, res)
	}
	if _, record, err := n.next(t, wholeWork); err != nil || !strings.Contains(record, "--resume ") {
		t.Errorf("%v\n%s", err, record)
	}
}
