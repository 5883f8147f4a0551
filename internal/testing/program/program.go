// Package program builds dagrun for tests that run it as users do.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
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
	code := m.Run()
	_ = os.RemoveAll(folder)
	for _, f := range then {
		f()
	}
	os.Exit(code)
}
