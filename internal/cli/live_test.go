package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/internal/testing/program"
)

// An atTerminal is the program, run at a terminal by a user who looks at it.
type atTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	shown  *terminal
	ended  chan struct{} // everything that it printed is shown
}

// runAtTerminal starts a command line in a folder, at a terminal of its own.
func runAtTerminal(t *testing.T, columns, rows int, dir string, args ...string) *atTerminal {
	master, slave := openTerminal(t, columns, rows)
	a := &atTerminal{t: t, master: master, shown: newTerminal(columns, rows), ended: make(chan struct{})}
	a.cmd = program.Command(t.Context(), binary, args...)
	a.cmd.Dir = dir
	a.cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1", "TZ=UTC", "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = slave, slave, slave
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, a.cmd.Start())
	slave.Close()
	t.Cleanup(func() { a.cmd.Process.Kill() })
	go func() {
		_, _ = io.Copy(a.shown, master) // ends with an error when nobody has the other end
		close(a.ended)
	}()
	return a
}

// until waits until the terminal shows a match, which it returns, or until the program has ended.
func (a *atTerminal) until(pattern string) string {
	a.t.Helper()
	re := regexp.MustCompile(pattern)
	for over := false; ; time.Sleep(5 * time.Millisecond) {
		if found := re.FindString(a.shown.String()); found != "" {
			return found
		}
		if over {
			a.end()
			a.t.Fatalf("the terminal never showed %s, and the program has ended (%v):\n%s", pattern, a.cmd.ProcessState, a.shown)
		}
		select {
		case <-a.ended:
			over = true
		default:
		}
	}
}

// end waits for the program's end and returns its exit status.
func (a *atTerminal) end() int {
	_ = a.cmd.Wait()
	<-a.ended
	return a.cmd.ProcessState.ExitCode()
}

// T-2: at a terminal the picture is drawn below the lines, its clock goes on between events, it follows the size of the
// terminal, an interrupt's words stand above it, and in the end it is gone.
func TestLiveAtTerminal(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(`pipeline:
  name: two
  nodes:
    first: {kind: exec, with: {run: "printf '\\033[2J\\033[H\\033[?1049hoops\\a\\n' >&2; exit 3"}, onFail: continue}
    second: {kind: exec, needs: [first], with: {run: "echo ready > up; read x < down"}}
`), 0o600))
	for _, name := range []string{"up", "down"} {
		must(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	a := runAtTerminal(t, 70, 12, dir, "apply")
	_, err := os.ReadFile(filepath.Join(dir, "up"))
	must(t, err)
	a.until(`(?s)failed   first.*\ntwo: RUNNING; .*Progress: .* 1/2 nodes \(50%\)\n.*Running:     second \(exec\)  .*\n▏\n$`)
	for first := a.until(`second \(exec\)  .*`); a.until(`second \(exec\)  .*`) == first; {
		time.Sleep(5 * time.Millisecond)
	}
	w := runAtTerminal(t, 90, 40, dir, "status", "--watch")
	w.until(`(?s)^Pipeline:    two\n.*Progress: .* 1/2 nodes \(50%\)\n.*\nRunning:\n  second \(exec\)  .*\n▏\n$`)
	for first := w.until(`second \(exec\)  .*`); w.until(`second \(exec\)  .*`) == first; {
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Fprint(a.master, "\x03") // Ctrl-C
	a.until(`(?s)interrupt: nothing new starts.*\ntwo: PAUSED`)
	must(t, os.WriteFile(filepath.Join(dir, "down"), []byte("go\n"), 0))
	if got := a.end(); got != exitDone {
		t.Errorf("exit status %d", got)
	}
	got := a.shown.String()
	if !regexp.MustCompile(`(?s)interrupt: .*done     second.*\n(two|Done|Paused).*\n▏\n$`).MatchString(got) || strings.Contains(got, "Progress:") {
		t.Errorf("in the end the terminal shows\n%s", got)
	}
	if status := w.end(); status != exitDone {
		t.Errorf("exit status %d of status --watch", status)
	}
	if got := w.shown.String(); !regexp.MustCompile(`(?s)^Pipeline:    two\n.*Progress: .* 2/2 nodes \(100%\)\n.*\n▏\n$`).MatchString(got) ||
		strings.Count(got, "Pipeline:") != 1 {
		t.Errorf("in the end the terminal of status --watch shows\n%s", got)
	}
	for _, to := range []*terminal{a.shown, w.shown} {
		if len(to.wrong) > 0 || !to.wraps {
			t.Errorf("wrong for a terminal: %q, it breaks lines: %v", to.wrong, to.wraps)
		}
	}
}
