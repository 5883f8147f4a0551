package reuse

import (
	"slices"

	"dagrun.dev/dag"
)

// What a comparison says of a node.
const (
	DoRun     = "run"     // not finished yet, runs as before
	DoReuse   = "reuse"   // finished; nothing it depends on changed
	DoChanged = "changed" // finished or not; what it does changed
	DoBlocked = "blocked" // finished, runs again because of a changed node before it
	DoAdded   = "added"   // not in the run's plan
	DoRemoved = "removed" // not in the new plan
)

// A Diff compares a run with a plan. Nodes are in the order of the new plan, then those of run-time
// expansions, removed ones last.
type Diff struct {
	PlanDigest string     // of the new plan
	Same       bool       // the plans are equal
	Graph      *dag.Graph // of the new plan, with the items that the run has expanded and the plan has a foreach for
	Nodes      []NodeDiff
	Limits     []string // plan-wide changes that make no node run again: "budget.capUSD 5.00 -> 8.00"
}

// A NodeDiff says what happens to one node and why.
type NodeDiff struct {
	ID      string
	Do      string   // see the constants
	Why     []string // facets that differ ("with", "files"), or the node that causes it
	Changes []Change // of DoChanged: what differs
	Effect  dag.Effect
	Again   bool // it has begun and begins anew: generation + 1
	// Asks: an attempt of it was interrupted that must not be repeated before it is known what became of it. Its
	// record stays.
	Asks    bool
	Maybe   bool // of DoBlocked, DoChanged and DoRun: only if what comes before it gives something else than it gave
	Stale   bool // its result stays, stale: of DoBlocked and DoChanged
	Touched bool // it, or something above it, does something else now, or may
	Runs    bool // it has no result that stands and is not left out; set by Part.Take
	// Returns, of DoRemoved: it is an item, and the list that it is made from is made anew and may bring it back.
	Returns bool
	// Leaves, of DoRemoved: files that it wrote and that no node of the new plan writes. They stay where they are.
	Leaves []string
}

// Count returns how many nodes have a Do.
func (d *Diff) Count(do string) int {
	return len(d.IDs(func(n *NodeDiff) bool { return n.Do == do }))
}

// IDs returns the nodes that pick accepts.
func (d *Diff) IDs(pick func(*NodeDiff) bool) []string {
	var ids []string
	for i := range d.Nodes {
		if pick(&d.Nodes[i]) {
			ids = append(ids, d.Nodes[i].ID)
		}
	}
	return ids
}

// Compare says node by node what adopting the plan of g would do to a run.
func Compare(run Run, g *dag.Graph) *Diff {
	old := run.Graph()
	d := &Diff{PlanDigest: g.Plan.Digest(), Limits: limits(old.Plan, g.Plan), Graph: expanded(old, g)}
	d.Same = d.PlanDigest == run.PlanDigest()
	c := comparison{run: run, old: old, new: d.Graph, same: d.Same, marks: make([]mark, d.Graph.Len())}
	c.with = map[int32]int32{}
	d.Nodes = make([]NodeDiff, c.new.Len())
	for more := true; more; more = c.drawnAlong() {
		for _, i := range needsFirst(c.new) {
			d.Nodes[i] = c.node(i)
		}
	}
	d.Nodes = append(d.Nodes, c.gone()...)
	slices.SortStableFunc(d.Nodes[c.new.Base():], func(a, b NodeDiff) int { return last(a.Do) - last(b.Do) })
	return d
}

// last puts removed nodes behind the others.
func last(do string) int {
	if do == DoRemoved {
		return 1
	}
	return 0
}

// A comparison goes over a new plan once, needs before dependents.
type comparison struct {
	run      Run
	old, new *dag.Graph // new: with the expansions of the run that it has a foreach for
	same     bool
	marks    []mark // by new index
	// with names, by the new index of a foreach node, another one without whose items its own cannot be.
	with map[int32]int32
}

// drawnAlong finds foreach nodes that are expanded again because their items need items of one that is, and reports
// whether there are any that were not known.
func (c *comparison) drawnAlong() (more bool) {
	for i := int32(c.new.Base()); int(i) < c.new.Len(); i++ {
		root, _ := c.new.Origin(i)
		if of, yes := c.new.Follows(i, func(of int32) bool { return c.marks[of].touched }); yes && !c.marks[root].touched {
			c.with[root], more = of, true
		}
	}
	return more
}

// A mark is what a node's dependents must know of it.
type mark struct {
	touched    bool // runs again, or may
	otherItems bool // of a foreach: its items are made by another definition
	effect     bool // it, or something above it, runs again for certain and has an undeclared effect, or has other needs
}

// expanded returns a new plan's graph with a run's expansions, as far as they fit.
func expanded(old, g *dag.Graph) *dag.Graph {
	for o := int32(old.Base()); int(o) < old.Len(); {
		origin, _ := old.Origin(o)
		var items []dag.Node
		for ; int(o) < old.Len(); o++ {
			if of, _ := old.Origin(o); of != origin {
				break
			}
			items = append(items, *old.Node(o))
		}
		of := old.Node(origin).ID
		if i, ok := g.Index(of); ok && g.Node(i).Foreach != nil {
			if more, err := g.Extend(of, items); err == nil {
				g = more
			}
		}
	}
	return g
}

// needsFirst returns the nodes so that needs come first: expanded ones stand at the end of a graph.
func needsFirst(g *dag.Graph) []int32 {
	list := make([]int32, 0, g.Len())
	open := make([]int, g.Len())
	for i := range int32(g.Len()) {
		if open[i] = len(g.Needs(i)); open[i] == 0 {
			list = append(list, i)
		}
	}
	for k := 0; k < len(list); k++ {
		for _, d := range g.Dependents(list[k]) {
			if open[d]--; open[d] == 0 {
				list = append(list, d)
			}
		}
	}
	return list
}

// node says what becomes of a node of the new plan, and marks it for those below.
func (c *comparison) node(i int32) NodeDiff {
	n := c.new.Node(i)
	d := NodeDiff{ID: n.ID, Effect: n.Effect}
	above, cause := c.above(i)
	m := &c.marks[i]
	*m = above
	o, known := c.old.Index(n.ID)
	item := known && int(o) >= c.old.Base() && int(i) < c.new.Base()
	if !known || item { // a node takes nothing over from an item that had its id
		d.Do, d.Again, d.Touched = DoAdded, item, true
		m.touched, m.effect = true, above.effect || UndeclaredEffect(n)
		return d
	}
	r := c.run.Record(o)
	was, is := definition{plan: c.old.Plan, node: c.old.Node(o)}, definition{plan: c.new.Plan, node: n}
	why, start := c.differing(o, &r, &was, &is)
	switch {
	case len(why) > 0:
		d.Do, d.Why, d.Changes, m.touched = DoChanged, why, differences(&was, &is, why), true
		m.otherItems = slices.Contains(why, "foreach")
	case len(start) > 0:
		d.Do, d.Why, d.Changes, m.touched = DoChanged, start, differences(&was, &is, start), true
		d.Stale = keeps(n, &r, above)
		d.Maybe = d.Stale
	case above.touched && r.has():
		d.Do, d.Why, d.Stale = DoBlocked, []string{cause}, keeps(n, &r, above)
		d.Maybe = d.Stale || n.Foreach != nil
	case r.Ended:
		d.Do = DoReuse
	default:
		d.Do, d.Maybe = DoRun, r.Stale
	}
	d.Asks, d.Touched = r.Unresolved, m.touched
	d.Again = m.touched && !d.Asks && r.Begun
	certain := m.touched && !d.Maybe
	m.effect = above.effect || certain && (UndeclaredEffect(n) || slices.Contains(d.Why, "needs"))
	return c.item(o, i, d)
}

// differing names what differs of a node: what it does and, where it failed, what is done about its failures. Where
// nothing of that does, it names what differs of when the node starts and what it sees then.
func (c *comparison) differing(o int32, r *Record, was, is *definition) (why, start []string) {
	if c.same {
		return nil, nil
	}
	why = differing(redo, was, is)
	if categories, failed := c.run.Failure(o); failed {
		was.failed, is.failed = categories, categories
		why = append(why, differing(refail, was, is)...)
	}
	if len(why) > 0 {
		return why, nil
	}
	return nil, slices.DeleteFunc(differing(recall, was, is), func(name string) bool {
		return !starts(name, was.node, is.node, r)
	})
}

// above is what the needs of a node say, and the first of them that runs again or may.
func (c *comparison) above(i int32) (m mark, cause string) {
	if of, yes := c.with[i]; yes {
		m.touched, cause = true, c.new.Node(of).ID
	}
	for _, j := range c.new.Needs(i) {
		if c.marks[j].touched && cause == "" {
			cause = c.new.Node(j).ID
		}
		m.touched, m.effect = m.touched || c.marks[j].touched, m.effect || c.marks[j].effect
	}
	return m, cause
}

// keeps reports whether the result of a finished node stays, stale, until it is known whether it is valid.
func keeps(n *dag.Node, r *Record, above mark) bool {
	switch {
	case n.Foreach != nil:
		return false // what becomes of its items is another matter
	case r.Ended && r.End == Skipped: // whether it is again costs nothing to find out
		return r.Category != CategoryBreaker
	case r.Stale:
	case r.Fingerprint == "":
		return false
	case !r.Ended || r.End != Completed && (!r.Settled || r.End == Cancelled):
		return false
	}
	switch ProofOf(n) {
	case ByReads:
		return true
	case ByQuiet:
		return !above.effect
	}
	return false
}

// item corrects what is said of an item whose foreach is expanded again: the expansion may leave it
// out, and what does not stay, stale, goes.
func (c *comparison) item(o, i int32, d NodeDiff) NodeDiff {
	of, ok := c.new.Origin(i)
	if !ok || !c.marks[of].touched {
		return d
	}
	was := d.Changes
	d.Why, d.Changes = []string{c.new.Node(of).ID}, nil
	if c.marks[of].otherItems {
		c.marks[i].otherItems = true
		_, failed := c.run.Failure(o)
		d.Stale = d.Stale && !failed // a policy of its definition may be another one
	}
	if d.Do = DoBlocked; !d.Stale {
		d.Do, d.Returns, d.Maybe, d.Changes = DoRemoved, true, false, was
	}
	return d
}

// gone covers the nodes of the run's plan that the new one does not have.
func (c *comparison) gone() (list []NodeDiff) {
	for o := range int32(c.old.Len()) {
		n := c.old.Node(o)
		if _, ok := c.new.Index(n.ID); ok {
			continue
		}
		r := c.run.Record(o)
		d := NodeDiff{ID: n.ID, Effect: n.Effect, Do: DoRemoved, Asks: r.Unresolved && !r.Ended, Touched: true}
		if of, ok := c.old.Origin(o); ok {
			d.Why = []string{c.old.Node(of).ID}
		}
		if r.Ended && r.End == Completed {
			d.Leaves = slices.DeleteFunc(slices.Clone(n.Writes), func(name string) bool { return len(c.new.Writers(name)) > 0 })
		}
		list = append(list, d)
	}
	return list
}
