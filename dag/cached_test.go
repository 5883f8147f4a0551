package dag

import (
	"math"
	"testing"
)

// what share of the prompts should be read from a cache: beginnings that were sent within five minutes, up to
// the first block that differs or holds what was written in between.
func TestCachedShare(t *testing.T) {
	head, page := Block{Digest: "head", Chars: 600}, Block{Digest: "page", Chars: 200, Reads: []string{"page"}}
	ask := func(id string, seconds float64, blocks ...Block) Node {
		return Node{ID: id, Kind: "agent", Estimate: Estimate{Seconds: seconds}, Call: &Call{Chars: 1000, Shared: blocks}}
	}
	after := func(n Node, need string) Node {
		n.Needs = []string{need}
		return n
	}
	writes := func(n Node, name string) Node {
		n.Writes = []string{name}
		return n
	}
	for _, tt := range []struct {
		name  string
		nodes []Node
		runs  string // the only one that runs; empty = all
		want  float64
	}{
		{"nothing to share", []Node{ask("a", 1), ask("b", 1)}, "", 0},
		{"once", []Node{ask("a", 1, head)}, "", 0},
		{"twice", []Node{ask("a", 1, head), after(ask("b", 1, head), "a")}, "", 0.3},
		{"another beginning", []Node{ask("a", 1, head), after(ask("b", 1, Block{Digest: "other", Chars: 600}), "a")}, "", 0},
		{"too late", []Node{ask("a", 301, head), after(ask("b", 1, head), "a")}, "", 0},
		{"kept by the one between", []Node{ask("a", 200, head), after(ask("b", 200, head), "a"), after(ask("c", 1, head), "b")}, "", 0.4},
		{"the same page", []Node{ask("a", 1, head, page), after(ask("b", 1, head, page), "a")}, "", 0.4},
		{"a page written in between", []Node{writes(ask("a", 1, head, page), "page"), after(ask("b", 1, head, page), "a")}, "", 0.3},
		{"one alone runs", []Node{ask("a", 1, head), after(ask("b", 1, head), "a")}, "b", 0},
	} {
		g, err := NewGraph(&Plan{Format: Format, Name: "p", Nodes: tt.nodes})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got := CachedShare(g, func(i int32) bool { return tt.runs == "" || g.Node(i).ID == tt.runs })
		if math.Abs(got-tt.want) > 0.001 {
			t.Errorf("%s: %.3f, want %.3f", tt.name, got, tt.want)
		}
	}
}
