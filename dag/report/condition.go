package report

import (
	"slices"
	"strings"

	"dagrun.dev/dag"
)

// conditions knows of every node on what its running depends.
type conditions struct {
	g     *dag.Graph
	roots [][]int32 // by node: what above returns
	known []bool
}

func newConditions(g *dag.Graph) *conditions {
	return &conditions{g: g, roots: make([][]int32, g.Len()), known: make([]bool, g.Len())}
}

// rootsMost bounds how many nodes are named for one condition.
const rootsMost = 4

// conditional reports whether a node may be skipped though nothing fails.
func (c *conditions) conditional(i int32) bool { return len(c.above(i)) > 0 }

// above returns the nodes with a condition of which at least one must run for a node to run: itself,
// those of its needs if all of them have any, or none.
func (c *conditions) above(i int32) []int32 {
	if c.known[i] {
		return c.roots[i]
	}
	c.known[i] = true
	needs := c.g.Needs(i)
	switch {
	case c.g.Node(i).When != "":
		c.roots[i] = []int32{i}
	case c.g.Node(i).Always || len(needs) == 0:
	default:
		var all []int32
		for k, j := range needs {
			of := c.above(j)
			switch {
			case len(of) == 0:
				return nil
			case k == 0:
				all = of // most nodes have one need: they share the list
			default:
				all = union(all, of)
			}
		}
		c.roots[i] = all
	}
	return c.roots[i]
}

// union returns the nodes of both lists, at most one more than are named.
func union(a, b []int32) []int32 {
	out := slices.Clip(a)
	for _, i := range b {
		if len(out) <= rootsMost && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// inherited names the nodes with a condition without which a node that has none does not run: it is
// skipped if all its needs are. None = it runs in any case, or has a condition of its own.
func (c *conditions) inherited(i int32) (ids []string) {
	if c.g.Node(i).When != "" {
		return nil
	}
	for _, r := range c.above(i) {
		ids = append(ids, c.g.Node(r).ID)
	}
	return ids
}

// onlyWhen words a condition, own or inherited; empty for a node that runs in any case.
func onlyWhen(when string, inherited []string) string {
	switch n := len(inherited); {
	case when != "":
		return "only when " + when
	case n == 0:
		return ""
	case n == 1:
		return "only when " + inherited[0] + " runs"
	case n > rootsMost:
		return "only when one of " + strings.Join(inherited[:rootsMost], ", ") + ", ... runs"
	default:
		return "only when " + strings.Join(inherited[:n-1], ", ") + " or " + inherited[n-1] + " runs"
	}
}
