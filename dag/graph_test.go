package dag

import (
	"fmt"
	"strings"
	"testing"
)

func plan(nodes ...Node) *Plan { return &Plan{Format: Format, Name: "t", Nodes: nodes} }

func n(id string, needs ...string) Node {
	return Node{ID: id, Kind: "noop", Needs: needs, Effect: "pure"}
}

func ids(g *Graph) string {
	var s []string
	for i := range g.Plan.Nodes {
		s = append(s, g.Plan.Nodes[i].ID)
	}
	return strings.Join(s, " ")
}

func TestPlanOrderMovesNeedsUp(t *testing.T) {
	p := plan(n("a", "z"), n("b"), n("z", "y"), n("y"))
	g, err := NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(g); got != "y z a b" {
		t.Errorf("order %q", got)
	}
	if p.Nodes[0].ID != "a" {
		t.Error("the given plan was changed")
	}
	sorted := plan(n("b"), n("a", "b"), n("c"))
	if g, err = NewGraph(sorted); err != nil || g.Plan != sorted {
		t.Errorf("a plan in order must be taken as it is: %v", err)
	}
}

func TestNewGraphNamesEveryProblem(t *testing.T) {
	w := func(x Node, names ...string) Node { x.Writes = names; return x }
	r := func(x Node, names ...string) Node { x.Reads = names; return x }
	app := func(x Node, names ...string) Node { x.Appends = names; return x }
	tests := []struct {
		name string
		plan *Plan
		want []string
	}{
		{"unknown need", plan(n("build"), n("test", "biuld"), n("x", "qqqqqq")), []string{
			"node test: needs biuld, which is not in the plan",
			"node x: needs qqqqqq, which is not in the plan"}},
		{"duplicate", plan(n("a"), n("a"), n("A")), []string{"node a: duplicate id", "node A: the id differs from a only by case"}},
		{"cycle", plan(n("a", "b"), n("b", "a")), []string{"cycle: a needs b needs a"}},
		{"self", plan(n("a", "a")), []string{"cycle: a needs a"}},
		{"long cycle", plan(n("x"), n("c", "d"), n("d", "e", "x"), n("e", "c")), []string{"cycle: c needs d needs e needs c"}},
		{"two writers", plan(w(n("a"), "p.html"), w(n("b"), "p.html")), []string{"nodes a and b both write p.html"}},
		{"reader beside writer", plan(w(n("a"), "p"), r(n("b"), "p")), []string{"nodes a and b both read or change p, but neither needs the other: the order would depend on timing; for b to be given what a makes, write needs: [a] there"}},
		{"reader beside appender", plan(app(n("a"), "log"), app(n("b"), "log"), r(n("c", "a"), "log")), []string{"nodes b and c both read or change log"}},
		{"reader before one of two", plan(n("s"), app(n("a", "s"), "log"), r(n("r", "s"), "log"), app(n("b", "r"), "log")), []string{"nodes a and r both"}},
	}
	for _, tt := range tests {
		_, err := NewGraph(tt.plan)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", tt.name, err, want)
			}
		}
	}
}

func TestNewGraphAcceptsOrderedUse(t *testing.T) {
	a, b, c := n("a"), n("b"), n("c", "a", "b")
	a.Appends, b.Appends, c.Reads, c.Appends = []string{"log"}, []string{"log"}, []string{"log"}, []string{"log"}
	d := n("d", "c")
	d.Reads, d.Writes = []string{"log", "p"}, []string{"p"}
	e := n("e", "d")
	e.Writes = []string{"p"}
	if _, err := NewGraph(plan(a, b, c, d, e)); err != nil {
		t.Fatal(err)
	}
}

// TestUseChecksAgreeWithAncestors compares the sweeps with a plain walk on random graphs.
func TestUseChecksAgreeWithAncestors(t *testing.T) {
	seed := uint64(1)
	rnd := func(m int) int { seed = seed*6364136223846793005 + 1; return int(seed>>33) % m }
	bad := 0
	for round := range 300 {
		p := plan()
		for i := range 40 {
			x := n(fmt.Sprint("n", i))
			for range rnd(4) {
				if i > 0 {
					x.Needs = append(x.Needs, fmt.Sprint("n", max(0, i-1-rnd(6))))
				}
			}
			switch rnd(12) {
			case 0, 1:
				x.Writes = []string{fmt.Sprint("w", rnd(3))}
			case 2:
				x.Appends = []string{"log"}
			case 3:
				x.Reads = []string{"log", fmt.Sprint("w", rnd(3))}
			}
			p.Nodes = append(p.Nodes, x)
		}
		_, err := NewGraph(p)
		want := plainUseCheck(t, p)
		if (err == nil) != want {
			t.Fatalf("round %d: error %v, plain check says ok=%v", round, err, want)
		}
		if err != nil {
			bad++
		}
	}
	if bad == 0 || bad == 300 {
		t.Errorf("%d of 300 plans are bad: the test shows nothing", bad)
	}
}

func plainUseCheck(t *testing.T, p *Plan) bool {
	bare := *p
	bare.Nodes = nil
	for _, x := range p.Nodes {
		x.Writes, x.Reads, x.Appends = nil, nil, nil
		bare.Nodes = append(bare.Nodes, x)
	}
	g, err := NewGraph(&bare)
	if err != nil {
		t.Fatal(err)
	}
	has := func(list []string, name string) bool {
		for _, x := range list {
			if x == name {
				return true
			}
		}
		return false
	}
	for i := range p.Nodes {
		for j := i + 1; j < len(p.Nodes); j++ {
			a, b := &p.Nodes[i], &p.Nodes[j]
			for _, name := range []string{"w0", "w1", "w2", "log"} {
				aw, bw := has(a.Writes, name) || has(a.Appends, name), has(b.Writes, name) || has(b.Appends, name)
				clash := aw && bw && name != "log" || aw && has(b.Reads, name) || bw && has(a.Reads, name)
				if clash && !g.Ancestor(int32(i), int32(j)) {
					return false
				}
			}
		}
	}
	return true
}

func TestRankIsTheLongestPathBelow(t *testing.T) {
	a := n("a")
	a.Estimate.Seconds = 10
	g, err := NewGraph(plan(a, n("b", "a"), n("c", "a"), n("d", "b")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{12, 2, 1, 1} {
		if g.Rank(int32(i)) != want {
			t.Errorf("rank of %s is %v, want %v", g.Node(int32(i)).ID, g.Rank(int32(i)), want)
		}
	}
	g = g.Reweigh(func(i int32) (float64, bool) { return 50, i == 2 })
	if g.Rank(0) != 60 || g.Rank(1) != 2 {
		t.Errorf("reweighed ranks %v %v", g.Rank(0), g.Rank(1))
	}
}

func TestExtend(t *testing.T) {
	g, err := NewGraph(plan(n("a"), n("f", "a"), n("z", "f"), n("y", "z")))
	if err != nil {
		t.Fatal(err)
	}
	x, err := g.Extend("f", []Node{n("f/1", "f"), n("f/2", "a"), n("f/3", "f/1")})
	if err != nil {
		t.Fatal(err)
	}
	if g.Len() != 4 || len(g.Needs(2)) != 1 || len(g.Dependents(1)) != 1 {
		t.Error("the given graph was changed")
	}
	if got := ids(x); got != "a f z y f/1 f/2 f/3" {
		t.Error(got)
	}
	if got := fmt.Sprint(x.Needs(2), x.Needs(5), x.Dependents(4), x.Dependents(1), x.Dependents(0)); got != "[1 4 5 6] [0 1] [2 6] [2 4 5 6] [1 5]" {
		t.Error(got)
	}
	if x.Rank(0) != 6 || x.Rank(5) != 3 {
		t.Errorf("ranks %v %v, want 6 3", x.Rank(0), x.Rank(5))
	}
	if !x.Before(6, 2) || x.Before(2, 4) || !x.Before(4, 5) || !x.Before(1, 4) {
		t.Error("expanded nodes come right after their foreach node")
	}
	y, err := x.Extend("f/2", []Node{n("f/2/a")})
	if err != nil {
		t.Fatal(err)
	}
	if i, ok := y.Index("f/2/a"); !ok || !y.Before(i, 6) || y.Before(i, 5) || !y.Ancestor(1, i) || !y.Ancestor(i, 3) {
		t.Error("nested expansion")
	}
	other, err := x.Extend("f/2", []Node{n("f/2/b")})
	if err != nil {
		t.Fatal(err)
	}
	if ids(y) != "a f z y f/1 f/2 f/3 f/2/a" || ids(other) != "a f z y f/1 f/2 f/3 f/2/b" {
		t.Error("two extensions of one graph share nodes: ", ids(y), "|", ids(other))
	}
	for want, nodes := range map[string][]Node{
		"which waits for the expansion":        {n("f/9", "z")},
		"duplicate id":                         {n("a")},
		"differs from f/1 only by case":        {n("F/1")},
		"needs nope, which is not in the plan": {n("f/9", "nope")},
	} {
		if _, err := x.Extend("f", nodes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestExtendChecksUses(t *testing.T) {
	a, z, side := n("a"), n("z", "f"), n("side")
	a.Writes, z.Reads, side.Writes = []string{"p"}, []string{"p"}, []string{"q", "folder/"}
	g, err := NewGraph(plan(a, n("f", "a"), z, side))
	if err != nil {
		t.Fatal(err)
	}
	one := n("f/1")
	one.Writes = []string{"p"}
	two := n("f/2")
	two.Writes = []string{"p"}
	bad := n("f/3")
	bad.Reads = []string{"q"}
	if _, err := g.Extend("f", []Node{one}); err != nil {
		t.Error(err)
	}
	if _, err := g.Extend("f", []Node{one, two}); err == nil || !strings.Contains(err.Error(), "nodes f/1 and f/2 both write p") {
		t.Error(err)
	}
	if _, err := g.Extend("f", []Node{bad}); err == nil || !strings.Contains(err.Error(), "nodes side and f/3 both read or change q") {
		t.Error(err)
	}
	for _, read := range []string{"folder/file", "[q]", "folder/**"} { // in it, or a pattern of it
		bad.Reads = []string{read}
		if _, err := g.Extend("f", []Node{bad}); err == nil || !strings.Contains(err.Error(), "nodes side and f/3 both read or change") {
			t.Error(read, err)
		}
	}
}

// TestExtendOften: many expansions of one graph stay cheap enough to be done ten thousand times.
func TestExtendOften(t *testing.T) {
	g, err := NewGraph(plan(n("f"), n("end", "f")))
	if err != nil {
		t.Fatal(err)
	}
	for k := range 2000 {
		if g, err = g.Extend("f", []Node{n(fmt.Sprint("f/", k))}); err != nil {
			t.Fatal(err)
		}
	}
	if g.Len() != 2002 || len(g.Needs(1)) != 2001 {
		t.Error(g.Len(), len(g.Needs(1)))
	}
	if i, ok := g.Index("f/1234"); !ok || g.Node(i).ID != "f/1234" {
		t.Error("lost an id")
	}
}
