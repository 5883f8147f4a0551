// Package index knows every version of every artifact and every entry of every accumulator of a run: the one fold of
// these facts. Opening, verifying, reverting and what attempts are given to read all ask it.
//
// It touches no file. Whether a version is still in the store, and what stands in its live place, is
// for those who have the run's directory.
package index

import (
	"maps"
	"slices"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// An Index is folded from events and from what became of the attempts. Apply belongs to the owner of
// the run; everything else may be called from any goroutine.
type Index struct {
	mu      sync.RWMutex
	files   []*Artifact // in order of first appearance
	byName  map[string]*Artifact
	byNode  map[string][]ref   // versions that a node wrote
	running map[string]Attempt // attempts under way, by node
	touched map[string]bool    // files whose live content is another one since the last Take
}

// An Attempt names one attempt of a node.
type Attempt struct {
	Node                string
	Generation, Attempt int
}

// An Artifact is an artifact or an accumulator.
type Artifact struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"` // live path, relative to the output directory
	Entries  bool      `json:"entries,omitempty"`
	Live     string    `json:"live,omitempty"` // digest that the live file should have
	Versions []Version `json:"versions"`       // by Seq
}

// Pending reports whether an attempt that wrote a version is under way: until its end is recorded it is
// not known which version counts.
func (t *Artifact) Pending() bool {
	return slices.ContainsFunc(t.Versions, func(v Version) bool { return v.Standing == Open })
}

// A Version is one ARTIFACT_WRITTEN.
type Version struct {
	Seq        int64    `json:"seq"`
	Node       string   `json:"node,omitempty"` // for an edit: the node whose version was edited
	Generation int      `json:"generation,omitempty"`
	Attempt    int      `json:"attempt,omitempty"`
	Digest     string   `json:"sha256"`
	Size       int64    `json:"size"`
	Schema     string   `json:"schema_id,omitempty"`
	Previous   string   `json:"previous_sha256,omitempty"`
	Backup     string   `json:"backup,omitempty"`
	Why        string   `json:"why,omitempty"`
	Standing   Standing `json:"standing"`
}

// A Standing says who sees a version.
//
//	         attempt completed            its node runs again
//	open ---------------------> valid ------------------------> stale
//	  `--- lost or failed --> void         ^------ proved ---------'
//
// What is salvaged of a failed attempt is valid, until another one begins.
type Standing string

const (
	Open  Standing = "open"  // its attempt is under way: nobody reads it
	Valid Standing = "valid" // readers see it
	Stale Standing = "stale" // its node runs again, or is gone
	Void  Standing = "void"  // its attempt was lost or failed
)

// A ref is a version's place: file and position.
type ref struct {
	f *Artifact
	i int
}

func (r ref) v() *Version { return &r.f.Versions[r.i] }

// New returns the index of a run before its first event.
func New() *Index {
	return &Index{
		byName: map[string]*Artifact{}, byNode: map[string][]ref{},
		running: map[string]Attempt{}, touched: map[string]bool{},
	}
}

// Apply folds an event. g is the graph after it.
func (x *Index) Apply(e *machine.Event, g *dag.Graph) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		x.running[b.Node] = Attempt{b.Node, b.Generation, b.Attempt}
		x.turn(b.Node, Valid, Stale, func(r ref) bool { return !r.f.Entries }) // what was salvaged is made once more
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
	}
}

// finished settles what an attempt wrote. Entries of a failed attempt count (an observation does
// not become wrong because the page was): its host decided so when it recorded them. Artifacts do not, unless they are
// said to be salvaged.
func (x *Index) finished(b *machine.FinishedBody) {
	delete(x.running, b.Node)
	if b.Reused {
		// Nothing ran: it is proved to be as it was.
		x.turn(b.Node, Stale, Valid, func(r ref) bool { return r.v().Generation == b.Generation })
		return
	}
	for _, r := range x.byNode[b.Node] {
		v := r.v()
		if v.Generation != b.Generation || v.Attempt != b.Attempt {
			continue
		}
		counts := b.Status == dag.StatusCompleted ||
			b.Status == dag.StatusFailed && (r.f.Entries || slices.Contains(b.Salvaged, r.f.Name))
		switch {
		case v.Standing == Void && b.Status == dag.StatusCompleted:
			// The attempt was lost; now it is known to have done its work.
			x.stand(r, Valid)
			if !r.f.Entries && r.i == len(r.f.Versions)-1 {
				r.f.Live = v.Digest
				x.touched[r.f.Name] = true
			}
		case v.Standing != Open:
		case counts:
			x.stand(r, Valid)
		default:
			v.Standing = Void
			if r.f.Live == v.Digest {
				r.f.Live = v.Previous
			}
		}
	}
}

func (x *Index) retire(nodes []string) {
	for _, n := range nodes {
		x.turn(n, Valid, Stale, func(ref) bool { return true })
	}
}

// turn gives another standing to what a node wrote.
func (x *Index) turn(node string, from, to Standing, which func(ref) bool) {
	for _, r := range x.byNode[node] {
		if r.v().Standing == from && which(r) {
			x.stand(r, to)
		}
	}
}

func (x *Index) stand(r ref, standing Standing) {
	r.v().Standing = standing
	if r.f.Entries {
		x.touched[r.f.Name] = true
	}
}

// Take returns the accumulators whose entries have changed since it was last called, and the artifacts of which a
// version counts that the end of its attempt had taken back; sorted.
func (x *Index) Take() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.touched) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(x.touched))
	clear(x.touched)
	return names
}

func (x *Index) written(seq int64, b *machine.ArtifactWrittenBody, g *dag.Graph) {
	t := x.byName[b.Name]
	if t == nil {
		t = &Artifact{Name: b.Name, Path: b.Path, Entries: b.Entry}
		x.byName[b.Name] = t
		x.files = append(x.files, t)
	}
	v := Version{
		Seq: seq, Node: b.Node, Generation: b.Generation, Attempt: b.Attempt, Digest: b.Digest, Size: b.Size,
		Schema: b.Schema, Previous: b.Previous, Backup: b.Backup, Why: b.Why, Standing: Valid,
	}
	switch {
	case b.Node == "":
		// An edit takes the place of the version that it was made from: whoever sees that one
		// sees the edit.
		if base, ok := x.newest(t, g, nil); ok {
			v.Node, v.Generation, v.Attempt = base.Node, base.Generation, base.Attempt
		}
	case x.running[b.Node] == Attempt{b.Node, b.Generation, b.Attempt}:
		v.Standing = Open
	}
	if !b.Entry {
		t.Live = b.Digest
	}
	t.Path = b.Path
	t.Versions = append(t.Versions, v)
	if b.Entry && v.Standing == Valid {
		x.touched[b.Name] = true
	}
	x.byNode[v.Node] = append(x.byNode[v.Node], ref{t, len(t.Versions) - 1})
}
