package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/nodes"
)

// An Attempt names one attempt of a node.
type Attempt = index.Attempt

// An Output is what an attempt has put into the store for the run.
type Output struct {
	Artifacts []attempt.Object
	Entries   []attempt.Object // for accumulators, in order
	Beside    []Target         // artifacts that are put beside the specification as well
}

// An Entry is one text for an accumulator. It is kept and shown as kinds make it.
type Entry = nodes.Entry

// Store puts a content into the run's store, durable when it returns. Any goroutine.
func (r *Run) Store(content io.Reader) (digest string, size int64, err error) {
	return r.store.Put(content)
}

// OpenObject opens a stored content, checked against its digest; fs.ErrNotExist when the store has lost it.
// Any goroutine.
func (r *Run) OpenObject(digest string) (io.ReadCloser, error) { return r.store.Open(digest) }

// Find returns what a node sees under a name: the version of an artifact, or the entries of an accumulator,
// those of its ancestors in plan order, the newest Cap of them. Nothing when no ancestor wrote it. Any goroutine.
func (r *Run) Find(node, name string) attempt.Reading {
	g := r.Graph()
	read := attempt.Reading{Name: name}
	r.seen(g, node, name, func(v attempt.Content) { read.Versions = append(read.Versions, v) })
	if a, ok := g.Plan.AccumulatorByName(name); ok {
		read.Title = cmp.Or(a.Title, a.Name)
	}
	return read
}

// seen calls each with what a node sees under a name: of an artifact with the one version.
func (r *Run) seen(g *dag.Graph, node, name string, each func(attempt.Content)) {
	if _, ok := g.Plan.AccumulatorByName(name); ok {
		for _, v := range r.index.Entries(g, node, name) {
			each(attempt.Content{Digest: v.Digest, Node: v.Node})
		}
	} else if v, ok := r.visible(g, node, name); ok {
		each(v)
	}
}

// visible returns what a node sees under the name of an artifact, or of a file in a folder that is one.
func (r *Run) visible(g *dag.Graph, node, name string) (attempt.Content, bool) {
	if v, ok := r.index.Visible(g, node, name); ok {
		return attempt.Content{Digest: v.Digest, Node: v.Node}, true
	}
	in := strings.TrimSuffix(name, "/")
	for at := strings.LastIndexByte(in, '/'); at > 0; at = strings.LastIndexByte(in[:at], '/') {
		v, ok := r.index.Visible(g, node, name[:at+1])
		if !ok {
			continue
		}
		if m, err := r.store.Folder(v.Digest); err == nil {
			f, ok := m.Find(name[at+1:])
			return attempt.Content{Digest: f.Digest, Node: v.Node}, ok
		}
	}
	return attempt.Content{}, false
}

// FindAll returns what a node sees under a name or by a pattern, which may be nothing. Any goroutine.
func (r *Run) FindAll(node, name string) (list []attempt.Reading) {
	if !dag.IsPattern(name) {
		return []attempt.Reading{r.Find(node, name)}
	}
	for _, v := range r.index.Matching(r.Graph(), node, name) {
		version := attempt.Content{Digest: v.Digest, Node: v.Node}
		list = append(list, attempt.Reading{Name: v.Name, Versions: []attempt.Content{version}})
	}
	return list
}

// Publish makes an attempt's output part of the run: the present versions are backed up into the node's
// folder, ARTIFACT_WRITTEN and PUBLISHED are recorded through record, the files are renamed to their live places and
// to those beside the specification. Then the caller records how the attempt ended; until that is recorded no reader
// sees the output. The accumulators' files follow by themselves.
//
// It is called from the attempt's goroutine and does slow work there; record is the caller's way to
// have the owner call Record (and is called once, at most). An artifact whose content did not change
// is recorded and backed up like any other. Publishing again what the attempt, while it is under way,
// has published already (its process died; its result is adopted) records nothing twice.
func (r *Run) Publish(a Attempt, out Output, record func(...machine.Body) error) error {
	p := publication{r: r, a: a, before: r.index.WrittenBy(a.Node, a.Generation, index.Open)}
	for _, o := range out.Artifacts {
		if err := p.artifact(o); err != nil {
			return fmt.Errorf("run: publish %s of %s: %w", o.Name, a.Node, err)
		}
	}
	for _, o := range out.Entries {
		if err := p.entry(o); err != nil {
			return fmt.Errorf("run: entry of %s for %s: %w", a.Node, o.Name, err)
		}
	}
	if err := p.beside(out); err != nil {
		return err
	}
	if len(p.bodies) > 0 {
		if err := record(p.bodies...); err != nil {
			return err
		}
	}
	if len(p.files)+len(p.public) == 0 {
		return nil
	}
	// Durable before the files change: a version that a loss of power forgot would look like
	// a user's edit.
	if err := r.log.Sync(); err != nil {
		return err
	}
	return p.promote()
}

// A publication is what Publish has prepared.
type publication struct {
	r      *Run
	a      Attempt
	before []index.Named // what the attempt has recorded before
	bodies []machine.Body
	files  []*machine.ArtifactWrittenBody
	public []machine.PublishedFile // beside the specification
}

// recorded takes a content off what the attempt has recorded before.
func (p *publication) recorded(name, digest string) (index.Named, bool) {
	i := slices.IndexFunc(p.before, func(f index.Named) bool { return f.Name == name && f.Digest == digest })
	if i < 0 {
		return index.Named{}, false
	}
	f := p.before[i]
	p.before = slices.Delete(p.before, i, i+1)
	return f, true
}

// artifact prepares the record of an artifact and backs up what it will replace.
func (p *publication) artifact(o attempt.Object) error {
	r, name := p.r, o.Name
	if err := r.tree.CheckName(name); err != nil {
		return err
	}
	if f, ok := p.recorded(name, o.Digest); ok {
		p.files = append(p.files, &machine.ArtifactWrittenBody{Name: name, Digest: o.Digest, Previous: f.Previous})
		return nil
	}
	previous, err := p.present(name)
	if err != nil {
		return err
	}
	b := &machine.ArtifactWrittenBody{
		Node: p.a.Node, Generation: p.a.Generation, Attempt: p.a.Attempt,
		Name: name, Path: name, Digest: o.Digest, Size: o.Size, Schema: o.Schema, Previous: previous,
	}
	if previous != "" {
		dir := path.Join(Dir, nodeDir(r.Graph(), p.a.Node, p.a.Generation))
		if b.Backup, err = r.tree.Backup(name, previous, dir); err != nil {
			return err
		}
	}
	p.bodies = append(p.bodies, b)
	p.files = append(p.files, b)
	return nil
}

// present returns the digest of the version that is about to be replaced, in the store. A live file
// that somebody changed meanwhile is stored and recorded as a version of its own.
func (p *publication) present(name string) (string, error) {
	recorded, _ := p.r.index.Live(name)
	have, err := p.r.tree.Found(name)
	switch {
	case err != nil:
		return "", err
	case have != "" && have == recorded && !p.r.store.Has(recorded):
		_, _, err = p.r.tree.Keep(name) // the store has lost it; the file has not
		return recorded, err
	case have == "" || have == recorded || p.r.index.IsVoid(name, have):
		return recorded, nil
	}
	why := "user-edit"
	if recorded == "" { // left by another run in this folder, say
		why = "found"
	}
	b, err := p.r.take(name, recorded, why)
	if err != nil {
		return "", err
	}
	p.bodies = append(p.bodies, b)
	return b.Digest, nil
}

func (p *publication) entry(o attempt.Object) error {
	a, ok := p.r.Graph().Plan.AccumulatorByName(o.Name)
	if !ok {
		return errors.New("the plan has no such accumulator")
	}
	if _, ok := p.recorded(o.Name, o.Digest); ok {
		return nil
	}
	p.bodies = append(p.bodies, &machine.ArtifactWrittenBody{
		Node: p.a.Node, Generation: p.a.Generation, Attempt: p.a.Attempt,
		Name: o.Name, Path: path.Join(Dir, a.Path), Digest: o.Digest, Size: o.Size, Entry: true,
	})
	return nil
}

// promote makes the recorded files live, here and beside the specification. When one cannot be, the attempt has failed
// and the others go back.
func (p *publication) promote() (err error) {
	var done []*machine.ArtifactWrittenBody
	for _, b := range p.files {
		if err = p.r.tree.Promote(b.Name, b.Digest); err != nil {
			err = fmt.Errorf("run: publish %s of %s: %w", b.Name, p.a.Node, err)
			break
		}
		done = append(done, b)
	}
	if err == nil {
		err = p.release()
	}
	for i := range done {
		if err != nil {
			p.r.putBack(done[i].Name, done[i].Previous) // the next Open does it otherwise
		}
	}
	return err
}

// NodeDir returns the absolute path of a node's folder. It need not exist. Any goroutine.
func (r *Run) NodeDir(node string, generation int) string {
	return r.own.Path(nodeDir(r.Graph(), node, generation))
}

// Output is the absolute path of the output directory.
func (r *Run) Output() string { return path.Dir(r.own.Path(".")) }

// Free returns how many bytes the disk of the run has room for. Any goroutine.
func (r *Run) Free() int64 { return disk.Free(r.own.Path(".")) }

// Held reports whether a process holds the run for writing. On a run that was opened read-only it may
// be asked at any time; on another machine's process the answer is yes.
func (r *Run) Held() bool {
	_, held, err := eventlog.ReadLock(r.own, lockFile)
	return held || err != nil
}

// nodeDir is the folder of a node's files, relative to the run's: NAME, from generation 2 on NAME.gN.
func nodeDir(g *dag.Graph, node string, generation int) string {
	n := &dag.Node{ID: node}
	if i, ok := g.Index(node); ok {
		n = g.Node(i)
	}
	return n.Folder(generation)
}

// keptName returns the path of a file in an attempt's folder, relative to the run's.
func (r *Run) keptName(a Attempt, name string) (string, error) {
	dir := nodeDir(r.Graph(), a.Node, a.Generation)
	full := path.Join(dir, name)
	deep := strings.Contains(full, "/")
	if !fs.ValidPath(name) || name == "." || !fs.ValidPath(full) || !deep || dag.Own(full) {
		return "", fmt.Errorf("run: %q cannot be a file of node %s (folder %s)", name, a.Node, dir)
	}
	return full, nil
}

// Keep creates a file in an attempt's node folder (NAME, or NAME.gN from generation 2 on), which is
// made on first need. Nothing is overwritten: an existing file of that name belongs to an earlier
// attempt and is renamed to stem-FAILED-N.ext first. For nodes that cost money or act once, Close
// makes the file durable. Any goroutine.
func (r *Run) Keep(a Attempt, name string) (io.WriteCloser, error) {
	full, err := r.clear(a, name)
	if err != nil {
		return nil, err
	}
	f, err := r.own.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if r.costly(a.Node) {
		return &durable{f, r.own, path.Dir(full)}, nil
	}
	return f, nil
}

// A durable file is synced when it is closed.
type durable struct {
	disk.File
	fsys disk.FS
	dir  string
}

func (d *durable) Close() error {
	return errors.Join(d.File.Sync(), d.File.Close(), d.fsys.SyncDir(d.dir))
}

// clear makes an attempt's folder and puts a file that is in the way aside.
func (r *Run) clear(a Attempt, name string) (string, error) {
	full, err := r.keptName(a, name)
	if err != nil {
		return "", err
	}
	if err := r.own.MkdirAll(path.Dir(full)); err != nil {
		return "", err
	}
	_, err = r.setAside(full, max(1, a.Attempt-1))
	return full, err
}

// Failed renames what a failed attempt kept under name to stem-FAILED-<attempt>.ext and returns that name
// and its path in the run's folder; no file, no path and no error. Any goroutine.
func (r *Run) Failed(a Attempt, name string) (renamed, full string, err error) {
	if full, err = r.keptName(a, name); err != nil {
		return "", "", err
	}
	full, err = r.setAside(full, max(1, a.Attempt))
	return strings.TrimPrefix(full, nodeDir(r.Graph(), a.Node, a.Generation)+"/"), full, err
}

// setAside renames a file to stem-FAILED-n.ext, with the next free n, and returns that name.
func (r *Run) setAside(full string, n int) (string, error) {
	if _, err := r.own.Lstat(full); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", err
	}
	ext := path.Ext(full)
	stem := strings.TrimSuffix(full, ext)
	to := func(n int) string { return fmt.Sprintf("%s-FAILED-%d%s", stem, n, ext) }
	n, err := r.free(n, to)
	if err != nil {
		return "", err
	}
	return to(n), r.own.Rename(full, to(n))
}

// Staging makes an empty folder for one attempt's files, inside the run directory, and returns its
// absolute path. Leftovers are swept by the next Open. Any goroutine.
func (r *Run) Staging(name string) (string, error) {
	return r.emptied(stagingDir + "/" + name)
}

// emptied makes a folder of the run's own in which there is nothing, and returns its absolute path.
func (r *Run) emptied(dir string) (string, error) {
	err := r.own.RemoveAll(dir)
	if err == nil {
		err = r.own.MkdirAll(dir)
	}
	return r.own.Path(dir), err
}
