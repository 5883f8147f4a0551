package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

// fullFrom is a disk that from a step on has room for nothing.
func fullFrom(n int) func(disktest.Step) error {
	return func(s disktest.Step) error {
		if s.N >= n && (s.Op == "write" || s.Op == "create" || s.Op == "mkdir") {
			return disktest.Short{Err: syscall.ENOSPC}
		}
		return nil
	}
}

// S-4, S-12: every single step on the disk of a whole run fails once, for want of room, by a broken disk, or because it
// became read-only; and from one step on every write fails for want of room. Whatever the process makes of it, the next one, or
// the same, ends with the page and the notes of an undisturbed run, every record verifies, and nothing is taken for a user's edit.
func TestDiskFailsAtEveryStep(t *testing.T) {
	g := pages(t, nil)
	work := func(fsys disk.FS) (*worker, error) { return wholeRun(t, g, fsys) }
	count, fsys := disktest.NewFaulty(disktest.NewMem().FS(), nil)
	if _, err := work(fsys); err != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	for n := 1; n <= count.Steps(); n++ {
		for name, hook := range map[string]func(disktest.Step) error{
			"full once":       disktest.FailAt(n, syscall.ENOSPC, nil),
			"broken once":     disktest.FailAt(n, syscall.EIO, nil),
			"read-only once":  disktest.FailAt(n, syscall.EROFS, nil),
			"full from there": fullFrom(n),
		} {
			when := fmt.Sprintf("step %d of %d, %s", n, count.Steps(), name)
			m := disktest.NewMem()
			_, fsys := disktest.NewFaulty(m.FS(), hook)
			before, err := work(fsys)
			switch {
			case err == nil:
				ends["went on"]++
			case disk.Broken(err):
				ends["ended by the disk"]++
			default:
				ends["ended otherwise"]++
				t.Logf("%s: %v", when, err)
			}
			after := m.Kill()
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
				if err := r.Resume(w.tick(), "resume", nil); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
			}
			if err := w.work(r); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if v := r.State().Run(); v.Status != machine.RunDone {
				t.Fatalf("%s: the run is %s %+v", when, v.Status, v.Pause)
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
	t.Logf("%v", ends)
	if ends["ended by the disk"] == 0 || ends["went on"] == 0 || ends["ended otherwise"] > 0 {
		t.Errorf("the processes ended so: %v", ends)
	}
}

// The snapshot and the document that hold all of the log are not written again when the run is closed; those that could
// not be written are.
func TestLastSnapshotIsWrittenOnce(t *testing.T) {
	for _, name := range []string{"", snapshotFile, stateFile} { // what the disk has no room for after the last event
		m := disktest.NewMem()
		var full atomic.Bool
		var writes atomic.Int32
		_, fsys := disktest.NewFaulty(m.FS(), func(s disktest.Step) error {
			if strings.HasPrefix(s.Name, path.Join(Dir, snapshotFile)) || strings.HasPrefix(s.Name, path.Join(Dir, stateFile)) {
				writes.Add(1)
			}
			if full.Load() && strings.HasPrefix(s.Name, path.Join(Dir, name)) {
				return syscall.ENOSPC
			}
			return nil
		})
		r, w := create(t, memOptions(fsys), pages(t, nil)), newWorker(t)
		full.Store(name != "")
		if err := w.work(r); err != nil {
			t.Fatal(err)
		}
		if err := r.saver.Flush(); (err != nil) != (name != "") {
			t.Fatalf("no room for %q: %v", name, err)
		}
		full.Store(false)
		before := writes.Load()
		head := r.head.Seq
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if again := writes.Load() != before; again != (name != "") {
			t.Errorf("no room for %q: written again %v", name, again)
		}
		own, err := m.FS().Sub(Dir)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := eventlog.ReadSnapshot(own, snapshotFile); err != nil || s.Head.Seq != head {
			t.Errorf("no room for %q: snapshot %+v, %v; want one of event %d", name, s, err, head)
		}
		verified(t, m.FS(), "closed")
	}
}
