// Package program builds dagrun for tests that run it as users do.
package program

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

var folder string // of the program; empty: not built yet

var build = sync.OnceValues(func() (out []byte, err error) {
	if folder, err = os.MkdirTemp("", "dagrun-program-"); err != nil {
		return nil, err
	}
	binary := filepath.Join(folder, "dagrun")
	if made := os.Getenv("DAGRUN_PROGRAM"); made != "" { // of these sources, by the makefile
		return nil, os.Symlink(made, binary)
	}
	return exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "dagrun.dev/cmd/dagrun").CombinedOutput()
})

// Folder returns the folder that holds the program, which the first call builds.
func Folder(t testing.TB) string {
	t.Helper()
	if out, err := build(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return folder
}

// wayOut is how long a test waits for a program or for what that does: no measure, but a way out.
const wayOut = 10 * time.Minute

// Command is a command that a test starts. Where it has not ended when the way out is reached, or the context is
// over, it gets SIGQUIT: a Go program then prints the stacks of its goroutines and ends, so that what it has printed
// says what it waited for.
func Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(ctx, wayOut)
	context.AfterFunc(ctx, cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// Await asks again and again until something is so, but not longer than programs that were started before run.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(wayOut + time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Claude returns the real agent's program: DAGRUN_REAL_CLI, or from npm into a temporary folder.
func Claude(t testing.TB, version string) string {
	t.Helper()
	if path := os.Getenv("DAGRUN_REAL_CLI"); path != "" {
		return path
	}
	name, known := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if !known {
		t.Fatalf("there is no program for %s", runtime.GOARCH)
	}
	name = "@anthropic-ai/claude-code-" + runtime.GOOS + "-" + name
	dir := t.TempDir()
	cmd := exec.Command("npm", "install", "--prefix", dir, "--cache", filepath.Join(dir, "cache"),
		"--no-audit", "--no-fund", name+"@"+version)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return filepath.Join(dir, "node_modules", filepath.FromSlash(name), "claude")
}

// Main runs the tests of a package, removes the program and does what else is to be done then. It does not return.
func Main(m *testing.M, then ...func()) {
	os.Unsetenv("GOGC") // of the tests: the program has its own rule
	state, err := os.MkdirTemp("", "dagrun-state-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", state) // no run is told what others on this machine have seen
	code := m.Run()
	_ = os.RemoveAll(state)
	_ = os.RemoveAll(folder)
	for _, f := range then {
		f()
	}
	os.Exit(code)
}
