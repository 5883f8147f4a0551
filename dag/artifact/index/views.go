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

// A Named is a version and the artifact that it is of.
type Named struct {
	Name string
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
	above := ancestors(g, i)
	for _, t := range x.files {
		if t.Entries || !dag.Matches(pattern, t.Name) {
			continue
		}
		v, ok := x.newest(t, g, func(n int32) bool { return above[n] })
		if at, in := g.Index(v.Node); ok && in {
			list = append(list, placed[Named]{Named{t.Name, v}, at})
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
	slices.SortStableFunc(list, func(a, b placed[T]) int {
		switch {
		case a.at == b.at:
			return 0
		case g.Before(a.at, b.at):
			return -1
		}
		return 1
	})
	out := make([]T, len(list))
	for i := range list {
		out[i] = list[i].what
	}
	return out
}

// Entries returns the valid entries of an accumulator in plan order: those that a node sees, or all
// for node "".
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
	return inPlanOrder(g, list)
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
	above := ancestors(g, i)
	return func(n int32) bool { return above[n] }
}

// ancestors marks the nodes that must end before node i starts.
func ancestors(g *dag.Graph, i int32) []bool {
	seen := make([]bool, g.Len())
	todo := slices.Clone(g.Needs(i))
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n] {
			seen[n] = true
			todo = append(todo, g.Needs(n)...)
		}
	}
	return seen
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

// OpenBy returns the versions and entries that an attempt under way has recorded, in order.
func (x *Index) OpenBy(a Attempt) (list []Published) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.byNode[a.Node] {
		if v := r.v(); v.Standing == Open && v.Generation == a.Generation && v.Attempt == a.Attempt {
			list = append(list, Published{r.f.Name, v.Digest, v.Previous, r.f.Entries})
		}
	}
	return list
}

// A Published is what an attempt under way has recorded.
type Published struct {
	Name, Digest, Previous string
	Entry                  bool
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

// A Written is a version that a node wrote, and where.
type Written struct {
	Path  string
	Entry bool // of an accumulator
	Named
}

// WrittenBy returns what a generation of a node wrote that counts, in order.
func (x *Index) WrittenBy(node string, generation int) (list []Written) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.byNode[node] {
		if v := r.v(); v.Standing == Valid && v.Generation == generation {
			list = append(list, Written{r.f.Path, r.f.Entries, Named{r.f.Name, *v}})
		}
	}
	return list
}

// Left returns what a node's generation wrote and what took its place, as far as it counted before the
// node was sent back or in doubt.
func (x *Index) Left(node string, generation int) (list []Named) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.byNode[node] {
		if v := r.v(); v.Standing == Stale && v.Generation == generation {
			list = append(list, Named{r.f.Name, *v})
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

// Checkpoints returns the recorded checkpoints, oldest first.
func (x *Index) Checkpoints() []Checkpoint {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.checkpoints
}

// Under returns the attempt of a node that is under way.
func (x *Index) Under(node string) (a Attempt, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	a, ok = x.running[node]
	return a, ok
}

// A Document is the index as a snapshot holds it. Attempts under way are in the machine's state.
type Document struct {
	Checkpoints []savedFile `json:"checkpoints"`
	Files       []*Artifact `json:"files"`
}

// A savedFile is a Checkpoint as a snapshot holds it.
type savedFile struct {
	Body       machine.CheckpointBody `json:"body"`
	Generation int                    `json:"generation,omitempty"`
}

// Encode returns the index for a snapshot.
func (x *Index) Encode() (json.RawMessage, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := Document{Files: x.files}
	for _, c := range x.checkpoints {
		f.Checkpoints = append(f.Checkpoints, savedFile{c.CheckpointBody, c.Generation})
	}
	return dag.AppendJSON(nil, f)
}

// Decode reads what Encode gave; running comes from the state.
func Decode(raw json.RawMessage, st *machine.State) (*Index, error) {
	x := New()
	var f Document
	if err := dag.DecodeJSON(raw, &f); err != nil {
		return nil, err
	}
	x.files = f.Files
	for _, c := range f.Checkpoints {
		x.checkpoints = append(x.checkpoints, Checkpoint{c.Body, c.Generation})
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
		x.running[v.Node.ID] = Attempt{v.Node.ID, v.Generation, v.Attempt}
	}
	return x, nil
}

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
