package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

// L-10: killed, or without power, at any step of it, a run that is pruned is whole or gone, what it made stays, and the
// next prune ends it. A new run begins in either case.
func TestCrashWhilePruning(t *testing.T) {
	far := start0.AddDate(1, 0, 0)
	prune := func(n int) (m *disktest.Mem, steps int) {
		m, _ = undisturbed(t)
		hook := disktest.CrashAt(n)
		if n == 0 {
			hook = nil
		}
		f, fsys := disktest.NewFaulty(m.FS(), hook)
		_, _ = Prune(memOptions(fsys), far, true)
		return m, f.Steps()
	}
	_, steps := prune(0)
	if steps < 6 {
		t.Fatalf("%d steps", steps)
	}
	whole, gone := 0, 0
	for n := 1; n <= steps; n++ {
		m, _ := prune(n)
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			o := memOptions(after.FS())
			_ = after.FS().Remove(Dir + "/lock") // it names this process, which lives
			r, _, err := OpenReadOnly(o)
			switch {
			case err == nil:
				r.Close()
				verified(t, after.FS(), "while it is pruned")
				whole++
			case errors.Is(err, fs.ErrNotExist):
				gone++
			default:
				t.Fatalf("step %d of %d, %s: %v", n, steps, name, err)
			}
			if _, err := Prune(o, far, true); err != nil {
				t.Fatalf("step %d of %d, %s: %v", n, steps, name, err)
			}
			if list, _ := after.FS().ReadDir("."); len(list) != 1 || text(t, after.FS(), "page.html") == "" {
				t.Fatalf("step %d of %d, %s: left %v", n, steps, name, list)
			}
			create(t, o, pages(t, nil)).Close()
		}
	}
	if whole == 0 || gone == 0 {
		t.Errorf("whole %d times, gone %d times", whole, gone)
	}
}

// ended is a run that has.
func ended(t *testing.T) Options {
	o := Options{Dir: t.TempDir(), Command: "test", Now: start0}
	fsys, err := disk.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	if _, err := wholeRun(t, pages(t, nil), fsys); err != nil {
		t.Fatal(err)
	}
	return o
}

// L-10: neither a run that has not ended, is in use, is too young or cannot be read is removed, nor anything that a link
// leads to; archives go by their own age, and not before the run has ended.
func TestWhatIsPruned(t *testing.T) {
	far, now := start0.AddDate(1, 0, 0), time.Now()
	archive := func(t *testing.T, o Options, name string, made time.Time) {
		dir := filepath.Join(o.Dir, Dir, archives, name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "x"), []byte("four"), 0o600),
			os.Chtimes(dir, made, made)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		change func(t *testing.T, o Options) (undo func())
		before time.Time
		want   string
	}{
		"too young": {nil, start0, ""},
		"old":       {nil, far, "run _orchestrator"},
		"in use": {func(t *testing.T, o Options) func() {
			r, _, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			return func() { r.Close() }
		}, far, "run _orchestrator: it is in use"},
		"unreadable": {func(t *testing.T, o Options) func() {
			if err := os.Remove(filepath.Join(o.Dir, Dir, logFile)); err != nil {
				t.Fatal(err)
			}
			return nil
		}, far, "run _orchestrator: it cannot be read: "},
		"a link": {func(t *testing.T, o Options) func() {
			elsewhere := filepath.Join(o.Dir, "elsewhere")
			if err := errors.Join(os.Rename(filepath.Join(o.Dir, Dir), elsewhere),
				os.Symlink("elsewhere", filepath.Join(o.Dir, Dir))); err != nil {
				t.Fatal(err)
			}
			return nil
		}, far, "run _orchestrator: it is no folder"},
		"archives": {func(t *testing.T, o Options) func() {
			archive(t, o, "run-1-old", start0.AddDate(-1, 0, 0))
			archive(t, o, "damaged-old", start0.AddDate(-1, 0, 0))
			archive(t, o, "run-2-new", now)
			archive(t, o, "mine", start0.AddDate(-1, 0, 0))
			outside := filepath.Join(t.TempDir(), "kept")
			if err := errors.Join(os.Mkdir(outside, 0o700),
				os.Symlink(outside, filepath.Join(o.Dir, Dir, archives, "run-3-link"))); err != nil {
				t.Fatal(err)
			}
			return nil
		}, start0, "archive _orchestrator/archives/damaged-old, archive _orchestrator/archives/run-1-old"},
		"archives of a run that goes on": {func(t *testing.T, o Options) func() {
			archive(t, o, "run-1-old", start0.AddDate(-1, 0, 0))
			r, _, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			return func() { r.Close() }
		}, start0, "archive _orchestrator/archives/run-1-old: it is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			o, undo := ended(t), func() {}
			if tt.change != nil {
				if f := tt.change(t, o); f != nil {
					undo = f
				}
			}
			shown, err := Prune(o, tt.before, false)
			if got := oldText(shown); err != nil || !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Fatalf("shows %q, %v, want %q", got, err, tt.want)
			}
			done, err := Prune(o, tt.before, true)
			if err != nil || oldText(done) != oldText(shown) {
				t.Fatalf("did %q, %v", oldText(done), err)
			}
			undo()
			for _, x := range done {
				if x.Bytes == 0 && x.Kept == "" {
					t.Errorf("%s counts as nothing", x.Path)
				}
				_, err := os.Lstat(filepath.Join(o.Dir, x.Path))
				if gone := errors.Is(err, fs.ErrNotExist); gone == (x.Kept != "") {
					t.Errorf("%s: gone %v, kept %q", x.Path, gone, x.Kept)
				}
			}
			if again, err := Prune(o, tt.before, false); err != nil || slices.ContainsFunc(done, goes) && slices.ContainsFunc(again, goes) {
				t.Errorf("there is something left: %q, %v", oldText(again), err)
			}
		})
	}
}

func goes(x Old) bool { return x.Kept == "" }

func oldText(list []Old) string {
	var parts []string
	for _, x := range list {
		text := x.What + " " + x.Path
		if x.Kept != "" {
			text += ": " + x.Kept
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// L-10: a process that has opened the folder of a run, but does not hold its lock yet when it is pruned, begins in a new folder.
func TestPruneWhileARunStarts(t *testing.T) {
	o := ended(t)
	late, err := attach(o, true)
	if err != nil {
		t.Fatal(err)
	}
	defer late.closeTrees()
	if late.removed() {
		t.Fatal("it is there")
	}
	if list, err := Prune(o, start0.AddDate(1, 0, 0), true); err != nil || len(list) != 1 || list[0].Kept != "" {
		t.Fatal(list, err)
	}
	if !late.removed() {
		t.Error("it has not noticed")
	}
	create(t, o, pages(t, nil)).Close()
	if !late.removed() {
		t.Error("it takes another folder for its own")
	}
	r, _, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // kept: what nobody holds the collector would close, and its lock with it
	var held *eventlog.Locked
	if _, _, err := Open(o); !errors.As(err, &held) {
		t.Error(err)
	}
}
