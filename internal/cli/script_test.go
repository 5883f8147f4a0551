package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"dagrun.dev/internal/testing/program"
)

// binary is the program as users have it, built once for all tests: scripts send it signals and
// kill it, so it must be a process of its own.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if signal.Ignored(syscall.SIGHUP) { // as under nohup: children would inherit it, and dagrun respects it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Unsetenv("GOGC") // of the tests: the program has its own rule
	dir, err := os.MkdirTemp("", "dagrun-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "dagrun")
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")) // no run is told what others on this machine have seen
	args := []string{"build", "-ldflags=-s -w", "-o", binary}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race") // a race in the program fails the script that meets it
	}
	build := exec.Command("go", append(args, "dagrun.dev/cmd/dagrun")...)
	if made := os.Getenv("DAGRUN_PROGRAM"); made != "" { // of these sources, by the makefile
		build = exec.Command("ln", "-s", made, binary)
	}
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1
	}
	return m.Run()
}

// TestScripts runs the command line's stories. See the files: each tells one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  cmdExits,
			"start":  cmdStart,
			"await":  cmdAwait,
			"signal": cmdSignal,
			"ends":   cmdEnds,
			"json":   cmdJSON,
		},
		RequireExplicitExec: true,
	})
}

func setupScript(e *testscript.Env) error {
	e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
	e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
	e.Setenv("DAGRUN_STOPPED", cmp.Or(os.Getenv("DAGRUN_STOPPED"), "1"))
	e.Values["started"] = map[string]*started{}
	return os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700)
}

// exits STATUS COMMAND ... runs a command to its end and wants that exit status.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// A started is a process that runs beside the script.
type started struct {
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{} // closed once all that it printed is there
	err            error         // of its end
}

// An output collects what a process prints; readers may wait for a part of it.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed and made anew when text has grown
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
	return o.text.Write(p)
}

// look returns the text so far and what is closed when there is more.
func (o *output) look() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.text.String(), o.grown
}

func (o *output) String() string { text, _ := o.look(); return text }

// start NAME COMMAND ... starts a command beside the script.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME COMMAND ...")
	}
	p := &started{ended: make(chan struct{})}
	path := args[1]
	if path == "dagrun" {
		path = binary
	}
	p.cmd = program.Command(context.Background(), path, args[2:]...)
	p.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_STATE_HOME", "DAGRUN_OUTPUT_DIR", "DAGRUN_CRASH_AT", "TMPDIR"} {
		if v := ts.Getenv(name); v != "" {
			p.cmd.Env = append(p.cmd.Env, name+"="+v)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	ts.Check(p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	ts.Defer(func() { p.cmd.Process.Kill(); <-p.ended })
	ts.Value("started").(map[string]*started)[args[0]] = p
}

func process(ts *testscript.TestScript, name string) *started {
	p := ts.Value("started").(map[string]*started)[name]
	if p == nil {
		ts.Fatalf("no process %s", name)
	}
	return p
}

// await NAME REGEXP waits until a started process has printed a match to its stdout.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await NAME REGEXP")
	}
	p, re := process(ts, args[0]), regexp.MustCompile(args[1])
	for over := false; ; {
		text, grown := p.stdout.look()
		if re.MatchString(text) {
			return
		}
		if over {
			ts.Fatalf("%s never printed %s, and has ended (%v):\n%s%s", args[0], args[1], p.cmd.ProcessState, text, p.stderr.String())
		}
		select {
		case <-grown:
		case <-p.ended:
			over = true
		}
	}
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}

// signal NAME SIGNAL sends a signal to a started process.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal NAME SIGNAL")
	}
	s, ok := signals[args[1]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[1])
	}
	ts.Check(process(ts, args[0]).cmd.Process.Signal(s))
}

// ends NAME STATUS waits for a started process and wants that exit status (or the name of the
// signal that killed it). What it printed is then in the files NAME.out and NAME.err.
func cmdEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME STATUS")
	}
	p := process(ts, args[0])
	<-p.ended
	err := p.err
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".out"), []byte(p.stdout.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(p.stderr.String()), 0o600))
	got := "0"
	if err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = strconv.Itoa(e.ExitCode())
		for name, sig := range signals {
			if st, ok := e.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == sig {
				got = name
			}
		}
	}
	if got != args[1] {
		ts.Fatalf("%s ended with %s, want %s\nstdout: %s\nstderr: %s", args[0], got, args[1], p.stdout.String(), p.stderr.String())
	}
}
