package run

import (
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

// A Diff compares a run with a plan. Nodes are in the order of the new plan, removed ones last.
type Diff struct {
	PlanDigest string // of the new plan
	Same       bool   // the plans are equal
	Nodes      []NodeDiff
	Limits     []string // plan-wide changes that make no node run again: "budget.capUSD 5.00 -> 8.00"
}

// A NodeDiff says what happens to one node and why.
type NodeDiff struct {
	ID     string
	Do     string   // see the constants
	Why    []string // parts that differ ("with", "files"), or the node that causes it
	Effect string
	Again  bool // it has run and runs again: generation + 1
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
func (r *Run) Compare(g *dag.Graph) *Diff {
	c := comparison{r: r, old: r.state.Graph(), new: g, why: make([][]string, g.Len()), dirty: make([]bool, g.Len())}
	d := &Diff{PlanDigest: g.Plan.Digest(), Limits: limits(c.old.Plan, g.Plan)}
	d.Same = d.PlanDigest == r.state.Run().PlanDigest
	for i := range int32(g.Len()) { // needs come before dependents
		d.Nodes = append(d.Nodes, c.node(i, d.Same))
	}
	d.Nodes = append(d.Nodes, c.expanded()...)
	return d
}

// A comparison goes over a new plan once, in plan order.
type comparison struct {
	r        *Run
	old, new *dag.Graph
	why      [][]string // what differs, by new index
	dirty    []bool     // runs, or runs again, for a reason that reaches its dependents
}

func (c *comparison) node(i int32, same bool) NodeDiff {
	n := c.new.Node(i)
	d := NodeDiff{ID: n.ID, Effect: n.Effect}
	o, ok := c.old.Index(n.ID)
	if !ok || int(o) >= c.old.Base() {
		d.Do, c.dirty[i] = DoAdded, true
		return d
	}
	v := c.r.state.NodeAt(o)
	touched := v.Attempt > 0 || ended(v.Status)
	if !same {
		d.Why = c.parts(o, i)
	}
	cause := c.cause(i)
	switch {
	case len(d.Why) > 0:
		d.Do, c.dirty[i] = DoChanged, true
	case cause != "" && ended(v.Status):
		d.Do, d.Why, c.dirty[i] = DoBlocked, []string{cause}, true
	case ended(v.Status):
		d.Do = DoReuse
	default:
		d.Do, c.dirty[i] = DoRun, cause != ""
	}
	d.Again = touched && c.dirty[i]
	return d
}

// parts names what of two nodes' fingerprints differs.
func (c *comparison) parts(o, n int32) []string {
	if dag.Fingerprint(c.old.Plan, o) == dag.Fingerprint(c.new.Plan, n) {
		return nil
	}
	was := map[string]string{}
	for _, p := range dag.FingerprintParts(c.old.Plan, o) {
		was[p.Name] = p.Digest
	}
	var names []string
	for _, p := range dag.FingerprintParts(c.new.Plan, n) {
		if was[p.Name] != p.Digest {
			names = append(names, p.Name)
		}
		delete(was, p.Name)
	}
	for _, p := range dag.FingerprintParts(c.old.Plan, o) {
		if _, gone := was[p.Name]; gone {
			names = append(names, p.Name)
		}
	}
	return names
}

// cause returns the first need that runs again, "" when none does.
func (c *comparison) cause(i int32) string {
	for _, n := range c.new.Needs(i) {
		if c.dirty[n] {
			return c.new.Node(n).ID
		}
	}
	return ""
}

// expanded covers the nodes of the run's plan that the new one does not list: removed ones, and those
// of run-time expansions, which live and go with their foreach node.
func (c *comparison) expanded() []NodeDiff {
	var list []NodeDiff
	kept := map[int32]bool{}
	for o := range int32(c.old.Len()) {
		n := c.old.Node(o)
		d := NodeDiff{ID: n.ID, Effect: n.Effect, Do: DoRemoved}
		if origin, ok := c.old.Origin(o); ok {
			if !c.stays(origin, kept) {
				d.Why = []string{c.old.Node(origin).ID}
				list = append(list, d)
				continue
			}
			kept[o] = true
			d.Do = DoRun
			if ended(c.r.state.NodeAt(o).Status) {
				d.Do = DoReuse
			}
			list = append(list, d)
			continue
		}
		if _, ok := c.new.Index(n.ID); !ok {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b NodeDiff) int { return order(a.Do) - order(b.Do) })
	return list
}

// stays reports whether a foreach node keeps its expansion.
func (c *comparison) stays(origin int32, kept map[int32]bool) bool {
	if kept[origin] {
		return true
	}
	i, ok := c.new.Index(c.old.Node(origin).ID)
	return ok && int(origin) < c.old.Base() && !c.dirty[i]
}

// order puts removed nodes last.
func order(do string) int {
	if do == DoRemoved {
		return 1
	}
	return 0
}

func ended(s machine.Status) bool {
	return s == machine.Completed || s == machine.Failed || s == machine.Skipped || s == machine.Cancelled
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
		x, _ := dag.AppendJSON(nil, t.x)
		y, _ := dag.AppendJSON(nil, t.y)
		if string(x) != string(y) {
			list = append(list, t.name+" changed")
		}
	}
	return list
}

// Adopt makes g the run's plan: plan and input files go to the object store, then PLAN_ADOPTED is
// recorded, durable. Nodes that Compare calls changed or blocked and that have run do so again with
// generation + 1; attempts that a dead process left under way are recorded before, as Resume does.
// Adopting the plan that the run has does nothing.
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
	digest, _, err := r.clone(g.Plan, file)
	if err != nil {
		return nil, err
	}
	event := machine.New(now, &machine.PlanAdoptedBody{
		PlanDigest:  digest,
		Previous:    r.state.Run().PlanDigest,
		Reused:      d.Count(DoReuse),
		Invalidated: d.ids(func(n *NodeDiff) bool { return n.Again && n.Do != DoRemoved }),
		Removed:     d.ids(func(n *NodeDiff) bool { return n.Do == DoRemoved }),
		Added:       d.ids(func(n *NodeDiff) bool { return n.Do == DoAdded }),
	})
	event.Plan = r.weighed(g)
	m, err := r.record([]machine.Event{event})
	if err != nil {
		return nil, err
	}
	return d, r.log.Wait(m.Seq)
}
