package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/program"
)

// handoverSpec has a free node, one that counts as paid, and one that an edit of the two does not touch.
const handoverSpec = `pipeline:
  name: crash
  nodes:
    free:
      kind: exec
      with: {run: 'v=1; echo free >> ran; test $v = 1 && exec sleep 1000; echo $v > "$DAGRUN_OUT/free.txt"'}
      writes: [free.txt]
    paid:
      kind: exec
      reserve: {usd: 0.01}
      with: {run: 'v=1; echo paid >> ran; until test -e go; do sleep 0.02; done; echo $v > "$DAGRUN_OUT/paid.txt"'}
      writes: [paid.txt]
    other: {kind: exec, effect: pure, with: {run: 'echo other >> ran; until test -e go; do sleep 0.02; done'}}
    last: {kind: exec, effect: pure, needs: [free, paid, other], with: {run: 'echo last >> ran'}}
`

// B2, S-12: the process that was handed another plan dies at every event from then on. The next start, of apply or of
// resume, ends under the new plan, with the artifacts of a new run of it, and repeats nothing that the edit does not touch.
func TestKilledWhileTakingAnotherPlan(t *testing.T) {
	edited := strings.ReplaceAll(handoverSpec, "v=1", "v=2")
	want := ""
	for at := range 9 { // up to the starts under the new plan
		crashAt := 0
		if at > 0 {
			crashAt = submitted + at - 1
		}
		c := newCrashOf(t, handoverSpec)
		first := c.started(crashAt, "apply", "-j", "4")
		c.until(`test "$(cat ran 2>/dev/null | wc -l)" -ge 3`)
		if err := os.WriteFile(filepath.Join(c.dir, "spec.yaml"), []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		second := c.started(0, "apply", "-j", "4")
		c.until("grep -q PLAN_SUBMITTED build/crash/_orchestrator/events.ndjson || ! kill -0 " + strconv.Itoa(first.cmd.Process.Pid))
		if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := <-first.ended
		if err := <-second.ended; err != nil {
			t.Fatalf("killed at event %d: the second apply: %v", crashAt, err)
		}
		killed := err != nil
		if e := (*exec.ExitError)(nil); killed && (!errors.As(err, &e) || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
			t.Fatalf("killed at event %d: %v", crashAt, err)
		}
		if err := c.dagrun(0, []string{"resume", "apply"}[at%2], "-j", "4"); err != nil {
			t.Fatalf("killed at event %d: %v\n%s", crashAt, err, c.output.String())
		}
		if err := c.dagrun(0, "verify"); err != nil {
			t.Errorf("killed at event %d: %v\n%s", crashAt, err, c.output.String())
		}
		if at == 0 {
			want = c.artifacts()
		}
		if got := c.artifacts(); got != want {
			t.Errorf("killed at event %d: artifacts\n%s\nwant\n%s", crashAt, got, want)
		}
		most := 1
		if killed {
			most = 2 // the attempt that was under way
		}
		ran, err := os.ReadFile(filepath.Join(c.dir, "ran"))
		if n := strings.Count(string(ran), "other\n"); err != nil || n > most {
			t.Errorf("killed at event %d: what the edit does not touch ran %d times", crashAt, n)
		}
		if killed != (at > 0) {
			t.Errorf("killed at event %d: %v", crashAt, killed)
		}
	}
}

// submitted is the number of PLAN_SUBMITTED: the run, its inputs and three starts come before.
const submitted = 6

// A companion is a dagrun that runs beside the test.
type companion struct {
	cmd   *exec.Cmd
	ended chan error
	notes *output // what it says on standard error
}

func (c *crash) started(crashAt int, args ...string) companion {
	p := companion{program.Command(c.t.Context(), binary, args...), make(chan error, 1), said(c.t, args...)}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = c.dir, c.env(), p.notes
	if crashAt > 0 {
		p.cmd.Env = append(p.cmd.Env, "DAGRUN_CRASH_AT="+strconv.Itoa(crashAt))
	}
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p
}

// said is for what a program says; a test that fails shows it.
func said(t *testing.T, args ...string) *output {
	o := new(output)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("dagrun %s says:\n%s", strings.Join(args, " "), o)
		}
	})
	return o
}

// until waits for a condition of the shell.
func (c *crash) until(condition string) {
	c.t.Helper()
	cmd := program.Command(c.t.Context(), "sh", "-c", "until "+condition+"; do sleep 0.02; done 2>/dev/null")
	cmd.Dir = c.dir
	if err := cmd.Run(); err != nil {
		c.t.Fatal(condition, err)
	}
}

// V-2: whoever asks something of a process that ends over it is answered all the same: by what the command then does itself.
func TestAskedOfAProcessThatEnds(t *testing.T) {
	t.Parallel()
	for _, ask := range []struct {
		args        []string
		exit, event string
	}{
		{[]string{"respond", "yes"}, "<nil>", "ESCALATION_ANSWERED"},
		{[]string{"cancel"}, "<nil>", "RUN_FAILED"},
		{[]string{"apply"}, "exit status 3", "RUN_PAUSED"},
	} {
		t.Run(ask.args[0], func(t *testing.T) {
			t.Parallel()
			c := newCrashOf(t, "pipeline: {name: crash, nodes: {ask: {kind: approval, with: {message: 'Go on?', options: ['yes', 'no'], refuses: []}}}}\n")
			_ = c.dagrun(0, "apply")
			dir := filepath.Join(c.dir, "build/crash")
			r, _, err := run.Open(run.Options{Dir: dir, Command: "dagrun apply", Now: time.Now()})
			if err == nil && ask.args[0] == "apply" { // as if it was carried on: only then another plan is handed over
				err = r.RecordDurable(time.Now(), &machine.RunResumedBody{})
			}
			if err != nil {
				t.Fatal(err)
			}
			inbox, err := executor.OpenInbox(dir)
			if err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(filepath.Join(dir, "_orchestrator/events.ndjson"))
			if err != nil {
				t.Fatal(err)
			}
			command := c.started(0, ask.args...)
			c.until("test -d build/crash/_orchestrator/" + dag.OwnInbox)
			inbox.Close()
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			err = <-command.ended
			log, _ := os.ReadFile(filepath.Join(dir, "_orchestrator/events.ndjson"))
			if fmt.Sprint(err) != ask.exit || !strings.Contains(string(log[len(before):]), ask.event) {
				t.Errorf("%v, want %q and then %s:\n%s", err, ask.exit, ask.event, log)
			}
		})
	}
}

// B2: apply beside a process that only begins the run, or has ended it and lets go, waits for what becomes of it.
func TestAppliedWhileAnotherBeginsOrEnds(t *testing.T) {
	t.Parallel()
	const quick = "pipeline: {name: crash, nodes: {a: {kind: exec, with: {run: 'true'}}}}\n"
	for _, name := range []string{"begins", "begins, not yet described", "has ended", "has ended and is put away"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrashOf(t, quick)
			if strings.HasPrefix(name, "has ended") {
				if err := c.dagrun(0, "apply"); err != nil {
					t.Fatal(err, c.output.String())
				}
			}
			own := filepath.Join(c.dir, "build/crash", run.Dir)
			if err := os.MkdirAll(own, 0o700); err != nil {
				t.Fatal(err)
			}
			fsys, err := disk.Open(own)
			if err != nil {
				t.Fatal(err)
			}
			defer fsys.Close()
			lock, err := eventlog.AcquireLock(fsys, "lock", "dagrun apply", time.Now())
			if err == nil && strings.Contains(name, "not yet") {
				err = os.Truncate(filepath.Join(own, "lock"), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			second := c.started(0, "apply")
			select {
			case err := <-second.ended:
				t.Fatalf("the second apply did not wait: %v %s", err, second.notes)
			case <-time.After(300 * time.Millisecond):
			}
			err = errors.Join(second.cmd.Process.Signal(syscall.SIGSTOP), lock.Release())
			if strings.HasSuffix(name, "put away") {
				_, e := run.Archive(run.Options{Dir: filepath.Join(c.dir, "build/crash"), Command: "dagrun apply", Now: time.Now()})
				err = errors.Join(err, e)
			}
			if err := errors.Join(err, second.cmd.Process.Signal(syscall.SIGCONT), <-second.ended); err != nil {
				t.Fatal(err, second.notes)
			}
			if err := c.dagrun(0, "verify"); err != nil {
				t.Fatal(err, c.output.String())
			}
		})
	}
}

// B2: what went wrong while a plan was handed to a process that holds the run no more is not the last word: its successor
// clears the store of what is half written there, and a run that has ended is put away. apply goes on by itself.
func TestHandedToAProcessThatIsGone(t *testing.T) {
	t.Parallel()
	c := newCrashOf(t, "pipeline: {name: crash, nodes: {a: {kind: exec, with: {run: 'true'}}}}\n")
	if err := c.dagrun(4, "apply"); err == nil {
		t.Fatal("not killed")
	}
	dir := filepath.Join(c.dir, "build/crash")
	r, _, err := run.Open(run.Options{Dir: dir, Command: "dagrun apply", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	second := c.started(0, "apply")
	asked := filepath.Join(dir, run.Dir, dag.OwnInbox, "*.json")
	c.until("test -e " + asked)
	names, err := filepath.Glob(asked)
	if err == nil { // so that it finds the lock let go and the reply there
		err = second.cmd.Process.Signal(syscall.SIGSTOP)
	}
	if err == nil {
		reply := strings.TrimSuffix(names[0], "json") + "reply"
		err = os.WriteFile(reply, []byte(`{"error": "neither of the two copies of the plan can be read"}`), 0o600)
	}
	if err = errors.Join(err, r.Close(), second.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	if err := <-second.ended; err != nil {
		t.Fatal(err, second.notes)
	}
	if err := c.dagrun(0, "verify"); err != nil {
		t.Fatal(err, c.output.String())
	}
}
