package dag

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A tail says how much of the array behind Plan.Nodes is in use, so that a graph can be extended
// in place: graphs of different length share the array, and only one of them may grow it.
type tail struct {
	mu   sync.Mutex
	used int
}

// Extend returns the graph with more nodes: those of the run-time expansion of foreach node of.
// Every new node also needs of, and every dependent of of also needs the new nodes. g stays as
// it is. Apart from copying the edge lists' heads, the cost depends on what is added.
func (g *Graph) Extend(of string, nodes []Node) (*Graph, error) {
	root, ok := g.Index(of)
	if !ok {
		return nil, fmt.Errorf("cannot expand %s: it is not in the plan", of)
	}
	x := *g
	if err := x.grow(root, nodes); err != nil {
		return nil, fmt.Errorf("expansion of %s: %w", of, err)
	}
	added, problems := x.resolve(g.Len())
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("expansion of %s: %w", of, err)
	}
	x.link(root, g.Len(), added)
	if err := errors.Join(x.checkCycle(root, g.Len()), x.checkMoreUses(root, g.Len())); err != nil {
		return nil, fmt.Errorf("expansion of %s: %w", of, err)
	}
	x.rank = append(slices.Clip(x.rank), make([]float64, len(nodes))...)
	x.weight = slices.Clip(x.weight)
	for i := range nodes {
		x.weight = append(x.weight, defaultWeight(&nodes[i]))
	}
	for i := x.Len() - 1; i >= g.Len(); i-- {
		x.raise(int32(i))
	}
	return &x, nil
}

// grow appends nodes and their ids.
func (g *Graph) grow(root int32, nodes []Node) error {
	first := g.Len()
	plan := *g.Plan
	plan.Nodes = g.appendNodes(nodes)
	g.Plan, g.ids = &plan, maps.Clone(g.ids)
	g.origin = append(slices.Clip(g.origin), slices.Repeat([]int32{root}, len(nodes))...)
	return errors.Join(g.enter(first)...)
}

func (g *Graph) appendNodes(nodes []Node) []Node {
	have := g.Plan.Nodes
	if t := g.tail; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.used == len(have) && cap(have)-len(have) >= len(nodes) {
			t.used += len(nodes)
			return append(have, nodes...)
		}
	}
	total := len(have) + len(nodes)
	room := make([]Node, 0, total+total/4)
	g.tail = &tail{used: total}
	return append(append(room, have...), nodes...)
}

// link adds the edges of the nodes from index first on.
func (g *Graph) link(root int32, first int, added edgeList) {
	dependents := slices.DeleteFunc(slices.Clone(g.deps[root]), func(i int32) bool {
		of, expanded := g.Origin(i)
		return expanded && of == root // earlier items
	})
	g.needs = append(slices.Clip(g.needs), added...)
	g.deps = append(slices.Clip(g.deps), make([][]int32, len(added))...)
	touched := map[int32]bool{} // whose dependents were copied
	addDep := func(i, dep int32) {
		if int(i) < first && !touched[i] {
			touched[i] = true
			g.deps[i] = slices.Clone(g.deps[i])
		}
		g.deps[i] = append(g.deps[i], dep)
	}
	fresh := make([]int32, len(added))
	for k := range added {
		i := int32(first + k)
		fresh[k] = i
		if at, has := slices.BinarySearch(added[k], root); !has {
			g.needs[i] = slices.Insert(slices.Clip(added[k]), at, root)
		}
		for _, j := range g.needs[i] {
			addDep(j, i)
		}
		g.deps[i] = append(slices.Clone(dependents), g.deps[i]...)
		slices.Sort(g.deps[i])
	}
	for _, d := range dependents {
		g.needs[d] = append(slices.Clip(g.needs[d]), fresh...)
	}
}

// checkCycle refuses new nodes that need what waits for them.
func (g *Graph) checkCycle(root int32, first int) error {
	state := map[int32]uint8{}
	var visit func(i int32) error
	visit = func(i int32) error { // depth: needs of new nodes among each other and of later nodes
		state[i] = 1
		for _, j := range g.needs[i] {
			if _, above := slices.BinarySearch(g.needs[root], j); above || j == root {
				continue // the foreach node needs it: it cannot wait for the new ones
			}
			switch state[j] {
			case 1:
				return fmt.Errorf("cycle: %s needs %s, which waits for the expansion", g.Plan.Nodes[i].ID, g.Plan.Nodes[j].ID)
			case 0:
				if err := visit(j); err != nil {
					return err
				}
			}
		}
		state[i] = 2
		return nil
	}
	for i := first; i < g.Len(); i++ {
		if state[int32(i)] == 0 {
			if err := visit(int32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMoreUses does for the nodes from an index on what checkUses does for a plan. They are ordered with older nodes
// exactly if the foreach node is.
func (g *Graph) checkMoreUses(root int32, first int) error {
	fresh := &uses{byName: map[string]*use{}}
	for i := first; i < g.Len(); i++ {
		fresh.add(&g.Plan.Nodes[i], int32(i))
	}
	if len(fresh.names) == 0 {
		return nil
	}
	touched := slices.Clip(fresh.names)
	for _, name := range g.uses.names {
		if u := g.uses.byName[name]; len(u.changes) > 0 && !u.entries && len(fresh.matched(name)) > 0 {
			touched = append(touched, name)
		}
	}
	g.uses = g.uses.and(fresh)
	near := sync.OnceValue(func() []bool { // above or below the foreach node, or itself
		in := g.Reach([]int32{root}, g.Needs)
		for i, below := range g.Reach([]int32{root}, g.Dependents) {
			in[i] = in[i] || below
		}
		return in
	})
	c := useCheck{g: g}
	for _, name := range touched {
		c.more(name, int32(first), near)
	}
	c.folders()
	return errors.Join(c.problems[:min(len(c.problems), 20)]...)
}

// and returns the uses with those of more nodes. us stays as it is.
func (us *uses) and(fresh *uses) *uses {
	all := &uses{byName: maps.Clone(us.byName), names: slices.Clip(us.names), patterns: slices.Clone(us.patterns)}
	for k := range all.patterns {
		all.patterns[k].reads = slices.Clip(all.patterns[k].reads)
	}
	for _, name := range fresh.names {
		old, add := all.of(name), fresh.byName[name]
		all.byName[name] = &use{
			changes: append(slices.Clip(old.changes), add.changes...),
			reads:   append(slices.Clip(old.reads), add.reads...),
			entries: old.entries || add.entries,
		}
	}
	for _, p := range fresh.patterns {
		for _, i := range p.reads {
			all.readPattern(p.text, i)
		}
	}
	return all
}

// more compares the nodes from index first on that touch a name with each other, and the first of them with the older
// ones.
func (c *useCheck) more(name string, first int32, near func() []bool) {
	u := c.g.uses.byName[name]
	all := u.reads
	if len(u.changes) > 0 && !u.entries {
		all = merged(all, c.g.uses.matched(name))
	}
	oldChanges, changes := split(u.changes, first)
	oldReads, reads := split(all, first)
	for _, o := range oldChanges {
		if len(changes) > 0 && !u.entries && !near()[o] {
			c.fail(pair{o, changes[0], name, false})
		}
		if len(reads) > 0 && !near()[o] {
			c.fail(pair{o, reads[0], name, true})
		}
	}
	for _, o := range oldReads {
		if len(changes) > 0 && !near()[o] {
			c.fail(pair{o, changes[0], name, true})
		}
	}
	for k := 1; k < len(changes) && !u.entries; k++ {
		c.siblings(pair{changes[k-1], changes[k], name, false})
	}
	for _, r := range reads {
		for _, w := range changes {
			c.siblings(pair{w, r, name, true})
		}
	}
}

// split cuts a list of nodes in index order before those from first on.
func split(list []int32, first int32) (old, fresh []int32) {
	at, _ := slices.BinarySearch(list, first)
	return list[:at], list[at:]
}

// siblings compares two new nodes. After twenty problems it looks no further, for it may cost a walk.
func (c *useCheck) siblings(p pair) {
	if p.u != p.v && len(c.problems) < 20 && !c.g.Ancestor(p.u, p.v) && !c.g.Ancestor(p.v, p.u) {
		c.fail(p)
	}
}

// Ancestor reports whether u is above v: v cannot start before u has ended. Mostly the spanning
// tree knows; else it walks up from v, which costs what lies between the two.
func (g *Graph) Ancestor(u, v int32) bool {
	if int(u) < g.base && int(v) < g.base && g.tree.above(u, v) {
		return true
	}
	if u >= v && g.Len() == g.base { // plan order: needs come first
		return false
	}
	seen := map[int32]bool{}
	stack := []int32{v}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, j := range g.needs[i] {
			if j == u {
				return true
			}
			skip := j < u && g.Len() == g.base
			if !skip && !seen[j] {
				seen[j] = true
				stack = append(stack, j)
			}
		}
	}
	return false
}
