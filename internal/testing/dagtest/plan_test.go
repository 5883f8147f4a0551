// Package dagtest tests runs of random plans: a generator, a fake host with virtual time that can
// be killed before any event, and checks of what must always hold.
//
// It runs no work and keeps no files. Everything follows from a seed, so that a failure can be
// repeated. It is for tests only.
package dagtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/internal/testing/hosttest"
)

// Options say what a random plan may hold.
type Options struct {
	Nodes    int  // how many, at most; default 16
	Budget   bool // a cap that some plans reach, reservations
	Breakers bool // breakers with all actions, accounts
	Fatal    bool // failures that end the run
	Deadline bool // total deadlines
	Undo     bool // undo actions, and failures that undo what was done, in all ways
}

// RandomPlan returns a plan that follows from a seed. Without options it is one whose end does
// not depend on timing: a run that is killed anywhere must end like one that is not.
//
// The fate of a node stands in its label "fate": how many attempts fail first (in the whole run,
// counted over recorded failures), "always", or "fatal". Conditions are "completed:ID",
// "settled:ID", "true", "false".
func RandomPlan(seed uint64, o Options) *dag.Plan {
	g := generator{rand.New(rand.NewPCG(seed, 7)), o}
	p := &dag.Plan{Format: dag.Format, Name: fmt.Sprint("random-", seed), Seed: int64(seed % 1000),
		Pools:      []dag.Pool{{Name: "one", Size: 1}, {Name: "two", Size: 2}},
		Categories: hosttest.Categories()}
	if o.Breakers {
		for _, when := range []string{"wait", "skip", "continue", "escalate"} {
			p.Breakers = append(p.Breakers, dag.Breaker{Name: when, Failures: 2, OpenFor: dag.Duration(time.Minute),
				Probes: 1 + g.IntN(2), WhenOpen: dag.WhenOpen(when)})
		}
	}
	if o.Budget {
		p.Budget = dag.Budget{CapUSD: dag.USD(g.IntN(20)+1) * 1e6}
		if g.IntN(3) == 0 {
			p.Budget.CapTokens = int64(g.IntN(1500) + 500)
		}
	}
	n := 3 + g.IntN(max(1, cmp.Or(o.Nodes, 16)-2))
	for i := range n {
		p.Nodes = append(p.Nodes, g.node(i, p.Nodes))
	}
	return p
}

type generator struct {
	*rand.Rand
	o Options
}

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) node(i int, before []dag.Node) dag.Node {
	n := dag.Node{ID: fmt.Sprint("n", i), Kind: "fake",
		Effect:   dag.Effect(g.one("pure", "pure", "idempotent", "once", "probe")),
		Retry:    dag.Retry{Attempts: 1 + g.IntN(3), Base: dag.Duration(time.Second), Factor: 2, Jitter: 0.2},
		Estimate: dag.Estimate{Seconds: float64(g.IntN(20))}, Priority: g.IntN(3) - 1,
		Labels: map[string]string{"fate": "0", "role": g.one("a", "b")}}
	for range min(len(before), g.IntN(4)) {
		need := before[max(0, i-1-g.IntN(5))].ID
		n.Needs = append(n.Needs, need)
	}
	if g.IntN(3) == 0 {
		n.Pool = g.one("one", "two")
	}
	if len(n.Needs) > 0 {
		g.edges(&n)
	}
	g.failures(&n, before)
	if g.o.Undo {
		g.undo(&n, before)
	}
	if g.o.Budget && g.IntN(2) == 0 {
		n.Reserve = dag.Amount{USD: dag.USD(g.IntN(3000)+1) * 1e3, Tokens: int64(g.IntN(500))}
	}
	if g.o.Breakers && g.IntN(2) == 0 {
		n.Breaker = g.one("wait", "skip", "continue", "escalate")
	}
	if g.o.Breakers {
		n.Account = g.one("", "x", "y")
	}
	if g.o.Deadline && g.IntN(4) == 0 {
		n.Timeout.Total = dag.Duration(time.Duration(5+g.IntN(60)) * time.Second)
	}
	return n
}

func (g generator) edges(n *dag.Node) {
	switch g.IntN(8) {
	case 0:
		n.When = g.one("completed:", "settled:") + n.Needs[0]
	case 1:
		n.When = g.one("true", "false")
	case 2:
		n.AtLeast = 1
		n.WaitAll = len(n.Needs)%2 == 0
		n.Again = g.IntN(3)
		n.OnFail = dag.OnFail(g.one("continue", "skip"))
		return
	case 3:
		n.Always = true
	}
	if g.IntN(8) == 0 && !n.Always {
		n.Foreach = &dag.Foreach{In: "x", Var: "x", Key: "x", Template: json.RawMessage(`{}`), Most: 5}
	}
}

func (g generator) failures(n *dag.Node, before []dag.Node) {
	if n.OnFail == "" {
		n.OnFail = dag.OnFail(g.one("fail", "fail", "continue", "skip", "escalate", "compensate"))
	}
	fate := func(of ...string) { n.Labels["fate"] = g.one(of...) }
	switch n.OnFail {
	case "fail", "escalate":
		fate("0", "0", "0", "1", "2", "3", "5")
	case "compensate":
		n.Undo = &dag.Undo{Kind: "fake"}
		if len(before) > 0 && g.IntN(2) == 0 {
			n.Undo.Rewind, n.Undo.Most = before[len(before)-1-g.IntN(min(3, len(before)))].ID, 1+g.IntN(2)
		}
		fate("0", "0", "1", "4")
		if n.Undo.Rewind == "" {
			fate("0", "0", "always")
		}
	default:
		fate("0", "0", "0", "always")
	}
	if g.o.Fatal && g.IntN(10) == 0 {
		fate("fatal")
	}
	n.Labels["category"] = g.one("transient", "transient", "rate_limited", "quota", "auth", "config", "soft")
	if n.Labels["fate"] == "always" && (n.Labels["category"] == "quota" || n.Labels["category"] == "auth") {
		n.Labels["category"] = "transient" // for ever waiting for a person is not an end
	}
}
