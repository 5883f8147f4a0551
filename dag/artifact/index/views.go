package index

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// newest returns the valid version that comes last in plan order among the nodes that see accepts
// (nil accepts all). An edit that replaces nothing comes before all.
func (x *Index) newest(t *Artifact, g *dag.Graph, see func(int32) bool) (Version, bool) {
	best, at := -1, int32(-1)
	for i := range t.Versions {
		v := &t.Versions[i]
		if v.Standing != Valid {
			continue
		}
		n, ok := int32(-1), true
		if v.Node != "" {
			n, ok = g.Index(v.Node)
		}
		later := best < 0 || n == at || at < 0 || n >= 0 && g.Before(at, n)
		if ok && later && (n < 0 || see == nil || see(n)) {
			best, at = i, n
		}
	}
	if best < 0 {
		return Version{}, false
	}
	return t.Versions[best], true
}

// Visible returns the version of an artifact that a node reads.
func (x *Index) Visible(g *dag.Graph, node, name string) (Version, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.byName[name]
	i, ok := g.Index(node)
	if t == nil || !ok {
		return Version{}, false
	}
	return x.newest(t, g, t.seenBy(g, i))
}

// A Named is a version and the artifact or accumulator that it is of.
type Named struct {
	Name, Path string
	Entry      bool // of an accumulator
	Version
}

// Matching returns what a node reads by a pattern: of every artifact that matches the version it sees, in plan order of
// the nodes that wrote them, then by name. What no node of the plan wrote is not among them.
func (x *Index) Matching(g *dag.Graph, node, pattern string) []Named {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, ok := g.Index(node)
	if !ok {
		return nil
	}
	var list []placed[Named]
	above := g.Above(i)
	for _, t := range x.files {
		if t.Entries || !dag.Matches(pattern, t.Name) {
			continue
		}
		v, ok := x.newest(t, g, func(n int32) bool { return above[n] })
		if at, in := g.Index(v.Node); ok && in {
			list = append(list, placed[Named]{Named{t.Name, t.Path, false, v}, at})
		}
	}
	slices.SortFunc(list, func(a, b placed[Named]) int { return strings.Compare(a.what.Name, b.what.Name) })
	return inPlanOrder(g, list)
}

// A placed is what a node has written.
type placed[T any] struct {
	what T
	at   int32
}

// inPlanOrder sorts by the nodes, not by time: parallel nodes must not make two runs differ. What one node has written
// stays in its order.
func inPlanOrder[T any](g *dag.Graph, list []placed[T]) []T {
	slices.SortStableFunc(list, func(a, b placed[T]) int { return g.Compare(a.at, b.at) })
	out := make([]T, len(list))
	for i := range list {
		out[i] = list[i].what
	}
	return out
}

// Entries returns the valid entries of an accumulator in plan order: those that a node sees, or all for node "". Where
// the accumulator has a cap they are the last ones.
func (x *Index) Entries(g *dag.Graph, node, name string) []Version {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.byName[name]
	if t == nil {
		return nil
	}
	var see func(int32) bool
	if node != "" {
		i, ok := g.Index(node)
		if !ok {
			return nil
		}
		see = t.seenBy(g, i)
	}
	var list []placed[Version]
	for _, v := range t.Versions {
		n, ok := g.Index(v.Node)
		if v.Standing == Valid && ok && (see == nil || see(n)) {
			list = append(list, placed[Version]{v, n})
		}
	}
	all := inPlanOrder(g, list)
	if a, ok := g.Plan.AccumulatorByName(name); ok && a.Cap > 0 {
		all = all[max(0, len(all)-a.Cap):]
	}
	return all
}

// seenBy returns which writers of t node i sees: its ancestors. A graph has every writer of what a
// node reads before or after it, which makes the order of the plan say it; expansions stand aside of
// that order.
func (t *Artifact) seenBy(g *dag.Graph, i int32) func(int32) bool {
	switch {
	case g.Len() == g.Base() && slices.Contains(g.Node(i).Reads, t.Name):
		return func(n int32) bool { return n < i }
	case len(t.Versions) <= 8: // fewer walks than it takes to mark all
		return func(n int32) bool { return g.Ancestor(n, i) }
	}
	above := g.Above(i)
	return func(n int32) bool { return above[n] }
}

// Live returns what the live file of an artifact should hold, and the version before that.
func (x *Index) Live(name string) (digest, previous string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.byName[name]
	if t == nil {
		return "", ""
	}
	for _, v := range t.Versions {
		if v.Digest == t.Live && v.Standing != Void {
			previous = v.Previous
		}
	}
	return t.Live, previous
}

// List returns copies of all artifacts, or of all accumulators, in order of first appearance.
func (x *Index) List(accumulators bool) []Artifact {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Artifact
	for _, t := range x.files {
		if t.Entries == accumulators {
			c := *t
			c.Versions = slices.Clone(t.Versions)
			out = append(out, c)
		}
	}
	return out
}

// IsVoid reports whether a content was recorded by an attempt that did not count.
func (x *Index) IsVoid(name, digest string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := x.byName[name]
	void := func(v Version) bool { return v.Digest == digest && v.Standing == Void }
	return f != nil && slices.ContainsFunc(f.Versions, void)
}

// Wrote returns the digests of what a node wrote that counts: the last version of each artifact, and
// all entries.
func (x *Index) Wrote(node string) (list []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	place := map[*Artifact]int{}
	for _, r := range x.byNode[node] {
		if r.v().Standing != Valid {
			continue
		}
		k, again := place[r.f]
		if again && !r.f.Entries {
			list[k] = r.v().Digest
			continue
		}
		place[r.f] = len(list)
		list = append(list, r.v().Digest)
	}
	return list
}

// WrittenBy returns what a generation of a node wrote and what took its place, as far as it stands so, in order.
func (x *Index) WrittenBy(node string, generation int, standing Standing) (list []Named) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.byNode[node] {
		if v := r.v(); v.Standing == standing && v.Generation == generation {
			list = append(list, Named{r.f.Name, r.f.Path, r.f.Entries, *v})
		}
	}
	return list
}

// Counts returns the version of an artifact that counts, and the digest of the live one.
func (x *Index) Counts(name string, g *dag.Graph) (v Version, live string, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := x.byName[name]
	if f == nil || f.Entries {
		return v, "", false
	}
	v, ok = x.newest(f, g, nil)
	return v, f.Live, ok
}

// Encode returns the index for a snapshot. Attempts under way are in the machine's state.
func (x *Index) Encode() (json.RawMessage, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return dag.AppendJSON(nil, x.files)
}

// Decode reads what Encode gave; running comes from the state.
func Decode(raw json.RawMessage, st *machine.State) (*Index, error) {
	x := New()
	if err := dag.DecodeJSON(raw, &x.files); err != nil {
		return nil, err
	}
	for _, t := range x.files {
		x.byName[t.Name] = t
		for i, v := range t.Versions {
			x.byNode[v.Node] = append(x.byNode[v.Node], ref{t, i})
		}
	}
	for _, list := range x.byNode { // each by itself
		slices.SortFunc(list, func(a, b ref) int { return cmp.Compare(a.v().Seq, b.v().Seq) }) // as they were written
	}
	for _, v := range InFlight(st) {
		x.running[v.Node.ID] = AttemptOf(v)
	}
	return x, nil
}

// AttemptOf returns the last attempt of a node.
func AttemptOf(v machine.NodeView) Attempt { return Attempt{v.Node.ID, v.Generation, v.Attempt} }

// InFlight returns the nodes whose attempts are under way, in index order.
func InFlight(st *machine.State) []machine.NodeView {
	g := st.Graph()
	if g == nil {
		return nil
	}
	var list []machine.NodeView
	for i := range int32(g.Len()) {
		if v := st.NodeAt(i); v.Status == machine.Running {
			list = append(list, v)
		}
	}
	return list
}
