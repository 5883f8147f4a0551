package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/changes"
	"dagrun.dev/internal/testing/program"
)

// watchSpec works on one file of docs/in at a time, and notes in docs/done which it was. A file named slow takes until it is let go.
const watchSpec = `name: watched
ticks: {settle: 50ms}
nodes:
  pick:
    kind: exec
    outputs: {owed: int}
    with: {run: 'echo "{\"owed\": $(ls in | wc -l)}" > "$DAGRUN_OUT/outputs.json"'}
  work:
    kind: exec
    needs: [pick]
    effect: idempotent
    when: "nodes['pick'].out.owed > 0"
    with:
      run: |
        f=$(ls in | head -1)
        while [ "$f" = slow ] && [ ! -e ../go ]; do sleep 0.02; done
        [ "$f" != wrong ] || { rm in/wrong; exit 1; }
        echo "$f" >> done
        rm "in/$f"
  nothing:
    kind: milestone
    needs: [pick]
    when: "nodes['pick'].out.owed == 0"
    with: {state: idle}
whenFailed: end
`

func newWatched(t *testing.T, spec string) *crash {
	c := newFolder(t)
	for name, text := range map[string]string{"spec.yaml": spec, "in/a": "", "in/b": ""} {
		c.write("docs/"+name, text)
	}
	return c
}

func (c *crash) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crash) lines(name string) []string {
	b, _ := os.ReadFile(filepath.Join(c.dir, name))
	return strings.Fields(string(b))
}

// runID is that of the tick which is in the run's folder.
func (c *crash) runID() string {
	b, _ := os.ReadFile(filepath.Join(c.dir, "build/watched/_orchestrator/events.ndjson"))
	_, id, _ := strings.Cut(string(b), `"run_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	return id
}

// M-2: watch works off what there is, waits, and begins anew with each change; a mistake in the specification, a tick that
// fails and a kill in the middle of one lose nothing, and an interrupt ends it.
func TestWatch(t *testing.T) {
	c := newWatched(t, watchSpec)
	w := c.started(0, "watch", "docs/spec.yaml")
	c.until(`test "$(cat docs/done 2>/dev/null | wc -l)" = 2`)
	c.until(`grep -q '"new_state":"idle"' build/watched/_orchestrator/events.ndjson`)
	if err := c.dagrun(0, "watch", "docs/spec.yaml"); exitOf(err) != exitLocked {
		t.Errorf("a second one: %v\n%s", err, c.output.String())
	}
	was := ""
	for tries := 0; was != c.runID(); tries++ { // what the ticks themselves have changed is looked at again, and that is all
		if tries == 100 {
			t.Fatal("it does not come to rest though nobody changes a file")
		}
		was = c.runID()
		time.Sleep(500 * time.Millisecond)
	}
	for tries := 0; ; tries++ { // on a busy machine a look may come late
		before := processorTime(w.cmd.Process.Pid)
		time.Sleep(time.Second)
		if used := processorTime(w.cmd.Process.Pid) - before; used <= 2 { // hundredths of a second
			break
		} else if tries == 60 {
			t.Fatalf("in no second in which nothing changes it rests; in the last it has computed for %d0 ms", used)
		}
	}
	c.write("docs/in/c", "")
	c.until(`test "$(cat docs/done | wc -l)" = 3`)
	c.until(`grep -q '"new_state":"idle"' build/watched/_orchestrator/events.ndjson`)

	c.write("docs/spec.yaml", strings.Replace(watchSpec, "kind: milestone", "kind: millstone", 1))
	program.Await(t, "a word of the mistake", func() bool { return strings.Contains(w.notes.String(), "millstone") }) // no tick goes on
	c.write("docs/in/d", "")
	time.Sleep(300 * time.Millisecond)
	if got := c.lines("docs/done"); len(got) != 3 {
		t.Errorf("done %v with a specification that is wrong", got)
	}
	c.write("docs/spec.yaml", watchSpec)
	c.until(`test "$(cat docs/done | wc -l)" = 4`)

	c.write("docs/in/wrong", "")
	c.until(`test ! -e docs/in/wrong`)
	c.write("docs/in/x", "")
	c.until(`test "$(cat docs/done | wc -l)" = 5`)
	c.until(`grep -q '"new_state":"idle"' build/watched/_orchestrator/events.ndjson`)

	c.write("docs/in/slow", "")
	c.until(`grep -q '"node":"work"' build/watched/_orchestrator/events.ndjson && test -e docs/in/slow`)
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-w.ended
	if said := w.notes.String(); !strings.Contains(said, "watch: the tick failed (1 in a row); the next begins in 1s") {
		t.Errorf("of the tick that fails it says\n%s", said)
	}
	again := c.started(0, "watch", "docs/spec.yaml")
	c.write("go", "")
	c.until(`test "$(cat docs/done | wc -l)" = 6`)
	c.until(`grep -q '"new_state":"idle"' build/watched/_orchestrator/events.ndjson`)
	if err := again.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-again.ended; err != nil {
		t.Errorf("an interrupt while it waits: %v", err)
	}
	if got := strings.Join(c.lines("docs/done"), " "); got != "a b c d x slow" {
		t.Errorf("done: %s", got)
	}
	if err := c.dagrun(0, "verify", "--output-dir", "build/watched"); err != nil {
		t.Errorf("%v\n%s", err, c.output.String())
	}
}

// processorTime is what a process has used, in hundredths of a second; -1 where the system does not say.
func processorTime(pid int) int {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return -1
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// M-2: under a flood of changes nothing is lost and nothing done twice. DAGRUN_FLOOD is how many seconds it lasts.
func TestWatchUnderAFlood(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("DAGRUN_FLOOD"))
	seconds = max(seconds, 2)
	spec := strings.NewReplacer("f=$(ls in | head -1)", "for f in $(ls in); do", `rm "in/$f"`, `rm "in/$f"; done`,
		`[ "$f" != wrong ] || { rm in/wrong; exit 1; }`, "").Replace(watchSpec)
	c := newWatched(t, spec)
	w := c.started(0, "watch", "-q", "docs/spec.yaml")
	want := []string{"a", "b"}
	each := time.NewTicker(time.Millisecond)
	defer each.Stop()
	for i := range 1000 * seconds {
		name := fmt.Sprintf("f%d", i)
		c.write("new", "")
		if err := os.Rename(filepath.Join(c.dir, "new"), filepath.Join(c.dir, "docs/in", name)); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
		<-each.C
	}
	c.until(`test -z "$(ls docs/in)"`)
	c.until(`grep -q '"new_state":"idle"' build/watched/_orchestrator/events.ndjson`)
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	got := c.lines("docs/done")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d files were worked on, want each of %d once", len(got), len(want))
	}
}

func exitOf(err error) int {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return e.ExitCode()
	}
	return -1
}

// A tick that waits for the money of the next day is carried on when that begins, though nobody does anything.
func TestWatchWaitsForTheNextDay(t *testing.T) {
	w := &watched{files: changes.Watch(changes.Options{}), ctx: t.Context()}
	defer w.files.Close()
	w.forSomebody(filepath.Join(t.TempDir(), "log"), time.Now().Add(time.Millisecond)) // else it never returns
	for now, want := range map[string]string{"2026-12-31T23:59:59.9Z": "2027-01-01T00:00:00Z", "2026-03-01T00:00:00+05:00": "2026-03-01T00:00:00Z"} {
		at, err := time.Parse(time.RFC3339Nano, now)
		if got := dayAfter(at).Format(time.RFC3339); err != nil || got != want {
			t.Errorf("after %s: %s, want %s (%v)", now, got, want, err)
		}
	}
}

// An edit that takes ticks out of a specification ends the command that goes from one to the next.
func TestNoMoreTicks(t *testing.T) {
	ticks := &dag.Ticks{Idle: "idle"}
	if moreFollow(machine.RunDone, "CREATED", nil) || moreFollow(machine.RunDone, "idle", ticks) ||
		moreFollow(machine.RunPause, "CREATED", ticks) || !moreFollow(machine.RunBroken, "idle", ticks) || !moreFollow(machine.RunDone, "x", ticks) {
		t.Error("another tick where there is none, or none where there is one")
	}
}

// M-2: after a failed tick the next try need not be waited for: an edit may be what mends the cause.
func TestAnEditEndsTheWaitAfterAFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &watched{ctx: t.Context(), files: changes.Watch(changes.Options{Roots: []string{dir}, Skip: func(string) bool { return false }})}
	defer w.files.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.afterFailure(&compile.Result{Plan: &dag.Plan{Ticks: &dag.Ticks{Settle: dag.Duration(time.Millisecond)}}}, time.Hour)
	}()
	for n := 0; ; n++ {
		select {
		case <-over:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if err := os.WriteFile(filepath.Join(dir, "mended"), []byte(strconv.Itoa(n)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What keeps a watched folder from coming to rest is named.
func TestTheLastChangeIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &watched{dir: dir, ctx: t.Context(), files: changes.Watch(changes.Options{Roots: []string{dir}})}
	defer w.files.Close()
	if got := w.lastChange(); got != "" {
		t.Errorf("%q of nothing", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "result.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !w.forChanges(time.Minute) || !strings.HasPrefix(w.lastChange(), ", result.txt at last (") {
		t.Errorf("%q", w.lastChange())
	}
}
