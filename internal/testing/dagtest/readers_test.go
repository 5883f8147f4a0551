package dagtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/internal/testing/hosttest"
)

// Plans whose results follow from what nodes are given, so that an edit changes some of them, and
// often does not. A node's settings are a reading: its value is a small number that follows from
// its salt and the values of the nodes it reads. A command (kind exec) also sees what its needs left
// and what silent commands above it did to the world; without outputs it is one of those.

// A reading is the settings of a node.
type reading struct {
	Salt  int      `json:"salt"`
	Reads []string `json:"reads"`
}

// RandomReaders returns such a plan. Conditions are those of RandomPlan, and "odd:ID".
func RandomReaders(seed uint64) *dag.Plan {
	g := readers{rand.New(rand.NewPCG(seed, 11))}
	p := &dag.Plan{Format: dag.Format, Name: fmt.Sprint("readers-", seed), Seed: int64(seed % 1000),
		Categories: hosttest.Categories()}
	for i := range 4 + g.IntN(12) {
		p.Nodes = append(p.Nodes, g.node(fmt.Sprint("n", i), p.Nodes))
	}
	return p
}

type readers struct{ *rand.Rand }

func (g readers) node(id string, before []dag.Node) dag.Node {
	n := dag.Node{ID: id, Kind: "fake", Effect: "pure", OnFail: "continue", Retry: dag.Retry{Attempts: 2},
		Outputs: map[string]string{"v": "int"}, Labels: map[string]string{"fate": "0", "category": "transient"}}
	for range min(len(before), g.IntN(4)) {
		n.Needs = append(n.Needs, before[max(0, len(before)-1-g.IntN(6))].ID)
	}
	slices.Sort(n.Needs)
	n.Needs = slices.Compact(n.Needs)
	g.kind(&n)
	if len(n.Needs) > 0 {
		g.edges(&n)
	}
	n.With, _ = json.Marshal(reading{g.IntN(2), g.some(n.Needs)})
	return n
}

func (g readers) kind(n *dag.Node) {
	switch g.IntN(9) {
	case 0:
		n.Kind, n.Ambient, n.Outputs = "exec", true, nil
	case 1:
		n.Kind, n.Ambient = "exec", true
	case 2:
		n.Kind, n.Outputs = "join", nil
	case 3:
		n.Labels["fate"], n.Retry.Attempts = fmt.Sprint(1+g.IntN(3)), 1+g.IntN(3)
		g.policy(n)
	case 4:
		n.Labels["fate"], n.Retry.Attempts = "always", 1
		g.policy(n)
	}
}

// policy gives a node another answer to its failures. One that succeeds in the end gets more attempts, never less: a
// success stays, however few attempts it might have now.
func (g readers) policy(n *dag.Node) {
	n.Labels["category"] = "soft"
	if n.Labels["fate"] != "always" {
		n.Retry.Attempts += g.IntN(3)
		n.OnFail = []dag.OnFail{"continue", "skip"}[g.IntN(2)]
		return
	}
	switch g.IntN(4) {
	case 0:
		n.OnFail = []dag.OnFail{"continue", "skip"}[g.IntN(2)]
	case 1:
		n.Retry.Attempts = 1 + g.IntN(4)
	case 2:
		n.Retry.On = []dag.CategoryPolicy{{Category: "soft", OnFail: []dag.OnFail{"", "skip", "continue"}[g.IntN(3)],
			Retry: dag.RetryChange{Attempts: g.IntN(4)}}}
	case 3:
		n.Retry.On = nil
	}
}

func (g readers) edges(n *dag.Node) {
	switch g.IntN(7) {
	case 0:
		n.When = "odd:" + n.Needs[0]
	case 1:
		n.When = "completed:" + n.Needs[0]
	case 2:
		n.AtLeast, n.WaitAll, n.OnFail = 1, true, "skip"
	case 3:
		n.Kind, n.Ambient, n.Outputs = "join", false, nil
		n.Foreach = &dag.Foreach{In: n.Needs[0], Var: "x", Key: "x", Template: json.RawMessage(`{}`), Most: 9}
	case 4:
		n.Always = true
	}
}

func (g readers) some(of []string) []string {
	out := []string{}
	for _, id := range of {
		if g.IntN(3) > 0 {
			out = append(out, id)
		}
	}
	return out
}

// Edit returns a changed copy of such a plan: other settings, a condition, another policy, a node more or less.
func Edit(p *dag.Plan, seed uint64) *dag.Plan {
	g := readers{rand.New(rand.NewPCG(seed, 13))}
	q := *p
	q.Nodes = slices.Clone(p.Nodes)
	for range 1 + g.IntN(2) {
		i := g.IntN(len(q.Nodes))
		n := &q.Nodes[i]
		switch g.IntN(10) {
		case 6:
			g.policy(n)
		case 7:
			g.start(n)
		case 8:
			q.Categories = slices.Clone(p.Categories)
			k := slices.IndexFunc(q.Categories, func(c dag.Category) bool { return c.Name == "soft" })
			q.Categories[k].Attempts = max(4, q.Categories[k].Attempts) + g.IntN(2)
		case 0:
			q.Nodes = slices.Insert(q.Nodes, i, g.node(fmt.Sprint("new", seed%100, "-", g.IntN(1000)), q.Nodes[:i]))
		case 1:
			gone := n.ID
			q.Nodes = slices.Delete(q.Nodes, i, i+1)
			for k := range q.Nodes {
				q.Nodes[k] = without(q.Nodes[k], gone)
			}
		case 2:
			if len(n.Needs) > 0 {
				n.When = []string{"", "odd:" + n.Needs[0]}[g.IntN(2)]
			}
		default:
			var with reading
			_ = json.Unmarshal(n.With, &with) // as node made it
			with.Salt += 1 + g.IntN(2)
			n.With, _ = json.Marshal(with)
		}
	}
	return &q
}

// start changes when a node starts.
func (g readers) start(n *dag.Node) {
	switch {
	case n.AtLeast > 0:
		n.AtLeast, n.Again = 1+g.IntN(len(n.Needs)), g.IntN(2)
	case n.Foreach == nil:
		n.Always = !n.Always
	}
}

func without(n dag.Node, id string) dag.Node {
	var with reading
	_ = json.Unmarshal(n.With, &with)
	is := func(s string) bool { return s == id }
	if !slices.ContainsFunc(n.Needs, is) {
		return n
	}
	n.Needs = slices.DeleteFunc(slices.Clone(n.Needs), is)
	with.Reads = slices.DeleteFunc(with.Reads, is)
	n.With, _ = json.Marshal(with)
	if len(n.Needs) == 0 {
		n.When, n.AtLeast, n.WaitAll, n.Foreach = "", 0, false, nil
	} else if n.Foreach != nil {
		n.Foreach = &dag.Foreach{In: n.Needs[0], Var: "x", Key: "x", Template: json.RawMessage(`{}`), Most: 9}
	}
	if _, on, ok := strings.Cut(n.When, ":"); ok && on == id {
		n.When = ""
	}
	return n
}

// Adopt has the run go on with another plan.
func (s *Sim) Adopt(p *dag.Plan) error {
	g, err := dag.NewGraph(p)
	if err != nil {
		return err
	}
	s.next = g
	return s.record(machine.Adoption(reuse.Compare(s.State, g), s.State.PlanDigest()))
}

// handsOver reports whether it is time to hand the run another plan, in this process or, killed before that was
// recorded, in the next one.
func (s *Sim) handsOver() bool {
	return s.Handed != nil && len(s.Events) >= s.HandedAt && s.State.Run().Status == machine.RunRunning &&
		s.State.Submitted() == nil && s.State.PlanDigest() != s.Handed.Digest()
}

func (s *Sim) handOver() error {
	g, err := dag.NewGraph(s.Handed)
	if err != nil {
		return err
	}
	return s.record(machine.Submission(reuse.Compare(s.State, g), "apply"))
}

// given is what a node is given: what it reads, and what it sees beside that.
func (s *Sim) given(n *dag.Node) (fingerprint, all string) {
	g := s.State.Graph()
	i, _ := g.Index(n.ID)
	var with reading
	_ = json.Unmarshal(n.With, &with)
	scope := s.State.ScopeOf(n.ID)
	list := []string{}
	for _, id := range with.Reads {
		v, _ := scope.View(id)
		list = append(list, string(v.Status)+string(v.Out["v"]))
	}
	resolved, _ := json.Marshal(list)
	above := reuse.Above(g, i, s.State.ResultAt)
	all = fmt.Sprint(with.Salt, list)
	if n.Ambient {
		all += fmt.Sprint(above, s.worldAbove(i))
	}
	return reuse.AttemptFingerprint(g.Plan, i, resolved, above, func(string) []string { return nil }), all
}

// worldAbove is what silent commands above a node did to the world.
func (s *Sim) worldAbove(i int32) (list []string) {
	g := s.State.Graph()
	for j := range int32(g.Len()) {
		n := g.Node(j)
		if reuse.UndeclaredEffect(n) && s.State.NodeAt(j).Status == machine.Completed && g.Ancestor(j, i) {
			list = append(list, n.ID+s.world[n.ID])
		}
	}
	slices.Sort(list)
	return list
}

// value is what a node makes of what it is given.
func (s *Sim) value(a attempt) (v map[string]json.RawMessage) {
	h := s.hash(a.node.ID, a.given)
	if reuse.UndeclaredEffect(a.node) {
		s.world[a.node.ID] = fmt.Sprint(h % 3)
	}
	if a.node.Outputs["v"] == "" {
		return nil
	}
	return map[string]json.RawMessage{"v": json.RawMessage(fmt.Sprint(h % 3))}
}

// items are as many as the value of the first need says; their settings follow from it.
func (s *Sim) items(c machine.Command) []dag.Node {
	n := s.node(c.Node)
	v, _ := s.State.ScopeOf(n.ID).View(n.Foreach.In)
	var first int
	fmt.Sscan(string(v.Out["v"]), &first)
	list := []dag.Node{}
	for k := range first + 1 {
		with, _ := json.Marshal(reading{Salt: k * first, Reads: []string{}})
		item := dag.Node{ID: fmt.Sprintf("%s/i%d", c.Node, (k+first)%3), Kind: "fake", Effect: "pure", OnFail: "continue",
			With: with, Needs: []string{c.Node}, Outputs: map[string]string{"v": "int"},
			Labels: map[string]string{"fate": "0", "category": "transient"}}
		if s.flip(n.ID, "silent") {
			item.Kind, item.Ambient, item.Outputs = "exec", true, nil
		}
		list = append(list, item)
	}
	return list
}

// recheck finds out whether a stale result is valid.
func (s *Sim) recheck(c machine.Command) error {
	n := s.node(c.Node)
	i, _ := s.State.Graph().Index(n.ID)
	r := s.State.Record(i)
	return s.record(s.State.Judged(n.ID, reuse.ByInputs(n, &r, inputs{s, n})))
}

// inputs are what a node would be given now; what it made is never lost.
type inputs struct {
	s *Sim
	n *dag.Node
}

func (in inputs) Condition() (bool, error) { return Condition(in.n.When, in.s.State.ScopeOf(in.n.ID)) }
func (in inputs) Intact() (bool, bool)     { return true, true }
func (in inputs) Fingerprint() (string, error) {
	f, _ := in.s.given(in.n)
	return f, nil
}

// wasted refuses the start of a node whose last result was made of what it is given now. Commands
// are excused: what they see cannot always be compared.
func (s *Sim) wasted(b *machine.StartedBody) error {
	n := s.node(b.Node)
	if f, _ := s.given(n); b.Attempt == 1 && reuse.ProofOf(n) == reuse.ByReads && s.made[b.Node] == f {
		return fmt.Errorf("starts %s, which has been given the same before", b.Node)
	}
	return nil
}
