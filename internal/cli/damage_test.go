package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// Whatever is done to a file of a run's own folder, resuming ends, and well, with the artifacts of an undisturbed run and
// a record that verifies, or it says which file is wrong and what to do, with status 5 where the record is damaged
// (S-1, S-4, B-4). Nothing is followed out of the run, waited for, or guessed.
func TestFilesOfARunDamaged(t *testing.T) {
	t.Parallel()
	whole := newCrashOf(t, crashSpec)
	if err := whole.dagrun(0, "apply", "-j", "1"); err != nil {
		t.Fatalf("%v\n%s", err, whole.output.String())
	}
	want := whole.artifacts()
	base := newCrashOf(t, crashSpec)
	if err := base.dagrun(16, "apply", "-j", "1"); err == nil {
		t.Fatal("the run was not killed")
	}
	list, err := os.ReadDir(filepath.Join(base.dir, "build/crash/_orchestrator"))
	if err != nil || len(list) < 10 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	ends := map[int]int{}
	for _, e := range list {
		for _, how := range damages {
			c := base.copied(t)
			path := filepath.Join(c.dir, "build/crash/_orchestrator", e.Name())
			if !how.fits(e) {
				continue
			}
			if err := how.do(path); err != nil {
				t.Fatal(err)
			}
			status, said := c.within(t, "resume", "-q")
			ends[status]++
			switch id := how.name + " " + e.Name(); {
			case strings.Contains(said, "goroutine ") || status < 0 || status == 2:
				t.Errorf("%s: status %d\n%s", id, status, said)
			case status != 0 && !named(said, e.Name()):
				t.Errorf("%s: status %d and no word of the file:\n%s", id, status, said)
			case e.Name() == "events.ndjson" && status != exitDamaged:
				t.Errorf("%s: status %d of a damaged log\n%s", id, status, said)
			case status != 0:
			case c.artifacts() != want:
				t.Errorf("%s: artifacts\n%s\nwant\n%s", id, c.artifacts(), want)
			case slices.Contains([]string{"logs", "checkpoints", "nodes"}, e.Name()) || how.name == "a folder instead":
				// What only people read stays as it was left, and a folder is not removed: verify says so.
			default:
				if err := c.dagrun(0, "verify"); err != nil {
					t.Errorf("%s: %v\n%s", id, err, c.output.String())
				}
			}
		}
	}
	t.Logf("ends by status: %v", ends)
	if ends[0] < 20 || ends[exitDamaged] < 6 {
		t.Errorf("ends by status: %v", ends)
	}
}

// named reports whether a message speaks of a file and ends in something to do.
func named(said, file string) bool {
	if file == "origin.json" && strings.Contains(said, "apply SPEC once") {
		return true
	}
	if file == "objects" && strings.Contains(said, "missing from the run's store") { // the plan is kept twice, versions are not
		return true
	}
	for _, way := range []string{"move", "use dagrun", "restore a copy", "fix the cause", "path escapes", "file exists", "not a directory"} {
		if strings.Contains(said, file) && strings.Contains(said, way) {
			return true
		}
	}
	return false
}

// A damage is something that is done to a file or folder.
type damage struct {
	name string
	dirs bool // can be done to folders too
	do   func(path string) error
}

func (d damage) fits(e fs.DirEntry) bool { return d.dirs || e.Type().IsRegular() }

var damages = []damage{
	{"removed", true, os.RemoveAll},
	{"emptied", false, func(p string) error { return os.Truncate(p, 0) }},
	{"cut in half", false, func(p string) error {
		st, err := os.Stat(p)
		return errors.Join(err, os.Truncate(p, st.Size()/2))
	}},
	{"one bit flipped", false, func(p string) error {
		b, err := os.ReadFile(p)
		if len(b) > 0 {
			b[len(b)/2] ^= 1
		}
		return errors.Join(err, os.WriteFile(p, b, 0o600))
	}},
	{"a folder instead", false, func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }},
	{"a pipe instead", false, func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }},
	{"a file instead", true, func(p string) error { return errors.Join(os.RemoveAll(p), os.WriteFile(p, []byte("x"), 0o600)) }},
	{"moved and linked", true, func(p string) error {
		to := filepath.Join(p+"/../../../..", filepath.Base(p)+"-elsewhere")
		return errors.Join(os.Rename(p, to), os.Symlink(to, p))
	}},
}

// A named pipe in the place of any file of a run or of the state directory ends every command, and what fails names
// the file (W-4, e-work/28).
func TestPipesInPlaceOfFiles(t *testing.T) {
	t.Parallel()
	base := newCrashOf(t, crashSpec)
	if err := base.dagrun(0, "apply", "-j", "1"); err != nil { // so that the state directory has a history
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(base.dir, "build")); err != nil {
		t.Fatal(err)
	}
	if err := base.dagrun(16, "apply", "-j", "1"); err == nil {
		t.Fatal("the run was not killed")
	}
	var files []string
	for _, root := range []string{"build/crash", "state"} {
		err := filepath.WalkDir(filepath.Join(base.dir, root), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && filepath.Base(path) != "origin.json" { // TestFilesOfARunDamaged has it
				rel, _ := filepath.Rel(base.dir, path)
				files = append(files, rel)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 15 {
		t.Fatalf("only %v", files)
	}
	for i, file := range files {
		c := base.copied(t)
		path := filepath.Join(c.dir, file)
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		commands := [][]string{{"verify"}, {"status"}, {"plan"}, {"log"}, {"apply", "-q"}}
		if i%2 == 1 {
			commands = [][]string{{"apply", "-q"}, {"verify"}}
		}
		for _, command := range commands {
			status, said := c.within(t, command...)
			if status < 0 || strings.Contains(said, "goroutine ") || status > 0 && status != exitChanges && !strings.Contains(said, filepath.Base(file)) {
				t.Errorf("%s as a pipe, %v: status %d\n%s", file, command, status, said)
			}
		}
	}
}

// copied returns a copy of a run and what it has left beside itself.
func (c *crash) copied(t *testing.T) *crash {
	t.Helper()
	to := &crash{t: t, dir: t.TempDir()}
	if err := os.CopyFS(to.dir, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(to.dir, "build/crash/_orchestrator/origin.json")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(b), c.dir, to.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// within runs a command that must end by itself.
func (c *crash) within(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	cmd := program.Command(t.Context(), binary, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(c.dir, "state"))
	out, err := cmd.CombinedOutput()
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}
