package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

// failing returns the names of the checks that do not pass.
func failing(t *testing.T, fsys disk.FS, head string) string {
	t.Helper()
	list, err := Verify(memOptions(fsys), head)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		if c.Pending {
			names = append(names, c.Name+" pending")
		}
		if !c.Pass {
			if c.Detail == "" {
				t.Errorf("%s fails without a reason", c.Name)
			}
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// B-4, T-5: each promise of the state document, attacked on the disk, is found by the check that stands
// for it.
func TestVerifyFindsWhatWasDone(t *testing.T) {
	edit := func(name, old, new string) func(*testing.T, disk.FS) {
		return func(t *testing.T, f disk.FS) {
			s := text(t, f, name)
			if !strings.Contains(s, old) {
				t.Fatalf("%s does not hold %q", name, old)
			}
			write(t, f, name, strings.Replace(s, old, new, 1))
		}
	}
	page := "b1 after 0 notes\nb2 after 1 notes\nb3 after 2 notes\nb4 after 3 notes\n"
	object := func(content string) string {
		d := artifact.Digest([]byte(content))
		return Dir + "/objects/" + d[:2] + "/" + d[2:]
	}
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, disk.FS)
		want  string
	}{
		{"nothing", func(*testing.T, disk.FS) {}, ""},
		{"an event edited", edit(Dir+"/events.ndjson", `"node":"b3"`, `"node":"b2"`), "chain"},
		{"an event deleted", func(t *testing.T, f disk.FS) {
			lines := strings.SplitAfter(text(t, f, Dir+"/events.ndjson"), "\n")
			write(t, f, Dir+"/events.ndjson", strings.Join(append(lines[:4:4], lines[5:]...), ""))
		}, "chain"},
		{"the mark of the end edited", edit(Dir+"/events.ndjson.synced", "0", "1"), "chain pending"},
		{"the end cut off", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/events.ndjson") }, "chain"},
		{"the log gone", func(t *testing.T, f disk.FS) { f.Remove(Dir + "/events.ndjson") }, "chain"},
		{"invariant 1: the state edited", edit(Dir+"/snapshot.json", `"run_id":"run-1"`, `"run_id":"run-2"`), "snapshot"},
		{"invariant 1: the state cut", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/snapshot.json") }, "snapshot"},
		{"invariant 1: the copy cut", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/snapshot.json.bak") }, "second copy"},
		{"the snapshot deleted, which loses nothing", func(t *testing.T, f disk.FS) { f.Remove(Dir + "/snapshot.json") }, ""},
		{"invariant 1: the document edited", edit(Dir+"/state.json", `"runId": "run-1"`, `"runId": "run-2"`), "document"},
		{"invariant 1: the document cut", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/state.json") }, "document"},
		{"invariant 1: the document's copy cut", func(t *testing.T, f disk.FS) { cut(t, f, Dir+"/state.json.bak") }, "document"},
		{"a document of no event", edit(Dir+"/state.json", `"events": `, `"events": 0, "x": `), "document"},
		{"a document of fewer events than none", edit(Dir+"/state.json", `"events": `, `"events": -`), "document"},
		{"a document of another version", edit(Dir+"/state.json", `"schemaVersion": 2`, `"schemaVersion": 3`), "document pending"},
		{"a document of no version", edit(Dir+"/state.json", `"schemaVersion"`, `"version"`), "document"},
		{"null in place of the document", func(t *testing.T, f disk.FS) { write(t, f, Dir+"/state.json", "null") }, "document"},
		{"invariant 4: less is done in the document", edit(Dir+"/state.json", `"open": 0`, `"open": 1`), "document"},
		{"invariant 7: another cost in the document", edit(Dir+"/state.json", `"estimatedCostUsd":`, `"estimatedCostUsd":1`), "document"},
		{"the document and its copy deleted, which loses nothing", func(t *testing.T, f disk.FS) {
			f.Remove(Dir + "/state.json")
			f.Remove(Dir + "/state.json.bak")
		}, ""},
		{"invariant 2: the page edited", edit("page.html", "b4", "bX"), "artifacts"},
		{"invariant 2: the page gone", func(t *testing.T, f disk.FS) { f.Remove("page.html") }, "artifacts pending"},
		{"a version gone", func(t *testing.T, f disk.FS) { f.Remove(object(page)) }, "artifacts"},
		{"a version edited", edit(object(page), "b4", "bX"), "artifacts"},
		{"an input gone", func(t *testing.T, f disk.FS) { f.Remove(object("input")) }, "plan and inputs pending"},
		{"both copies of an input gone", func(t *testing.T, f disk.FS) {
			f.Remove(object("input"))
			f.Remove(strings.Replace(object("input"), "/objects/", "/copies/", 1))
		}, "plan and inputs"},
		{"the notes edited", edit(Dir+"/notes.md", "b4", "bX"), "accumulators pending"},
		{"invariant 5: a checkpoint edited", edit(Dir+"/checkpoints/cp-1/page.html", "b1", "bX"), "checkpoints"},
		{"invariant 5: a checkpoint gone", func(t *testing.T, f disk.FS) { f.RemoveAll(Dir + "/checkpoints/cp-1") }, "checkpoints"},
		{"invariant 6: a backup edited", edit(Dir+"/passes/b3/page-backup.html", "b1", "bX"), "backups"},
		{"invariant 6: a backup gone", func(t *testing.T, f disk.FS) { f.Remove(Dir + "/passes/b3/page-backup.html") }, "backups"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := undisturbed(t)
			c.spoil(t, m.FS())
			if got := failing(t, m.FS(), ""); got != c.want {
				t.Errorf("fails: %s; want %s", got, c.want)
			}
		})
	}
}

// B-4: a head that somebody kept elsewhere proves that nothing was cut or rewritten since.
func TestVerifyAgainstAKeptHead(t *testing.T) {
	m, _ := undisturbed(t)
	r, _, err := OpenReadOnly(memOptions(m.FS()))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Head()
	for head, want := range map[string]string{
		h.Hash: "", fmt.Sprintf("%d:%s", h.Seq, h.Hash): "",
		strings.Repeat("0", 64): "head", fmt.Sprintf("%d:%s", h.Seq-1, h.Hash): "head", "x": "head",
	} {
		if got := failing(t, m.FS(), head); got != want {
			t.Errorf("head %s: fails %q", head, got)
		}
	}
	// A consistent rewriting of the whole run, which the chain alone cannot see.
	other := disktest.NewMem()
	w := newWorker(t)
	w.now = start0.Add(time.Minute)
	o := create(t, memOptions(other.FS()), pages(t, nil))
	if err := w.work(o); err != nil {
		t.Fatal(err)
	}
	o.Close()
	if got := failing(t, other.FS(), ""); got != "" {
		t.Error(got)
	}
	if got := failing(t, other.FS(), h.Hash); got != "head" {
		t.Errorf("fails %q", got)
	}
}

// T-5, invariants 7 and 10: the books and the answers.
func TestVerifyCountsAnswersAndCost(t *testing.T) {
	m := disktest.NewMem()
	w := newWorker(t)
	r := create(t, memOptions(m.FS()), pages(t, nil))
	w.stop = func(ran int) bool { return ran == 1 }
	if err := w.work(r); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	a := Attempt{Node: "v1", Generation: 1, Attempt: 1}
	for _, b := range []machine.Body{
		&machine.StartedBody{Node: "v1", Generation: 1, Attempt: 1},
		&machine.LLMCallStartedBody{CallID: "v1.1.1", Node: "v1", Model: "m", ProviderBaseURL: "cli:sim", PromptHash: "p", MaxTokens: 1},
		&machine.LLMCallFinishedBody{CallID: "v1.1.1", Node: "v1", FinishReason: "stop", OutputHash: "o"},
	} {
		if _, err := r.Record(w.tick(), b); err != nil {
			t.Fatal(err)
		}
	}
	r.Abandon()
	if got := failing(t, m.Kill().FS(), ""); got != "answers" {
		t.Errorf("an answer that is not on disk: fails %q", got)
	}
	m = m.Kill()
	r, _ = reopen(t, memOptions(m.FS()))
	f, err := r.Keep(a, "raw-output.txt")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, _, err := r.Failed(a, "raw-output.txt"); err != nil {
		t.Fatal(err)
	}
	r.Abandon()
	if got := failing(t, m.Kill().FS(), ""); got != "" {
		t.Errorf("with the failed answer kept: fails %q", got)
	}
	if got := r.State().Ledger().Spent.USD; got != 250000 {
		t.Errorf("spent %v", got)
	}
}

// V-4: replay gives the state of the snapshot, says so, and writes it when asked.
func TestReplay(t *testing.T) {
	m, _ := undisturbed(t)
	want := text(t, m.FS(), Dir+"/snapshot.json")
	counter, fsys := disktest.NewFaulty(m.FS(), nil)
	st, same, err := Replay(memOptions(fsys), false)
	if err != nil || !same || st.Run().Status != machine.RunDone || counter.Steps() != 0 {
		t.Fatal(same, err, counter.Steps())
	}
	write(t, m.FS(), Dir+"/snapshot.json", want[:len(want)/2])
	if _, same, err = Replay(memOptions(m.FS()), false); err != nil || same {
		t.Fatal(same, err)
	}
	if _, _, err = Replay(memOptions(m.FS()), true); err != nil {
		t.Fatal(err)
	}
	if got := text(t, m.FS(), Dir+"/snapshot.json"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, same, err = Replay(memOptions(m.FS()), false); err != nil || !same {
		t.Fatal(same, err)
	}
	if _, _, err := Replay(memOptions(disktest.NewMem().FS()), false); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// S-10: no answer is overwritten, whoever comes second.
func TestKeptFilesAreNeverOverwritten(t *testing.T) {
	m := disktest.NewMem()
	r := create(t, memOptions(m.FS()), pages(t, nil))
	defer r.Close()
	keep := func(a Attempt, name, content string) {
		t.Helper()
		f, err := r.Keep(a, name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	keep(Attempt{Node: "b1", Generation: 1, Attempt: 1}, "raw-output.txt", "first")
	if _, _, err := r.Failed(Attempt{Node: "b1", Generation: 1, Attempt: 1}, "raw-output.txt"); err != nil {
		t.Fatal(err)
	}
	keep(Attempt{Node: "b1", Generation: 1, Attempt: 2}, "raw-output.txt", "second") // and its process dies
	keep(Attempt{Node: "b1", Generation: 1, Attempt: 3}, "raw-output.txt", "third")
	keep(Attempt{Node: "b1", Generation: 2, Attempt: 1}, "raw-output.txt", "other generation")
	keep(Attempt{Node: "v1", Generation: 1, Attempt: 1}, "sub/raw-output", "deep")
	for name, want := range map[string]string{
		"passes/b1/raw-output-FAILED-1.txt": "first", "passes/b1/raw-output-FAILED-2.txt": "second", "passes/b1/raw-output.txt": "third",
		"passes/b1.g2/raw-output.txt": "other generation", "nodes/v1/sub/raw-output": "deep",
	} {
		if got := text(t, m.FS(), Dir+"/"+name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if _, _, err := r.Failed(Attempt{Node: "b1", Generation: 1, Attempt: 9}, "nothing.txt"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"../x", "", ".", "/x", "../../events.ndjson"} {
		if _, err := r.Keep(Attempt{Node: "b1", Generation: 1, Attempt: 1}, name); err == nil {
			t.Errorf("kept %q", name)
		}
	}
	for _, dir := range []string{"objects", "checkpoints/x", "snapshot.json", "..", "events.ndjson"} {
		node(r.Graph().Plan, "b1").Dir = dir
		if _, err := r.Keep(Attempt{Node: "b1", Generation: 1, Attempt: 1}, "x"); err == nil {
			t.Errorf("kept in %q", dir)
		}
	}
}

// What an attempt keeps takes no earlier attempt's file away.
func TestKeepAside(t *testing.T) {
	dir := t.TempDir()
	r := create(t, Options{Dir: dir, Now: start0}, pages(t, nil))
	defer r.Close()
	staging, err := r.Staging("w1")
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := disk.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for i := range 2 {
		w, err := r.Keep(Attempt{Node: "v1", Generation: 1, Attempt: i + 1}, "stdout.txt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "captured"); errors.Join(err, w.Close()) != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"stdout.txt", "stdout-FAILED-1.txt"} {
		if got := text(t, fsys, strings.TrimPrefix(r.NodeDir("v1", 1), "/")+"/"+name); got != "captured" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if again, err := r.Staging("w1"); err != nil || again != staging {
		t.Error(again, err)
	}
}
