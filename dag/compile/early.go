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
	after := map[int32]map[int32]bool{} // by maker: what is known to start behind it, or not
	for _, d := range b.drafts {
		i, _ := g.Index(d.id)
		for _, name := range d.node.Reads {
			if !behind[i] || dag.IsPattern(name) || slices.Contains(d.node.Optional, name) {
				continue
			}
			makers := g.Writers(name)
			if len(makers) == 0 || slices.ContainsFunc(makers, func(w int32) bool {
				if after[w] == nil {
					after[w] = map[int32]bool{w: true}
				}
				return surelyAfter(g, i, w, after[w])
			}) {
				continue
			}
			b.fail(d.place("reads"), d.path+".reads", "reads %q, but may start before %s, which makes it, has ended: with "+
				"atLeast some of the needs are enough; write wait: all there, or {path: %q, optional: true}",
				name, g.Node(makers[0]).ID, name)
		}
	}
}

func startsEarly(n *dag.Node) bool { return n.AtLeast > 0 && !n.WaitAll && n.AtLeast < len(n.Needs) }

// surelyAfter reports whether a node starts only when another has ended, or is that one. known is what was found
// before.
func surelyAfter(g *dag.Graph, node, other int32, known map[int32]bool) bool {
	if sure, ok := known[node]; ok {
		return sure
	}
	after := func(i int32) bool { return surelyAfter(g, i, other, known) }
	needs, n := g.Needs(node), g.Node(node)
	if !startsEarly(n) {
		known[node] = slices.Contains(needs, other) || slices.ContainsFunc(needs, after)
		return known[node]
	}
	unsure := 0
	for _, i := range needs {
		if !after(i) {
			unsure++
		}
	}
	known[node] = unsure < n.AtLeast
	return known[node]
}
