package run

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
)

// Fingerprint says what an attempt of a node is given if it is made now: settings (with: as they were resolved, nil
// when nothing in them was), contents of its reads, and what Above returned. Its needs must have ended. Any goroutine.
func (r *Run) Fingerprint(node string, with json.RawMessage, above []reuse.Reading) string {
	g := r.Graph()
	i, ok := g.Index(node)
	if !ok {
		return ""
	}
	return reuse.AttemptFingerprint(g.Plan, i, with, above, func(name string) []string { return r.digests(g, node, name) })
}

// Above returns what the needs of a node left, for one that sees its needs; nil for others.
func (r *Run) Above(node string) (read []reuse.Reading) {
	g := r.state.Graph()
	i, ok := g.Index(node)
	if !ok {
		return nil
	}
	return reuse.Above(g, i, func(need int32) reuse.Left {
		l := r.state.ResultAt(need)
		if n := g.Node(need); len(n.Writes)+len(n.Appends) > 0 {
			l.Digests = r.index.Wrote(n.ID)
		}
		return l
	})
}

// digests are those of an artifact or of an accumulator's entries as a node sees them; of a pattern names and digests.
func (r *Run) digests(g *dag.Graph, node, name string) (list []string) {
	if dag.IsPattern(name) {
		for _, v := range r.index.Matching(g, node, name) {
			list = append(list, strconv.Quote(v.Name), v.Digest)
		}
		return list
	}
	r.seen(g, node, name, func(v attempt.Content) { list = append(list, v.Digest) })
	return list
}

// readAside is how many bytes are too many to be read while nobody else can go on.
const readAside = 4 << 20

// Intact reports whether what a node wrote in its generation is as it left it, in the store and in place. sound is what
// Sound has said of objects; others are read here, unless that is too much for a caller who cannot wait: then unread
// names them, and nothing is known yet.
func (r *Run) Intact(node string, sound map[string]bool) (intact bool, unread []string) {
	v, _ := r.state.NodeByID(node)
	left := r.index.WrittenBy(node, v.Generation, index.Stale)
	if slices.ContainsFunc(left, func(v index.Named) bool { return v.Why != "" && v.Why != WhyRestored }) {
		return false, nil
	}
	var size int64
	var all []string
	for _, v := range left {
		list, err := r.store.Objects(v.Name, v.Digest)
		if err != nil {
			return false, nil
		}
		size += v.Size
		all = append(all, list...)
	}
	for _, d := range all {
		if _, said := sound[d]; !said {
			unread = append(unread, d)
		}
	}
	if len(unread) > 0 && size >= readAside {
		return false, unread
	}
	return !slices.ContainsFunc(all, func(d string) bool {
		ok, said := sound[d]
		return said && !ok || !said && r.store.Verify(d) != nil
	}), nil
}

// Sound reads an object and reports whether it is what its digest says. It ends with ctx. Any goroutine.
func (r *Run) Sound(ctx context.Context, digest string) bool {
	f, err := r.store.Open(digest)
	if err != nil {
		return false
	}
	defer f.Close()
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(io.Discard, f, 1<<20)
	}
	return err == io.EOF
}

// WhyRestored marks a version that has become the live one again: nodes that would have replaced it
// do not run any more, or one that stood before is proved to be valid.
const WhyRestored = "restored"

// restoreLive brings live files to the versions that count, after events that can leave them at others:
// nodes that end without having run, and plans without nodes that have. While a node that writes a
// file may still run, the file stays.
func (r *Run) restoreLive(now time.Time, names []string) error {
	var bodies []machine.Body
	for _, name := range names {
		if b := r.stray(name); b != nil {
			bodies = append(bodies, b)
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	// Durable before the files change: else a loss of power would make them a user's edits.
	if err := r.RecordDurable(now, bodies...); err != nil {
		return err
	}
	for _, b := range bodies {
		w := b.(*machine.ArtifactWrittenBody)
		if err := r.promote(w.Name, w.Digest); err != nil {
			return err
		}
	}
	return nil
}

// stray returns the fact that brings a live file back to the version that counts; nil when it shows
// it, or when there is none.
func (r *Run) stray(name string) *machine.ArtifactWrittenBody {
	g := r.state.Graph()
	for _, i := range g.Writers(name) {
		if !r.state.NodeAt(i).Status.Ended() {
			return nil
		}
	}
	v, live, ok := r.index.Counts(name, g)
	if !ok || live == v.Digest {
		return nil
	}
	return &machine.ArtifactWrittenBody{Node: v.Node, Generation: v.Generation, Attempt: v.Attempt,
		Name: name, Path: name, Digest: v.Digest, Size: v.Size, Previous: live, Backup: r.objectPath(live), Why: WhyRestored}
}

// strays returns the artifacts whose live files an event may have left at a version that does not
// count any more.
func (r *Run) strays(e *machine.Event) []string {
	switch b := e.Body.(type) {
	case *machine.FinishedBody:
		if b.Final && (b.Reused || b.Status != dag.StatusCompleted) {
			if i, ok := r.state.Graph().Index(b.Node); ok {
				return r.state.Graph().Node(i).Writes
			}
		}
	case *machine.PlanAdoptedBody:
		return r.written()
	}
	return nil
}

// written returns the names of all artifacts.
func (r *Run) written() (names []string) {
	for _, t := range r.listArtifacts() {
		names = append(names, t.Name)
	}
	return names
}
