package run

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
)

// A Preview says what reverting would do.
type Preview struct {
	Checkpoint  CheckpointInfo `json:"checkpoint"`
	Nodes       []string       `json:"nodes"`        // finished or started since; they run again, in plan order
	Files       []string       `json:"files"`        // live paths that change: artifacts, then accumulators
	Skipped     []string       `json:"skipped"`      // those of them that never ran: whether they do is decided anew
	RedoUSD     dag.USD        `json:"redo_usd"`     // what those nodes cost so far
	RedoSeconds float64        `json:"redo_seconds"` // and took
	Once        []string       `json:"once"`         // nodes among them with effect once: their effect cannot be undone
	Published   []RevertedFile `json:"published"`    // beside the specification, put there since
}

// A RevertedFile is a file beside the specification that was put there since a checkpoint. It goes back to what stood
// there then (Previous), and is removed where that was nothing; what was put there stays in the store. What somebody
// has changed since is left as it is.
type RevertedFile struct {
	machine.PublishedFile
	Why string `json:"why,omitempty"` // of Left, or why there is nothing to do
}

// PreviewRevert says what Revert would do. Works read-only.
func (r *Run) PreviewRevert(id string) (*Preview, error) {
	var known []string
	for _, b := range r.state.Checkpoints() {
		if b.ID == id {
			return r.preview(b)
		}
		known = append(known, b.ID)
	}
	switch {
	case len(known) == 0 && id == "":
		return nil, errors.New("the run has no checkpoint yet")
	case len(known) == 0:
		return nil, fmt.Errorf("there is no checkpoint %q: the run has none yet", id)
	case id == "":
		return nil, fmt.Errorf("name the checkpoint to go back to: %s", strings.Join(known, ", "))
	}
	return nil, fmt.Errorf("there is no checkpoint %q; there are %s", id, strings.Join(known, ", "))
}

// stateOf returns the state that a checkpoint holds. Snapshots of other versions cannot be read: then the log says it.
func (r *Run) stateOf(snap *eventlog.Snapshot) (*machine.State, error) {
	g, err := r.loadPlan(snap.Plan)
	if err != nil {
		return nil, err
	}
	if st, err := machine.RestoreSnapshot(snap.State, g); err == nil {
		return st, nil
	}
	f := newFold(r.loadPlan)
	_, _, err = eventlog.Read(r.own, logFile, eventlog.Head{}, func(e *machine.Event, _ *eventlog.Envelope) error {
		if e.Seq > snap.Head.Seq {
			return nil
		}
		return f.apply(e)
	})
	return f.state, err
}

func (r *Run) preview(b machine.CheckpointView) (*Preview, error) {
	c, snap, err := r.readCheckpoint(b)
	if err != nil {
		return nil, fmt.Errorf("run: checkpoint %s cannot be used: %w", b.ID, err)
	}
	then, err := r.stateOf(snap)
	if err != nil {
		return nil, fmt.Errorf("run: checkpoint %s cannot be used: %w", b.ID, err)
	}
	p := &Preview{Checkpoint: *c, Nodes: []string{}, Files: []string{}, Once: []string{}, Skipped: []string{}}
	now := r.state.Graph()
	for i := range int32(now.Len()) {
		v := r.state.NodeAt(i)
		if v.Attempt == 0 && !v.Status.Ended() || same(then, v) || v.Node.ID == b.Node && v.Generation == b.Generation {
			continue // not begun, as it was then, or the node that made the checkpoint
		}
		p.Nodes = append(p.Nodes, v.Node.ID)
		if v.Attempt == 0 {
			p.Skipped = append(p.Skipped, v.Node.ID)
		}
		p.RedoUSD += v.Cost
		if !v.First.IsZero() && v.Finished.After(v.First) {
			p.RedoSeconds += v.Finished.Sub(v.First).Seconds()
		}
		if v.Node.Effect == dag.Once && v.Attempt > 0 {
			p.Once = append(p.Once, v.Node.ID)
		}
	}
	for _, f := range c.Files {
		if live, _ := r.index.Live(f.Name); f.Entries == nil && live != f.Digest {
			p.Files = append(p.Files, f.Path)
		}
	}
	again := map[string]bool{}
	for _, id := range p.Nodes {
		again[id] = true
	}
	for _, t := range r.listAccumulators() { // the entries of nodes that run again leave it
		if slices.ContainsFunc(t.Versions, func(v index.Version) bool { return v.Standing == index.Valid && again[v.Node] }) {
			p.Files = append(p.Files, t.Path)
		}
	}
	p.Published, err = r.publishedSince(then, b)
	return p, err
}

// publishedSince says what becomes of the files that the run has put beside the specification since a checkpoint.
func (r *Run) publishedSince(then *machine.State, c machine.CheckpointView) (list []RevertedFile, err error) {
	b := r.beside.Load()
	for _, v := range r.state.Published() {
		f := RevertedFile{PublishedFile: v.PublishedFile}
		f.Digest, f.Previous = v.Stands(), v.Before
		if old := at(then.Published(), v.Path); old != nil {
			f.Previous = old.Stands()
		}
		if f.Digest == f.Previous || v.Node == c.Node && v.Generation == c.Generation {
			continue
		}
		if b == nil {
			return nil, errNoBeside
		}
		switch have, err := b.look(v.Path); {
		case err != nil:
			f.Why = err.Error()
		case have == f.Previous:
			list = append(list, RevertedFile{f.PublishedFile, "it is as it was then"})
			continue
		case have == "":
			f.Why = "it was removed since"
		case have != f.Digest && (have != v.Digest || v.Standing == machine.PublishedGone):
			f.Why = "it was changed since"
		case f.Previous != "" && r.store.Verify(f.Previous) != nil:
			f.Why = "what stood there then, sha256 " + f.Previous + ", is lost"
		}
		f.Left = f.Why != ""
		list = append(list, f)
	}
	return list, nil
}

// same reports whether a node had ended at the time of the checkpoint as it has now.
func same(then *machine.State, v machine.NodeView) bool {
	w, ok := then.NodeByID(v.Node.ID)
	return ok && w.Status.Ended() && w.Generation == v.Generation && w.Status == v.Status && w.Finished.Equal(v.Finished)
}

// Revert goes back to a checkpoint: hashes are verified, REVERTED is recorded, artifacts and
// accumulators restored (present ones backed up), and so are files beside the specification (Beside is to be called
// before). Later records, logs and cost stay. Attempts that a dead process left under way are recorded as lost before.
func (r *Run) Revert(now time.Time, id string) (*Preview, error) {
	if r.readOnly {
		return nil, errReadOnly
	}
	if _, err := r.PreviewRevert(id); err != nil {
		return nil, err
	}
	if _, err := r.lose(now, nil); err != nil {
		return nil, err
	}
	if err := r.SettleBeside(now); err != nil {
		return nil, err
	}
	p, err := r.PreviewRevert(id)
	if err != nil {
		return nil, err
	}
	// One write, so that no crash leaves the nodes rewound and the files not.
	reverted := &machine.RevertedBody{Checkpoint: id, Nodes: p.Nodes}
	for _, f := range p.Published {
		reverted.Published = append(reverted.Published, f.PublishedFile)
	}
	bodies := []machine.Body{reverted}
	var files []*machine.ArtifactWrittenBody
	for _, f := range p.Checkpoint.Files {
		if f.Entries != nil {
			continue // a projection of the entries that remain
		}
		b, err := r.revertFile(p.Checkpoint.ID, f)
		if err != nil {
			return nil, err
		}
		if b != nil {
			files = append(files, b)
			bodies = append(bodies, b)
		}
	}
	if err := r.RecordDurable(now, bodies...); err != nil {
		return nil, err
	}
	for _, b := range files {
		if err := r.promote(b.Name, b.Digest); err != nil {
			return nil, err
		}
	}
	for _, t := range r.listAccumulators() {
		r.renew(t.Name)
	}
	return p, r.SettleBeside(now)
}

// revertFile prepares the return of one artifact; nil when it is as it was.
func (r *Run) revertFile(id string, f SavedFile) (*machine.ArtifactWrittenBody, error) {
	if err := r.restoreObject(id, f); err != nil {
		return nil, err
	}
	live, _ := r.index.Live(f.Name)
	if live == f.Digest {
		return nil, nil
	}
	b := &machine.ArtifactWrittenBody{Name: f.Name, Path: f.Path, Digest: f.Digest, Size: f.Size,
		Previous: live, Why: "revert"}
	if live == "" {
		return b, nil
	}
	var err error
	b.Backup, err = r.tree.Backup(f.Name, live, path.Join(Dir, revertsDir, strconv.FormatInt(r.head.Seq+1, 10)))
	return b, err
}

// restoreObject makes sure that the store holds a saved version: the checkpoint's own copy can stand in
// for an object that was damaged.
func (r *Run) restoreObject(id string, f SavedFile) error {
	if r.store.VerifyVersion(f.Name, f.Digest) == nil {
		return nil
	}
	got, _, err := r.tree.Keep(path.Join(Dir, checkpoints, id) + "/" + f.Saved)
	if err == nil && got != f.Digest {
		err = &artifact.Corrupt{Path: f.Saved, Want: f.Digest, Got: got}
	}
	return err
}
