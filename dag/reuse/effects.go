package reuse

import (
	"math"

	"dagrun.dev/dag"
)

// UndeclaredEffect reports whether running n may change what others see of the world without leaving anything by which
// that could be told: a command that has no outputs, writes and appends, or an effect on the world by declaration.
func UndeclaredEffect(n *dag.Node) bool {
	return !n.Effect.Repeatable() || n.Ambient && len(n.Outputs)+len(n.Writes)+len(n.Appends) == 0
}

// Effects finds out of nodes whether something above them has run that changed the world in undeclared ways.
// It remembers what it found: whoever changes a record says so with Forget, Grow or Reset. The zero Effects is ready.
type Effects struct {
	last []lastEffect // by node; nil = nobody has asked
}

// A lastEffect is the last event at or above a node that ended an attempt with an undeclared effect, or made another
// expansion of a foreach. Where something has not ended it is the end of time: nothing is proved below it yet.
type lastEffect struct {
	known bool
	above int64 // without the expansion that the node itself made, which is none to its items
	seq   int64
}

// Reset forgets everything: the graph is another one, or nodes that had ended have not any more.
func (e *Effects) Reset() { e.last = nil }

// Forget forgets what is known at one node.
func (e *Effects) Forget(i int32) {
	if e.last != nil {
		e.last[i] = lastEffect{}
	}
}

// Grow takes in that the graph has n nodes.
func (e *Effects) Grow(n int) {
	if e.last != nil {
		e.last = append(e.last, make([]lastEffect, n-len(e.last))...)
	}
}

// Quiet reports whether nothing with an undeclared effect has run above node i since it ended. Each node and edge is
// looked at about twice, as long as nothing is forgotten.
func (e *Effects) Quiet(run Run, i int32) bool {
	if ProofOf(run.Graph().Node(i)) != ByQuiet {
		return true // nobody asks
	}
	ended := run.Record(i).EndSeq
	for _, j := range run.Graph().Needs(i) {
		if e.seenBy(run, i, e.at(run, j), j) > ended {
			return false
		}
	}
	return true
}

// at walks up from a node.
func (e *Effects) at(run Run, i int32) lastEffect {
	g := run.Graph()
	if e.last == nil {
		e.last = make([]lastEffect, g.Len())
	}
	todo := []int32{i}
	for len(todo) > 0 {
		k, depth := todo[len(todo)-1], len(todo)
		for _, j := range g.Needs(k) {
			if !e.last[k].known && !e.last[j].known {
				todo = append(todo, j)
			}
		}
		if len(todo) == depth {
			todo = todo[:depth-1]
			e.last[k] = e.find(run, k)
		}
	}
	return e.last[i]
}

// seenBy is what need j, with effect x, is to node i.
func (e *Effects) seenBy(run Run, i int32, x lastEffect, j int32) int64 {
	if of, ok := run.Graph().Origin(i); ok && of == j {
		return x.above
	}
	return x.seq
}

// find derives the last effect at a node from those of its needs, which are known.
func (e *Effects) find(run Run, k int32) lastEffect {
	r, n := run.Record(k), run.Graph().Node(k)
	if !r.Settled {
		return lastEffect{true, math.MaxInt64, math.MaxInt64}
	}
	x := lastEffect{known: true}
	for _, j := range run.Graph().Needs(k) {
		x.above = max(x.above, e.seenBy(run, k, e.last[j], j))
	}
	stopped := r.End == Skipped && r.Generation > 1 // it may have run before
	if UndeclaredEffect(n) && (r.Attempts > 0 || stopped) {
		x.above = max(x.above, r.EndSeq)
	}
	x.seq = x.above
	if r.Reshaped || stopped && n.Foreach != nil { // its items ran, or did not
		x.seq = max(x.seq, r.EndSeq)
	}
	return x
}
