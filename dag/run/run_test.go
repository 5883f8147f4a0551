package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

var start0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The pages plan: builders hand a page on and leave notes, a verifier looks, a checkpoint is made in the middle.
//
//	b1 -> v1 -> b2 -> cp -> b3 -> b4
func pages(t testing.TB, change func(*dag.Plan)) *dag.Graph {
	t.Helper()
	builder := func(id, need string) dag.Node {
		n := dag.Node{ID: id, Kind: "exec", Effect: "idempotent", Writes: []string{"page.html"}, Appends: []string{"notes"}, Dir: "passes/" + id,
			With: []byte(`{"argv":["build"]}`), Reserve: dag.Amount{USD: 500000}}
		if need != "" {
			n.Needs, n.Reads = []string{need}, []string{"page.html", "notes"}
		}
		return n
	}
	p := &dag.Plan{
		Format: dag.Format, Name: "pages", Budget: dag.Budget{CapUSD: 100e6},
		Accumulators: []dag.Accumulator{{Name: "notes", Path: "notes.md", Title: "Notes", Cap: 3}},
		Files:        []dag.File{{Path: "in.txt", Digest: artifact.Digest([]byte("input")), Size: 5}},
		Nodes: []dag.Node{
			builder("b1", ""),
			{ID: "v1", Kind: "exec", Effect: "pure", Needs: []string{"b1"}, Reads: []string{"page.html"}, With: []byte(`{"argv":["look"]}`)},
			builder("b2", "v1"),
			{ID: "cp", Kind: "checkpoint", Effect: "pure", Needs: []string{"b2"}, With: []byte(`{"id":"cp-1"}`)},
			builder("b3", "cp"),
			builder("b4", "b3"),
		},
	}
	if change != nil {
		change(p)
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func inputs(path string) (io.ReadCloser, error) {
	if path != "in.txt" {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader("input")), nil
}

// A worker carries out nodes of kind exec deterministically: the page grows by a line that names the
// node, and so do the notes. It counts what it really does.
type worker struct {
	dir  string // for staged files
	ran  []string
	now  time.Time
	stop func(ran int) bool       // stop before the next start; nil never
	word func(node string) string // what its lines begin with; nil nothing
}

func newWorker(t testing.TB) *worker { return &worker{dir: t.TempDir(), now: start0} }

func (w *worker) tick() time.Time {
	w.now = w.now.Add(time.Second)
	return w.now
}

// work goes on until there is nothing to do or something fails.
func (w *worker) work(r *Run) error {
	for {
		cmds, _ := r.State().Decide(w.tick(), 1)
		if len(cmds) == 0 {
			return nil
		}
		for _, c := range cmds {
			if err := w.carry(r, c); err != nil {
				return err
			}
		}
	}
}

var errStop = errors.New("stopped by the test")

func (w *worker) carry(r *Run, c machine.Command) error {
	switch c.Op {
	case machine.Record:
		_, err := r.Record(w.tick(), c.Body)
		return err
	case machine.Evaluate: // every condition of these tests is a constant
		if w.node(r, c.Node).When == "true" {
			_, err := r.Record(w.tick(), &machine.QueuedBody{Nodes: []string{c.Node}, Reason: "condition"})
			return err
		}
		_, err := r.Record(w.tick(), &machine.FinishedBody{Node: c.Node, Generation: c.Generation, Status: dag.StatusSkipped, Final: true})
		return err
	case machine.Recheck:
		_, err := r.Record(w.tick(), rechecked(r, c.Node))
		return err
	case machine.Start:
	default:
		return fmt.Errorf("the test cannot carry out %+v", c)
	}
	if w.stop != nil && w.stop(len(w.ran)) {
		return errStop
	}
	a := Attempt{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt}
	m, err := r.Record(w.tick(), &machine.StartedBody{Node: a.Node, Generation: a.Generation, Attempt: a.Attempt, Reserve: c.Reserve})
	if err == nil {
		err = r.Wait(m)
	}
	if err != nil {
		return err
	}
	o := machine.Outcome{Status: dag.StatusCompleted}
	print := r.Fingerprint(a.Node, nil, r.Above(a.Node))
	if w.node(r, a.Node).Kind == "checkpoint" {
		_, err = r.Checkpoint(w.tick(), "cp-1", a.Node, nil)
	} else {
		w.ran = append(w.ran, a.Node)
		o.Body, err = w.run(r, a)
	}
	if err != nil {
		return err
	}
	o.Body.Fingerprint = print
	_, err = r.Record(w.tick(), r.State().Settle(a.Node, o, w.now).Body)
	return err
}

func (*worker) node(r *Run, id string) *dag.Node {
	i, _ := r.Graph().Index(id)
	return r.Graph().Node(i)
}

func (w *worker) run(r *Run, a Attempt) (machine.FinishedBody, error) {
	var body machine.FinishedBody
	n := w.node(r, a.Node)
	page := ""
	if src, err := r.Artifact(a.Node, "page.html"); err == nil {
		b, err := io.ReadAll(src)
		src.Close()
		if err != nil {
			return body, err
		}
		page = string(b)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return body, err
	}
	notes, err := r.Entries(a.Node, "notes")
	if err != nil {
		return body, err
	}
	raw, err := r.Keep(a, "raw-output.txt")
	if err != nil {
		return body, err
	}
	if w.word != nil {
		page += w.word(a.Node)
	}
	page += fmt.Sprintf("%s after %d notes\n", a.Node, len(notes))
	_, err = io.WriteString(raw, page)
	if err = errors.Join(err, raw.Close()); err != nil || len(n.Writes) == 0 {
		return body, err
	}
	staged := filepath.Join(w.dir, "page.html")
	if err := os.WriteFile(staged, []byte(page), 0o600); err != nil {
		return body, err
	}
	body.CostUSD, body.CostKind = 250000, "reported"
	note := Entry{Accumulator: "notes", Text: "noted by " + a.Node, Meta: map[string]string{"pass": a.Node}}
	out, err := stored(r, map[string]string{"page.html": staged}, note)
	if err != nil {
		return body, err
	}
	return body, r.Publish(a, out, func(bodies ...machine.Body) error {
		_, err := r.Record(w.tick(), bodies...)
		return err
	})
}

// stored puts staged files and entries into the store, as an attempt does.
func stored(r *Run, writes map[string]string, entries ...Entry) (out Output, err error) {
	put := func(name string, content []byte) attempt.Object {
		o := attempt.Object{Name: name}
		var bad error
		o.Digest, o.Size, bad = r.Store(bytes.NewReader(content))
		err = errors.Join(err, bad)
		return o
	}
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		content, bad := os.ReadFile(writes[name])
		err = errors.Join(err, bad)
		out.Artifacts = append(out.Artifacts, put(name, content))
	}
	for _, e := range entries {
		content, bad := dag.AppendJSON(nil, e)
		err = errors.Join(err, bad)
		out.Entries = append(out.Entries, put(e.Accumulator, content))
	}
	return out, err
}

// Artifact, ArtifactDigest and Entries are what an attempt of a node reads; File is an input file.
func (r *Run) Artifact(node, name string) (io.ReadCloser, error) {
	found := r.Find(node, name).Versions
	if len(found) == 0 {
		return nil, fs.ErrNotExist
	}
	return r.OpenObject(found[0].Digest)
}

func (r *Run) ArtifactDigest(node, name string) string {
	for _, v := range r.Find(node, name).Versions {
		return v.Digest
	}
	return ""
}

func (r *Run) Entries(node, name string) (list []Entry, err error) {
	for _, v := range r.Find(node, name).Versions {
		e, bad := readEntry(r.store, v.Digest)
		list, err = append(list, e), errors.Join(err, bad)
	}
	return list, err
}

func (r *Run) File(name string) (io.ReadCloser, error) {
	for _, f := range r.Graph().Plan.Files {
		if f.Path == name {
			return r.OpenObject(f.Digest)
		}
	}
	return nil, fs.ErrNotExist
}

func memOptions(fsys disk.FS) Options {
	return Options{FS: fsys, Command: "test", Now: start0, log: eventlog.Options{Reserve: 4096}}
}

func create(t testing.TB, o Options, g *dag.Graph) *Run {
	t.Helper()
	r, err := Create(o, New{Graph: g, RunID: "run-1", Seed: 1, File: inputs})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reopen(t testing.TB, o Options) (*Run, *Report) {
	t.Helper()
	r, rep, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, rep
}

// contents returns the files that a user looks at.
func contents(t testing.TB, fsys disk.FS) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"page.html", Dir + "/notes.md"} {
		c, err := disk.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "--- %s\n%s", name, c)
	}
	return b.String()
}

// verified fails the test when any check of Verify does not pass.
func verified(t testing.TB, fsys disk.FS, when string) {
	t.Helper()
	list, err := Verify(memOptions(fsys), "")
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	for _, c := range list {
		if !c.Pass {
			t.Fatalf("%s: %s: %s", when, c.Name, c.Detail)
		}
	}
}

// undisturbed runs the pages plan to its end.
func undisturbed(t testing.TB) (*disktest.Mem, *worker) {
	t.Helper()
	m := disktest.NewMem()
	w := newWorker(t)
	r := create(t, memOptions(m.FS()), pages(t, nil))
	if err := w.work(r); err != nil {
		t.Fatal(err)
	}
	if got := r.State().Run().Status; got != machine.RunDone {
		t.Fatalf("the run is %s: %+v", got, r.State().Run().Pause)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return m, w
}

const wantPages = `--- page.html
b1 after 0 notes
b2 after 1 notes
b3 after 2 notes
b4 after 3 notes
--- _orchestrator/notes.md
# Notes

### pass: b2

noted by b2

### pass: b3

noted by b3

### pass: b4

noted by b4
`

func TestARunFromItsBeginningToItsEnd(t *testing.T) {
	m, w := undisturbed(t)
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
	if got := strings.Join(w.ran, " "); got != "b1 v1 b2 b3 b4" {
		t.Errorf("ran %s", got)
	}
	verified(t, m.FS(), "at the end")
	// S-9: each builder's folder holds the version before it, which nobody overwrites.
	for node, want := range map[string]string{"b2": "b1 after 0 notes\n", "b3": "b1 after 0 notes\nb2 after 1 notes\n"} {
		if b, err := disk.ReadFile(m.FS(), Dir+"/passes/"+node+"/page-backup.html"); err != nil || string(b) != want {
			t.Errorf("backup of %s: %q %v", node, b, err)
		}
	}
	for _, name := range []string{"passes/b1/raw-output.txt", "nodes/v1/raw-output.txt", "checkpoints/cp-1/page.html", "checkpoints/cp-1/notes.md", "checkpoints/cp-1/manifest.json"} {
		if _, err := m.FS().Lstat(Dir + "/" + name); err != nil {
			t.Error(err)
		}
	}
}

// S-7: opening a finished run and going on does nothing.
func TestResumingAFinishedRunDoesNothing(t *testing.T) {
	m, _ := undisturbed(t)
	r, rep := reopen(t, memOptions(m.FS()))
	if len(rep.Warnings) > 0 {
		t.Error(rep.Warnings)
	}
	head := r.Head()
	if err := r.Resume(start0.Add(time.Hour), "apply", nil); err != nil {
		t.Fatal(err)
	}
	w := newWorker(t)
	w.now = start0.Add(time.Hour)
	if err := w.work(r); err != nil || len(w.ran) != 0 || r.Head() != head {
		t.Fatal(err, w.ran, r.Head(), head)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// wholeRun creates a run on fsys and carries it out until it ends or its disk fails.
func wholeRun(t *testing.T, g *dag.Graph, fsys disk.FS) (*worker, error) {
	w := newWorker(t)
	r, err := Create(memOptions(fsys), New{Graph: g, RunID: "run-1", Seed: 1, File: inputs})
	if err != nil {
		return w, err
	}
	if err = w.work(r); err != nil {
		r.Abandon()
		return w, err
	}
	return w, r.Close()
}

// S-1, S-5, S-9, S-12, T-5: the process dies, or the power fails, at every single step on the disk of a
// whole run. Reopened and carried on, every invariant holds and the page and the notes end as they do
// undisturbed; what was completed is not run again.
func TestCrashAtEveryStep(t *testing.T) {
	g := pages(t, nil)
	first := func(fsys disk.FS) (*worker, error) { return wholeRun(t, g, fsys) }
	count, fsys := disktest.NewFaulty(disktest.NewMem().FS(), nil)
	if _, err := first(fsys); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= count.Steps(); n++ {
		m := disktest.NewMem()
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		before, _ := first(fsys)
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil), "half kept": m.PowerLoss(func(n int) int { return n / 2 })} {
			when := fmt.Sprintf("step %d of %d, %s", n, count.Steps(), name)
			w := newWorker(t)
			w.now = before.now.Add(time.Minute)
			r, rep, err := Open(memOptions(after.FS()))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				r = create(t, memOptions(after.FS()), g)
			case err != nil:
				t.Fatalf("%s: %v", when, err)
			default:
				if len(rep.Edited) > 0 {
					t.Fatalf("%s: taken for a user's edit: %v", when, rep.Edited)
				}
				done := completed(r)
				if err := r.Resume(w.tick(), "resume", nil); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				defer func() {
					for _, id := range done {
						if slices.Contains(w.ran, id) {
							t.Errorf("%s: %s was completed and ran again", when, id)
						}
					}
				}()
			}
			if err := w.work(r); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got := r.State().Run().Status; got != machine.RunDone {
				t.Fatalf("%s: the run is %s", when, got)
			}
			if err := r.Close(); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got := contents(t, after.FS()); got != wantPages {
				t.Fatalf("%s: got\n%s", when, got)
			}
			verified(t, after.FS(), when)
		}
	}
}

// The process that recovers dies too, at every step of its own.
func TestCrashWhileRecovering(t *testing.T) {
	for _, c := range []struct{ node, when string }{{"b1", "recorded"}, {"b2", "published"}, {"b3", "recorded"}, {"b4", "started"}} {
		recover := func(n int) (m *disktest.Mem, steps int, err error) {
			m = interrupted(t, c.node, c.when)
			if c.when == "started" {
				write(t, m.FS(), "page.html", "garbage")
			}
			hook := disktest.CrashAt(n)
			if n == 0 {
				hook = nil
			}
			f, fsys := disktest.NewFaulty(m.FS(), hook)
			r, _, err := Open(memOptions(fsys))
			if err != nil {
				return m, f.Steps(), err
			}
			if err = r.Resume(start0.Add(time.Hour), "resume", nil); err != nil {
				r.Abandon()
				return m, f.Steps(), err
			}
			return m, f.Steps(), r.Close()
		}
		_, steps, err := recover(0)
		if err != nil || steps < 10 {
			t.Fatalf("%d steps, %v", steps, err)
		}
		for n := 1; n <= steps; n++ {
			m, _, _ := recover(n)
			for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
				r, rep, err := Open(memOptions(after.FS()))
				if err != nil || len(rep.Edited) > 0 {
					t.Fatalf("%v, step %d of %d, %s: %v %+v", c, n, steps, name, err, rep)
				}
				finish(t, r, after.FS())
				if got := contents(t, after.FS()); got != wantPages {
					t.Fatalf("%v, step %d, %s: got\n%s", c, n, name, got)
				}
			}
		}
	}
}

func completed(r *Run) (ids []string) {
	for i := range int32(r.Graph().Len()) {
		if v := r.State().NodeAt(i); v.Status == machine.Completed {
			ids = append(ids, v.Node.ID)
		}
	}
	return ids
}

// rechecked answers machine.Recheck for nodes whose condition is a constant and whose settings need no resolving.
func rechecked(r *Run, node string) machine.Body {
	i, _ := r.Graph().Index(node)
	rec := r.State().Record(i)
	return r.State().Judged(node, reuse.ByInputs(r.Graph().Node(i), &rec, inputsOf{r, node}))
}

type inputsOf struct {
	r    *Run
	node string
}

func (in inputsOf) Condition() (bool, error) {
	v, _ := in.r.State().NodeByID(in.node)
	return v.Node.When == "true", nil
}

func (in inputsOf) Fingerprint() (string, error) {
	return in.r.Fingerprint(in.node, nil, in.r.Above(in.node)), nil
}

func (in inputsOf) Intact() (intact, known bool) {
	intact, unread := in.r.Intact(in.node, nil)
	return intact, len(unread) == 0
}
