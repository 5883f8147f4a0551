package dag

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Graph is a plan with its edges by index. Nodes are addressed by int32 index: those of the
// plan in plan order, those of run-time expansions after them (see Before). Indexes exist in
// memory only. A Graph is immutable and may be read from any goroutine.
type Graph struct {
	// Plan holds all nodes, expanded ones at the end. Its digest is that of the graph.
	Plan *Plan

	base  int       // nodes of the plan itself; the rest are expansions
	needs [][]int32 // by node, in index order, each once
	deps  [][]int32 // by node, in index order
	rank  []float64
	// preferred says that some node has a priority: without it none is read, and the nodes are far apart in memory.
	preferred bool
	weight    []float64
	origin    []int32          // foreach node of each expanded node, by index-base
	ids       map[string]int32 // lower-case id -> index
	tree      tree             // of the plan's own nodes; answers most questions about ancestors
	uses      *uses            // who touches which artifact and accumulator
	tail      *tail            // of the array behind Plan.Nodes
}

// NewGraph checks p (unknown needs, duplicate ids, cycles, unordered writers of one artifact,
// readers unordered with a writer or appender of what they read) and indexes it. All problems are
// returned joined, each naming its node. Where a need stands after its dependent, the graph's
// Plan is a copy of p with the need moved up to before its first dependent; else it is p.
func NewGraph(p *Plan) (*Graph, error) {
	g := &Graph{Plan: p, base: len(p.Nodes)}
	edges, err := g.index()
	if err != nil {
		return nil, err
	}
	order, err := g.planOrder(edges)
	if err != nil {
		return nil, err
	}
	if !slices.IsSorted(order) {
		sorted := *p
		sorted.Nodes = make([]Node, len(p.Nodes))
		for at, i := range order {
			sorted.Nodes[at] = p.Nodes[i]
		}
		return NewGraph(&sorted)
	}
	g.connect(edges)
	g.weigh(func(int32) (float64, bool) { return 0, false })
	if err := g.checkUses(); err != nil {
		return nil, err
	}
	return g, nil
}

// Len returns the number of nodes, expanded ones included.
func (g *Graph) Len() int { return len(g.Plan.Nodes) }

// Base returns the number of nodes of the plan itself.
func (g *Graph) Base() int { return g.base }

// Index returns the index of a node id.
func (g *Graph) Index(id string) (int32, bool) {
	i, ok := g.ids[strings.ToLower(id)]
	if !ok {
		return -1, false
	}
	return i, g.Plan.Nodes[i].ID == id
}

// Node returns the node at an index.
func (g *Graph) Node(i int32) *Node { return &g.Plan.Nodes[i] }

// Needs returns the direct needs of a node in index order. The slice is not to be changed. A node
// that needs an expanded foreach node also needs the nodes of the expansion.
func (g *Graph) Needs(i int32) []int32 { return g.needs[i] }

// Dependents returns the nodes that need a node, in index order. The slice is not to be changed.
func (g *Graph) Dependents(i int32) []int32 { return g.deps[i] }

// Rank is the longest expected path in seconds from the start of node i to the end of the run
// (weights: estimate seconds, else 1). The scheduler starts the highest first.
func (g *Graph) Rank(i int32) float64 { return g.rank[i] }

// Sooner reports whether node i starts before node j when both could: by priority, then by rank, then in plan order.
func (g *Graph) Sooner(i, j int32) bool {
	if p, q := &g.Plan.Nodes[i], &g.Plan.Nodes[j]; g.preferred && p.Priority != q.Priority {
		return p.Priority > q.Priority
	}
	if p, q := g.rank[i], g.rank[j]; p != q {
		return p > q
	}
	return g.Before(i, j)
}

// Reweigh returns the graph with other weights: seconds(i) is what node i is expected to take,
// e.g. by the durations of earlier runs; where it says false the node's own estimate holds.
func (g *Graph) Reweigh(seconds func(i int32) (float64, bool)) *Graph {
	c := *g
	c.weigh(seconds)
	return &c
}

// Origin returns the foreach node whose expansion created node i, if one did.
func (g *Graph) Origin(i int32) (of int32, ok bool) {
	if int(i) < g.base {
		return -1, false
	}
	return g.origin[int(i)-g.base], true
}

// Follows reports whether node i is an item of an expansion that needs an item of another one, for whose foreach node
// which says true, and returns that: when that one is expanded again, so is the one of i.
func (g *Graph) Follows(i int32, which func(of int32) bool) (of int32, yes bool) {
	root, item := g.Origin(i)
	for _, j := range g.needs[i] {
		if of, other := g.Origin(j); item && other && of != root && which(of) {
			return of, true
		}
	}
	return -1, false
}

// Before reports whether node i comes before node j in plan order. Expanded nodes come right
// after the foreach node they come from, in item order.
func (g *Graph) Before(i, j int32) bool { return g.Compare(i, j) < 0 }

// Compare is Before for package slices.
func (g *Graph) Compare(i, j int32) int {
	if int(i) < g.base && int(j) < g.base {
		return cmp.Compare(i, j)
	}
	return slices.Compare(g.place(i), g.place(j))
}

// place returns the indexes from the plan's own node down to node i.
func (g *Graph) place(i int32) []int32 {
	p := []int32{i}
	for of, ok := g.Origin(i); ok; of, ok = g.Origin(of) {
		p = append(p, of)
	}
	slices.Reverse(p)
	return p
}

// Digest returns the lower-case hex sha256 of p's canonical JSON. A plan that has no canonical
// form (an integer beyond 2^53 in a setting) has the digest "": Encode says why.
func (p *Plan) Digest() string {
	b, err := p.Encode()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Encode returns p's canonical JSON.
func (p *Plan) Encode() ([]byte, error) {
	return AppendJSON(make([]byte, 0, 512+256*len(p.Nodes)), p)
}

// DecodePlan reads what Encode wrote. A plan of a newer format is refused.
func DecodePlan(b []byte) (*Plan, error) {
	p := new(Plan)
	if err := DecodeJSON(b, p); err != nil {
		if errors.Is(err, ErrUnknownField) {
			err = fmt.Errorf("%w: a newer version wrote this plan", err)
		}
		return nil, fmt.Errorf("plan: %w", err)
	}
	if p.Format > Format {
		return nil, fmt.Errorf("plan: format %d is newer than %d, the newest this version reads", p.Format, Format)
	}
	return p, nil
}

// FileByPath returns a declared input file.
func (p *Plan) FileByPath(path string) (*File, bool) {
	i, ok := slices.BinarySearchFunc(p.Files, path, func(f File, path string) int { return strings.Compare(f.Path, path) })
	if !ok {
		return nil, false
	}
	return &p.Files[i], true
}

// BreakerByName returns a breaker of the plan.
func (p *Plan) BreakerByName(name string) (*Breaker, bool) {
	k := slices.IndexFunc(p.Breakers, func(b Breaker) bool { return b.Name == name })
	if k < 0 {
		return nil, false
	}
	return &p.Breakers[k], true
}

// CategoryByName returns what a category of failure means.
func (p *Plan) CategoryByName(name string) (*Category, bool) {
	k := slices.IndexFunc(p.Categories, func(c Category) bool { return c.Name == name }) // some twenty rows
	if k < 0 {
		return nil, false
	}
	return &p.Categories[k], true
}

// Weight is what node i is expected to take, in seconds.
func (g *Graph) Weight(i int32) float64 { return g.weight[i] }
