package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// uses says which nodes touch which artifacts and accumulators.
type uses struct {
	byName   map[string]*use
	names    []string // in order of first use
	patterns []pattern
}

// A use lists the nodes that touch one name, in index order.
type use struct {
	changes []int32 // writers and appenders
	reads   []int32
	entries bool // an accumulator: unordered appenders are fine, entries have plan order
}

// Writers returns the nodes that write an artifact or append to an accumulator, in index order.
// The slice is not to be changed.
func (g *Graph) Writers(name string) []int32 {
	if u := g.uses.byName[name]; u != nil {
		return u.changes
	}
	return nil
}

// besideSpec stands before the names of files beside the spec: no artifact has such a name.
const besideSpec = "./"

func (us *uses) of(name string) *use {
	u := us.byName[name]
	if u == nil {
		u = new(use)
		us.byName[name] = u
		us.names = append(us.names, name)
	}
	return u
}

func (us *uses) add(n *Node, i int32) {
	for _, name := range n.Writes {
		u := us.of(name)
		u.changes = appendOnce(u.changes, i)
	}
	for _, p := range n.Publish {
		u := us.of(besideSpec + p.To)
		u.changes = appendOnce(u.changes, i)
	}
	for _, name := range n.Appends {
		u := us.of(name)
		u.changes, u.entries = appendOnce(u.changes, i), true
	}
	for _, name := range n.Reads {
		if IsPattern(name) {
			us.readPattern(name, i)
		}
		u := us.of(name)
		u.reads = appendOnce(u.reads, i)
	}
}

func appendOnce(s []int32, i int32) []int32 {
	if len(s) > 0 && s[len(s)-1] == i {
		return s
	}
	return append(s, i)
}

// checkUses refuses two unordered writers of an artifact, and a reader that is unordered with a
// writer or appender of what it reads: what it would see depends on timing.
func (g *Graph) checkUses() error {
	g.uses = &uses{byName: map[string]*use{}}
	for i := range g.Plan.Nodes {
		g.uses.add(&g.Plan.Nodes[i], int32(i))
	}
	g.tree = g.spanningTree()
	c := useCheck{g: g, tree: g.tree}
	for _, name := range g.uses.names {
		u := *g.uses.byName[name]
		if len(u.changes) > 0 && !u.entries {
			u.reads = merged(u.reads, g.uses.matched(name))
		}
		if len(u.changes) == 0 || len(u.changes)+len(u.reads) < 2 {
			continue
		}
		c.check(name, &u)
	}
	c.folders()
	return c.finish()
}

// A useCheck collects pairs of nodes of which the first must be an ancestor of the second. Most
// are answered at once by the spanning tree; the rest by sweeps over the graph, 64 at a time.
type useCheck struct {
	g        *Graph
	tree     tree
	pairs    []pair
	problems []error
	bits     []uint64
}

type pair struct {
	u, v   int32
	name   string
	reader bool
}

func (c *useCheck) check(name string, u *use) {
	chain := true
	for k := 1; k < len(u.changes); k++ {
		a, b := u.changes[k-1], u.changes[k]
		if !u.entries {
			c.want(pair{a, b, name, false})
		} else if !c.tree.above(a, b) {
			chain = false
		}
	}
	if !chain {
		c.crossCheck(name, u)
		return
	}
	for _, r := range u.reads { // the changes are in a row: the neighbours answer for all
		at, itself := slices.BinarySearch(u.changes, r)
		if at > 0 {
			c.want(pair{u.changes[at-1], r, name, true})
		}
		if itself {
			at++
		}
		if at < len(u.changes) {
			c.want(pair{r, u.changes[at], name, true})
		}
	}
}

// folders refuses an artifact whose path leads through another artifact: that one is a file.
func (c *useCheck) folders() {
	for _, name := range c.g.uses.names {
		u := c.g.uses.byName[name]
		if len(u.changes) == 0 || u.entries {
			continue
		}
		refuse := func(text, outer string, in *use) {
			a, b := c.g.Plan.Nodes[in.changes[0]].ID, c.g.Plan.Nodes[u.changes[0]].ID
			c.problems = append(c.problems, &NodeError{b, "writes", fmt.Sprintf(text, b, name, outer, a)})
		}
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if in := c.g.uses.byName[name[:at+1]]; in != nil && in != u && len(in.changes) > 0 {
				refuse("node %s writes %s, but %s is one artifact with all that is in it, which node %s writes", name[:at+1], in)
			}
			if above := c.g.uses.byName[name[:at]]; above != nil && len(above.changes) > 0 && !above.entries {
				refuse("node %s writes %s, but %s is a file that node %s writes", name[:at], above)
			}
		}
	}
}

func (c *useCheck) want(p pair) {
	if !c.tree.above(p.u, p.v) {
		c.pairs = append(c.pairs, p)
	}
}

func (c *useCheck) fail(p pair) {
	if len(c.problems) >= 20 {
		return
	}
	a, b := c.g.Plan.Nodes[p.u].ID, c.g.Plan.Nodes[p.v].ID
	verb := "write"
	if p.reader {
		verb = "read or change"
	}
	field := "writes"
	if p.reader && !slices.Contains(c.g.Plan.Nodes[p.v].Writes, p.name) {
		field = "reads"
	}
	name := p.name
	for _, i := range []int32{p.u, p.v} {
		for _, read := range c.g.Plan.Nodes[i].Reads {
			if name == p.name && IsPattern(read) && read != name && Matches(read, name) {
				name += fmt.Sprintf(" (%s as %s)", c.g.Plan.Nodes[i].ID, read)
			}
		}
	}
	given := ""
	if from, to := a, b; p.reader {
		if changes := c.g.uses.byName[p.name].changes; !slices.Contains(changes, p.u) {
			from, to = b, a
		}
		given = fmt.Sprintf("; for %s to be given what %s makes, write needs: [%s] there", to, from, from)
	}
	c.problems = append(c.problems, &NodeError{b, field, fmt.Sprintf("nodes %s and %s both %s %s, but neither needs the "+
		"other: the order would depend on timing%s", a, b, verb, name, given)})
}

// finish answers the pairs that the tree could not.
func (c *useCheck) finish() error {
	slices.SortStableFunc(c.pairs, func(a, b pair) int { return int(a.u) - int(b.u) })
	for len(c.pairs) > 0 {
		sources, n, last := 0, 0, int32(-1)
		hi := int32(0)
		for ; n < len(c.pairs); n++ {
			if c.pairs[n].u != last {
				if sources++; sources > 64 {
					break
				}
				last = c.pairs[n].u
			}
			hi = max(hi, c.pairs[n].v)
		}
		c.batch(c.pairs[:n], hi)
		c.pairs = c.pairs[n:]
	}
	return errors.Join(c.problems...)
}

func (c *useCheck) batch(pairs []pair, hi int32) {
	var sources []int32
	for _, p := range pairs {
		sources = appendOnce(sources, p.u)
	}
	c.forward(sources, hi)
	for _, p := range pairs {
		k, _ := slices.BinarySearch(sources, p.u)
		if c.bits[p.v]&(1<<k) == 0 {
			c.fail(p)
		}
	}
}

// forward sets, for the nodes from the first source to hi, the bits of the sources above them.
func (c *useCheck) forward(sources []int32, hi int32) {
	if c.bits == nil {
		c.bits = make([]uint64, c.g.Len())
	}
	lo, k := sources[0], 0
	for i := lo; i <= hi; i++ {
		var b uint64
		for _, j := range c.g.needs[i] {
			if j >= lo {
				b |= c.bits[j]
			}
		}
		if k < len(sources) && sources[k] == i {
			b |= 1 << k
			k++
		}
		c.bits[i] = b
	}
}

// backward sets, for the nodes from the last source down to lo, the bits of the sources below.
func (c *useCheck) backward(sources []int32, lo int32) {
	k := len(sources) - 1
	hi := sources[k]
	for i := hi; i >= lo; i-- {
		var b uint64
		for _, j := range c.g.deps[i] {
			if j <= hi {
				b |= c.bits[j]
			}
		}
		if k >= 0 && sources[k] == i {
			b |= 1 << k
			k--
		}
		c.bits[i] = b
	}
}

// crossCheck asks for every reader and every change that one is above the other.
func (c *useCheck) crossCheck(name string, u *use) {
	some, others := u.changes, u.reads
	if len(others) < len(some) {
		some, others = others, some
	}
	for len(some) > 0 && len(others) > 0 {
		n := min(64, len(some))
		sources := some[:n]
		some = some[n:]
		c.forward(sources, max(sources[n-1], others[len(others)-1]))
		c.compare(name, sources, others, func(s, o int32) bool { return s < o })
		c.backward(sources, min(sources[0], others[0]))
		c.compare(name, sources, others, func(s, o int32) bool { return s > o })
	}
}

func (c *useCheck) compare(name string, sources, others []int32, asks func(s, o int32) bool) {
	for _, o := range others {
		var want uint64
		for k, s := range sources {
			if asks(s, o) {
				want |= 1 << k
			}
		}
		if want == 0 || c.bits[o]&want == want {
			continue
		}
		for k, s := range sources {
			if want&(1<<k) != 0 && c.bits[o]&(1<<k) == 0 {
				c.fail(pair{min(s, o), max(s, o), name, true})
			}
		}
	}
}

// A tree is a spanning forest of the graph, each node below its last need, numbered so that the
// nodes below one have the numbers that follow its own.
type tree []struct{ at, size int32 }

func (g *Graph) spanningTree() tree {
	t := make(tree, g.Len())
	for i := len(t) - 1; i >= 0; i-- {
		t[i].size++
		if n := g.needs[i]; len(n) > 0 {
			t[n[len(n)-1]].size += t[i].size
		}
	}
	free := make([]int32, len(t)) // next number below a node
	root := int32(0)
	for i := range t {
		if n := g.needs[i]; len(n) > 0 {
			p := n[len(n)-1]
			t[i].at = free[p]
			free[p] += t[i].size
		} else {
			t[i].at = root
			root += t[i].size
		}
		free[i] = t[i].at + 1
	}
	return t
}

// above reports whether u is an ancestor of v in the tree. False says nothing about the graph.
func (t tree) above(u, v int32) bool {
	return t[u].at < t[v].at && t[v].at < t[u].at+t[u].size
}
