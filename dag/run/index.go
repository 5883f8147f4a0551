package run

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// An index knows every version of every artifact, every entry of every accumulator and every
// checkpoint, folded from their events and from what became of the attempts. It is folded by the owner and read by attempts.
type index struct {
	mu      sync.RWMutex
	files   []*tracked // in order of first appearance
	byName  map[string]*tracked
	byNode  map[string][]ref   // versions that a node wrote
	running map[string]Attempt // attempts under way, by node
	touched map[string]bool    // accumulators whose valid entries changed since the last take
	saved   []saved
}

// A saved is a recorded checkpoint.
type saved struct {
	machine.CheckpointBody
	Generation int // of its node, 0 without
}

// A tracked is an artifact or an accumulator.
type tracked struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"` // live path, relative to the output directory
	Entries  bool      `json:"entries,omitempty"`
	Live     string    `json:"live,omitempty"` // digest that the live file should have
	Versions []version `json:"versions"`       // by Seq
}

// A version is one ARTIFACT_WRITTEN.
type version struct {
	Seq        int64  `json:"seq"`
	Node       string `json:"node,omitempty"` // for an edit: the node whose version was edited
	Generation int    `json:"generation,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	Digest     string `json:"sha256"`
	Size       int64  `json:"size"`
	Previous   string `json:"previous_sha256,omitempty"`
	Backup     string `json:"backup,omitempty"`
	Why        string `json:"why,omitempty"`
	Standing   string `json:"standing"`
}

// Where a version stands.
const (
	open  = "open"  // its attempt is under way: nobody reads it
	valid = "valid" // readers see it
	stale = "stale" // its node runs again, or is gone
	void  = "void"  // its attempt was lost or failed
)

// A ref is a version's place: file and position.
type ref struct {
	t *tracked
	i int
}

func (r ref) v() *version { return &r.t.Versions[r.i] }

func newIndex() *index {
	return &index{byName: map[string]*tracked{}, byNode: map[string][]ref{}, running: map[string]Attempt{}, touched: map[string]bool{}}
}

// apply folds an event. g is the graph after it.
func (x *index) apply(e *machine.Event, g *dag.Graph) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		x.running[b.Node] = Attempt{b.Node, b.Generation, b.Attempt}
	case *machine.FinishedBody:
		x.finished(b)
	case *machine.ArtifactWrittenBody:
		x.written(e.Seq, b, g)
	case *machine.PlanAdoptedBody:
		x.retire(b.Invalidated)
		x.retire(b.Recheck)
		x.retire(b.Removed)
		for _, t := range x.files { // cap, title or path of their live files may be others
			if t.Entries {
				x.touched[t.Name] = true
			}
		}
	case *machine.RewoundBody:
		x.retire(b.Nodes)
	case *machine.RevertedBody:
		x.retire(b.Nodes)
	case *machine.CheckpointBody:
		x.saved = append(x.saved, saved{*b, x.running[b.Node].Generation})
	}
}

// finished settles what an attempt wrote. Entries of a failed attempt count (an observation does
// not become wrong because the page was): its host decided so when it recorded them. Artifacts do not.
func (x *index) finished(b *machine.FinishedBody) {
	delete(x.running, b.Node)
	if b.Reused {
		x.revive(b.Node, b.Generation)
		return
	}
	for _, r := range x.byNode[b.Node] {
		v := r.v()
		if v.Generation != b.Generation || v.Attempt != b.Attempt {
			continue
		}
		counts := b.Status == dag.StatusCompleted || b.Status == dag.StatusFailed && r.t.Entries
		switch {
		case v.Standing == void && b.Status == dag.StatusCompleted:
			// The attempt was lost; now it is known to have done its work.
			x.settle(r, valid)
			if !r.t.Entries && r.i == len(r.t.Versions)-1 {
				r.t.Live = v.Digest
			}
		case v.Standing != open:
		case counts:
			x.settle(r, valid)
		default:
			v.Standing = void
			if r.t.Live == v.Digest {
				r.t.Live = v.Previous
			}
		}
	}
}

// revive makes the versions of a generation valid again: it is proved to hold, nothing ran.
func (x *index) revive(node string, generation int) {
	for _, r := range x.byNode[node] {
		if v := r.v(); v.Standing == stale && v.Generation == generation {
			x.settle(r, valid)
		}
	}
}

func (x *index) retire(nodes []string) {
	for _, n := range nodes {
		for _, r := range x.byNode[n] {
			if r.v().Standing == valid {
				x.settle(r, stale)
			}
		}
	}
}

func (x *index) settle(r ref, standing string) {
	r.v().Standing = standing
	if r.t.Entries {
		x.touched[r.t.Name] = true
	}
}

// take returns the accumulators whose entries changed since it was last called, sorted.
func (x *index) take() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.touched) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(x.touched))
	clear(x.touched)
	return names
}

func (x *index) written(seq int64, b *machine.ArtifactWrittenBody, g *dag.Graph) {
	t := x.byName[b.Name]
	if t == nil {
		t = &tracked{Name: b.Name, Path: b.Path, Entries: b.Entry}
		x.byName[b.Name] = t
		x.files = append(x.files, t)
	}
	v := version{
		Seq: seq, Node: b.Node, Generation: b.Generation, Attempt: b.Attempt, Digest: b.Digest, Size: b.Size,
		Previous: b.Previous, Backup: b.Backup, Why: b.Why, Standing: valid,
	}
	switch {
	case b.Node == "":
		// An edit takes the place of the version that it was made from: whoever sees that one
		// sees the edit.
		if base, ok := x.newest(t, g, nil); ok {
			v.Node, v.Generation, v.Attempt = base.Node, base.Generation, base.Attempt
		}
	case x.running[b.Node] == Attempt{b.Node, b.Generation, b.Attempt}:
		v.Standing = open
	}
	if !b.Entry {
		t.Live = b.Digest
	}
	t.Path = b.Path
	t.Versions = append(t.Versions, v)
	if b.Entry && v.Standing == valid {
		x.touched[b.Name] = true
	}
	x.byNode[v.Node] = append(x.byNode[v.Node], ref{t, len(t.Versions) - 1})
}

// newest returns the valid version that comes last in plan order among the nodes that see accepts
// (nil accepts all). An edit that replaces nothing comes before all.
func (x *index) newest(t *tracked, g *dag.Graph, see func(int32) bool) (version, bool) {
	best, at := -1, int32(-1)
	for i := range t.Versions {
		v := &t.Versions[i]
		if v.Standing != valid {
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
		return version{}, false
	}
	return t.Versions[best], true
}

// visible returns the version of an artifact that a node reads.
func (x *index) visible(g *dag.Graph, node, name string) (version, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.byName[name]
	i, ok := g.Index(node)
	if t == nil || !ok {
		return version{}, false
	}
	return x.newest(t, g, t.seenBy(g, i))
}

// entries returns the valid entries of an accumulator in plan order: those that a node sees, or all
// for node "".
func (x *index) entries(g *dag.Graph, node, name string) []version {
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
	type placed struct {
		version
		at int32
	}
	var list []placed
	for _, v := range t.Versions {
		n, ok := g.Index(v.Node)
		if v.Standing == valid && ok && (see == nil || see(n)) {
			list = append(list, placed{v, n})
		}
	}
	// Plan order, not the order in time: parallel nodes must not make two runs differ.
	slices.SortStableFunc(list, func(a, b placed) int {
		switch {
		case a.at == b.at:
			return 0
		case g.Before(a.at, b.at):
			return -1
		}
		return 1
	})
	out := make([]version, len(list))
	for i := range list {
		out[i] = list[i].version
	}
	return out
}

// seenBy returns which writers of t node i sees: its ancestors. A graph has every writer of what a
// node reads before or after it, which makes the order of the plan say it; expansions stand aside of
// that order.
func (t *tracked) seenBy(g *dag.Graph, i int32) func(int32) bool {
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

// live returns what the live file of an artifact should hold, and the version before that.
func (x *index) live(name string) (digest, previous string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.byName[name]
	if t == nil {
		return "", ""
	}
	for _, v := range t.Versions {
		if v.Digest == t.Live && v.Standing != void {
			previous = v.Previous
		}
	}
	return t.Live, previous
}

// list returns copies of all artifacts, or of all accumulators, in order of first appearance.
func (x *index) list(accumulators bool) []tracked {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []tracked
	for _, t := range x.files {
		if t.Entries == accumulators {
			c := *t
			c.Versions = slices.Clone(t.Versions)
			out = append(out, c)
		}
	}
	return out
}

// An indexFile is the index in a snapshot. Attempts under way are in the machine's state.
type indexFile struct {
	Checkpoints []savedFile `json:"checkpoints"`
	Files       []*tracked  `json:"files"`
}

// A savedFile is a saved in a snapshot.
type savedFile struct {
	Body       machine.CheckpointBody `json:"body"`
	Generation int                    `json:"generation,omitempty"`
}

// encode returns the index for a snapshot.
func (x *index) encode() (json.RawMessage, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := indexFile{Files: x.files}
	for _, c := range x.saved {
		f.Checkpoints = append(f.Checkpoints, savedFile{c.CheckpointBody, c.Generation})
	}
	return dag.AppendJSON(nil, f)
}

// decodeIndex reads what encode gave; running comes from the state.
func decodeIndex(raw json.RawMessage, st *machine.State) (*index, error) {
	x := newIndex()
	var f indexFile
	if err := dag.DecodeJSON(raw, &f); err != nil {
		return nil, err
	}
	x.files = f.Files
	for _, c := range f.Checkpoints {
		x.saved = append(x.saved, saved{c.Body, c.Generation})
	}
	for _, t := range x.files {
		x.byName[t.Name] = t
		for i, v := range t.Versions {
			x.byNode[v.Node] = append(x.byNode[v.Node], ref{t, i})
		}
	}
	for _, v := range inFlight(st) {
		x.running[v.Node.ID] = Attempt{v.Node.ID, v.Generation, v.Attempt}
	}
	return x, nil
}

// inFlight returns the nodes whose attempts are under way, in index order.
func inFlight(st *machine.State) []machine.NodeView {
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
