package reuse

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

func fingerprinted() *dag.Plan {
	return &dag.Plan{
		Format: dag.Format, Name: "t",
		Accumulators: []dag.Accumulator{{Name: "notes", Path: "notes.md", Cap: 10}},
		Files:        []dag.File{{Path: "a.md", Digest: "aa", Size: 1}, {Path: "b.md", Digest: "bb", Size: 2}},
		Nodes: []dag.Node{{
			ID: "x", Kind: "exec", With: json.RawMessage(`{"a":1}`), Needs: []string{"p", "q"}, When: "true",
			Reads: []string{"notes", "in.txt"}, Writes: []string{"out.txt"}, Files: []string{"a.md"},
			Outputs: map[string]string{"n": "int"}, Secrets: []string{"KEY"},
		}},
	}
}

// S-6: what changes a result changes the fingerprint and names its facet; nothing else does.
func TestFingerprint(t *testing.T) {
	base, tried := fingerprinted(), ""
	for _, c := range []struct {
		facet  string // "" = the same fingerprint
		change func(p *dag.Plan, n *dag.Node)
	}{
		{"kind", func(p *dag.Plan, n *dag.Node) { n.Kind = "agent" }},
		{"with", func(p *dag.Plan, n *dag.Node) { n.With = json.RawMessage(`{"a":2}`) }},
		{"files", func(p *dag.Plan, n *dag.Node) { p.Files[0].Digest = "cc" }},
		{"files", func(p *dag.Plan, n *dag.Node) { n.Files = []string{"b.md"} }},
		{"reads", func(p *dag.Plan, n *dag.Node) { n.Reads = []string{"notes"} }},
		{"reads", func(p *dag.Plan, n *dag.Node) { p.Accumulators[0].Cap = 5 }},
		{"writes", func(p *dag.Plan, n *dag.Node) { n.Writes = []string{"other.txt"} }},
		{"appends", func(p *dag.Plan, n *dag.Node) { n.Appends = []string{"notes"} }},
		{"outputs", func(p *dag.Plan, n *dag.Node) { n.Outputs = map[string]string{"n": "number"} }},
		{"needs", func(p *dag.Plan, n *dag.Node) { n.Needs = []string{"p"} }},
		{"needs", func(p *dag.Plan, n *dag.Node) { n.AtLeast = 1 }},
		{"when", func(p *dag.Plan, n *dag.Node) { n.When = "false" }},
		{"foreach", func(p *dag.Plan, n *dag.Node) { n.Foreach = &dag.Foreach{In: "x"} }},
		{"secrets", func(p *dag.Plan, n *dag.Node) { n.Secrets = []string{"OTHER"} }},
		{"seed", func(p *dag.Plan, n *dag.Node) { p.Seed = 5 }},
		{"inputs", func(p *dag.Plan, n *dag.Node) { p.Inputs, n.Inputs = p.Files, []string{"a.md"} }},
		{"publish", func(p *dag.Plan, n *dag.Node) { n.Publish = []dag.Publication{{File: "out.txt", To: "out.txt"}} }},
		{"with params", func(p *dag.Plan, n *dag.Node) {
			p.Params = []dag.Param{{Name: "a.b", Value: json.RawMessage("1")}}
			n.With = json.RawMessage(`"${params.a.b}"`)
		}},

		{"", func(p *dag.Plan, n *dag.Node) { n.ID = "y" }},
		{"", func(p *dag.Plan, n *dag.Node) { n.Needs = []string{"q", "p"} }},
		{"", func(p *dag.Plan, n *dag.Node) {
			n.Labels = map[string]string{"a": "b"}
			n.Title = "t"
			n.Group = "g"
			n.Dir = "d"
		}},
		{"", func(p *dag.Plan, n *dag.Node) {
			n.Retry.Attempts = 9
			n.Timeout.Attempt = dag.Duration(time.Hour)
			n.Priority = 3
		}},
		{"", func(p *dag.Plan, n *dag.Node) { n.Breaker, n.Pool, n.OnFail, n.Effect = "b", "p", "continue", "once" }},
		{"", func(p *dag.Plan, n *dag.Node) {
			n.Reserve.USD = 5
			n.Estimate.Seconds = 9
			n.Undo = &dag.Undo{Kind: "exec"}
			n.Salvage = &dag.Salvage{Files: []string{"a"}}
		}},
		{"", func(p *dag.Plan, n *dag.Node) { p.Files[1].Digest = "cc"; p.Accumulators[0].Title = "Notes" }},
	} {
		p := fingerprinted()
		c.change(p, &p.Nodes[0])
		if same := Fingerprint(p, 0) == Fingerprint(base, 0); same != (c.facet == "") {
			t.Errorf("%s: same fingerprint %v", c.facet, same)
		}
		was, is := definition{plan: base, node: &base.Nodes[0]}, definition{plan: p, node: &p.Nodes[0]}
		if got := strings.Join(differing(redo, &was, &is), " "); got != c.facet {
			t.Errorf("facet %q differs, want %q", got, c.facet)
		}
		tried += c.facet + " "
	}
	for _, f := range facets {
		if f.does == redo && !slices.Contains(strings.Fields(tried), f.name) {
			t.Errorf("no row changes %s", f.name)
		}
	}
}

// What an attempt really read is in its fingerprint, as is the definition of its node.
func TestAttemptFingerprint(t *testing.T) {
	p := fingerprinted()
	other := fingerprinted()
	other.Nodes[0].Kind = "other"
	p.Nodes[0].Reads, other.Nodes[0].Reads = nil, nil
	given := func(p *dag.Plan, with string, read ...Reading) string {
		return AttemptFingerprint(p, 0, json.RawMessage(with), read, nil)
	}
	seen := map[string]int{}
	for k, f := range []string{
		given(other, ""),
		given(p, ""),
		given(p, `{"a":1}`),
		given(p, `{"a":2}`),
		given(p, "", Reading{"in.txt", nil}),
		given(p, "", Reading{"in.txt", []string{"aa"}}),
		given(p, "", Reading{"in.txt", []string{"aa", "bb"}}),
		given(p, "", Reading{"notes", []string{"aa", "bb"}}),
		given(p, "", Reading{"in.txt", []string{"aa"}}, Reading{"notes", []string{"bb"}}),
	} {
		if first, dup := seen[f]; dup {
			t.Errorf("%d and %d are the same", first, k)
		}
		seen[f] = k
	}
}

// Only commands, and what asks a service, see more than they declare; what speaks of all that was done
// before is not proved by anything.
func TestProofs(t *testing.T) {
	for _, c := range []struct {
		n      dag.Node
		proof  Proof
		effect bool
	}{
		{dag.Node{Kind: "agent", Effect: "idempotent"}, ByReads, false},
		{dag.Node{Kind: "exec", Effect: "idempotent", Ambient: true}, ByQuiet, true},
		{dag.Node{Kind: "exec", Effect: "idempotent", Ambient: true, Writes: []string{"a"}}, ByQuiet, false},
		{dag.Node{Kind: "http", Effect: "once", Ambient: true, Outputs: map[string]string{"status": "int"}}, ByQuiet, true},
		{dag.Node{Kind: "approval", Effect: "pure"}, Unproved, false},
		{dag.Node{Kind: "checkpoint", Effect: "pure"}, Unproved, false},
		{dag.Node{Kind: "milestone", Effect: "pure"}, Unproved, false},
		{dag.Node{Kind: "route", Effect: "pure"}, ByReads, false},
		{dag.Node{Kind: "exec", Effect: "pure", Always: true}, Unproved, false},
		{dag.Node{Kind: "join", Effect: "pure", Foreach: &dag.Foreach{In: "x"}}, Unproved, false},
	} {
		if got := ProofOf(&c.n); got != c.proof || UndeclaredEffect(&c.n) != c.effect {
			t.Errorf("%+v: proof %d, undeclared effect %v", c.n, got, UndeclaredEffect(&c.n))
		}
	}
}

// Logs of earlier versions hold fingerprints: those of the same definitions stay the same, byte for byte.
func TestRecordedFingerprintsStay(t *testing.T) {
	p := fingerprinted()
	p.Seed = 7
	p.Params = []dag.Param{{Name: "a.b", Value: json.RawMessage("1")}}
	p.Nodes[0].When, p.Nodes[0].Appends = "params.a.b > 0", []string{"notes"}
	p.Nodes = append(p.Nodes, dag.Node{ID: "join", Kind: "join", Needs: []string{"q", "p"}, AtLeast: 1, History: []string{"x"}, Foreach: &dag.Foreach{In: "x", Most: 3}})
	digests := func(name string) []string { return map[string][]string{"in.txt": {"bb"}}[name] }
	for what, got := range map[string][2]string{
		"a command": {Fingerprint(p, 0), "32903924be12f34b7273cb190159d4142b7b3c0b5f77ccba7c22009305cbc41b"},
		"a join":    {Fingerprint(p, 1), "bdb2eda005e6733cad1528d8b6ed2b8d05dd15996d8809a922235378e2ff85b6"},
		"an attempt": {AttemptFingerprint(p, 0, json.RawMessage(`{"a":1}`), []Reading{{"needs p", []string{"aa"}}}, digests),
			"KypOihK5tSkYPPW-"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, was %s", what, got[0], got[1])
		}
	}
}

// A parameter counts where an expression reads it at run time, by itself or with its group.
func TestFingerprintCountsParametersThatAreRead(t *testing.T) {
	prints := func(release string) (out []string) {
		p := dag.Plan{Params: []dag.Param{{Name: "hardening.release", Value: json.RawMessage(release)}, {Name: "agent.model", Value: json.RawMessage(`"m"`)}}, Nodes: []dag.Node{
			{ID: "when", Kind: "exec", When: "nodes['a'].out.score >= params.hardening.release"},
			{ID: "with", Kind: "route", With: json.RawMessage(`{"rules":[{"when":"params.hardening.release > 3.0"}]}`)},
			{ID: "group", Kind: "exec", When: "size(params.hardening) > 0"},
			{ID: "other", Kind: "exec", When: "params.agent.model == 'm'"},
			{ID: "none", Kind: "exec"},
		}}
		for i := range p.Nodes {
			out = append(out, Fingerprint(&p, int32(i)))
		}
		return out
	}
	a, b := prints("3.5"), prints("3.0")
	for i, want := range []bool{true, true, true, false, false} {
		if got := a[i] != b[i]; got != want {
			t.Errorf("node %d changed: %v, want %v", i, got, want)
		}
	}
}
