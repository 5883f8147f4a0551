package run

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/internal/testing/disktest"
)

// doing is a diff in one line.
func doing(d *reuse.Diff) string {
	var parts []string
	for _, n := range d.Nodes {
		s := n.ID + " " + n.Do
		if n.Maybe {
			s = n.ID + " maybe"
		}
		if len(n.Why) > 0 {
			s += "(" + strings.Join(n.Why, " ") + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func node(p *dag.Plan, id string) *dag.Node {
	i := slices.IndexFunc(p.Nodes, func(n dag.Node) bool { return n.ID == id })
	return &p.Nodes[i]
}

// half runs the pages plan up to and with b2 and returns the run.
func half(t *testing.T) (*disktest.Mem, *Run) {
	t.Helper()
	m := disktest.NewMem()
	w := newWorker(t)
	r := create(t, memOptions(m.FS()), pages(t, nil))
	w.stop = func(ran int) bool { return ran == 3 && !slices.Contains(readyNodes(r), "cp") }
	if err := w.work(r); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	return m, r
}

// S-6: node by node what a changed spec would do, and why.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*dag.Plan)
		want   string
	}{
		{"nothing", nil, "b1 reuse, v1 reuse, b2 reuse, cp reuse, b3 run, b4 run"},
		{"labels and titles", func(p *dag.Plan) {
			node(p, "b1").Labels, node(p, "v1").Title = map[string]string{"role": "builder"}, "Look"
		}, "b1 reuse, v1 reuse, b2 reuse, cp reuse, b3 run, b4 run"},
		{"a setting of a finished node", func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["build","-v"]}`) },
			"b1 reuse, v1 reuse, b2 changed(with), cp blocked(b2), b3 run, b4 run"},
		{"a setting of a node to come", func(p *dag.Plan) { node(p, "b4").With = []byte(`{"argv":["x"]}`) },
			"b1 reuse, v1 reuse, b2 reuse, cp reuse, b3 run, b4 changed(with)"},
		{"one more at the end", func(p *dag.Plan) {
			p.Nodes = append(p.Nodes, dag.Node{ID: "end", Kind: "exec", Effect: "pure", Needs: []string{"b4"}})
		}, "b1 reuse, v1 reuse, b2 reuse, cp reuse, b3 run, b4 run, end added"},
		{"one less", func(p *dag.Plan) {
			p.Nodes = slices.DeleteFunc(p.Nodes, func(n dag.Node) bool { return n.ID == "cp" })
			node(p, "b3").Needs = []string{"b2"}
		}, "b1 reuse, v1 reuse, b2 reuse, b3 changed(needs), b4 run, cp removed"},
		{"one more in the middle", func(p *dag.Plan) {
			p.Nodes = slices.Insert(p.Nodes, 2, dag.Node{ID: "v2", Kind: "exec", Effect: "pure", Needs: []string{"v1"}})
			node(p, "b2").Needs = []string{"v1", "v2"}
		}, "b1 reuse, v1 reuse, v2 added, b2 changed(needs), cp blocked(b2), b3 run, b4 run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := half(t)
			defer r.Abandon()
			d := r.Compare(pages(t, c.change))
			if got := doing(d); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if d.Same != (c.change == nil) {
				t.Error("same is", d.Same)
			}
		})
	}
}

// Limits are shown and make nothing run again.
func TestCompareShowsLimits(t *testing.T) {
	_, r := half(t)
	defer r.Abandon()
	d := r.Compare(pages(t, func(p *dag.Plan) {
		p.Budget.CapUSD = 120e6
		p.Pools = []dag.Pool{{Name: "llm", Size: 3}}
	}))
	if !slices.Equal(d.Limits, []string{"budget.capUSD 100.00 -> 120.00", "pools: llm added"}) || d.Count(reuse.DoReuse) != 4 || d.Count(reuse.DoRun) != 2 || d.Same {
		t.Errorf("%v, %s", d.Limits, doing(d))
	}
}

// S-6: only what a change affects runs again, in a new generation beside the old records.
func TestAdoptRunsAgainWhatTheChangeAffects(t *testing.T) {
	m, r := half(t)
	r.Close()
	r, _ = reopen(t, memOptions(m.FS()))
	changed := pages(t, func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["build","-v"]}`) })
	at := start0.Add(time.Hour)
	d, err := r.Adopt(at, changed, inputs, nil)
	if err != nil || d.Count(reuse.DoChanged) != 1 {
		t.Fatal(err, doing(d))
	}
	head := r.Head()
	if d, err := r.Adopt(at, changed, inputs, nil); err != nil || !d.Same || r.Head() != head {
		t.Fatal("adopted twice:", err)
	}
	r.Abandon()
	m = m.Kill()
	r, _ = reopen(t, memOptions(m.FS()))
	w := finish(t, r, m.FS())
	if got := strings.Join(w.ran, " "); got != "b2 b3 b4" {
		t.Errorf("ran %s", got)
	}
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
	for _, name := range []string{"passes/b2/raw-output.txt", "passes/b2.g2/raw-output.txt", "passes/b2/page-backup.html", "passes/b2.g2/page-backup.html", "passes/b3/raw-output.txt"} {
		if _, err := m.FS().Lstat(Dir + "/" + name); err != nil {
			t.Error(err)
		}
	}
}

// A finished run takes up again when its spec gets longer, and only then.
func TestAdoptIntoAFinishedRun(t *testing.T) {
	m, _ := undisturbed(t)
	r, _ := reopen(t, memOptions(m.FS()))
	if _, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) {
		p.Nodes = append(p.Nodes, dag.Node{ID: "end", Kind: "exec", Effect: "pure", Needs: []string{"b4"}, Reads: []string{"page.html"}})
	}), inputs, nil); err != nil {
		t.Fatal(err)
	}
	w := finish(t, r, m.FS())
	if got := strings.Join(w.ran, " "); got != "end" {
		t.Errorf("ran %s", got)
	}
}

// A result that was complete when the process died is not made again because the plan changed
// elsewhere in the meantime.
func TestAdoptRescuesACompleteResult(t *testing.T) {
	m := interrupted(t, "b2", "published")
	r, _ := reopen(t, memOptions(m.FS()))
	other := pages(t, func(p *dag.Plan) { node(p, "b4").With = []byte(`{"argv":["other"]}`) })
	if _, err := r.Adopt(start0.Add(time.Hour), other, inputs, func(node string, generation, attempt int) (*machine.FinishedBody, error) {
		return &machine.FinishedBody{Node: node, Generation: generation, Attempt: attempt, Status: dag.StatusCompleted, Final: true}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if v, _ := r.State().NodeByID("b2"); v.Status != machine.Completed || v.Lost != 0 {
		t.Errorf("b2 is %v, lost %d times", v.Status, v.Lost)
	}
	if got := text(t, m.FS(), "page.html"); got != "half of b2\n" {
		t.Errorf("page %q", got)
	}
	if w := finish(t, r, m.FS()); slices.Contains(w.ran, "b2") {
		t.Errorf("ran %v", w.ran)
	}
}

// Attempts of a dead process are settled before their node gets another plan.
func TestAdoptWithAnAttemptInFlight(t *testing.T) {
	m := interrupted(t, "b2", "published")
	r, _ := reopen(t, memOptions(m.FS()))
	if _, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["other"]}`) }), inputs, nil); err != nil {
		t.Fatal(err)
	}
	if got := text(t, m.FS(), "page.html"); got != "b1 after 0 notes\n" {
		t.Errorf("page %q", got)
	}
	finish(t, r, m.FS())
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
}

// What the plan declares is read from the copy made when it was adopted; a file that changed between
// planning and adopting is refused.
func TestInputFilesAreThoseOfThePlan(t *testing.T) {
	m := disktest.NewMem()
	_, err := Create(memOptions(m.FS()), New{Graph: pages(t, nil), File: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("other")), nil
	}})
	if err == nil || !strings.Contains(err.Error(), "in.txt changed") {
		t.Fatal(err)
	}
	r := create(t, memOptions(m.FS()), pages(t, nil))
	defer r.Close()
	src, err := r.File("in.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if b, err := io.ReadAll(src); err != nil || string(b) != "input" {
		t.Fatal(string(b), err)
	}
	if _, err := r.File("other.txt"); err == nil {
		t.Error("read an undeclared file")
	}
}

// S-8: a checkpoint holds what it says, is listed, and survives what comes after.
func TestCheckpointAndRevert(t *testing.T) {
	m, _ := undisturbed(t)
	r, _ := reopen(t, memOptions(m.FS()))
	list := r.Checkpoints()
	if len(list) != 1 || list[0].ID != "cp-1" || list[0].Valid != nil || list[0].Completed != 3 || list[0].CostUSD != 500000 {
		t.Fatalf("%+v", list)
	}
	files := list[0].Files
	if len(files) != 2 || files[0].Name != "page.html" || files[0].Digest != artifact.Digest([]byte("b1 after 0 notes\nb2 after 1 notes\n")) || len(files[1].Entries) != 2 {
		t.Fatalf("%+v", files)
	}
	// B-8: the preview says what becomes invalid and what redoing it costs.
	p, err := r.PreviewRevert("cp-1")
	if err != nil || strings.Join(p.Nodes, " ") != "b3 b4" || p.RedoUSD != 500000 || strings.Join(p.Files, " ") != "page.html _orchestrator/notes.md" {
		t.Fatalf("%+v %v", p, err)
	}
	head := r.Head()
	if _, err := r.Revert(start0.Add(time.Hour), "cp-7"); err == nil || r.Head() != head {
		t.Fatal("reverted to nothing")
	}
	if _, err := r.Revert(start0.Add(time.Hour), "cp-1"); err != nil {
		t.Fatal(err)
	}
	if got := text(t, m.FS(), "page.html"); got != "b1 after 0 notes\nb2 after 1 notes\n" {
		t.Errorf("page %q", got)
	}
	r.Close()
	verified(t, m.FS(), "reverted")
	if got := text(t, m.FS(), Dir+"/notes.md"); strings.Contains(got, "b3") || !strings.Contains(got, "b2") {
		t.Errorf("notes %q", got)
	}
	// Reverting refunds nothing.
	r, _ = reopen(t, memOptions(m.FS()))
	if got := r.State().Ledger().Spent.USD; got != 1000000 {
		t.Errorf("spent %v", got)
	}
	w := finish(t, r, m.FS())
	if got := strings.Join(w.ran, " "); got != "b3 b4" {
		t.Errorf("ran %s", got)
	}
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
	// A checkpoint node that runs again makes a second one under a name of its own.
	r, _ = reopen(t, memOptions(m.FS()))
	if _, err := r.Adopt(start0.Add(2*time.Hour), pages(t, func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["other"]}`) }), inputs, nil); err != nil {
		t.Fatal(err)
	}
	finish(t, r, m.FS())
	if _, err := m.FS().Lstat(Dir + "/checkpoints/cp-1-2/manifest.json"); err != nil {
		t.Error("the second checkpoint:", err)
	}
}

// The state in a checkpoint of another version, which this one cannot read, is what its events say.
func TestCheckpointOfAnotherVersion(t *testing.T) {
	m, _ := undisturbed(t)
	r, _ := reopen(t, memOptions(m.FS()))
	defer r.Close()
	_, snap, err := r.readCheckpoint(r.state.Checkpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	var states [2][]byte
	for k := range states {
		st, err := r.stateOf(snap)
		if err != nil {
			t.Fatal(err)
		}
		if states[k], err = st.AppendSnapshot(nil); err != nil {
			t.Fatal(err)
		}
		snap.State = []byte(`{"schema_version":1,"of":"another version"}`)
	}
	if !bytes.Equal(states[0], states[1]) {
		t.Errorf("kept\n%s\nfolded\n%s", states[0], states[1])
	}
}

// S-8: a checkpoint with a wrong byte is listed as such and not restored.
func TestDamagedCheckpointIsNotRestored(t *testing.T) {
	for _, name := range []string{"page.html", "notes.md", "manifest.json", "state-snapshot.json"} {
		m, _ := undisturbed(t)
		full := Dir + "/checkpoints/cp-1/" + name
		write(t, m.FS(), full, strings.Replace(text(t, m.FS(), full), "b1", "bX", 1))
		r, _ := reopen(t, memOptions(m.FS()))
		list := r.Checkpoints()
		if len(list) != 1 || list[0].Valid == nil {
			t.Errorf("%s: %+v", name, list)
		}
		head := r.Head()
		if _, err := r.Revert(start0.Add(time.Hour), "cp-1"); err == nil || r.Head() != head {
			t.Errorf("%s: reverted", name)
		}
		r.Close()
	}
}

// S-8: the process dies, or the power fails, at every step of reverting. Afterwards the run is at the
// checkpoint or where it was, and ends as ever.
func TestCrashWhileReverting(t *testing.T) {
	revert := func(n int) (m *disktest.Mem, steps int) {
		m, _ = undisturbed(t)
		hook := disktest.CrashAt(n)
		if n == 0 {
			hook = nil
		}
		f, fsys := disktest.NewFaulty(m.FS(), hook)
		r, _, err := Open(memOptions(fsys))
		if err == nil {
			r.Revert(start0.Add(time.Hour), "cp-1")
			r.Abandon()
		}
		return m, f.Steps()
	}
	_, steps := revert(0)
	for n := 1; n <= steps; n++ {
		m, _ := revert(n)
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			r, rep, err := Open(memOptions(after.FS()))
			if err != nil || len(rep.Edited) > 0 {
				t.Fatalf("step %d of %d, %s: %v %+v", n, steps, name, err, rep)
			}
			finish(t, r, after.FS())
			if got := contents(t, after.FS()); got != wantPages {
				t.Fatalf("step %d, %s: got\n%s", n, name, got)
			}
		}
	}
}

// S-6: --fresh keeps the old run whole under archives and begins anew; dying at any step of it loses
// neither.
func TestArchive(t *testing.T) {
	m, _ := undisturbed(t)
	to, err := Archive(memOptions(m.FS()))
	if err != nil || to != "_orchestrator/archives/run-run-1-2026-03-01T12-00-00-000Z" {
		t.Fatal(to, err)
	}
	for _, name := range []string{"events.ndjson", "snapshot.json", "notes.md", "passes/b2/raw-output.txt", "checkpoints/cp-1/manifest.json"} {
		if _, err := m.FS().Lstat(to + "/" + name); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := Open(memOptions(m.FS())); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if got := text(t, m.FS(), "page.html"); !strings.Contains(got, "b4") {
		t.Error("the live page went too")
	}
	r := create(t, memOptions(m.FS()), pages(t, nil))
	w := newWorker(t)
	if err := w.work(r); err != nil {
		t.Fatal(err)
	}
	r.Close()
	verified(t, m.FS(), "second run")
	again, err := Archive(memOptions(m.FS()))
	if err != nil || again == to {
		t.Fatal(again, err)
	}
}

func TestCrashWhileArchiving(t *testing.T) {
	archive := func(n int) (m *disktest.Mem, steps int) {
		m, _ = undisturbed(t)
		hook := disktest.CrashAt(n)
		if n == 0 {
			hook = nil
		}
		f, fsys := disktest.NewFaulty(m.FS(), hook)
		Archive(memOptions(fsys))
		return m, f.Steps()
	}
	_, steps := archive(0)
	for n := 1; n <= steps; n++ {
		m, _ := archive(n)
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			o := memOptions(after.FS())
			to, err := Archive(o)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("step %d of %d, %s: %v", n, steps, name, err)
			}
			r, err := Create(o, New{Graph: pages(t, nil), RunID: "run-2", File: inputs})
			if err != nil {
				t.Fatalf("step %d of %d, %s: archived to %q, then %v", n, steps, name, to, err)
			}
			r.Close()
			dirs, err := after.FS().ReadDir(Dir + "/archives")
			if err != nil {
				t.Fatal(err)
			}
			logs := 0
			for _, d := range dirs {
				if _, err := after.FS().Lstat(Dir + "/archives/" + d.Name() + "/events.ndjson"); err == nil {
					logs++
				}
			}
			if logs != 1 {
				t.Fatalf("step %d of %d, %s: %d archived logs in %v", n, steps, name, logs, dirs)
			}
		}
	}
}

// S-6: what lies below a changed node keeps its results until the changed one has ended. Where that gave
// what it gave before, nothing else runs: entries and files count again, and the page is the last
// one's, though the changed node wrote it anew.
func TestAdoptReusesWhatAnEqualResultCannotChange(t *testing.T) {
	m, _ := undisturbed(t)
	r, _ := reopen(t, memOptions(m.FS()))
	d, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["build","-v"]}`) }), inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := doing(d); got != "b1 reuse, v1 reuse, b2 changed(with), cp blocked(b2), b3 maybe(cp), b4 maybe(b3)" {
		t.Error(got)
	}
	if got := r.ArtifactDigest("b4", "page.html"); got != artifact.Digest([]byte("b1 after 0 notes\n")) {
		t.Error("b4 sees a page in doubt")
	}
	if e, err := r.Entries("b4", "notes"); err != nil || len(e) != 1 {
		t.Error("b4 sees entries in doubt", e, err)
	}
	w := finish(t, r, m.FS())
	if got := strings.Join(w.ran, " "); got != "b2" {
		t.Errorf("ran %s", got)
	}
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
	r, _ = reopen(t, memOptions(m.FS()))
	defer r.Abandon()
	if v, _ := r.State().NodeByID("b4"); v.Generation != 1 || v.Attempt != 1 || r.State().Ledger().Spent.USD != 1250000 {
		t.Errorf("%+v, spent %s", v, r.State().Ledger().Spent.USD)
	}
}

// Where it gave something else, what reads it runs again, and what reads that.
func TestAdoptRunsAgainWhatReadsAnotherResult(t *testing.T) {
	m, _ := undisturbed(t)
	r, _ := reopen(t, memOptions(m.FS()))
	if _, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["other"]}`) }), inputs, nil); err != nil {
		t.Fatal(err)
	}
	w := newWorker(t)
	w.word = func(node string) string { return map[bool]string{true: "otherwise "}[node == "b2"] }
	w.now = start0.Add(time.Hour)
	if err := w.work(r); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.ran, " "); got != "b2 b3 b4" {
		t.Errorf("ran %s", got)
	}
	r.Close()
	verified(t, m.FS(), "changed")
	if got, want := text(t, m.FS(), "page.html"), strings.Replace(wantPages[len("--- page.html\n"):strings.Index(wantPages, "--- _orch")], "b2", "otherwise b2", 1); got != want {
		t.Errorf("got\n%s", got)
	}
}

// S-5: what a node wrote and a user has changed, or the store has lost, proves nothing: it runs again.
func TestAdoptReusesOnlyWhatIsAsItWas(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, m *disktest.Mem)
		ran   string
	}{
		{"edited", func(t *testing.T, m *disktest.Mem) { write(t, m.FS(), "page.html", "by hand\n") }, "b2 b4"},
		{"lost", func(t *testing.T, m *disktest.Mem) {
			digest := artifact.Digest([]byte("b1 after 0 notes\nb2 after 1 notes\nb3 after 2 notes\n"))
			if err := m.FS().Remove(Dir + "/objects/" + digest[:2] + "/" + digest[2:]); err != nil {
				t.Fatal(err)
			}
		}, "b2 b3"},
		{"lost, but live", func(t *testing.T, m *disktest.Mem) {
			digest := artifact.Digest([]byte(text(t, m.FS(), "page.html")))
			if err := m.FS().Remove(Dir + "/objects/" + digest[:2] + "/" + digest[2:]); err != nil {
				t.Fatal(err)
			}
		}, "b2"},
	} {
		m, _ := undisturbed(t)
		c.spoil(t, m)
		r, _ := reopen(t, memOptions(m.FS()))
		if _, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["build","-v"]}`) }), inputs, nil); err != nil {
			t.Fatal(err)
		}
		w := finish(t, r, m.FS())
		if got := strings.Join(w.ran, " "); got != c.ran {
			t.Errorf("%s: ran %s", c.name, got)
		}
		if got := contents(t, m.FS()); got != wantPages {
			t.Errorf("%s: got\n%s", c.name, got)
		}
	}
}

// S-7, S-12: the process dies, or the power fails, at every step on the disk between a change of plan and
// the end of the run it makes. Whatever was reused or run by then, nothing is done twice, no file is
// taken for a user's, and the end is the same.
func TestCrashWhileReusing(t *testing.T) {
	changed := pages(t, func(p *dag.Plan) {
		node(p, "b2").With = []byte(`{"argv":["build","-v"]}`)
		p.Nodes = slices.DeleteFunc(p.Nodes, func(n dag.Node) bool { return n.ID == "b4" })
	})
	fresh := disktest.NewMem()
	r := create(t, memOptions(fresh.FS()), changed)
	if err := newWorker(t).work(r); err != nil {
		t.Fatal(err)
	}
	r.Close()
	want := contents(t, fresh.FS())
	apply := func(n int) (*disktest.Mem, int) {
		m, _ := undisturbed(t)
		hook := disktest.CrashAt(n)
		if n == 0 {
			hook = nil
		}
		f, fsys := disktest.NewFaulty(m.FS(), hook)
		if r, _, err := Open(memOptions(fsys)); err == nil {
			w := newWorker(t)
			w.now = start0.Add(time.Hour)
			if _, err := r.Adopt(w.tick(), changed, inputs, nil); err == nil {
				w.work(r)
			}
			r.Abandon()
		}
		return m, f.Steps()
	}
	_, steps := apply(0)
	for n := 1; n <= steps; n++ {
		m, _ := apply(n)
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			r, rep, err := Open(memOptions(after.FS()))
			if err != nil || len(rep.Edited) > 0 {
				t.Fatalf("step %d of %d, %s: %v %+v", n, steps, name, err, rep)
			}
			if _, err := r.Adopt(start0.Add(time.Hour), changed, inputs, nil); err != nil {
				t.Fatalf("step %d of %d, %s: %v", n, steps, name, err)
			}
			w := finish(t, r, after.FS())
			if slices.Contains(w.ran, "b3") {
				t.Fatalf("step %d of %d, %s: ran %v", n, steps, name, w.ran)
			}
			if got := contents(t, after.FS()); got != want {
				t.Fatalf("step %d, %s: got\n%s", n, name, got)
			}
		}
	}
}

// A page that nodes wrote which are not wanted any more is the one again that counts.
func TestAdoptBringsBackThePageThatCounts(t *testing.T) {
	for when, want := range map[string]string{
		"":      "b1 after 0 notes\nb2 after 1 notes\nb3 after 2 notes\n", // as the plan is adopted
		"false": "b1 after 0 notes\nb2 after 1 notes\n",                   // and as a node is skipped then
	} {
		m, _ := undisturbed(t)
		r, _ := reopen(t, memOptions(m.FS()))
		if _, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) {
			p.Nodes = slices.DeleteFunc(p.Nodes, func(n dag.Node) bool { return n.ID == "b4" })
			node(p, "b3").When = when
		}), inputs, nil); err != nil {
			t.Fatal(err)
		}
		w := finish(t, r, m.FS())
		if len(w.ran) > 0 {
			t.Errorf("ran %v", w.ran)
		}
		if got := text(t, m.FS(), "page.html"); got != want {
			t.Errorf("page %q", got)
		}
	}
}

// S-6: a plan says what of a definition has changed, and no secret.
func TestCompareSaysWhatChanged(t *testing.T) {
	_, r := half(t)
	defer r.Abandon()
	long := strings.Repeat("word ", 40)
	for _, c := range []struct {
		change func(p *dag.Plan)
		want   string
	}{
		{func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["build","-v"]}`) }, `b2 with.argv[1]: + "-v"`},
		{func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["make"],"n":{"a":1}}`) }, `b2 with.argv[0]: "build" -> "make"; b2 with.n.a: + 1`},
		{func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["` + long + `"]}`) }, `b2 with.argv[0]: "build" -> "word word word word word word word word word word word word "...`},
		{func(p *dag.Plan) { node(p, "b2").With = []byte(`{"argv":["build"],"env":{"API_KEY":"hush"}}`) }, `b2 with.env.API_KEY: + ***`},
		{func(p *dag.Plan) { node(p, "b2").When = "true" }, `b2 when: + "true"`},
		{func(p *dag.Plan) { node(p, "b4").Needs = []string{"b3", "cp"}; node(p, "b4").AtLeast = 1 }, `b4 needs: + cp; b4 atLeast: 0 -> 1`},
		{func(p *dag.Plan) { node(p, "b2").Files = []string{"in.txt"} }, `b2 files: + in.txt`},
		{func(p *dag.Plan) { p.Accumulators[0].Cap = 2 }, `b2 accumulators.notes.cap: 3 -> 2; b3 accumulators.notes.cap: 3 -> 2; b4 accumulators.notes.cap: 3 -> 2`},
	} {
		d := r.Compare(pages(t, c.change))
		var got []string
		for _, n := range d.Nodes {
			for _, x := range n.Changes {
				got = append(got, n.ID+" "+x.String())
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), c.want)
		}
	}
}

// S-6: what makes a node begin its next generation, and what it takes over.
func TestCompareSaysWhatBeginsAnew(t *testing.T) {
	plan := func(nodes ...dag.Node) *dag.Graph {
		for i := range nodes {
			nodes[i].Effect = "pure"
		}
		g, err := dag.NewGraph(&dag.Plan{Name: "p", Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	a, other := dag.Node{ID: "a", Kind: "k"}, dag.Node{ID: "a", Kind: "k", With: []byte(`{"x":1}`)}
	ask := dag.Node{ID: "ask", Kind: "approval", Needs: []string{"a"}}
	really := ask
	really.With = []byte(`{"message":"really?"}`)
	each := dag.Node{ID: "each", Kind: "join", Needs: []string{"a"}, Foreach: &dag.Foreach{}}
	item := dag.Node{ID: "each/p", Kind: "k", Effect: "pure", Needs: []string{"each"}}
	same := dag.Node{ID: "each/p", Kind: "k", Needs: []string{"a"}}
	asked := &machine.EscalationOpenedBody{ID: "q", Kind: machine.AskApproval, Node: "ask", Options: []string{"approve"}}
	answered := &machine.EscalationAnsweredBody{ID: "q", Answer: "approve", By: "user"}
	expanded := &machine.PlanExtendedBody{Node: "each", Generation: 1, Nodes: []dag.Node{item}}
	for _, c := range []struct {
		name     string
		was, now *dag.Graph
		done     []machine.Body
		want     string
	}{
		{"an open question, its needs changed", plan(a, ask), plan(other, ask), []machine.Body{asked}, "a ask"},
		{"an answered one", plan(a, ask), plan(other, ask), []machine.Body{asked, answered}, "a ask"},
		{"its wording changed", plan(a, ask), plan(a, really), []machine.Body{asked}, "ask"},
		{"something else changed", plan(a, ask), plan(a, ask, dag.Node{ID: "z", Kind: "k"}), []machine.Body{asked, answered}, ""},
		{"a node with the id of an item that has ended", plan(a, each), plan(a, same),
			[]machine.Body{expanded, &machine.StartedBody{Node: "each/p", Generation: 1, Attempt: 1}, end("each/p")}, "each/p"},
		{"of one that has not begun", plan(a, each), plan(a, same), []machine.Body{expanded}, "each/p"},
	} {
		st := new(machine.State)
		apply := func(g *dag.Graph, bodies ...machine.Body) {
			for _, b := range bodies {
				e := machine.New(start0, b)
				e.Plan = g
				if err := st.Apply(&e); err != nil {
					t.Fatal(c.name, err)
				}
			}
		}
		apply(c.was, &machine.RunCreatedBody{RunID: "r", PlanDigest: c.was.Plan.Digest(), Schema: machine.Schema})
		apply(nil, &machine.StartedBody{Node: "a", Generation: 1, Attempt: 1}, end("a"))
		apply(nil, c.done...)
		adopted := machine.Adoption(reuse.Compare(st, c.now), "")
		if got := strings.Join(adopted.Invalidated, " "); got != c.want {
			t.Errorf("%s: %q begin anew, want %q", c.name, got, c.want)
		}
		apply(c.now, adopted)
		for _, id := range adopted.Invalidated {
			if v, _ := st.NodeByID(id); v.Generation != 2 || v.Attempt != 0 || v.Status.Ended() {
				t.Errorf("%s: %s is %v in generation %d", c.name, id, v.Status, v.Generation)
			}
		}
		if open := st.Escalations(); len(open) > 0 {
			t.Errorf("%s: still open: %v", c.name, open)
		}
	}
}

// S-6: what an edit says of an accumulator is in its live file when the run has taken the edit over.
func TestAdoptRenewsAccumulators(t *testing.T) {
	for name, change := range map[string]func(*dag.Accumulator){
		"title": func(a *dag.Accumulator) { a.Title = "Other" },
		"path":  func(a *dag.Accumulator) { a.Path = "other.md" },
		"cap":   func(a *dag.Accumulator) { a.Cap = 1 },
	} {
		m, _ := undisturbed(t)
		r, _ := reopen(t, memOptions(m.FS()))
		if _, err := r.Adopt(start0.Add(time.Hour), pages(t, func(p *dag.Plan) { change(&p.Accumulators[0]) }), inputs, nil); err != nil {
			t.Fatal(err)
		}
		r.Close()
		verified(t, m.FS(), name)
	}
}

func end(node string) machine.Body {
	return &machine.FinishedBody{Node: node, Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true}
}

// B-3: an attempt with an effect that must not be repeated, which was cut off, is asked about before its node
// runs again, also when an edit has changed the node or one above it.
func TestAdoptAsksWhatBecameOfALostEffect(t *testing.T) {
	plan := func(change func(*dag.Plan)) *dag.Graph {
		p := &dag.Plan{Format: dag.Format, Name: "once", Nodes: []dag.Node{
			{ID: "a", Kind: "exec", Effect: "pure", With: []byte(`{"argv":["a"]}`)},
			{ID: "send", Kind: "exec", Effect: "once", Needs: []string{"a"}, With: []byte(`{"argv":["send"]}`)},
		}}
		change(p)
		g, err := dag.NewGraph(p)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for what, edit := range map[string]func(*dag.Plan){
		"the node":       func(p *dag.Plan) { p.Nodes[1].With = []byte(`{"argv":["send","other"]}`) },
		"the node above": func(p *dag.Plan) { p.Nodes[0].With = []byte(`{"argv":["other"]}`) },
		"the effect":     func(p *dag.Plan) { p.Nodes[1].Effect = "idempotent" },
		"all of them": func(p *dag.Plan) {
			p.Nodes[0].With, p.Nodes[1].With, p.Nodes[1].Effect = []byte(`{"argv":["other"]}`), []byte(`{"argv":["other"]}`), "idempotent"
		},
	} {
		m := disktest.NewMem()
		r := create(t, memOptions(m.FS()), plan(func(*dag.Plan) {}))
		for _, b := range []machine.Body{
			&machine.StartedBody{Node: "a", Generation: 1, Attempt: 1},
			&machine.FinishedBody{Node: "a", Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true},
			&machine.StartedBody{Node: "send", Generation: 1, Attempt: 1},
		} {
			if _, err := r.Record(start0.Add(time.Minute), b); err != nil {
				t.Fatal(err)
			}
		}
		r.Abandon()
		r, _ = reopen(t, memOptions(m.FS()))
		if _, err := r.Adopt(start0.Add(time.Hour), plan(edit), inputs, nil); err != nil {
			t.Fatal(what, err)
		}
		if err := r.Resume(start0.Add(time.Hour), "apply", nil); err != nil {
			t.Fatal(what, err)
		}
		asked := false
		for range 5 {
			cmds, _ := r.State().Decide(start0.Add(2*time.Hour), 4)
			for _, c := range cmds {
				switch {
				case c.Op == machine.Start && c.Node == "a":
					for _, b := range []machine.Body{&machine.StartedBody{Node: "a", Generation: c.Generation, Attempt: c.Attempt},
						&machine.FinishedBody{Node: "a", Generation: c.Generation, Attempt: c.Attempt, Status: dag.StatusCompleted, Final: true}} {
						if _, err := r.Record(start0.Add(2*time.Hour), b); err != nil {
							t.Fatal(what, err)
						}
					}
				case c.Op == machine.Resolve && c.Node == "send":
					asked = true
				case c.Op == machine.Start && c.Node == "send":
					t.Errorf("%s: it starts again and nobody was asked", what)
				}
			}
		}
		if !asked {
			t.Errorf("%s: nobody was asked", what)
		}
		r.Close()
	}
}
