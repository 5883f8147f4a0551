package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// crashSpec has things that a crash or a damage could spoil: artifacts that replace each other, a value, a
// condition, a retry, a checkpoint. What a kill at each event costs is tried in specs (TestFaults).
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

// A crash is one run of crashSpec in a directory of its own.
type crash struct {
	t      *testing.T
	dir    string
	output bytes.Buffer // of the last command
}

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
	cmd := program.Command(c.t.Context(), binary, args...)
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
