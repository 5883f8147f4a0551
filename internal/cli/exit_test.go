package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/run"
)

// Each kind of trouble has its exit status, however deep the error lies (DESIGN 4b).
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("bad input"), exitBad},
		{exitWith(exitPaused), exitPaused},
		{&eventlog.Locked{}, exitLocked},
		{&eventlog.Damaged{}, exitDamaged},
		{&run.Newer{}, exitDamaged},
		{executor.ErrHard, exitKilled},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, exitDisk},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.EROFS}, exitDisk},
		{&fs.PathError{Op: "openat", Path: "x", Err: syscall.EACCES}, exitDisk},
	} {
		if got := exitStatus(fmt.Errorf("apply: %w", c.err)); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
}

// Each exit status that the help lists is one that happens, and there is no other: a story for each
// (DESIGN 4b).
func TestExitStatusesHappen(t *testing.T) {
	stories := map[string]string{
		"0":   `dagrun vet ok.yaml`,
		"1":   `dagrun vet bad.yaml`,
		"2":   `dagrun plan ok.yaml`,
		"3":   `dagrun apply budget.yaml`,
		"4":   `mkfifo up; dagrun apply waits.yaml & read x < up; dagrun apply waits.yaml; s=$?; kill $!; echo go > down; wait; exit $s`,
		"5":   `dagrun apply ok.yaml && rm build/ok/_orchestrator/events.ndjson; dagrun status`,
		"6":   `ulimit -f 0; dagrun apply ok.yaml`,
		"130": `mkfifo up; dagrun apply waits.yaml & read x < up; kill -INT $!; kill $!; wait $!`,
	}
	specs := map[string]string{
		"ok.yaml":  `pipeline: {name: ok, nodes: {greet: {kind: exec, with: {argv: ["true"]}}}}`,
		"bad.yaml": `pipeline: {name: bad, nodes: {greet: {kind: exce}}}`,
		"budget.yaml": `pipeline: {name: budget, budget: {capUSD: 0.1}, nodes: {a: {kind: agent, reserve: {usd: 1},
  with: {provider: sim, sim: {answers: answers.yaml}, prompt: {text: x}}}}}`,
		"answers.yaml": `- answer: one`,
		"waits.yaml":   `pipeline: {name: waits, nodes: {a: {kind: exec, timeout: {grace: 50ms}, with: {run: 'mkfifo down; echo up > up; read x < down'}}}}`,
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  (\d+) `).FindAllStringSubmatch(exitHelp, -1) {
		documented[m[1]] = true
		if stories[m[1]] == "" {
			t.Errorf("no story ends with the documented status %s", m[1])
		}
	}
	for status, story := range stories {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			if !documented[status] {
				t.Errorf("the help does not list status %s", status)
			}
			dir := t.TempDir()
			for name, text := range specs {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			sh := exec.Command("sh", "-c", story)
			sh.Dir = dir
			sh.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "TMPDIR="+dir)
			said, _ := sh.CombinedOutput() // the status is looked at
			if got := strconv.Itoa(sh.ProcessState.ExitCode()); got != status {
				t.Errorf("%s\nended with %s:\n%s", story, got, said)
			}
		})
	}
}
