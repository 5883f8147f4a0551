//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/internal/testing/program"
)

const manySpec = `name: many
ticks: {keep: {runs: 3}}
nodes:
  pick: {kind: scan, with: {items: "in/*", vars: {d: e.digest}}}
  work: {kind: exec, needs: [pick], with: {run: "echo >> begun; read x < go"}}
  nothing:
    kind: milestone
    needs: [pick]
    when: "nodes['pick'].out.owed == 0"
    with: {state: idle}
whenFailed: end
`

// held is what a process that carries out ticks holds after some of them.
type held struct {
	ticks             int
	rss, files, bytes int64 // files below the folders of the run and the state
	open              int   // files that the process has open
	read, calls       int64 // by the process since it began: bytes, and how many times
	cpu               time.Duration
}

// M-2, M-5: one process that carries out tick after tick holds as much after the last as after the first ones, in
// memory, in open files and on disk, and no tick takes more reading than another. DAGRUN_TICKS is how many there are.
func TestManyTicks(t *testing.T) {
	many, _ := strconv.Atoi(os.Getenv("DAGRUN_TICKS"))
	many = max(many, 300)
	c := newFolder(t)
	for name, text := range map[string]string{"spec.yaml": manySpec, "in/a": "a", "in/b": "b"} {
		c.write(name, text)
	}
	out, err := os.Create(filepath.Join(c.dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	gate := filepath.Join(c.dir, "go") // each tick takes a line from it, so that the process stands still to be looked at
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	goes, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer goes.Close()
	cmd := program.Command(t.Context(), binary, "apply", "-q", "--steps", strconv.Itoa(many), "spec.yaml")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env(), out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var samples []held
	step := many / 10
	for next := step; next < many; next += step {
		if _, err := goes.WriteString(strings.Repeat("\n", step)); err != nil {
			t.Fatal(err)
		}
		program.Await(t, fmt.Sprint("the tick after ", next), func() bool {
			begun, _ := os.ReadFile(filepath.Join(c.dir, "begun"))
			return len(begun) > next
		})
		samples = append(samples, c.held(cmd.Process.Pid, next))
	}
	if _, err := goes.WriteString(strings.Repeat("\n", many-len(samples)*step)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("%v\n%s", err, said)
	}
	for _, h := range samples {
		t.Logf("%+v", h)
	}
	at := slices.IndexFunc(samples, func(h held) bool { return h.ticks > 110 }) // so many removed ones are named one by one
	first, second := samples[at], samples[at+1]
	last, before := samples[len(samples)-1], samples[len(samples)-2]
	if last.rss > first.rss+first.rss/2 || last.open > first.open+10 || last.files > 200 || last.bytes > 2<<20 {
		t.Errorf("it holds more and more: %+v, %+v", first, last)
	}
	each := func(a, b held) (read, calls int64) {
		n := int64(b.ticks - a.ticks)
		return (b.read - a.read) / n, (b.calls - a.calls) / n
	}
	read, calls := each(first, second)
	if r, n := each(before, last); r > read+read/10 || n > calls+calls/10 {
		t.Errorf("a tick reads %d bytes in %d calls, and has read %d in %d at first", r, n, read, calls)
	}
	if err := c.dagrun(0, "verify", "--output-dir", "build/many"); err != nil {
		t.Errorf("%v\n%s", err, c.output.String())
	}
}

func (c *crash) held(pid, ticks int) held {
	c.t.Helper()
	h := held{ticks: ticks}
	of := func(name string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			c.t.Fatal(err)
		}
		return string(b)
	}
	number := func(text, label string) (n int64) {
		for line := range bytes.Lines([]byte(text)) {
			if rest, is := bytes.CutPrefix(line, []byte(label+":")); is {
				fmt.Sscan(string(rest), &n)
			}
		}
		return n
	}
	h.rss = number(of("status"), "VmRSS") << 10
	h.read, h.calls = number(of("io"), "rchar"), number(of("io"), "syscr")
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	h.open = len(open)
	stat := of("stat")
	var user, system int64
	fmt.Sscan(stat[bytes.LastIndexByte([]byte(stat), ')')+1:], new(string), new(int), new(int), new(int), new(int), new(int), new(int),
		new(int), new(int), new(int), new(int), &user, &system)
	h.cpu = time.Duration(user+system) * 10 * time.Millisecond
	for _, dir := range []string{"build", "state"} {
		filepath.WalkDir(filepath.Join(c.dir, dir), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					h.files, h.bytes = h.files+1, h.bytes+info.Size()
				}
			}
			return nil
		})
	}
	return h
}
