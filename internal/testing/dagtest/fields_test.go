package dagtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/internal/testing/hosttest"
)

// What an edit of a field does to nodes that have ended.
const (
	redone   = "done"     // whatever the node's end, it runs again
	refailed = "failures" // what failed is decided again; a success stays
	checked  = "checked"  // a success is looked at again
	unended  = "skipped"  // what failed or was skipped is decided again; a success stays
	renamed  = "renamed"  // it is another node
	seen     = "seen"     // what has ended is looked at again
	kept     = "nothing"
)

// edits has a row for every field of dag.Node.
var edits = map[string]struct {
	edit func(*dag.Node)
	does string
}{
	"Kind":    {func(n *dag.Node) { n.Kind = "other" }, redone},
	"With":    {func(n *dag.Node) { n.With, _ = json.Marshal(reading{7, []string{}}) }, redone},
	"Needs":   {func(n *dag.Node) { n.Needs = append(n.Needs, "more") }, redone},
	"AtLeast": {func(n *dag.Node) { n.AtLeast = 1 }, redone},
	"When":    {func(n *dag.Node) { n.When = "true" }, redone},
	"Outputs": {func(n *dag.Node) { n.Outputs = map[string]string{"v": "number"} }, redone},
	"Reads":   {func(n *dag.Node) { n.Reads = []string{"r"} }, redone},
	"Writes":  {func(n *dag.Node) { n.Writes = []string{n.ID + ".txt"} }, redone},
	"Publish": {func(n *dag.Node) { n.Publish = []dag.Publication{{File: "a", To: "b"}} }, redone},
	"Appends": {func(n *dag.Node) { n.Appends = []string{"notes"} }, redone},
	"Files":   {func(n *dag.Node) { n.Files = []string{"in.txt"} }, redone},
	"Inputs":  {func(n *dag.Node) { n.Inputs = []string{"data.csv"} }, redone},
	"History": {func(n *dag.Node) { n.History = []string{"up"} }, redone},
	"Secrets": {func(n *dag.Node) { n.Secrets = []string{"KEY"} }, redone},
	"Foreach": {func(n *dag.Node) {
		n.Kind, n.Foreach = "join", &dag.Foreach{In: "up", Template: json.RawMessage(`{}`), Most: 9}
	}, redone},
	"WaitAll":  {func(n *dag.Node) { n.WaitAll = true }, checked},
	"Always":   {func(n *dag.Node) { n.Always = true }, unended},
	"Optional": {func(n *dag.Node) { n.Optional = []string{"r*"} }, refailed},
	"Again":    {func(n *dag.Node) { n.Again = 2 }, refailed},
	"Effect":   {func(n *dag.Node) { n.Effect = "idempotent" }, refailed},
	"Retry":    {func(n *dag.Node) { n.Retry.Attempts = 3 }, refailed},
	"Timeout":  {func(n *dag.Node) { n.Timeout.Attempt = dag.Duration(time.Hour) }, refailed},
	"Breaker":  {func(n *dag.Node) { n.Breaker = "api" }, refailed},
	"Reserve":  {func(n *dag.Node) { n.Reserve.Tokens = 5 }, refailed},
	"OnFail":   {func(n *dag.Node) { n.OnFail = "skip" }, refailed},
	"Salvage":  {func(n *dag.Node) { n.Salvage = &dag.Salvage{Files: []string{"a"}} }, refailed},
	"Back":     {func(n *dag.Node) { n.Back = &dag.Back{All: true, Then: dag.ThenStop} }, refailed},
	"Undo":     {func(n *dag.Node) { n.Undo = &dag.Undo{Kind: "fake"} }, refailed},
	"ID":       {func(n *dag.Node) { n.ID += "-renamed" }, renamed},
	"Title":    {func(n *dag.Node) { n.Title = "A title" }, kept},
	"Short":    {func(n *dag.Node) { n.Short = "A" }, kept},
	"Show":     {func(n *dag.Node) { n.Show = &dag.Show{As: "s", Values: []string{"v"}} }, kept},
	"Dynamic":  {func(n *dag.Node) { n.Dynamic = true }, kept}, // follows from With
	"Pool":     {func(n *dag.Node) { n.Pool = "wide" }, kept},
	"Priority": {func(n *dag.Node) { n.Priority = 3 }, kept},
	"Estimate": {func(n *dag.Node) { n.Estimate.Seconds = 3 }, kept},
	"Paid":     {func(n *dag.Node) { n.Paid = true }, kept},                // follows from Kind and With
	"Account":  {func(n *dag.Node) { n.Account = "other" }, kept},          // follows from With
	"Ambient":  {func(n *dag.Node) { n.Ambient = true }, seen},             // what it saw was not recorded
	"Call":     {func(n *dag.Node) { n.Call = &dag.Call{Chars: 1} }, kept}, // follows from With
	"Group":    {func(n *dag.Node) { n.Group = "g" }, kept},
	"Labels": {func(n *dag.Node) {
		n.Labels = map[string]string{"fate": n.Labels["fate"], "category": "soft", "new": "1"}
	}, kept},
	"Milestone": {func(n *dag.Node) { n.Milestone = &dag.Declaration{State: "S"} }, kept},
	"Dir":       {func(n *dag.Node) { n.Dir = "elsewhere" }, kept},
	"Pos":       {func(n *dag.Node) { n.Pos = "x.cue:1:1" }, kept},
}

// endings is a plan with a node that succeeds, one that fails and one that is skipped, and one below each.
func endings() *dag.Plan {
	p := &dag.Plan{Format: dag.Format, Name: "endings", Seed: 1, Categories: hosttest.Categories(), Breakers: []dag.Breaker{{Name: "api", Failures: 9, Probes: 1}}, Pools: []dag.Pool{{Name: "wide", Size: 9}},
		Accumulators: []dag.Accumulator{{Name: "notes", Path: "notes.md"}}, Files: []dag.File{{Path: "in.txt", Digest: "d"}},
		Inputs: []dag.File{{Path: "data.csv", Digest: "d"}}}
	add := func(id, fate string, fail dag.OnFail, needs ...string) *dag.Node {
		with, _ := json.Marshal(reading{1, append([]string{}, needs...)})
		p.Nodes = append(p.Nodes, dag.Node{ID: id, Kind: "fake", Effect: "pure", OnFail: fail, Needs: needs, With: with, Retry: dag.Retry{Attempts: 1},
			Outputs: map[string]string{"v": "int"}, Labels: map[string]string{"fate": fate, "category": "soft"}})
		return &p.Nodes[len(p.Nodes)-1]
	}
	add("up", "0", "")
	add("more", "0", "")
	add("gone", "always", "skip")
	add("completed", "0", "", "up")
	add("failed", "always", "continue", "up")
	add("skipped", "0", "", "up", "gone")
	for _, id := range []string{"completed", "failed", "skipped"} {
		add("below-"+id, "0", "", id)
	}
	return p
}

// S-6: for every field of a node, what an edit of it does to a finished node, and that the run ends as a new one does.
func TestEveryFieldOfANode(t *testing.T) {
	what := reflect.TypeFor[dag.Node]()
	for k := range what.NumField() {
		name := what.Field(k).Name
		row, ok := edits[name]
		if !ok {
			t.Errorf("field %s of a node: say here what an edit of it does, see dag/reuse/facets.go", name)
			continue
		}
		for _, id := range []string{"completed", "failed", "skipped"} {
			was, now := endings(), endings()
			for k := range now.Nodes {
				if n := &now.Nodes[k]; n.ID == id {
					row.edit(n)
				} else if name == "ID" && n.ID == "below-"+id {
					n.Needs[0] += "-renamed"
				}
			}
			s := edited(t, 1, nil, was)
			g, err := dag.NewGraph(now)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, d := range reuse.Compare(s.State, g).Nodes {
				if d.ID != id {
					continue
				}
				if want := expected(row.does, id); fmt.Sprint(d.Do, d.Maybe) != want {
					t.Errorf("%s of a node that is %s: %s %v %v, want %s", name, id, d.Do, d.Maybe, d.Why, want)
				} else if d.Do == reuse.DoChanged && len(d.Changes) == 0 {
					t.Errorf("%s of a node that is %s: nobody says what has changed", name, id)
				}
			}
			if got, want := outcome(edited(t, 1, nil, was, now)), outcome(edited(t, 1, nil, now)); got != want {
				t.Errorf("%s of a node that is %s: %s", name, id, firstDifference(got, want))
			}
		}
	}
}

// expected is what is said of a node that has ended in some way.
func expected(does, ended string) string {
	again, maybe := false, false
	switch does {
	case redone:
		again = true
	case refailed:
		again = ended == "failed"
	case checked, seen:
		again, maybe = true, true
	case unended:
		again, maybe = ended != "completed", ended == "skipped"
	case renamed:
		return fmt.Sprint(reuse.DoRemoved, false)
	}
	if again {
		return fmt.Sprint(reuse.DoChanged, maybe)
	}
	return fmt.Sprint(reuse.DoReuse, false)
}
