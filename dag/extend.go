package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	low := make(map[string]int32, len(nodes))
	var problems []error
	for i := range nodes {
		key := strings.ToLower(nodes[i].ID)
		if j, dup := g.lookup(key); dup {
			problems = append(problems, duplicate(nodes[i].ID, g.Plan.Nodes[j].ID))
		} else if j, dup := low[key]; dup {
			problems = append(problems, duplicate(nodes[i].ID, nodes[int(j)-g.Len()].ID))
		}
		low[key] = int32(g.Len() + i)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	g.origin = slices.Clip(g.origin)
	for range nodes {
		g.origin = append(g.origin, root)
	}
	g.addIDs(low)
	plan := *g.Plan
	plan.Nodes = g.appendNodes(nodes)
	g.Plan = &plan
	return nil
}

// addIDs adds a layer to the id table, merged with smaller ones so that there are few layers.
func (g *Graph) addIDs(low map[string]int32) {
	g.ids = slices.Clone(g.ids)
	for n := len(g.ids); n > 0 && len(g.ids[n-1]) <= 2*len(low); n = len(g.ids) {
		for id, i := range g.ids[n-1] { // a union: order does not matter
			low[id] = i
		}
		g.ids = g.ids[:n-1]
	}
	g.ids = append(g.ids, low)
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

// checkMoreUses does for new nodes what checkUses does for a plan.
func (g *Graph) checkMoreUses(root int32, first int) error {
	fresh := &uses{byName: map[string]*use{}}
	for i := first; i < g.Len(); i++ {
		fresh.add(&g.Plan.Nodes[i], int32(i))
	}
	if len(fresh.names) == 0 {
		return nil
	}
	all := &uses{byName: make(map[string]*use, len(g.uses.byName)+len(fresh.names)), names: slices.Clip(g.uses.names),
		patterns: slices.Clone(g.uses.patterns)}
	for k := range all.patterns {
		all.patterns[k].reads = slices.Clip(all.patterns[k].reads) // g keeps its own
	}
	for name, u := range g.uses.byName { // a copy: order does not matter
		all.byName[name] = u
	}
	before := g.uses
	g.uses = all
	var problems []error
	var near []bool // above or below the foreach node
	others := func(name string, old, add *use) {
		if near == nil {
			near = g.Reach([]int32{root}, g.Needs)
			for i, below := range g.Reach([]int32{root}, g.Dependents) {
				near[i] = near[i] || below
			}
		}
		problems = append(problems, g.checkOthers(name, old, add, near)...)
	}
	for _, name := range fresh.names {
		add := fresh.byName[name]
		written := len(add.changes) > 0 && !add.entries
		if seen := fresh.matched(name); written && len(seen) > 0 {
			problems = append(problems, g.checkSiblings(name, &use{changes: add.changes, reads: merged(add.reads, seen)})...)
		} else {
			problems = append(problems, g.checkSiblings(name, add)...)
		}
		old := all.byName[name]
		if seen := before.matched(name); written && len(seen) > 0 {
			others(name, &use{reads: seen}, add)
		}
		if old == nil {
			all.byName[name] = add
			all.names = append(all.names, name)
			continue
		}
		others(name, old, add)
		all.byName[name] = &use{
			changes: append(slices.Clip(old.changes), add.changes...),
			reads:   append(slices.Clip(old.reads), add.reads...),
			entries: old.entries || add.entries,
		}
	}
	for _, p := range fresh.patterns {
		for _, name := range before.names {
			if old := before.byName[name]; len(old.changes) > 0 && !old.entries &&
				!strings.HasPrefix(name, besideSpec) && Matches(p.text, name) {
				others(name, &use{changes: old.changes}, &use{reads: p.reads})
			}
		}
		for _, i := range p.reads {
			all.readPattern(p.text, i)
		}
	}
	c := useCheck{g: g}
	c.folders()
	problems = append(problems, c.problems...)
	return errors.Join(problems[:min(len(problems), 20)]...)
}

// checkOthers compares new nodes with those that touched a name before: they are ordered with
// the new nodes exactly if they are with the foreach node.
func (g *Graph) checkOthers(name string, old, add *use, near []bool) (problems []error) {
	c := useCheck{g: g}
	for _, o := range old.changes {
		if near[o] {
			continue
		}
		if len(add.changes) > 0 && !(old.entries && add.entries) {
			c.fail(pair{o, add.changes[0], name, false})
		}
		if len(add.reads) > 0 {
			c.fail(pair{o, add.reads[0], name, true})
		}
	}
	for _, o := range old.reads {
		if !near[o] && len(add.changes) > 0 {
			c.fail(pair{o, add.changes[0], name, true})
		}
	}
	return c.problems
}

// checkSiblings compares the new nodes that touch a name with each other.
func (g *Graph) checkSiblings(name string, u *use) []error {
	c := useCheck{g: g}
	for k := 1; k < len(u.changes) && !u.entries && len(c.problems) < 20; k++ {
		a, b := u.changes[k-1], u.changes[k]
		if !g.Ancestor(a, b) && !g.Ancestor(b, a) {
			c.fail(pair{a, b, name, false})
		}
	}
	for _, r := range u.reads {
		for _, w := range u.changes {
			if len(c.problems) < 20 && r != w && !g.Ancestor(w, r) && !g.Ancestor(r, w) {
				c.fail(pair{w, r, name, true})
			}
		}
	}
	return c.problems
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
