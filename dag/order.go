package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// edgeList holds the needs of all nodes as indexes, each once, in the order of the plan's text.
type edgeList [][]int32

// index fills the id table and resolves needs.
func (g *Graph) index() (edgeList, error) {
	g.ids = make(map[string]int32, g.Len())
	problems := g.enter(0)
	edges, more := g.resolve(0)
	return edges, errors.Join(append(problems, more...)...)
}

// enter puts the ids of the nodes from an index on into the table.
func (g *Graph) enter(first int) (problems []error) {
	for i := first; i < g.Len(); i++ {
		id := g.Plan.Nodes[i].ID
		g.preferred = g.preferred || g.Plan.Nodes[i].Priority != 0
		low := strings.ToLower(id)
		if j, dup := g.ids[low]; id == "" {
			problems = append(problems, fmt.Errorf("node %d has no id", i+1))
		} else if dup {
			problems = append(problems, duplicate(id, g.Plan.Nodes[j].ID))
		} else {
			g.ids[low] = int32(i)
		}
	}
	return problems
}

func duplicate(id, other string) error {
	if id == other {
		return fmt.Errorf("node %s: duplicate id", id)
	}
	return fmt.Errorf("node %s: the id differs from %s only by case", id, other)
}

// resolve returns the needs of the nodes from an index on.
func (g *Graph) resolve(from int) (edges edgeList, problems []error) {
	nodes := g.Plan.Nodes[from:]
	total := 0
	for i := range nodes {
		total += len(nodes[i].Needs)
	}
	edges = make(edgeList, len(nodes))
	room := make([]int32, 0, total)
	for i := range nodes {
		start := len(room)
		for _, need := range nodes[i].Needs {
			j, ok := g.Index(need)
			if !ok {
				problems = append(problems, fmt.Errorf("node %s: needs %s, which is not in the plan", nodes[i].ID, need))
				continue
			}
			room = append(room, j)
		}
		slices.Sort(room[start:])
		edges[i] = slices.Clip(slices.Compact(room[start:]))
	}
	return edges, problems
}

// planOrder returns the nodes in plan order: the order of the plan's text, except that a need
// which stands later moves up to before its first dependent. A cycle is an error.
func (g *Graph) planOrder(edges edgeList) ([]int32, error) {
	order := make([]int32, 0, len(edges))
	state := make([]uint8, len(edges)) // 0 = not seen, 1 = on the stack, 2 = placed
	next := make([]int32, len(edges))  // next need to look at
	var stack []int32
	var problems []error
	for root := range edges {
		if state[root] != 0 {
			continue
		}
		stack = append(stack[:0], int32(root))
		state[root] = 1
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			if int(next[i]) == len(edges[i]) {
				state[i] = 2
				order = append(order, i)
				stack = stack[:len(stack)-1]
				continue
			}
			need := edges[i][next[i]]
			next[i]++
			switch state[need] {
			case 0:
				state[need] = 1
				stack = append(stack, need)
			case 1:
				if len(problems) < 10 {
					problems = append(problems, g.cycle(stack, need))
				}
			}
		}
	}
	return order, errors.Join(problems...)
}

// cycle names a cycle that the search found: the part of the stack from need on. It is written
// from the node that stands first in the plan, at most twelve nodes of it.
func (g *Graph) cycle(stack []int32, need int32) error {
	ring := slices.Clone(stack[slices.Index(stack, need):])
	first := slices.Index(ring, slices.Min(ring))
	ring = append(ring[first:], ring[:first]...)
	var b strings.Builder
	for k, i := range ring {
		if k == 11 && len(ring) > 12 {
			fmt.Fprintf(&b, "… (%d more) needs ", len(ring)-k)
			break
		}
		b.WriteString(g.Plan.Nodes[i].ID + " needs ")
	}
	start := g.Plan.Nodes[ring[0]].ID
	return &NodeError{start, "needs", "cycle: " + b.String() + start}
}

// connect sets needs and dependents of a graph in plan order, all in two shared arrays.
func (g *Graph) connect(edges edgeList) {
	g.needs = edges
	count := make([]int32, len(edges))
	total := 0
	for _, needs := range edges {
		total += len(needs)
		for _, j := range needs {
			count[j]++
		}
	}
	room := make([]int32, total)
	g.deps = make([][]int32, len(edges))
	for j, n := range count {
		g.deps[j], room = room[:0:n], room[n:]
	}
	for i, needs := range edges {
		for _, j := range needs {
			g.deps[j] = append(g.deps[j], int32(i))
		}
	}
}

// defaultWeight is what a node is expected to take, in seconds.
func defaultWeight(n *Node) float64 {
	if n.Estimate.Seconds > 0 {
		return n.Estimate.Seconds
	}
	return 1
}

func (g *Graph) weigh(seconds func(i int32) (float64, bool)) {
	g.weight = make([]float64, g.Len())
	for i := range g.weight {
		g.weight[i] = defaultWeight(&g.Plan.Nodes[i])
		if w, ok := seconds(int32(i)); ok && w >= 0 {
			g.weight[i] = w
		}
	}
	g.rankAll()
}

// rankAll computes the longest paths from the end of the plan to its front. Expanded nodes come
// after their dependents in index order, so they are visited when a walk reaches them.
func (g *Graph) rankAll() {
	g.rank = make([]float64, g.Len())
	for i := g.Len() - 1; i >= g.base; i-- {
		g.raise(int32(i))
	}
	for i := g.base - 1; i >= 0; i-- {
		g.rank[i] = g.rankOf(int32(i))
	}
	for i := g.base; i < g.Len(); i++ {
		g.raise(int32(i))
	}
}

func (g *Graph) rankOf(i int32) float64 {
	longest := 0.0
	for _, d := range g.deps[i] {
		longest = max(longest, g.rank[d])
	}
	return g.weight[i] + longest
}

// raise recomputes the rank of a node and, where it grew, of what it needs. It ends because the
// graph has no cycle and a node is visited again only when its rank grows.
func (g *Graph) raise(i int32) {
	stack := []int32{i}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if r := g.rankOf(i); r > g.rank[i] {
			g.rank[i] = r
			stack = append(stack, g.needs[i]...)
		}
	}
}
