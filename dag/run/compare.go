package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
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
	Why     []string // parts that differ ("with", "files"), or the node that causes it
	Changes []Change // of DoChanged: what differs
	Effect  dag.Effect
	Again   bool     // it has run and runs again: generation + 1
	Asks    bool     // an attempt of it was cut off, which must not be repeated before somebody says what became of it; its record stays
	Maybe   bool     // of DoBlocked and DoRun: only if what comes before it gives something else than it gave
	Leaves  []string // of DoRemoved: files that it wrote and that no node of the new plan writes; they stay where they are
	recheck bool     // its result stays, in doubt
}

// Count returns how many nodes have a Do.
func (d *Diff) Count(do string) int {
	n := 0
	for i := range d.Nodes {
		if d.Nodes[i].Do == do {
			n++
		}
	}
	return n
}

// ids returns the nodes that pick accepts.
func (d *Diff) ids(pick func(*NodeDiff) bool) []string {
	var ids []string
	for i := range d.Nodes {
		if pick(&d.Nodes[i]) {
			ids = append(ids, d.Nodes[i].ID)
		}
	}
	return ids
}

// Compare says node by node what adopting g would do. It changes nothing and works read-only.
func (r *Run) Compare(g *dag.Graph) *Diff { return Compare(r.state, g) }

// Compare is Run.Compare for a state.
func Compare(st *machine.State, g *dag.Graph) *Diff {
	d := &Diff{PlanDigest: g.Plan.Digest(), Limits: limits(st.Graph().Plan, g.Plan)}
	d.Same = d.PlanDigest == st.Run().PlanDigest
	c := comparison{st: st, old: st.Graph(), same: d.Same}
	c.new = c.expanded(g)
	d.Graph = c.new
	c.marks = make([]mark, c.new.Len())
	d.Nodes = make([]NodeDiff, c.new.Len())
	for _, i := range needsFirst(c.new) {
		d.Nodes[i] = c.node(i)
	}
	d.Nodes = append(d.Nodes, c.gone()...)
	slices.SortStableFunc(d.Nodes[c.new.Base():], func(a, b NodeDiff) int { return order(a.Do) - order(b.Do) })
	return d
}

// A comparison goes over a new plan once, needs before dependents.
type comparison struct {
	st       *machine.State
	old, new *dag.Graph // new: with the expansions of the run that it has a foreach for
	same     bool
	marks    []mark // by new index
}

// A mark is what a node's dependents must know of it.
type mark struct {
	dirty bool // runs again, or may
	anew  bool // of a foreach: its items are made by another definition
	loud  bool // it, or something above it, runs again for certain and is loud, or has other needs
}

// expanded returns a plan's graph with the run's expansions, as far as they fit.
func (c *comparison) expanded(g *dag.Graph) *dag.Graph {
	for o := int32(c.old.Base()); int(o) < c.old.Len(); {
		origin, _ := c.old.Origin(o)
		var items []dag.Node
		for ; int(o) < c.old.Len(); o++ {
			if of, _ := c.old.Origin(o); of != origin {
				break
			}
			items = append(items, *c.old.Node(o))
		}
		of := c.old.Node(origin).ID
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

func (c *comparison) node(i int32) NodeDiff {
	n := c.new.Node(i)
	d := NodeDiff{ID: n.ID, Effect: n.Effect}
	m := &c.marks[i]
	above, cause := c.above(i)
	*m = above
	o, ok := c.old.Index(n.ID)
	item := ok && int(o) >= c.old.Base() && int(i) < c.new.Base()
	if !ok || item { // a node takes nothing over from an item that had its id
		d.Do, d.Again, m.dirty, m.loud = DoAdded, item, true, above.loud || n.Loud()
		return d
	}
	v := c.st.NodeAt(o)
	var policy, start []string
	if !c.same {
		d.Why, policy, start = c.parts(o, i), c.policy(o, i), c.starts(o, i, &v)
	}
	switch {
	case len(d.Why)+len(policy) > 0:
		d.Why = append(d.Why, policy...)
		d.Do, m.dirty, d.Changes = DoChanged, true, c.changes(o, i, d.Why)
		m.anew = slices.Contains(d.Why, "foreach")
	case len(start) > 0:
		d.Do, m.dirty, d.Why, d.Changes = DoChanged, true, start, c.changes(o, i, start)
		d.recheck = keeps(n, &v, above)
		d.Maybe = d.recheck
	case above.dirty && (v.Status.Ended() || v.Doubted):
		d.Do, d.Why, d.recheck = DoBlocked, []string{cause}, keeps(n, &v, above)
		d.Maybe = d.recheck || n.Foreach != nil
	case v.Status.Ended():
		d.Do = DoReuse
	default:
		d.Do, d.Maybe = DoRun, v.Doubted
	}
	d.Asks = v.Unresolved
	d.Again = m.dirty && !d.Asks && (v.Attempt > 0 || v.Status.Ended() || v.Doubted || v.Status == machine.Asking)
	m.loud = above.loud || m.dirty && !d.Maybe && (n.Loud() || slices.Contains(d.Why, "needs"))
	return c.item(o, i, d)
}

// policy names what differs of the policies by which a node failed: it is decided again. What succeeded stays
// good, and what has not ended is decided by the new ones.
func (c *comparison) policy(o, n int32) []string {
	categories, failed := c.st.FailureAt(o)
	if !failed {
		return nil
	}
	return different(dag.PolicyParts(c.old.Plan, o, categories), dag.PolicyParts(c.new.Plan, n, categories))
}

// starts names what differs of when a node starts and what it sees then, where that may have let it end otherwise.
func (c *comparison) starts(o, n int32, v *machine.NodeView) (names []string) {
	a, b := c.old.Node(o), c.new.Node(n)
	if !v.Status.Ended() && !v.Doubted {
		return nil
	}
	if a.Always != b.Always && (a.Always || v.Status != machine.Completed) {
		names = append(names, "always")
	}
	if b.Ambient && !a.Ambient { // what it saw was not recorded
		names = append(names, "ambient")
	}
	if a.WaitAll != b.WaitAll {
		names = append(names, "waitAll")
	}
	return names
}

// above is what the needs of a node say, and the first of them that runs again or may.
func (c *comparison) above(i int32) (m mark, cause string) {
	for _, j := range c.new.Needs(i) {
		if c.marks[j].dirty && cause == "" {
			cause = c.new.Node(j).ID
		}
		m.dirty, m.loud = m.dirty || c.marks[j].dirty, m.loud || c.marks[j].loud
	}
	return m, cause
}

// keeps reports whether the result of a finished node stays until it is known whether it holds.
func keeps(n *dag.Node, v *machine.NodeView, above mark) bool {
	switch {
	case n.Foreach != nil:
		return false // what becomes of its items is another matter
	case v.Status == machine.Skipped: // whether it is again costs nothing to find out
		return v.Last == nil || v.Last.Category != machine.CategoryBreaker
	case v.Doubted:
	case v.Fingerprint == "", v.Status != machine.Completed && !(v.Status == machine.Failed && v.Soft):
		return false
	}
	switch n.Proof() {
	case dag.ByReads:
		return true
	case dag.ByQuiet:
		return !above.loud
	}
	return false
}

// item corrects what is said of an item whose foreach is expanded again: the expansion may leave it
// out, and what does not stay in doubt goes.
func (c *comparison) item(o, i int32, d NodeDiff) NodeDiff {
	of, ok := c.new.Origin(i)
	if !ok || !c.marks[of].dirty {
		return d
	}
	d.Why, d.Changes = []string{c.new.Node(of).ID}, nil
	if c.marks[of].anew {
		c.marks[i].anew = true
		_, failed := c.st.FailureAt(o)
		d.recheck = d.recheck && !failed // a policy of its definition may be another one
	}
	if d.Do = DoBlocked; !d.recheck {
		d.Do, d.Maybe = DoRemoved, false
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
		v := c.st.NodeAt(o)
		d := NodeDiff{ID: n.ID, Effect: n.Effect, Do: DoRemoved, Asks: v.Unresolved && !v.Status.Ended()}
		if of, ok := c.old.Origin(o); ok {
			d.Why = []string{c.old.Node(of).ID}
		}
		if v.Status == machine.Completed {
			d.Leaves = slices.DeleteFunc(slices.Clone(n.Writes), func(name string) bool { return len(c.new.Writers(name)) > 0 })
		}
		list = append(list, d)
	}
	return list
}

// parts names what of two nodes' fingerprints differs.
func (c *comparison) parts(o, n int32) []string {
	if dag.Fingerprint(c.old.Plan, o) == dag.Fingerprint(c.new.Plan, n) {
		return nil
	}
	return different(dag.FingerprintParts(c.old.Plan, o), dag.FingerprintParts(c.new.Plan, n))
}

// different names the parts that are not equal: those of the new list in its order, then those that are gone.
func different(was, is []dag.Part) (names []string) {
	for _, p := range is {
		if !slices.Contains(was, p) {
			names = append(names, p.Name)
		}
	}
	for _, p := range was {
		if !slices.ContainsFunc(is, func(q dag.Part) bool { return q.Name == p.Name }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// order puts removed nodes last.
func order(do string) int {
	if do == DoRemoved {
		return 1
	}
	return 0
}

// Adoption is the fact that the compared plan takes the place of the one in force.
func (d *Diff) Adoption(digest, previous string) *machine.PlanAdoptedBody {
	return &machine.PlanAdoptedBody{
		PlanDigest:  digest,
		Previous:    previous,
		Reused:      d.Count(DoReuse),
		Invalidated: d.ids(func(n *NodeDiff) bool { return n.Again && !n.recheck && n.Do != DoRemoved }),
		Recheck:     d.ids(func(n *NodeDiff) bool { return n.recheck }),
		Removed:     d.ids(func(n *NodeDiff) bool { return n.Do == DoRemoved }),
		Added:       d.ids(func(n *NodeDiff) bool { return n.Do == DoAdded }),
	}
}

// limits names what differs between two plans outside of their nodes' fingerprints.
func limits(a, b *dag.Plan) []string {
	var list []string
	add := func(name string, x, y any) {
		if x != y { // amounts that look alike may differ
			list = append(list, fmt.Sprintf("%s %v -> %v", name, x, y))
		}
	}
	add("budget.warnUSD", a.Budget.WarnUSD, b.Budget.WarnUSD)
	add("budget.capUSD", a.Budget.CapUSD, b.Budget.CapUSD)
	add("budget.warnTokens", a.Budget.WarnTok, b.Budget.WarnTok)
	add("budget.capTokens", a.Budget.CapTokens, b.Budget.CapTokens)
	add("budget.wall", a.Budget.Wall.D(), b.Budget.Wall.D())
	for _, t := range []struct {
		name string
		x, y any
	}{
		{"params", a.Params, b.Params}, {"breakers", a.Breakers, b.Breakers}, {"pools", a.Pools, b.Pools},
		{"categories", a.Categories, b.Categories}, {"prices", a.Prices, b.Prices},
		{"accumulators", a.Accumulators, b.Accumulators}, {"phases", a.Phases, b.Phases},
	} {
		for _, name := range changedNames(entries(t.x), entries(t.y)) {
			list = append(list, t.name+": "+name)
		}
	}
	return list
}

// An entry is one of a list that a plan holds, with the field that names it.
type entry struct{ name, text string }

func entries(list any) (out []entry) {
	raw, _ := dag.AppendJSON(nil, list)
	var all []json.RawMessage
	_ = json.Unmarshal(raw, &all) // null is an empty list
	for _, e := range all {
		var key struct{ Name, Model, Group string }
		_ = json.Unmarshal(e, &key)
		out = append(out, entry{cmp.Or(key.Name, key.Model, key.Group), string(e)})
	}
	return out
}

// changedNames says which entries of two lists are not the same, those of the new one first.
func changedNames(was, is []entry) (list []string) {
	named := func(in []entry, name string) bool {
		return slices.ContainsFunc(in, func(e entry) bool { return e.name == name })
	}
	for _, e := range is {
		switch {
		case slices.Contains(was, e):
		case named(was, e.name):
			list = append(list, e.name+" changed")
		default:
			list = append(list, e.name+" added")
		}
	}
	for _, e := range was {
		if !named(is, e.name) {
			list = append(list, e.name+" removed")
		}
	}
	if len(list) == 0 && !slices.Equal(was, is) {
		list = append(list, "another order")
	}
	return list
}

// Adopt makes g the run's plan: plan and input files go to the object store, then PLAN_ADOPTED is
// recorded, durable. Nodes that Compare calls changed or blocked and that have run do so again with
// generation + 1; those that may not have to keep their results in doubt. Attempts that a dead process left under way are recorded before, as Resume does.
// Adopting the plan that the run has does nothing; one that drops a node of which nobody knows whether it took effect is refused.
func (r *Run) Adopt(now time.Time, g *dag.Graph, file func(path string) (io.ReadCloser, error), rescue Rescue) (*Diff, error) {
	if r.readOnly {
		return nil, errReadOnly
	}
	d := r.Compare(g)
	if d.Same {
		return d, nil
	}
	if _, err := r.lose(now, rescue); err != nil {
		return nil, err
	}
	d = r.Compare(g)
	if names := d.ids(func(n *NodeDiff) bool { return n.Do == DoRemoved && n.Asks }); len(names) > 0 {
		return nil, fmt.Errorf("the new plan drops %s, whose last attempt was interrupted: whether it took effect would be forgotten; "+
			"find that out under the plan that the run has (dagrun resume asks, dagrun respond answers), then apply again", some(names))
	}
	digest, _, err := r.clone(g.Plan, file)
	if err != nil {
		return nil, err
	}
	event := machine.New(now, d.Adoption(digest, r.state.Run().PlanDigest))
	event.Plan = r.weighed(g)
	m, err := r.record([]machine.Event{event})
	if err != nil {
		return nil, err
	}
	return d, r.log.Wait(m.Seq)
}
