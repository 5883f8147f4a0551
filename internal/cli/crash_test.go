package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"dagrun.dev/dag"
)

// crashSpec has one of each thing that a crash could spoil: artifacts that replace each other, a
// value, a condition, a retry, a checkpoint, an accumulator of events in order. Every command
// leaves its name in the file ran, beside the specification.
const crashSpec = `pipeline:
  name: crash
  seed: 7
  nodes:
    first:
      kind: exec
      with: {run: 'echo first >> ran; echo one > "$DAGRUN_OUT/page.txt"; echo "{\"n\": 3}" > "$DAGRUN_OUT/outputs.json"'}
      outputs: {n: int}
      writes: [page.txt]
    flaky:
      kind: exec
      needs: [first]
      retry: {attempts: 2, base: 1ms}
      with: {run: 'echo flaky >> ran; test -e tried || { echo > tried; exit 1; }'}
    save: {kind: checkpoint, needs: [first]}
    second:
      kind: exec
      needs: [save, flaky]
      when: "nodes['first'].out.n == 3"
      with: {run: 'echo second >> ran; (cat "$DAGRUN_IN/page.txt"; echo two) > "$DAGRUN_OUT/page.txt"'}
      reads: [page.txt]
      writes: [page.txt]
    never: {kind: exec, needs: [first], when: "nodes['first'].out.n > 3", with: {run: 'echo never >> ran'}}
    last: {kind: exec, needs: [second, never], with: {run: 'echo last >> ran'}}
`

// A killed process, whatever event it was killed after, costs at most the attempt under way: the
// next one goes on, completed nodes never run again, the artifacts are those of an undisturbed
// run, and the record verifies (S-5, S-7, S-12).
func TestKilledAfterEveryEvent(t *testing.T) {
	whole := newCrash(t)
	if err := whole.dagrun(0, "apply", "-j", "1"); err != nil {
		t.Fatalf("%v\n%s", err, whole.output.String())
	}
	want := whole.artifacts()
	for at := 1; ; at++ {
		c := newCrash(t)
		err := c.dagrun(at, "apply", "-j", "1")
		if err == nil {
			if at < 20 {
				t.Fatalf("the run has only %d events", at-1)
			}
			return
		}
		var e *exec.ExitError
		if !errors.As(err, &e) || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("event %d: %v\n%s", at, err, c.output.String())
		}
		before := c.completed()
		c.onlyOwnNames()
		if err := c.dagrun(0, "apply", "-j", "1"); err != nil {
			t.Fatalf("after a kill at event %d: %v\n%s", at, err, c.output.String())
		}
		if got := c.artifacts(); got != want {
			t.Errorf("after a kill at event %d: artifacts\n%s\nwant\n%s", at, got, want)
		}
		if err := c.dagrun(0, "verify"); err != nil {
			t.Errorf("after a kill at event %d: %v\n%s", at, err, c.output.String())
		}
		for _, node := range before {
			// flaky runs twice by itself; nothing else may run again once it has completed.
			if n := c.ran(node); node != "flaky" && n > 1 {
				t.Errorf("after a kill at event %d: %s was completed and ran %d times", at, node, n)
			}
		}
	}
}

// onlyOwnNames holds what a run makes in its own folder against the names that no node may take (e-work/13).
func (c *crash) onlyOwnNames() {
	c.t.Helper()
	list, err := os.ReadDir(filepath.Join(c.dir, "build/crash/_orchestrator"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() != "nodes" && !dag.Own(e.Name()) {
			c.t.Errorf("a run makes %s in its own folder, and a node may take that name", e.Name())
		}
	}
}

// A crash is one run of crashSpec in a directory of its own.
type crash struct {
	t      *testing.T
	dir    string
	output bytes.Buffer // of the last command
}

func newCrash(t *testing.T) *crash { return newCrashOf(t, crashSpec) }

func newCrashOf(t *testing.T, spec string) *crash {
	c := newFolder(t)
	if err := os.WriteFile(filepath.Join(c.dir, "spec.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// newFolder is a crash without a specification.
func newFolder(t *testing.T) *crash {
	c := &crash{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(c.dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crash) dagrun(crashAt int, args ...string) error {
	cmd := exec.Command(binary, args...)
	cmd.Dir = c.dir
	cmd.Env = c.env()
	if crashAt > 0 {
		cmd.Env = append(cmd.Env, "DAGRUN_CRASH_AT="+strconv.Itoa(crashAt))
	}
	c.output.Reset()
	cmd.Stdout, cmd.Stderr = &c.output, &c.output
	return cmd.Run()
}

func (c *crash) env() []string {
	return append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(c.dir, "state"), "TMPDIR="+filepath.Join(c.dir, "tmp"))
}

// leftovers returns what stands in the folder for temporary files.
func (c *crash) leftovers() []string {
	files, err := filepath.Glob(filepath.Join(c.dir, "tmp", "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	return files
}

// artifacts returns the names and contents of the live artifacts.
func (c *crash) artifacts() string {
	files, err := filepath.Glob(filepath.Join(c.dir, "build/crash/*.txt"))
	if err != nil {
		c.t.Fatal(err)
	}
	sort.Strings(files)
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			c.t.Fatal(err)
		}
		b.WriteString(filepath.Base(f) + ":\n" + string(data))
	}
	return b.String()
}

// completed returns the nodes whose completion is recorded.
func (c *crash) completed() []string {
	if err := c.dagrun(0, "log", "--type", "WORK_ITEM_FINISHED"); err != nil {
		return nil // killed before the run was there
	}
	var nodes []string
	for _, line := range strings.Split(c.output.String(), "\n") {
		if f := strings.Fields(line); len(f) > 3 && strings.Contains(line, `status="completed"`) {
			nodes = append(nodes, f[3])
		}
	}
	return nodes
}

// ran counts how often a node's command ran.
func (c *crash) ran(node string) int {
	data, err := os.ReadFile(filepath.Join(c.dir, "ran"))
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Count("\n"+string(data), "\n"+node+"\n")
}
