package dagtest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/machine"
	kindsOf "dagrun.dev/nodes/all"
)

// D-5, R-7, W-3: the pipelines of documents, with their own conditions, expansions, breakers, questions and undo actions, over
// random values, failures, delays, answers, kills and cancels. Whatever happens they end, or pause with a name, and the
// simulation checks at every event that nothing is paid for twice, no cap can be passed, what was done is undone once, and that a fresh
// fold says the same.
func TestPipelinesOfDocuments(t *testing.T) {
	for _, name := range []string{"lit-pm", "docs-launch"} {
		t.Run(name, func(t *testing.T) {
			kinds := kindsOf.Registry()
			res, err := compile.Compile(compile.Options{Path: filepath.Join("../../../specs", name), Kinds: kinds})
			if err != nil {
				t.Fatal(err)
			}
			eval, err := compile.NewEvaluator(res.Plan, kinds)
			if err != nil {
				t.Fatal(err)
			}
			count, ends := map[machine.Type]int{}, map[string]int{}
			seeds(t, func(t *testing.T, seed uint64) {
				p := *res.Plan
				p.Seed = int64(seed)
				s, err := New(&p)
				if err != nil {
					t.Fatal(err)
				}
				s.Eval, s.Workers, s.Resumes, s.undos.on = eval, 1+int(seed%6), int(seed%5), true
				if s.Snapshots = seed%2 == 0; seed%3 > 0 {
					s.Kills = []int{2 + int(seed*7%150), 3 + int(seed*13%150), 4 + int(seed*29%300)}
				}
				if seed%4 == 3 {
					s.CancelAt = 5 + int(seed*17%150)
				}
				if err := s.Run(); err != nil {
					t.Fatalf("seed %d, kills %v, cancel %d, event %d: %v", seed, s.Kills, s.CancelAt, len(s.Events), err)
				}
				for _, e := range s.Events {
					count[e.Type]++
				}
				run := s.State.Run()
				end := string(run.Status)
				if run.Status == machine.RunPause {
					end = string(run.Pause.Reason)
				}
				if ends[end]++; end != string(machine.RunDone) && end != string(machine.RunBroken) && run.Status != machine.RunPause {
					t.Errorf("seed %d ends as %s", seed, end)
				}
				if twice := s.TwiceDone(); len(twice) > 0 {
					t.Errorf("seed %d: done twice: %v", seed, twice)
				}
			})
			t.Logf("ends: %v; events: %v", ends, count)
			if *seedFlag != 0 {
				return
			}
			want := []machine.Type{machine.PlanExtended, machine.RunInterrupted, machine.RunCompleted, machine.RunFailed}
			if name == "lit-pm" {
				want = append(want, machine.EscalationOpened, machine.Rewound, machine.CompStarted, machine.CompFinished, machine.BreakerChanged)
			}
			for _, typ := range want {
				if count[typ] == 0 {
					t.Errorf("no run has a %s", typ)
				}
			}
		})
	}
}

// asks is what an approval of a specification asks.
func (s *Sim) asks(c machine.Command) *machine.EscalationOpenedBody {
	var with struct {
		Type        string
		Options     []json.RawMessage
		Refuses     *[]string
		Recommended string
		Default     string
	}
	_ = json.Unmarshal(s.node(c.Node).With, &with)
	b := machine.EscalationOpenedBody{Kind: machine.AskApproval, Node: c.Node, Message: "?", Type: with.Type,
		Recommended: with.Recommended, Default: with.Default}
	for _, raw := range with.Options {
		var one struct{ Name string }
		if json.Unmarshal(raw, &one.Name) != nil {
			_ = json.Unmarshal(raw, &one)
		}
		b.Options = append(b.Options, one.Name)
	}
	if len(b.Options) == 0 {
		b.Options = []string{"approve", "reject"}
	}
	b.Refuses = dag.Refusing(b.Options, with.Refuses)
	return s.State.Ask(b, s.now)
}

// chance is how an attempt of a specification's node ends: control nodes well, others as luck will have it.
func (s *Sim) chance(a attempt) machine.Outcome {
	n := a.node
	failed := s.failures[n.ID]
	fate := s.hash(n.ID, "fate") % 9
	if n.Role() == (dag.Role{}) && (fate == 0 || fate <= 2 && failed < fate) {
		categories := []string{"transient", "stalled", "killed", "exit_nonzero", "bad_answer", "overloaded"}
		if n.Back != nil && len(n.Back.On) > 0 {
			categories = n.Back.On
		}
		o := machine.Outcome{Status: dag.StatusFailed, Category: categories[s.hash(n.ID, "category")%len(categories)], Message: "by chance"}
		o.Body.CostUSD = n.Reserve.USD / 4
		return o
	}
	o := machine.Outcome{Status: dag.StatusCompleted}
	o.Body.CostUSD, o.Body.Values = n.Reserve.USD/3, map[string]json.RawMessage{}
	for name, typ := range n.Outputs {
		if v := s.anything(n, name, typ); v != "" {
			o.Body.Values[name] = json.RawMessage(v)
		}
	}
	return o
}

// anything is a value of a type.
func (s *Sim) anything(n *dag.Node, name, typ string) string {
	x := s.hash(n.ID, name, fmt.Sprint(s.failures[n.ID]))
	switch typ {
	case "int", "int?", "number", "number?", "double":
		return fmt.Sprint(x % 13)
	case "bool", "bool?":
		return fmt.Sprint(x%2 == 0)
	case "string", "string?":
		return `"` + s.decision(n, x) + `"`
	}
	if !slices.Contains([]string{"list", "list?"}, typ) {
		return ""
	}
	list := []map[string]any{}
	for i, id := range []string{"one", "two", "three", "four"}[:1+s.hash("items")%4] {
		if x>>i&1 == 0 || name == "sections" { // which others are about
			list = append(list, map[string]any{"id": id, "title": id, "claim": id, "cites": []string{"x"}, "section": id, "with": id,
				"covers": []string{"x"}, "purpose": id, "module": "x", "name": id, "file": id, "problems": []string{id}, "gate": id})
		}
	}
	raw, _ := json.Marshal(list)
	return string(raw)
}

// decision is one of those that a route may come to, or a word.
func (s *Sim) decision(n *dag.Node, x int) string {
	var with struct {
		Rules []struct{ Then string }
		Else  string
	}
	_ = json.Unmarshal(n.With, &with)
	all := []string{with.Else}
	for _, r := range with.Rules {
		all = append(all, r.Then)
	}
	return all[x%len(all)]
}
