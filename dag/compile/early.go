package compile

import (
	"slices"

	"dagrun.dev/dag"
)

// tooEarly refuses to read an artifact by its name where the reader may start before the node that makes it has ended,
// because it, or one before it, starts as soon as some of its needs have succeeded.
func (b *builder) tooEarly(g *dag.Graph) {
	var early []int32
	for i := range int32(g.Len()) {
		if startsEarly(g.Node(i)) {
			early = append(early, i)
		}
	}
	if len(early) == 0 {
		return
	}
	behind := g.Reach(early, g.Dependents)
	for _, d := range b.drafts {
		i, _ := g.Index(d.id)
		for _, name := range d.node.Reads {
			if !behind[i] || dag.IsPattern(name) || slices.Contains(d.node.Optional, name) {
				continue
			}
			makers := g.Writers(name)
			if len(makers) == 0 || slices.ContainsFunc(makers, func(w int32) bool { return surelyAfter(g, i, w) }) {
				continue
			}
			b.fail(d.place("reads"), d.path+".reads", "reads %q, but may start before %s, which makes it, has ended: with "+
				"atLeast some of the needs are enough; write wait: all there, or {path: %q, optional: true}",
				name, g.Node(makers[0]).ID, name)
		}
	}
}

func startsEarly(n *dag.Node) bool { return n.AtLeast > 0 && !n.WaitAll && n.AtLeast < len(n.Needs) }

// surelyAfter reports whether a node starts only when another has ended, or is that one.
func surelyAfter(g *dag.Graph, node, other int32) bool {
	known := map[int32]bool{other: true}
	var after func(i int32) bool
	after = func(i int32) bool {
		if sure, ok := known[i]; ok {
			return sure
		}
		needs, sure := g.Needs(i), 0
		for _, k := range needs {
			if after(k) {
				sure++
			}
		}
		n := g.Node(i)
		known[i] = sure > 0
		if startsEarly(n) {
			known[i] = len(needs)-sure < n.AtLeast
		}
		return known[i]
	}
	return after(node)
}
