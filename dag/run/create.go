package run

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// New is what Create needs beside Options.
type New struct {
	Graph *dag.Graph
	RunID string // empty: a random UUID
	Seed  int64
	// Selected says which part of the plan is to run, and which saved plan is applied; nil = all of it, and none.
	Selected *machine.PartSelectedBody
	// File opens a declared input file as it is now. Its content must match the digest in the plan.
	File OpenFile
}

// Create begins a run in an output directory without one: it takes the lock, copies plan and
// declared input files into the object store and records RUN_CREATED and INPUTS_CLONED, durable.
// A crash before RUN_CREATED leaves a directory in which Create works again.
// Errors: fs.ErrExist when the directory holds a run, *eventlog.Locked.
func Create(o Options, n New) (*Run, error) {
	if o.FS == nil {
		if err := makeOutput(o.Dir); err != nil {
			return nil, err
		}
	}
	r, err := enter(o)
	if err != nil {
		return nil, err
	}
	if err := r.create(n); err != nil {
		r.leave()
		return nil, fmt.Errorf("run: create %s: %w", r.out.Path("."), err)
	}
	return r, nil
}

// makeOutput makes the output directory and its parents, durable.
func makeOutput(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	there := disk.Existing(abs)
	fsys, err := disk.Open(there)
	if err != nil {
		return err
	}
	defer fsys.Close()
	made, err := filepath.Rel(there, abs)
	if err != nil {
		return err
	}
	return disk.MakeDirs(fsys, filepath.ToSlash(made))
}

// enter opens an output directory for writing and takes the lock.
func enter(o Options) (*Run, error) {
	r, err := attach(o, true)
	if err != nil {
		return nil, err
	}
	if r.lock, err = eventlog.AcquireLock(r.own, lockFile, o.Command, o.Now); err != nil {
		r.closeTrees()
		return nil, err
	}
	if r.removed() {
		r.leave()
		return enter(o)
	}
	if err := r.sweep(); err != nil {
		r.leave()
		return nil, err
	}
	return r, nil
}

// removed reports whether the run's folder was removed (Prune) between its opening and its lock.
func (r *Run) removed() bool {
	now, err := r.out.Sub(Dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer now.Close()
	return placeOf(now) != r.Place()
}

// attach opens the directories of a run; with make the run's own folder is made.
func attach(o Options, make bool) (*Run, error) {
	r := &Run{o: o, out: o.FS}
	var err error
	if r.out == nil {
		if r.out, err = disk.Open(o.Dir); err != nil {
			return nil, err
		}
	}
	if make {
		err = disk.MakeDirs(r.out, Dir+"/"+objectsDir)
	}
	if err == nil {
		r.own, err = r.out.Sub(Dir)
	}
	if err == nil {
		r.inner = append(r.inner, r.own)
	}
	var objects disk.FS
	if err == nil {
		objects, err = r.objects()
	}
	if err != nil {
		r.closeTrees()
		return nil, err
	}
	r.inner = append(r.inner, objects)
	copies := r.copies(make)
	if copies != nil {
		r.inner = append(r.inner, copies)
	}
	r.store = artifact.NewStore(objects, copies)
	r.tree = artifact.NewTree(r.out, r.store, Dir)
	r.fold = newFold(r.loadPlan)
	return r, nil
}

// objects opens the store. A run without one has lost all its contents, its plan among them.
func (r *Run) objects() (disk.FS, error) {
	objects, err := r.own.Sub(objectsDir)
	if err == nil || disk.Broken(err) || errors.Is(err, fs.ErrPermission) {
		return objects, err
	}
	return nil, &eventlog.Damaged{File: r.own.Path(objectsDir), WayOut: waysOut(r.own, 0),
		Why: "the store of the run's contents cannot be opened: " + err.Error()}
}

// copies opens the second place of the store; nil where there is none: what stands there stands in the store as well.
func (r *Run) copies(make bool) disk.FS {
	if make {
		_ = r.own.MkdirAll(copiesDir)
	}
	copies, err := r.own.Sub(copiesDir)
	if err != nil {
		return nil
	}
	return copies
}

// leave undoes enter when there is nothing to save.
func (r *Run) leave() {
	if r.project != nil {
		r.project.close()
	}
	if r.log != nil {
		r.log.Close()
	}
	r.lock.Release()
	r.lock = nil
	r.closeTrees()
}

// sweep removes what a process that died had staged: nothing of it was recorded.
func (r *Run) sweep() error {
	return errors.Join(r.own.RemoveAll(stagingDir), disk.Sweep(r.own, "."), r.store.Sweep())
}

func (r *Run) create(n New) error {
	has, err := hasRun(r.own)
	if err != nil {
		return err
	}
	if has {
		return fmt.Errorf("it holds a run: %w", fs.ErrExist)
	}
	last, err := r.lastTick()
	if err != nil {
		return err
	}
	var previous *machine.Ended
	if last != nil && last.RunID != "" { // also where there are no ticks any more: there may be some again
		previous = &last.Ended
	}
	weighed := make(chan *dag.Graph, 1) // beside the copies: of a large plan both take a while
	go func() { weighed <- r.weighed(n.Graph) }()
	digest, cloned, err := r.clone(n.Graph.Plan, n.File)
	if err != nil {
		return err
	}
	id := n.RunID
	if id == "" {
		id = newUUID()
	}
	created := machine.New(r.o.Now, &machine.RunCreatedBody{
		RunID: id, Name: n.Graph.Plan.Name, PlanDigest: digest, Schema: eventlog.Version, Seed: n.Seed,
		Previous: previous,
	})
	created.Plan = <-weighed
	events := []machine.Event{created, machine.New(r.o.Now, cloned)}
	if s := n.Selected; s != nil && (!s.Part.All() || s.SavedPlan != "") {
		events = append(events, machine.New(r.o.Now, s))
	}
	for i := range events {
		events[i].Seq = int64(i + 1)
		if err := r.apply(&events[i]); err != nil {
			return err
		}
		r.projected(&events[i])
	}
	if r.log, err = eventlog.Create(r.own, logFile, id, r.o.log, events); err != nil {
		return err
	}
	r.begin()
	if r.o.Observe != nil {
		for i := range events {
			r.o.Observe(&events[i], false)
		}
	}
	r.saver.Save(r.saved)
	return nil
}

// begin sets up what a run open for writing has beside its log.
func (r *Run) begin() {
	r.head = r.log.Head()
	r.graph.Store(r.state.Graph())
	r.saver = eventlog.NewSaver(r.log)
	r.project = &projector{own: r.own, store: r.store, wishes: map[string]projection{}}
}

// clone copies a plan and its input files into the store.
func (r *Run) clone(p *dag.Plan, file OpenFile) (
	digest string, c *machine.InputsClonedBody, err error) {
	c = &machine.InputsClonedBody{}
	for _, f := range p.Files {
		if !r.store.Has(f.Digest) || r.store.Verify(f.Digest) != nil {
			if err := r.cloneFile(f, file); err != nil {
				return "", nil, err
			}
		}
		if f.Size <= mostTwice {
			if _, err := r.store.Twice(f.Digest); err != nil {
				return "", nil, err
			}
		}
		c.Files++
		c.Bytes += f.Size
	}
	b, err := p.Encode()
	if err != nil {
		return "", nil, err
	}
	if digest, err = r.store.PutBytes(b); err == nil {
		_, err = r.store.Twice(digest)
	}
	return digest, c, err
}

// mostTwice is the size in bytes of an input file up to which its copy is kept twice. A larger one is put back from the
// file itself, as apply does with all.
const mostTwice = 16 << 20

// PutBack puts copies of input files and of the plan, that is the one in force, back where the run has lost them.
func (r *Run) PutBack(p *dag.Plan, file OpenFile) error {
	_, _, err := r.clone(p, file)
	return err
}

// renewCopies makes the plan in force and the copies of its input files stand twice again, where one was lost.
func (r *Run) renewCopies(rep *Report) {
	for _, c := range r.keptTwice() {
		if renewed, err := r.store.Twice(c.Digest); renewed && err == nil {
			rep.warn("one of the two copies of %s was lost and has been made again", c.Path)
		}
	}
}

// keptTwice are the plan in force and the input files whose copies are kept twice.
func (r *Run) keptTwice() []dag.File {
	list := []dag.File{{Path: "the plan", Digest: r.state.Run().PlanDigest}}
	for _, f := range r.state.Graph().Plan.Files {
		if f.Size <= mostTwice {
			list = append(list, f)
		}
	}
	return list
}

func (r *Run) cloneFile(f dag.File, open OpenFile) error {
	src, err := open(f.Path)
	if err != nil {
		return fmt.Errorf("input file %s: %w", f.Path, err)
	}
	defer src.Close()
	// Read once, whatever it is: what a second reading finds may be another content.
	digest, _, err := r.store.Put(struct{ io.Reader }{src})
	if err != nil {
		return fmt.Errorf("input file %s: %w", f.Path, err)
	}
	if digest != f.Digest {
		return fmt.Errorf("input file %s changed after the plan was made; make the plan again", f.Path)
	}
	return nil
}

// loadPlan returns the graph of a plan in the store.
func (r *Run) loadPlan(digest string) (*dag.Graph, error) {
	b, err := r.store.Get(digest)
	if err != nil {
		if b = r.given(digest); b == nil {
			return nil, &eventlog.Damaged{File: r.store.Path(digest),
				WayOut: "have it put back from the specification as it was applied (dagrun apply SPEC), " + waysOut(r.own, 0),
				Why:    "neither of the two copies of the run's plan can be read"}
		}
		if _, err := r.store.PutBytes(b); err != nil {
			return nil, err
		}
	}
	p, err := dag.DecodePlan(b)
	if err != nil {
		return nil, err
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		return nil, err
	}
	return r.weighed(g), nil
}

// given returns the plan that the command has made of the specification, if it is the one of a digest.
func (r *Run) given(digest string) []byte {
	if r.o.Plan == nil || r.readOnly {
		return nil
	}
	b, err := r.o.Plan.Encode()
	if err != nil || artifact.Digest(b) != digest {
		return nil
	}
	return b
}

// Offer puts a plan and its input files into the store of a run that another process holds, and returns the plan's
// digest, by which that process has it from Offered. What is not adopted then stays there and counts for nothing.
func Offer(o Options, p *dag.Plan, file OpenFile) (digest string, err error) {
	r, err := attach(o, false)
	if err != nil {
		return "", err
	}
	defer r.closeTrees()
	digest, _, err = r.clone(p, file)
	return digest, err
}

// Offered reads a plan out of the store of a run.
func Offered(o Options, digest string) (*dag.Graph, error) {
	if !artifact.ValidDigest(digest) {
		return nil, fmt.Errorf("run: %q is no digest of a plan", digest)
	}
	r, err := attach(o, false)
	if err != nil {
		return nil, err
	}
	defer r.closeTrees()
	return r.loadPlan(digest)
}

func (r *Run) weighed(g *dag.Graph) *dag.Graph {
	if r.o.Weigh == nil {
		return g
	}
	return r.o.Weigh(g)
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Exists reports whether an output directory holds a run.
func Exists(dir string) bool { return presentAtAll(Options{Dir: dir}) == nil }

// hasRun reports whether a run's folder holds a run, whole or not: a log, or what only a run with a log
// leaves.
func hasRun(own disk.FS) (bool, error) {
	for _, name := range []string{logFile, snapshotFile, eventlog.BackupName(snapshotFile), checkpoints} {
		_, err := own.Lstat(name)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}
