package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dagrun.dev/internal/testing/program"
)

const asks = `pipeline:
  name: asks
  nodes:
    plan: {kind: approval, with: {message: "Good plan?", options: [approve, {name: edit, does: "change it", text: required}, reject]}}
    ship: {kind: approval, needs: [plan], with: {message: "Ship?", default: approve, after: 24h}}
    side: {kind: exec, with: {run: "read x < gate; echo went on"}}
`

// askedAt begins a run that asks, at a terminal.
func askedAt(t *testing.T, args ...string) (a *atTerminal, dir string) {
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(asks), 0o600))
	must(t, syscall.Mkfifo(filepath.Join(dir, "gate"), 0o600))
	return runAtTerminal(t, 120, 30, dir, append([]string{"apply"}, args...)...), dir
}

// elsewhere runs another command on the run.
func elsewhere(t *testing.T, dir string, args ...string) string {
	c := program.Command(t.Context(), binary, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func restored(t *testing.T, a *atTerminal) {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(a.master.Fd()), getTermios)
	must(t, err)
	if mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0 {
		t.Error("the terminal does not show what is typed any more")
	}
	if len(a.shown.wrong) > 0 {
		t.Errorf("wrong for a terminal: %q", a.shown.wrong)
	}
}

// L-3: at a terminal a question is answered by number or name, with the text that an option asks for; what is no answer is
// asked again, other nodes go on, and the process waits where only answers can carry the run on. With and without a picture.
func TestAnsweredAtTheTerminal(t *testing.T) {
	for _, progress := range []string{"live", "plain"} {
		t.Run(progress, func(t *testing.T) {
			a, dir := askedAt(t, "--progress", progress)
			ready := func(prompt string) {
				if progress == "live" {
					a.until(prompt + `> ▏`)
				}
			}
			a.until(`(?s)approval/plan/1 \(approval, node plan\).*Good plan\?.*1  approve\n.*2  edit: change it .*3  reject.*Type a number`)
			ready("answer approval/plan/1")
			fmt.Fprint(a.master, "yes\r")
			a.until(`"yes" is no answer to approval/plan/1: want a number from 1 to 3`)
			must(t, os.WriteFile(filepath.Join(dir, "gate"), []byte("go\n"), 0))
			a.until(`done     side`)
			if progress == "live" {
				fmt.Fprint(a.master, "editt\x7f\x1b[D\r")
			} else { // the terminal itself edits the line
				fmt.Fprint(a.master, "edit\r")
			}
			ready("text for edit")
			fmt.Fprint(a.master, "\r")
			a.until(`edit asks for a text`)
			fmt.Fprint(a.master, "two parts, größer\r")
			a.until(`answer   approval/plan/1: edit: two parts, größer \(by user\)`)
			a.until(`(?s)approval/ship/1 .*Ship\?.*without an answer by .*: approve`)
			ready("answer approval/ship/1")
			fmt.Fprint(a.master, "1\r")
			if got := a.end(); got != exitDone {
				t.Errorf("exit status %d\n%s", got, a.shown)
			}
			if !strings.Contains(a.shown.String(), "Done: 3 completed") {
				t.Errorf("it ends with\n%s", a.shown)
			}
			restored(t, a)
			elsewhere(t, dir, "verify")
		})
	}
}

// L-3: an answer from elsewhere ends the question at the terminal; end of input leaves the answers to others, so that the run
// pauses, and so does Ctrl-C; --no-input asks nothing.
func TestNotAnsweredAtTheTerminal(t *testing.T) {
	a, dir := askedAt(t)
	a.until(`answer approval/plan/1> ▏`)
	fmt.Fprint(a.master, "half an ans")
	a.until(`answer approval/plan/1> half an ans▏`)
	elsewhere(t, dir, "respond", "approve", "--by", "anna")
	a.until(`question approval/plan/1 needs no answer any more`)
	a.until(`answer   approval/plan/1: approve \(by anna\)`)
	a.until(`answer approval/ship/1> ▏`)
	must(t, os.WriteFile(filepath.Join(dir, "gate"), []byte("go\n"), 0))
	a.until(`done     side`)
	fmt.Fprint(a.master, "\x03")
	if got := a.end(); got != exitDone {
		t.Errorf("exit status %d\n%s", got, a.shown)
	}
	restored(t, a)

	a = runAtTerminal(t, 120, 30, dir, "resume")
	a.until(`answer approval/ship/1> ▏`)
	fmt.Fprint(a.master, "\x04")
	a.until(`Nobody answers here any more. Answer with: dagrun respond`)
	fmt.Fprint(a.master, "\x03") // its default is a day away
	a.end()
	restored(t, a)

	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte("pipeline: {name: one, nodes: {a: {kind: approval, with: {message: go}}}}"), 0o600))
	a = runAtTerminal(t, 120, 30, dir, "apply")
	a.until(`answer approval/a/1> ▏`)
	fmt.Fprint(a.master, "\x04")
	if got := a.end(); got != exitPaused || !strings.Contains(a.shown.String(), "Answer the question, then resume") {
		t.Errorf("exit status %d\n%s", got, a.shown)
	}
	restored(t, a)
	a = runAtTerminal(t, 120, 30, dir, "apply", "--no-input")
	if got := a.end(); got != exitPaused || strings.Contains(a.shown.String(), "Type a number") {
		t.Errorf("exit status %d\n%s", got, a.shown)
	}
}
