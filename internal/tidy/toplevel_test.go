package tidy

import (
	"os"
	"path/filepath"
	"testing"
)

// D-4: where things are.
func TestTopLevel(t *testing.T) {
	for _, name := range []string{"cmd", "dag", "nodes", "specs", "examples", "schemas", "testdata", "go.mod", "Makefile", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}
