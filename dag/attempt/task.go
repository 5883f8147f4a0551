package attempt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/folder"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// A trial is an attempt under way in this process.
type trial struct {
	worker *Worker
	job    *Job
	world  World
	task   *nodes.Task

	reads map[string]int // in the job, by name

	rep   Report      // its Outcome.Body has what is to be recorded of the result, as far as it is known
	other atomic.Bool // it read what the job does not name: no fingerprint says what it was given
	begun atomic.Bool // it may have cost money, or had an effect
	took  atomic.Bool // the effect is known to have taken place

	mu   sync.Mutex
	kept []*machine.KeptFile

	inside map[string]string // files of folders that were listed: digests by name
}

// begin builds what the kind may see of a job.
func (w *Worker) begin(j *Job, world World) *trial {
	n := j.Node
	t := &trial{worker: w, job: j, world: world, rep: Report{Format: Format, Began: world.Now()}}
	var names []string
	if len(n.Reads) > 0 {
		names = make([]string, len(j.Reads)) // also where a pattern stands for nothing
		t.reads = make(map[string]int, len(j.Reads))
	}
	for i := range j.Reads {
		names[i] = j.Reads[i].Name
		t.reads[names[i]] = i
	}
	task := &nodes.Task{
		Node: n.ID, Generation: j.Generation, Attempt: j.Attempt, Failures: j.AllFailures, FailedWith: j.FailedWith,
		Kind: j.Kind, With: j.With, Labels: n.Labels, Seed: j.Seed, Effect: string(n.Effect),
		Reads: names, Writes: n.Writes, Outputs: n.Outputs,
		Timeout: j.timeout(), Silence: n.Timeout.Silence.D(), Grace: j.grace(),
		Reserve: j.Reserve.USD.Float(), Feedback: j.Feedback,
		SpecDir: j.SpecDir, Out: world.Out(), Untouched: world.Untouched, Scratch: world.Scratch(),
		Binary: w.Binary, Cache: w.Cache, Now: t.rep.Began,

		Formulas: j.formulas, File: t.file, Artifact: t.artifact, Folder: t.folder, Entries: t.entries,
		Secret: t.secret, Mask: w.Mask.Add, Keep: t.keep, Emit: t.emit,
		Begin: func() { t.begun.Store(true) }, TookEffect: t.tookEffect, Spare: t.spare,
		Warn: func(msg string) { world.Warn(t.line(msg)) },
		Beat: func() {},
	}
	switch j.Purpose {
	case Run, Rescue:
		task.Again, task.Carry = world.Again, world.Carry
	case Undo: // it makes what its own settings name, not what the node makes
		task.Writes, task.Outputs = w.traits(j).Writes, nil
	}
	t.task = task
	return t
}

// formulas compiles expressions of the settings, which were checked when the plan was made.
func (j *Job) formulas(x *nodes.Formulas) ([]nodes.Formula, error) {
	lang, err := expr.NewLang(j.Params)
	if err != nil {
		return nil, err
	}
	list, problems := lang.Formulas(x)
	if len(problems) > 0 {
		return nil, nodes.Permanent(nodes.Failf("config", "%s: %s", problems[0].Path, problems[0].Text))
	}
	return list, nil
}

// traits are those of a job's settings; empty when its kind does not know them.
func (w *Worker) traits(j *Job) nodes.Traits { return w.Kinds.Traits(j.Kind, j.With) }

func (t *trial) file(name string) (io.ReadCloser, error) {
	i := slices.IndexFunc(t.job.Files, func(f dag.File) bool { return f.Path == name })
	if i < 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("the node declares no such file")}
	}
	return t.world.Open(t.job.Files[i].Digest)
}

// find returns what stands under a name.
func (t *trial) find(name string) (Reading, error) {
	if i, ok := t.reads[name]; ok {
		return t.job.Reads[i], nil
	}
	t.other.Store(true)
	return t.world.Find(name)
}

// folder lists the files of a folder that is read, those in it that are empty with a slash at the end.
func (t *trial) folder(name string) (paths []string, err error) {
	r, err := t.artifact(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	m, err := folder.Decode(b)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside == nil {
		t.inside = map[string]string{}
	}
	for _, f := range m.Files {
		paths = append(paths, f.Path)
		if f.Digest != "" {
			t.inside[name+f.Path] = f.Digest
		}
	}
	return paths, nil
}

// artifact opens an artifact, or the text of an accumulator as the node sees it.
func (t *trial) artifact(name string) (io.ReadCloser, error) {
	t.mu.Lock()
	digest, in := t.inside[name]
	t.mu.Unlock()
	if in {
		return t.world.Open(digest)
	}
	read, err := t.find(name)
	if err != nil {
		return nil, err
	}
	if len(read.Versions) == 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	if read.Title != "" {
		list, err := t.entriesOf(read)
		return io.NopCloser(strings.NewReader(nodes.Accumulated(read.Title, list))), err
	}
	v := read.Versions[0]
	r, err := t.world.Open(v.Digest)
	if errors.Is(err, fs.ErrNotExist) { // an ancestor has written it
		return nil, &nodes.Error{Category: "file_io", Permanent: true, Message: fmt.Sprintf(
			"the recorded version of %s is missing from the run's store (sha256 %s): restore a copy, "+
				"or make it again (dagrun resume --rerun %s)", name, v.Digest, v.Node)}
	}
	return r, err
}

func (t *trial) entries(name string) ([]nodes.Entry, error) {
	read, err := t.find(name)
	if err != nil {
		return nil, err
	}
	return t.entriesOf(read)
}

func (t *trial) entriesOf(read Reading) (list []nodes.Entry, err error) {
	for _, v := range read.Versions {
		e, err := t.entry(v.Digest)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (t *trial) entry(digest string) (e nodes.Entry, err error) {
	r, err := t.world.Open(digest)
	if err != nil {
		return e, err
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		return e, err
	}
	return e, dag.DecodeJSON(raw, &e)
}

func (t *trial) secret(name string) (string, error) {
	v, err := t.world.Secret(name)
	if err == nil {
		t.worker.Mask.Add(v)
	}
	return v, err
}

// keep creates a file in the node's folder, masked on its way, whose digest is reported.
func (t *trial) keep(name string) (io.WriteCloser, error) {
	w, err := t.world.Keep(name)
	if err != nil {
		return nil, err
	}
	k := &machine.KeptFile{Name: name}
	t.mu.Lock()
	t.kept = append(t.kept, k)
	t.mu.Unlock()
	return t.worker.Mask.Writer(&summed{WriteCloser: w, hash: sha256.New(), trial: t, file: k}), nil
}

// tookEffect notes that the effect has taken place; durable, where it must not be repeated unasked.
func (t *trial) tookEffect(how string) error {
	t.took.Store(true)
	if t.job.Purpose != Run || t.job.Node.Effect.Repeatable() {
		return nil
	}
	return t.world.TookEffect(t.line(how))
}

// spare keeps what Keep has failed to keep: in its place again when room was held back, else in the store.
func (t *trial) spare(name string, from io.ReadSeeker) error {
	if t.world.Yield() {
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if t.keepFrom(name, from) == nil {
			return nil
		}
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	raw, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	digest, size, err := t.world.Store(strings.NewReader(t.worker.Mask.Text(string(raw))))
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = slices.DeleteFunc(t.kept, func(k *machine.KeptFile) bool { return k.Name == name && k.Digest == "" })
	t.kept = append(t.kept, &machine.KeptFile{Name: name, Digest: digest, Size: size})
	b := &t.rep.Outcome.Body
	b.Warnings = append(b.Warnings, t.line(name+" could not be kept in the folder of the node; "+
		"it is kept in the store of the run, sha256 "+digest))
	return nil
}

// A summed is a kept file being written: its digest is known when it is closed.
type summed struct {
	io.WriteCloser
	hash  hash.Hash
	size  int64
	err   error // of a write: then nothing is known of the file
	trial *trial
	file  *machine.KeptFile
}

func (s *summed) Write(p []byte) (int, error) {
	n, err := s.WriteCloser.Write(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	s.err = cmp.Or(s.err, err)
	return n, err
}

func (s *summed) Close() error {
	err := s.WriteCloser.Close()
	if err == nil && s.err == nil {
		s.trial.mu.Lock()
		s.file.Digest, s.file.Size = hex.EncodeToString(s.hash.Sum(nil)), s.size
		s.trial.mu.Unlock()
	}
	return err
}

// keepStaged keeps what a stopped attempt had staged under the names of its artifacts.
func (t *trial) keepStaged() {
	for _, name := range t.job.Node.Writes {
		path := filepath.Join(t.world.Out(), filepath.FromSlash(name))
		if dag.IsFolder(name) {
			t.keepFolder(name, path)
			continue
		}
		if err := t.keepFile(name, path); err != nil {
			t.world.Warn(t.line("keep " + name + ": " + err.Error()))
		}
	}
}

// keepFolder keeps the files of a folder that the attempt may have made.
func (t *trial) keepFolder(name, dir string) {
	_, err := folder.Walk(
		func(p string) ([]fs.DirEntry, error) { return os.ReadDir(filepath.Join(dir, filepath.FromSlash(p))) },
		func(p string) (string, int64, error) {
			return "", 0, t.keepFile(name+p, filepath.Join(dir, filepath.FromSlash(p)))
		})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.world.Warn(t.line("keep " + name + ": " + err.Error()))
	}
}

// keepFile keeps a file that the attempt may have made. One that is not there, or is empty, is none.
func (t *trial) keepFile(name, path string) error {
	from, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	if st, err := from.Stat(); err != nil || st.Size() == 0 {
		return err
	}
	return t.keepFrom(name, from)
}

func (t *trial) keepFrom(name string, from io.Reader) error {
	w, err := t.keep(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return errors.Join(err, w.Close())
}

// facts are what kinds may record by themselves. Everything else about an attempt is recorded by its host.
var facts = []machine.Type{
	machine.LLMCallStarted, machine.LLMCallFinished, machine.LLMCallFailed,
	machine.GateRunStarted, machine.GateRunFinished, machine.IssueOpened, machine.IssueResolved, machine.PROpened,
}

// emit records a fact of a kind, with the node and the call it is of, and returns when it is written.
func (t *trial) emit(name string, body any) error {
	if t.job.Purpose == Rescue && !t.job.Calling {
		return nil // the dead process had recorded the end of the call
	}
	typ := machine.Type(name)
	if !slices.Contains(facts, typ) {
		return fmt.Errorf("a node of kind %s records no %s", t.job.Kind, typ)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	if raw = t.worker.Mask.JSON(raw); !bytes.Equal(raw, []byte("null")) {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return fmt.Errorf("%s: the payload is not an object: %w", typ, err)
		}
	}
	fields["node"], _ = json.Marshal(t.job.Node.ID) // a string cannot fail
	if strings.HasPrefix(name, "LLM_CALL_") {
		fields["call_id"], _ = json.Marshal(t.job.CallID())
	}
	if raw, err = dag.AppendJSON(nil, fields); err != nil {
		return fmt.Errorf("%s: %w", typ, err)
	}
	payload, err := machine.DecodePayload(typ, raw)
	if err != nil {
		return err
	}
	return t.world.Emit(payload)
}
