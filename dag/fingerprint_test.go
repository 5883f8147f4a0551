package dag

import (
	"encoding/json"
	"testing"
	"time"
)

func fingerprinted() *Plan {
	return &Plan{
		Format: Format, Name: "t",
		Accumulators: []Accumulator{{Name: "notes", Path: "notes.md", Cap: 10}},
		Files:        []File{{Path: "a.md", Digest: "aa", Size: 1}, {Path: "b.md", Digest: "bb", Size: 2}},
		Nodes: []Node{{
			ID: "x", Kind: "exec", With: json.RawMessage(`{"a":1}`), Needs: []string{"p", "q"}, When: "true",
			Reads: []string{"notes", "in.txt"}, Writes: []string{"out.txt"}, Files: []string{"a.md"},
			Outputs: map[string]string{"n": "int"}, Secrets: []string{"KEY"},
		}},
	}
}

// S-6: what changes a result changes the fingerprint and names its part; nothing else does.
func TestFingerprint(t *testing.T) {
	base := fingerprinted()
	for _, c := range []struct {
		part   string // "" = the same fingerprint
		change func(p *Plan, n *Node)
	}{
		{"kind", func(p *Plan, n *Node) { n.Kind = "agent" }},
		{"with", func(p *Plan, n *Node) { n.With = json.RawMessage(`{"a":2}`) }},
		{"files", func(p *Plan, n *Node) { p.Files[0].Digest = "cc" }},
		{"files", func(p *Plan, n *Node) { n.Files = []string{"b.md"} }},
		{"reads", func(p *Plan, n *Node) { n.Reads = []string{"notes"} }},
		{"reads", func(p *Plan, n *Node) { p.Accumulators[0].Cap = 5 }},
		{"writes", func(p *Plan, n *Node) { n.Writes = []string{"other.txt"} }},
		{"appends", func(p *Plan, n *Node) { n.Appends = []string{"notes"} }},
		{"outputs", func(p *Plan, n *Node) { n.Outputs = map[string]string{"n": "number"} }},
		{"needs", func(p *Plan, n *Node) { n.Needs = []string{"p"} }},
		{"needs", func(p *Plan, n *Node) { n.AtLeast = 1 }},
		{"when", func(p *Plan, n *Node) { n.When = "false" }},
		{"foreach", func(p *Plan, n *Node) { n.Foreach = &Foreach{In: "x"} }},
		{"secrets", func(p *Plan, n *Node) { n.Secrets = []string{"OTHER"} }},
		{"seed", func(p *Plan, n *Node) { p.Seed = 5 }},

		{"", func(p *Plan, n *Node) { n.ID = "y" }},
		{"", func(p *Plan, n *Node) { n.Needs = []string{"q", "p"} }},
		{"", func(p *Plan, n *Node) { n.With = json.RawMessage(`{ "a" : 1 }`) }},
		{"", func(p *Plan, n *Node) {
			n.Labels = map[string]string{"a": "b"}
			n.Title = "t"
			n.Group = "g"
			n.Dir = "d"
		}},
		{"", func(p *Plan, n *Node) { n.Retry.Attempts = 9; n.Timeout.Attempt = Duration(time.Hour); n.Priority = 3 }},
		{"", func(p *Plan, n *Node) { n.Breaker, n.Pool, n.OnFail, n.Effect = "b", "p", "continue", "once" }},
		{"", func(p *Plan, n *Node) { n.Reserve.USD = 5; n.Estimate.Seconds = 9; n.Undo = &Undo{Kind: "exec"} }},
		{"", func(p *Plan, n *Node) { p.Files[1].Digest = "cc"; p.Accumulators[0].Title = "Notes" }},
	} {
		p := fingerprinted()
		c.change(p, &p.Nodes[0])
		if same := Fingerprint(p, 0) == Fingerprint(base, 0); same != (c.part == "") {
			t.Errorf("%s: same fingerprint %v", c.part, same)
		}
		if got := differing(FingerprintParts(base, 0), FingerprintParts(p, 0)); got != c.part {
			t.Errorf("part %q differs, want %q", got, c.part)
		}
	}
}

// What an attempt really read is in its fingerprint, as is the definition of its node.
func TestAttemptFingerprint(t *testing.T) {
	p := fingerprinted()
	other := fingerprinted()
	other.Nodes[0].Kind = "other"
	if AttemptFingerprint(p, 0, nil, nil) == AttemptFingerprint(other, 0, nil, nil) {
		t.Error("nodes of two kinds have the same fingerprint")
	}
	read := func(name string, digests ...string) []Reading { return []Reading{{name, digests}} }
	seen := map[string]int{}
	for k, f := range []string{
		AttemptFingerprint(p, 0, nil, nil),
		AttemptFingerprint(p, 0, json.RawMessage(`{"a":1}`), nil),
		AttemptFingerprint(p, 0, json.RawMessage(`{"a":2}`), nil),
		AttemptFingerprint(p, 0, nil, read("in.txt")),
		AttemptFingerprint(p, 0, nil, read("in.txt", "aa")),
		AttemptFingerprint(p, 0, nil, read("in.txt", "aa", "bb")),
		AttemptFingerprint(p, 0, nil, read("notes", "aa", "bb")),
		AttemptFingerprint(p, 0, nil, append(read("in.txt", "aa"), Reading{"notes", []string{"bb"}})),
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
		n     Node
		proof Proof
		loud  bool
	}{
		{Node{Kind: "agent", Effect: "idempotent"}, ByReads, false},
		{Node{Kind: "exec", Effect: "idempotent", Ambient: true}, ByQuiet, true},
		{Node{Kind: "exec", Effect: "idempotent", Ambient: true, Writes: []string{"a"}}, ByQuiet, false},
		{Node{Kind: "http", Effect: "once", Ambient: true, Outputs: map[string]string{"status": "int"}}, ByQuiet, true},
		{Node{Kind: "approval", Effect: "pure"}, Unproved, false},
		{Node{Kind: "checkpoint", Effect: "pure"}, Unproved, false},
		{Node{Kind: "exec", Effect: "pure", Always: true}, Unproved, false},
		{Node{Kind: "join", Effect: "pure", Foreach: &Foreach{In: "x"}}, Unproved, false},
	} {
		if got := c.n.Proof(); got != c.proof || c.n.Loud() != c.loud {
			t.Errorf("%+v: proof %d, loud %v", c.n, got, c.n.Loud())
		}
	}
}

func differing(a, b []Part) string {
	all := map[string][2]string{}
	for _, p := range a {
		all[p.Name] = [2]string{p.Digest, ""}
	}
	for _, p := range b {
		all[p.Name] = [2]string{all[p.Name][0], p.Digest}
	}
	out := ""
	for name, d := range all {
		if d[0] != d[1] {
			out += name
		}
	}
	return out
}

func TestPricesGoByTheWholePrompt(t *testing.T) {
	p := Price{Input: 1, Output: 10, CacheRead: 0.1, Step: &Step{Above: 200_000, Input: 2, Output: 15}}
	for _, c := range []struct {
		in, cached, out int64
		want            USD
	}{
		{100_000, 0, 1000, 110_000},
		{200_000, 0, 1000, 210_000},       // at the step is still below it
		{200_001, 0, 1000, 415_002},       // the step holds for the whole request
		{100_000, 150_000, 1000, 230_000}, // cached tokens count; no price of theirs above the step
	} {
		if got := p.Cost(Usage{Input: c.in, CacheRead: c.cached, Output: c.out}); got != c.want {
			t.Errorf("Cost(%d, %d, %d) = %d, want %d", c.in, c.cached, c.out, got, c.want)
		}
	}
	if got := (Price{Input: 3}).Cost(Usage{CacheRead: 1_000_000, CacheWrite: 1_000_000}); got != 6_000_000 {
		t.Errorf("without cache prices %d, want the input's: 6.00", got)
	}
}

func TestPriceLookupNeverGuesses(t *testing.T) {
	p := &Plan{Prices: []Price{{Model: "m", Input: 1}, {Model: "p/n", Input: 2}, {Model: "p/o"}, {Model: "q/o"}}}
	for model, want := range map[string]float64{"m": 1, "n": 2, "p/n": 2, "o": -1, "m-20260101": -1, "x/m": -1, "": -1} {
		got := -1.0
		if price, ok := PriceOf(p, model); ok {
			got = price.Input
		}
		if got != want {
			t.Errorf("PriceOf(%q) = %v, want %v", model, got, want)
		}
	}
}

func TestEstimates(t *testing.T) {
	usd := func(v float64) USD { u, _ := Dollars(v); return u }
	p := &Plan{
		Prices: []Price{{Model: "m", Input: 10, Output: 100}},
		Files:  []File{{Path: "f", Size: 3999}},
		Nodes: []Node{
			{Kind: "exec", Estimate: Estimate{Seconds: 4}, Retry: Retry{Attempts: 3}},
			{Kind: "agent", Paid: true, Call: &Call{Model: "m", Chars: 2, Files: []string{"f"}, MaxOutput: 1000}, Retry: Retry{Attempts: 2}},
			{Kind: "agent", Paid: true, Call: &Call{Model: "m", Chars: 4, Reads: []string{"page"}, MaxOutput: 1000}},
			{Kind: "agent", Paid: true, Call: &Call{Model: "?"}, Reserve: Amount{USD: usd(2)}, Retry: Retry{Attempts: 2}},
			{Kind: "agent", Paid: true},
			{Kind: "agent", Paid: true, Estimate: Estimate{USD: usd(1), Tokens: 50, Seconds: 10}, Reserve: Amount{USD: usd(3)},
				Retry: Retry{Attempts: 2}, Timeout: Timeout{Attempt: Duration(time.Minute)}},
		},
	}
	sizes := func(name string) (int64, bool) { return 396, name == "page" }
	for i, want := range []struct {
		usd     [3]float64
		seconds [3]float64
		tokens  [3]int64
		known   bool
		from    string
	}{
		{seconds: [3]float64{4, 4, 12}, known: true, from: "free"},
		{usd: [3]float64{0.02001, 0.06001, 0.22002}, tokens: [3]int64{1101, 1501, 4002}, known: true, from: "priced"},
		{usd: [3]float64{0.011, 0.051, 0.303}, tokens: [3]int64{200, 600, 3300}, known: true, from: "priced"},
		{usd: [3]float64{0, 2, 4}, tokens: [3]int64{200, 1000, 4000}, known: true, from: "reserve"},
		{tokens: [3]int64{200, 1000, 6000}, from: "reserve"},
		{usd: [3]float64{1, 1, 6}, seconds: [3]float64{10, 10, 120}, tokens: [3]int64{50, 50, 100}, known: true, from: "estimate"},
	} {
		got := NewEstimator(p, sizes).Node(&p.Nodes[i])
		if got.Known != want.known || got.From != want.from || got.Seconds != want.seconds || got.Tokens != want.tokens {
			t.Errorf("node %d: %+v, want %+v", i, got, want)
		}
		for k := range want.usd {
			if got.USD[k] != usd(want.usd[k]) {
				t.Errorf("node %d: %v USD, want %v", i, got.USD, want.usd)
				break
			}
		}
	}
	if NewEstimator(p, nil).Node(&p.Nodes[2]).Known {
		t.Error("a prompt of unknown size has a known price")
	}
}

// A parameter counts where an expression reads it at run time, by itself or with its group.
func TestFingerprintCountsParametersThatAreRead(t *testing.T) {
	prints := func(release string) (out []string) {
		p := Plan{Params: []Param{{Name: "hardening.release", Value: json.RawMessage(release)}, {Name: "agent.model", Value: json.RawMessage(`"m"`)}}, Nodes: []Node{
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
