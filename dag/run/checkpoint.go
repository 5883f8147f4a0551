package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/state"
	"dagrun.dev/internal/disk"
)

// A CheckpointInfo describes a checkpoint; it is also its manifest on disk.
type CheckpointInfo struct {
	Format    int         `json:"format"`
	ID        string      `json:"id"`
	Node      string      `json:"node,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	RunID     string      `json:"run_id"`
	Head      int64       `json:"head"`      // last event it includes
	HeadHash  string      `json:"head_hash"` // of that event
	Plan      string      `json:"plan_sha256"`
	State     string      `json:"state_sha256"`
	Files     []SavedFile `json:"files"` // artifacts and accumulators
	Completed int         `json:"completed"`
	Failed    int         `json:"failed"`
	CostUSD   dag.USD     `json:"cost_usd"`
	// Invalid is how many nodes have results that failed their checks, Facts are those that the pipeline declares for its
	// state.json and that change, as of then.
	Invalid int                        `json:"validation_failures"`
	Facts   map[string]json.RawMessage `json:"facts,omitempty"`

	Path  string `json:"-"` // relative to the output directory
	Valid error  `json:"-"` // nil, or what is wrong with it; set by Checkpoints
}

// A SavedFile is an artifact's or accumulator's version in a checkpoint.
type SavedFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"`  // live path, relative to the output directory
	Saved  string `json:"saved"` // name within the checkpoint's folder
	Digest string `json:"sha256"`
	Size   int64  `json:"size"`
	// Entries, for an accumulator, lists the digests of its entries, oldest first.
	Entries []string `json:"entries,omitempty"`
}

// Checkpoint writes checkpoints/<id> and records CHECKPOINT_CREATED, durable. names lists artifacts
// and accumulators; nil means all that exist (for a node: that its ancestors wrote). An existing id
// gets a suffix (cp-S1, cp-S1-2, ...): nothing is overwritten. A node that has made its checkpoint in
// this generation (its host died before it recorded the end) gets that one.
func (r *Run) Checkpoint(now time.Time, id, node string, names []string) (*CheckpointInfo, error) {
	if r.readOnly {
		return nil, errReadOnly
	}
	if !fs.ValidPath(id) || strings.Contains(id, "/") || id == "." {
		return nil, fmt.Errorf("run: %q cannot be the id of a checkpoint", id)
	}
	if c, err := r.madeBy(node); c != nil || err != nil {
		return c, err
	}
	id, err := r.freeCheckpoint(id)
	if err != nil {
		return nil, err
	}
	c, manifest, err := r.writeCheckpoint(now, id, node, names)
	if err != nil {
		return nil, fmt.Errorf("run: checkpoint %s: %w", id, err)
	}
	b := &machine.CheckpointBody{ID: id, Node: node, Path: c.Path, Manifest: artifact.Digest(manifest), Head: c.Head,
		State: c.State, CostUSD: c.CostUSD, Invalid: c.Invalid, Facts: c.Facts}
	if doc := r.Graph().Plan.State; doc != nil {
		for _, f := range c.Files {
			if f.Name == doc.Artifact {
				b.Artifact = f.Digest
			}
		}
	}
	return c, r.RecordDurable(now, b)
}

// madeBy returns the checkpoint that a node has made in its present generation.
func (r *Run) madeBy(node string) (*CheckpointInfo, error) {
	v, _ := r.state.NodeByID(node)
	for _, b := range r.state.Checkpoints() {
		if v.Status == machine.Running && b.Node == node && b.Generation == v.Generation {
			c, _, err := r.readCheckpoint(b)
			return c, err
		}
	}
	return nil, nil
}

func (r *Run) freeCheckpoint(id string) (string, error) {
	n, err := r.free(1, func(n int) string { return checkpoints + "/" + numbered(id, n) })
	return numbered(id, n), err
}

// numbered returns a name, from n = 2 on name-n.
func numbered(name string, n int) string {
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}

// free returns the first number from n on under whose path nothing stands.
func (r *Run) free(n int, at func(n int) string) (int, error) {
	for ; ; n++ {
		if _, err := r.own.Lstat(at(n)); errors.Is(err, fs.ErrNotExist) {
			return n, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// writeCheckpoint makes the folder in staging and renames it to its place, whole.
func (r *Run) writeCheckpoint(now time.Time, id, node string, names []string) (*CheckpointInfo, []byte, error) {
	temp := stagingDir + "/" + id
	if err := errors.Join(r.own.RemoveAll(temp), r.own.MkdirAll(temp), r.own.MkdirAll(checkpoints)); err != nil {
		return nil, nil, err
	}
	snap, err := r.snapshot()
	if err != nil {
		return nil, nil, err
	}
	saved, err := snap.Encode()
	if err != nil {
		return nil, nil, err
	}
	invalid, facts, err := state.Quality(r.source())
	if err != nil {
		return nil, nil, err
	}
	c := &CheckpointInfo{
		Format: 1, ID: id, Node: node, CreatedAt: now.UTC().Truncate(time.Millisecond), RunID: r.ID(),
		Head: r.head.Seq, HeadHash: r.head.Hash, Plan: snap.Plan, State: artifact.Digest(saved),
		Path:      path.Join(Dir, checkpoints, id),
		Completed: r.state.Count(machine.Completed), Failed: r.state.Count(machine.Failed), CostUSD: r.state.Spent().USD,
		Invalid: invalid, Facts: facts,
	}
	if c.Files, err = r.saveFiles(temp, node, names); err != nil {
		return nil, nil, err
	}
	manifest, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	manifest = append(manifest, '\n')
	for _, f := range []struct {
		name string
		data []byte
	}{{savedState, saved}, {manifestFile, manifest}} {
		if err := disk.WriteFile(r.own, temp+"/"+f.name, f.data); err != nil {
			return nil, nil, err
		}
	}
	if err := r.own.Rename(temp, checkpoints+"/"+id); err != nil {
		return nil, nil, err
	}
	return c, manifest, errors.Join(r.own.SyncDir(checkpoints), r.own.SyncDir("."))
}

// saveFiles copies the versions that a node sees (that are live, for no node) into a folder.
func (r *Run) saveFiles(dir, node string, names []string) ([]SavedFile, error) {
	files := []SavedFile{}
	used := map[string]bool{savedState: true, manifestFile: true}
	free := func(live string) string {
		base := path.Base(live)
		for n := 2; used[base]; n++ {
			base = fmt.Sprintf("%d-%s", n, path.Base(live))
		}
		used[base] = true
		return base
	}
	for _, t := range r.listArtifacts() {
		f := SavedFile{Name: t.Name, Path: t.Path, Digest: t.Live}
		if node != "" {
			v, _ := r.index.Visible(r.Graph(), node, t.Name)
			f.Digest = v.Digest
		}
		if f.Digest == "" || names != nil && !slices.Contains(names, t.Name) {
			continue
		}
		if f.Saved = free(f.Path); dag.IsFolder(t.Name) {
			f.Saved += "/"
		}
		var err error
		if f.Size, err = r.tree.Save(f.Digest, path.Join(Dir, dir)+"/"+f.Saved); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	for _, t := range r.listAccumulators() {
		if names != nil && !slices.Contains(names, t.Name) {
			continue
		}
		live, p, ok := r.projection(node, t.Name)
		if !ok || len(p.entries) == 0 {
			continue
		}
		f := SavedFile{Name: t.Name, Path: path.Join(Dir, live), Saved: free(live)}
		for _, v := range p.entries {
			f.Entries = append(f.Entries, v.Digest)
		}
		b, err := p.render(r.store)
		if err != nil {
			return nil, err
		}
		f.Digest, f.Size = artifact.Digest(b), int64(len(b))
		if err := disk.WriteFile(r.own, dir+"/"+f.Saved, b); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// dropUnrecorded removes checkpoints whose event was never written: a crash came between.
func (r *Run) dropUnrecorded() error {
	names, err := unrecorded(r.own, r.state.Checkpoints())
	for _, name := range names {
		err = errors.Join(err, r.own.RemoveAll(name))
	}
	return err
}

// unrecorded returns the folders of checkpoints that are not among those which are known.
func unrecorded(own disk.FS, known []machine.CheckpointView) (names []string, err error) {
	list, err := disk.List(own, checkpoints)
	for _, e := range list {
		if !slices.ContainsFunc(known, func(c machine.CheckpointView) bool { return c.ID == e.Name() }) {
			names = append(names, checkpoints+"/"+e.Name())
		}
	}
	return names, err
}

// Checkpoints lists the checkpoints, oldest first, each verified.
func (r *Run) Checkpoints() (list []CheckpointInfo) {
	for _, b := range r.state.Checkpoints() {
		c, _, err := r.readCheckpoint(b)
		if err != nil { // what is recorded of it holds all the same
			c = &CheckpointInfo{ID: b.ID, Node: b.Node, CreatedAt: b.Time, Head: b.Head, Path: b.Path, RunID: r.ID(),
				Files: []SavedFile{}, Valid: err}
		}
		list = append(list, *c)
	}
	return list
}

// readCheckpoint reads a checkpoint and checks every digest in it, beginning with the recorded one.
func (r *Run) readCheckpoint(b machine.CheckpointView) (*CheckpointInfo, *eventlog.Snapshot, error) {
	dir := checkpoints + "/" + b.ID
	raw, err := r.checkedFile(dir+"/"+manifestFile, b.Manifest)
	if err != nil {
		return nil, nil, err
	}
	c, err := decodeManifest(raw, b.ID)
	if err != nil {
		return nil, nil, err
	}
	saved, err := r.checkedFile(dir+"/"+savedState, c.State)
	if err != nil {
		return nil, nil, err
	}
	snap, err := eventlog.DecodeSnapshot(saved)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range c.Files {
		name := path.Join(Dir, dir) + "/" + f.Saved
		if got, _, err := r.tree.Live(name); err != nil {
			return nil, nil, err
		} else if got != f.Digest {
			return nil, nil, &artifact.Corrupt{Path: r.out.Path(name), Want: f.Digest, Got: got}
		}
	}
	return c, snap, nil
}

// readManifest reads a manifest by itself, without the log's word for it.
func readManifest(own disk.FS, id string) (*CheckpointInfo, error) {
	raw, err := disk.ReadFile(own, checkpoints+"/"+id+"/"+manifestFile)
	if err != nil {
		return nil, err
	}
	return decodeManifest(raw, id)
}

func decodeManifest(raw []byte, id string) (*CheckpointInfo, error) {
	c := &CheckpointInfo{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	if c.ID != id || c.Format != 1 {
		return nil, fmt.Errorf("the manifest is of checkpoint %q, format %d", c.ID, c.Format)
	}
	c.Path = path.Join(Dir, checkpoints, id)
	return c, nil
}

func (r *Run) checkedFile(name, digest string) ([]byte, error) {
	b, err := disk.ReadFile(r.own, name)
	if err != nil {
		return nil, err
	}
	if got := artifact.Digest(b); got != digest {
		return nil, &artifact.Corrupt{Path: r.own.Path(name), Want: digest, Got: got}
	}
	return b, nil
}
