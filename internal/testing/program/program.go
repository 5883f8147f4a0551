// Package program builds dagrun for tests that run it as users do.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var folder string // of the program; empty: not built yet

var build = sync.OnceValues(func() (out []byte, err error) {
	if folder, err = os.MkdirTemp("", "dagrun-program-"); err != nil {
		return nil, err
	}
	return exec.Command("go", "build", "-o", filepath.Join(folder, "dagrun"), "dagrun.dev/cmd/dagrun").CombinedOutput()
})

// Folder returns the folder that holds the program, which the first call builds.
func Folder(t testing.TB) string {
	t.Helper()
	if out, err := build(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return folder
}

// Main runs the tests of a package, removes the program and does what else is to be done then. It does not return.
func Main(m *testing.M, then ...func()) {
	code := m.Run()
	_ = os.RemoveAll(folder)
	for _, f := range then {
		f()
	}
	os.Exit(code)
}
