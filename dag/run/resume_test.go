package run

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

// interrupted runs the pages plan until its process dies before, during or after a node's publication.
// The disk is as kill -9 leaves it.
func interrupted(t *testing.T, node, when string) *disktest.Mem {
	t.Helper()
	m := disktest.NewMem()
	_, fsys := disktest.NewFaulty(m.FS(), nil)
	w := newWorker(t)
	r := create(t, memOptions(fsys), pages(t, nil))
	w.stop = func(int) bool { return slices.Contains(readyNodes(r), node) }
	if err := w.work(r); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	cmds, _ := r.State().Decide(w.tick(), 1)
	c := cmds[0]
	a := Attempt{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt}
	if _, err := r.Record(w.tick(), &machine.StartedBody{Node: a.Node, Generation: a.Generation, Attempt: a.Attempt, Reserve: c.Reserve}); err != nil {
		t.Fatal(err)
	}
	if when == "started" {
		r.Abandon()
		return m.Kill()
	}
	staged := t.TempDir() + "/x"
	if err := os.WriteFile(staged, []byte("half of "+node+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := stored(r, map[string]string{"page.html": staged}, Entry{Accumulator: "notes", Text: "lost"})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Publish(a, out, func(bodies ...machine.Body) error {
		_, err := r.Record(w.tick(), bodies...)
		if when == "recorded" {
			r.log.Sync()
			return errors.Join(err, errStop)
		}
		return err
	})
	if when == "recorded" && !errors.Is(err, errStop) || when == "published" && err != nil {
		t.Fatal(err)
	}
	r.Abandon()
	return m.Kill()
}

func readyNodes(r *Run) (ids []string) {
	for i := range int32(r.Graph().Len()) {
		if v := r.State().NodeAt(i); v.Status == machine.Ready {
			ids = append(ids, v.Node.ID)
		}
	}
	return ids
}

// finish carries a reopened run to its end and checks it.
func finish(t *testing.T, r *Run, fsys disk.FS) *worker {
	t.Helper()
	w := newWorker(t)
	w.now = start0.Add(time.Hour)
	if err := r.Resume(w.tick(), "resume", nil); err != nil {
		t.Fatal(err)
	}
	if err := w.work(r); err != nil {
		t.Fatal(err)
	}
	if got := r.State().Run().Status; got != machine.RunDone {
		t.Fatalf("the run is %s: %+v", got, r.State().Run().Pause)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, fsys, "finished")
	return w
}

func write(t *testing.T, fsys disk.FS, name, content string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, fsys disk.FS, name string) string {
	t.Helper()
	b, err := disk.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// S-5: no state is a fresh start.
func TestOpenWithoutARun(t *testing.T) {
	m := disktest.NewMem()
	if _, _, err := Open(memOptions(m.FS())); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := m.FS().MkdirAll(Dir + "/objects"); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(Options) (*Run, *Report, error){Open, OpenReadOnly} {
		if _, _, err := open(memOptions(m.FS())); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	r := create(t, memOptions(m.FS()), pages(t, nil))
	if _, err := Create(memOptions(m.FS()), New{Graph: pages(t, nil), File: inputs}); err == nil {
		t.Fatal("a second run was created beside a live one")
	}
	r.Close()
	if _, err := Create(memOptions(m.FS()), New{Graph: pages(t, nil), File: inputs}); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// S-5: a verifier in flight is simply run again; a builder too, and the page stands as it was before
// it, whether or not it had begun to publish.
func TestAttemptInFlight(t *testing.T) {
	for _, c := range []struct{ node, when string }{
		{"v1", "started"}, {"b2", "started"}, {"b2", "recorded"}, {"b2", "published"},
		{"b1", "started"}, {"b1", "recorded"}, {"b1", "published"}, {"b4", "published"},
	} {
		t.Run(c.node+" "+c.when, func(t *testing.T) {
			m := interrupted(t, c.node, c.when)
			before := ""
			if b, err := disk.ReadFile(m.FS(), "page.html"); err == nil {
				before = string(b)
			}
			r, rep := reopen(t, memOptions(m.FS()))
			if !slices.Equal(rep.InFlight, []string{c.node}) || len(rep.Edited) > 0 {
				t.Fatalf("%+v", rep)
			}
			if err := r.Resume(start0.Add(time.Hour), "resume", nil); err != nil {
				t.Fatal(err)
			}
			v, _ := r.State().NodeByID(c.node)
			if v.Lost != 1 || v.Failures != 0 {
				t.Errorf("lost %d, failures %d", v.Lost, v.Failures)
			}
			if strings.Contains(before, "half of") {
				if b, err := disk.ReadFile(m.FS(), "page.html"); err == nil && strings.Contains(string(b), "half of") {
					t.Errorf("the page of the lost attempt still stands: %s", b)
				}
			}
			r.Abandon()
			m = m.Kill() // and once more, so that recovery itself is resumed
			r, _ = reopen(t, memOptions(m.FS()))
			w := finish(t, r, m.FS())
			if got := contents(t, m.FS()); got != wantPages {
				t.Errorf("got\n%s", got)
			}
			if w.ran[0] != c.node {
				t.Errorf("ran %v", w.ran)
			}
		})
	}
}

// A complete result that a lost attempt left is adopted: what was paid for is not bought twice.
func TestResultOfALostAttemptIsAdopted(t *testing.T) {
	m := interrupted(t, "b2", "recorded")
	r, _ := reopen(t, memOptions(m.FS()))
	err := r.Resume(start0.Add(time.Hour), "resume", func(node string, generation, attempt int) (*machine.FinishedBody, error) {
		o := machine.Outcome{Status: dag.StatusCompleted, Body: machine.FinishedBody{CostUSD: 250000, CostKind: "reported"}}
		return r.State().Settle(node, o, start0.Add(time.Hour)).Body.(*machine.FinishedBody), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, m.FS(), "page.html"); got != "half of b2\n" {
		t.Fatalf("page %q", got)
	}
	if got := r.ArtifactDigest("b3", "page.html"); got != artifact.Digest([]byte("half of b2\n")) {
		t.Fatal("the next node does not see it")
	}
	r.Close()
	verified(t, m.FS(), "adopted")
}

// The result of a lost attempt that had been recorded, or published, is published again when it is adopted:
// once is enough.
func TestPublishingAgainRecordsNothingTwice(t *testing.T) {
	for _, when := range []string{"started", "recorded", "published"} {
		t.Run(when, func(t *testing.T) {
			m := interrupted(t, "b2", when)
			r, _ := reopen(t, memOptions(m.FS()))
			staged := t.TempDir() + "/x"
			if err := os.WriteFile(staged, []byte("half of b2\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := stored(r, map[string]string{"page.html": staged}, Entry{Accumulator: "notes", Text: "lost"})
			if err != nil {
				t.Fatal(err)
			}
			err = r.Publish(Attempt{Node: "b2", Generation: 1, Attempt: 1}, out, func(bodies ...machine.Body) error {
				_, err := r.Record(start0.Add(time.Hour), bodies...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			body := r.State().Settle("b2", machine.Outcome{Status: dag.StatusCompleted}, start0.Add(time.Hour)).Body
			if err := r.RecordDurable(start0.Add(time.Hour), body); err != nil {
				t.Fatal(err)
			}
			if e, err := r.Entries("b3", "notes"); err != nil || len(e) != 2 {
				t.Errorf("%d entries, %v", len(e), err)
			}
			versions := r.listArtifacts()[0].Versions
			if len(versions) != 2 || text(t, m.FS(), "page.html") != "half of b2\n" {
				t.Errorf("%d versions, page %q", len(versions), text(t, m.FS(), "page.html"))
			}
			r.Close()
			verified(t, m.FS(), "published again")
		})
	}
}

// S-5: while a builder was in flight, a page that is neither old nor new is replaced by the version before
// the builder; what stood there is kept.
func TestPageChangedUnderABuilder(t *testing.T) {
	for _, when := range []string{"started", "recorded", "published"} {
		t.Run(when, func(t *testing.T) {
			m := interrupted(t, "b2", when)
			write(t, m.FS(), "page.html", "garbage")
			r, _ := reopen(t, memOptions(m.FS()))
			w := finish(t, r, m.FS())
			if got := contents(t, m.FS()); got != wantPages || w.ran[0] != "b2" {
				t.Errorf("ran %v, got\n%s", w.ran, got)
			}
			if !r.store.Has(artifact.Digest([]byte("garbage"))) {
				t.Error("what stood there was not kept")
			}
		})
	}
}

// S-5: no object and no backup holds the version before the builder: fatal, with what can be done.
func TestNoVersionToGoBackTo(t *testing.T) {
	m := interrupted(t, "b4", "started")
	write(t, m.FS(), "page.html", "garbage")
	before := artifact.Digest([]byte("b1 after 0 notes\nb2 after 1 notes\nb3 after 2 notes\n"))
	if err := m.FS().Remove(Dir + "/objects/" + before[:2] + "/" + before[2:]); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(memOptions(m.FS()))
	var d *eventlog.Damaged
	if !errors.As(err, &d) || !strings.Contains(d.WayOut, "cp-1") || !strings.Contains(d.File, "page.html") {
		t.Fatal(err)
	}
	// With a backup it goes on.
	m = interrupted(t, "b4", "published")
	if err := m.FS().Remove(Dir + "/objects/" + before[:2] + "/" + before[2:]); err != nil {
		t.Fatal(err)
	}
	r, _ := reopen(t, memOptions(m.FS()))
	finish(t, r, m.FS())
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
}

// S-5: an artifact that a user edited between two starts is adopted, said, and read by what follows.
func TestEditedArtifactIsAdopted(t *testing.T) {
	m := disktest.NewMem()
	w := newWorker(t)
	r := create(t, memOptions(m.FS()), pages(t, nil))
	w.stop = func(ran int) bool { return ran == 2 }
	if err := w.work(r); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	r.Close()
	write(t, m.FS(), "page.html", "mine\n")
	r, rep := reopen(t, memOptions(m.FS()))
	if !slices.Equal(rep.Edited, []string{"page.html"}) || len(rep.Warnings) != 1 {
		t.Fatalf("%+v", rep)
	}
	r.Abandon()
	m = m.Kill()
	r, rep = reopen(t, memOptions(m.FS()))
	if len(rep.Warnings) != 0 {
		t.Fatalf("said twice: %v", rep.Warnings)
	}
	finish(t, r, m.FS())
	if got := text(t, m.FS(), "page.html"); got != "mine\nb2 after 1 notes\nb3 after 2 notes\nb4 after 3 notes\n" {
		t.Errorf("page %q", got)
	}
	if got := text(t, m.FS(), Dir+"/passes/b2/page-backup.html"); got != "mine\n" {
		t.Errorf("backup %q", got)
	}
}

// An edit made while the run goes on is a version of its own when the next node publishes.
func TestArtifactEditedDuringTheRun(t *testing.T) {
	m := disktest.NewMem()
	w := newWorker(t)
	r := create(t, memOptions(m.FS()), pages(t, nil))
	w.stop = func(ran int) bool {
		if ran == 2 {
			write(t, m.FS(), "page.html", "mine\n")
		}
		return false
	}
	if err := w.work(r); err != nil {
		t.Fatal(err)
	}
	r.Close()
	verified(t, m.FS(), "at the end")
	if got := text(t, m.FS(), Dir+"/passes/b2/page-backup.html"); got != "mine\n" {
		t.Errorf("backup %q", got)
	}
}

// A live file that somebody removed comes back.
func TestRemovedArtifactComesBack(t *testing.T) {
	m, _ := undisturbed(t)
	if err := m.FS().Remove("page.html"); err != nil {
		t.Fatal(err)
	}
	if err := m.FS().Remove(Dir + "/notes.md"); err != nil {
		t.Fatal(err)
	}
	r, rep := reopen(t, memOptions(m.FS()))
	if !slices.Equal(rep.Restored, []string{"page.html"}) {
		t.Fatalf("%+v", rep)
	}
	r.Close()
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
}

// S-5: paused is paused, with its reason, after any number of starts.
func TestPauseSurvivesARestart(t *testing.T) {
	m := disktest.NewMem()
	r := create(t, memOptions(m.FS()), pages(t, nil))
	if err := r.RecordDurable(start0, &machine.RunPausedBody{Reason: "user", Message: "lunch"}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = reopen(t, memOptions(m.FS()))
	if v := r.State().Run(); v.Status != machine.RunPause || v.Pause.Message != "lunch" {
		t.Fatalf("%+v", v)
	}
	if cmds, _ := r.State().Decide(start0.Add(time.Hour), 8); len(cmds) != 0 {
		t.Fatalf("%+v", cmds)
	}
	finish(t, r, m.FS())
}

// S-4: state, its second copy, the log: whichever is missing or damaged, the state is the same.
func TestStateComesFromWhateverIsLeft(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*testing.T, disk.FS)
		source string
		warned int
	}{
		{"all there", func(*testing.T, disk.FS) {}, "snapshot", 0},
		{"no state", func(t *testing.T, f disk.FS) { f.Remove(Dir + "/snapshot.json") }, "backup", 0},
		{"state cut", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/snapshot.json") }, "backup", 1},
		{"state empty", func(t *testing.T, f disk.FS) { write(t, f, Dir+"/snapshot.json", "") }, "backup", 1},
		{"neither", func(t *testing.T, f disk.FS) { f.Remove(Dir + "/snapshot.json"); f.Remove(Dir + "/snapshot.json.bak") }, "log", 0},
		{"both cut", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/snapshot.json"); cut(t, f, Dir+"/snapshot.json.bak") }, "log", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := undisturbed(t)
			r, _ := reopen(t, memOptions(m.FS()))
			want, err := r.snapshot()
			if err != nil {
				t.Fatal(err)
			}
			r.Abandon()
			m = m.Kill()
			c.spoil(t, m.FS())
			r, rep := reopen(t, memOptions(m.FS()))
			got, err := r.snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if rep.Source != c.source || len(rep.Warnings) != c.warned {
				t.Errorf("from %s, warnings %v", rep.Source, rep.Warnings)
			}
			if string(got.State) != string(want.State) || string(got.Index) != string(want.Index) {
				t.Errorf("another state:\n%s\n%s", got.State, want.State)
			}
			r.Close()
		})
	}
}

func cut(t *testing.T, fsys disk.FS, name string) {
	t.Helper()
	s := text(t, fsys, name)
	write(t, fsys, name, s[:len(s)/2])
}

// S-4: with the log gone or cut below the snapshot the run is damaged, and the message says what there is
// to go back to.
func TestLostLogIsDamage(t *testing.T) {
	for name, spoil := range map[string]func(disk.FS){
		"gone":      func(f disk.FS) { f.Remove(Dir + "/events.ndjson") },
		"cut":       func(f disk.FS) { cut(t, f, Dir+"/events.ndjson") },
		"unmarked":  func(f disk.FS) { cut(t, f, Dir+"/events.ndjson"); f.Remove(Dir + "/events.ndjson.synced") },
		"exchanged": func(f disk.FS) { write(t, f, Dir+"/events.ndjson", "hello\n") },
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := undisturbed(t)
			spoil(m.FS())
			for _, open := range []func(Options) (*Run, *Report, error){Open, OpenReadOnly} {
				_, _, err := open(memOptions(m.FS()))
				var d *eventlog.Damaged
				if !errors.As(err, &d) || !strings.Contains(err.Error(), "cp-1") || !strings.Contains(err.Error(), "--fresh") {
					t.Fatal(err)
				}
			}
			if _, err := Create(memOptions(m.FS()), New{Graph: pages(t, nil), File: inputs}); !errors.Is(err, fs.ErrExist) {
				t.Fatal("a new run in the place of a damaged one:", err)
			}
			// --fresh keeps it aside.
			to, err := Archive(memOptions(m.FS()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.FS().Lstat(to + "/snapshot.json"); err != nil {
				t.Fatal(err)
			}
			create(t, memOptions(m.FS()), pages(t, nil)).Close()
		})
	}
}

// S-4: the way back to a checkpoint before the damage works, and keeps what was there.
func TestRevertBehindADamage(t *testing.T) {
	known := map[string]string{"an event changed": "$0.25 spent, which the budget no longer counts: resuming pays again for b1"}
	for name, spoil := range map[string]func(*testing.T, disk.FS){
		"an event changed": func(t *testing.T, f disk.FS) {
			s := text(t, f, Dir+"/events.ndjson")
			i := strings.LastIndex(s, `"node":"b4"`)
			write(t, f, Dir+"/events.ndjson", s[:i]+`"node":"b1"`+s[i+11:])
			f.Remove(Dir + "/snapshot.json") // behind a snapshot the log is not read again
			f.Remove(Dir + "/snapshot.json.bak")
		},
		"the end missing": func(t *testing.T, f disk.FS) {
			s := text(t, f, Dir+"/events.ndjson")
			write(t, f, Dir+"/events.ndjson", s[:len(s)-1000])
		},
		"the last end of an attempt missing": func(t *testing.T, f disk.FS) { // nothing that follows can be told from what was
			lines := strings.SplitAfter(text(t, f, Dir+"/events.ndjson"), "\n")
			i := len(lines) - 1
			for !strings.Contains(lines[i], `"type":"WORK_ITEM_FINISHED"`) {
				i--
			}
			write(t, f, Dir+"/events.ndjson", strings.Join(slices.Delete(lines, i, i+1), ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := undisturbed(t)
			spoil(t, m.FS())
			damaged := text(t, m.FS(), Dir+"/events.ndjson")
			o := memOptions(m.FS())
			var d *eventlog.Damaged
			if _, _, err := Open(o); !errors.As(err, &d) {
				t.Fatal(err)
			}
			o.Now, o.Salvage = start0.Add(time.Hour), true
			r, rep, err := Open(o)
			if err != nil || len(rep.Edited) > 0 || len(rep.Warnings) < 2 {
				t.Fatalf("%v %+v", err, rep)
			}
			if got := text(t, m.FS(), Dir+"/archives/damaged-2026-03-01T13-00-00-000Z/events.ndjson.damaged"); got != damaged {
				t.Error("the damaged log was not kept as it was")
			}
			if said := strings.Join(rep.Warnings, "\n"); !strings.Contains(said, known[name]) || !strings.Contains(said, "dagrun resume --salvage") ||
				rep.Dropped == nil || !rep.Dropped.Paying() || (rep.Dropped.CostUSD > 0) != (known[name] != "") {
				t.Errorf("dropped %+v, said %s", rep.Dropped, said)
			}
			if _, err := r.Revert(start0.Add(time.Hour), "cp-1"); err != nil {
				t.Fatal(err)
			}
			finish(t, r, m.FS())
			if got := contents(t, m.FS()); got != wantPages {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// A snapshot of another run, or one that is ahead of the log, is damage and not a way into the run.
func TestForeignSnapshotIsDamage(t *testing.T) {
	m, _ := undisturbed(t)
	other := disktest.NewMem()
	r, err := Create(memOptions(other.FS()), New{Graph: pages(t, nil), RunID: "run-2", Seed: 1, File: inputs})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	write(t, m.FS(), Dir+"/snapshot.json", text(t, other.FS(), Dir+"/snapshot.json"))
	var d *eventlog.Damaged
	if _, _, err := Open(memOptions(m.FS())); !errors.As(err, &d) {
		t.Fatal(err)
	}
}

// S-11: while a run is open nobody else writes to it, but it can be read.
func TestOneWriterManyReaders(t *testing.T) {
	m := disktest.NewMem()
	r := create(t, memOptions(m.FS()), pages(t, nil))
	var held *eventlog.Locked
	if _, _, err := Open(memOptions(m.FS())); !errors.As(err, &held) || held.Holder.Command != "test" {
		t.Fatal(err)
	}
	if _, err := Archive(memOptions(m.FS())); !errors.As(err, &held) {
		t.Fatal(err)
	}
	counter, fsys := disktest.NewFaulty(m.FS(), nil)
	ro, _, err := OpenReadOnly(memOptions(fsys))
	if err != nil || ro.ID() != "run-1" {
		t.Fatal(err)
	}
	if _, err := ro.Record(start0, &machine.RunPausedBody{Reason: "user"}); err == nil {
		t.Error("recorded")
	}
	if _, err := ro.Adopt(start0, pages(t, nil), inputs, nil); err == nil {
		t.Error("adopted")
	}
	if _, err := ro.Checkpoint(start0, "x", "", nil); err == nil {
		t.Error("made a checkpoint")
	}
	if _, err := ro.Revert(start0, "x"); err == nil {
		t.Error("reverted")
	}
	if err := ro.Close(); err != nil || counter.Steps() != 0 {
		t.Errorf("%d steps on the disk, %v", counter.Steps(), err)
	}
	r.Close()
}

// S-3: the directory can be moved between two starts.
func TestDirectoryCanBeMoved(t *testing.T) {
	base := t.TempDir()
	o := Options{Dir: base + "/a/b", Command: "test", Now: start0}
	w := newWorker(t)
	r := create(t, o, pages(t, nil))
	w.stop = func(ran int) bool { return ran == 3 }
	if err := w.work(r); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	r.Abandon()
	if err := os.Rename(base+"/a/b", base+"/c"); err != nil {
		t.Fatal(err)
	}
	o.Dir = base + "/c"
	if !Exists(o.Dir) || Exists(base+"/a/b") || Exists(base) {
		t.Error("Exists is wrong")
	}
	r, _ = reopen(t, o)
	fsys, err := disk.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	finish(t, r, fsys)
	if got := contents(t, fsys); got != wantPages {
		t.Errorf("got\n%s", got)
	}
	for _, name := range []string{"events.ndjson", "snapshot.json", "checkpoints/cp-1/manifest.json"} {
		if s := text(t, fsys, Dir+"/"+name); strings.Contains(s, base) {
			t.Errorf("%s holds an absolute path", name)
		}
	}
	// Directory 0700, files 0600.
	err = fs.WalkDir(os.DirFS(o.Dir), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; err == nil && fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A full disk pauses the run with what it was doing recorded; with space it goes on.
func TestFullDiskPausesTheRun(t *testing.T) {
	m := disktest.NewMem()
	var full atomic.Bool
	_, fsys := disktest.NewFaulty(m.FS(), func(s disktest.Step) error {
		if s.Op == "remove" && strings.HasSuffix(s.Name, ".reserve") {
			full.Store(false) // there is room again
		}
		if full.Load() && s.Op == "write" {
			return disktest.Short{Err: errFull}
		}
		return nil
	})
	w := newWorker(t)
	r := create(t, memOptions(fsys), pages(t, nil))
	w.stop = func(ran int) bool { full.Store(ran == 2); return false }
	if err := w.work(r); err != nil {
		t.Fatal(err)
	}
	if v := r.State().Run(); v.Status != machine.RunPause || v.Pause.Reason != "disk" || !strings.Contains(v.Pause.Message, "full") {
		t.Fatalf("%+v", v)
	}
	r.Close()
	r, _ = reopen(t, memOptions(m.FS()))
	finish(t, r, m.FS())
	if got := contents(t, m.FS()); got != wantPages {
		t.Errorf("got\n%s", got)
	}
}

// An event that cannot have happened is refused and changes nothing, on disk or in the state.
func TestImpossibleEventsAreRefused(t *testing.T) {
	m := disktest.NewMem()
	r := create(t, memOptions(m.FS()), pages(t, nil))
	head := r.Head()
	for _, b := range []machine.Body{
		&machine.StartedBody{Node: "nobody", Generation: 1, Attempt: 1},
		&machine.FinishedBody{Node: "b1", Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true},
		&machine.EscalationAnsweredBody{ID: "none", Answer: "yes", By: "user"},
	} {
		if _, err := r.Record(start0, b); err == nil {
			t.Errorf("%T was recorded", b)
		}
	}
	if r.Head() != head {
		t.Error("the log has grown")
	}
	w := newWorker(t)
	if err := w.work(r); err != nil {
		t.Fatal("the run does not go on:", err)
	}
	r.Close()
	verified(t, m.FS(), "at the end")
}

// §13.8: what a loss could make expensive is durable before anybody acts on it; the rest waits.
func TestWhatIsSyncedFirst(t *testing.T) {
	m := disktest.NewMem()
	r := create(t, memOptions(m.FS()), pages(t, func(*dag.Plan) {}))
	defer r.Close()
	mark, err := r.Record(start0, &machine.StartedBody{Node: "b1", Generation: 1, Attempt: 1, Reserve: dag.Amount{USD: 500000}})
	if err != nil || !mark.Sync {
		t.Fatal(mark, err)
	}
	if err := r.Wait(mark); err != nil || r.log.Synced() < mark.Seq {
		t.Fatal(err, r.log.Synced())
	}
}

var errFull error = syscall.ENOSPC

// the time between the death of a process and the next one's start is not active time, also when
// attempts are found in flight, whose ends are recorded before RUN_RESUMED.
func TestDeadTimeIsNotActive(t *testing.T) {
	for _, when := range []string{"started", "recorded", "published"} {
		m := interrupted(t, "b2", when)
		r, _ := reopen(t, memOptions(m.FS()))
		before := r.State().Run()
		if _, err := r.lose(before.Updated.Add(5*time.Hour), nil); err != nil { // and dies before it has resumed
			t.Fatal(when, err)
		}
		r.Abandon()
		if err := disk.WriteFile(m.FS(), "page.html", []byte("by hand\n")); err != nil {
			t.Fatal(err)
		}
		o := memOptions(m.FS())
		o.Now = before.Updated.Add(7 * time.Hour)
		r, _ = reopen(t, o)
		g := pages(t, func(p *dag.Plan) { p.Nodes[len(p.Nodes)-1].Title = "edited" })
		if _, err := r.Adopt(before.Updated.Add(8*time.Hour), g, inputs, nil); err != nil {
			t.Fatal(when, err)
		}
		if err := r.Resume(before.Updated.Add(10*time.Hour), "resume", nil); err != nil {
			t.Fatal(when, err)
		}
		if after := r.State().Run(); after.Active != before.Active || !after.Ticking {
			t.Errorf("%s: active for %v after the resume, %v before it", when, after.Active, before.Active)
		}
		r.Close()
	}
}
