package compile

import (
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
	"dagrun.dev/internal/tree"
)

// TestMain lets the test binary be its own child, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == source.ChildCommand {
		os.Exit(source.Child(os.Stdin, os.Stdout, testRegistry))
	}
	os.Exit(m.Run())
}

// load reads and checks a specification: the tree, or all mistakes as a user sees them.
func load(s *schema.Schema, path string, o source.Options) (*tree.Value, source.Source, error) {
	c, err := read(s, path, o)
	if err == nil && len(c.mistakes) > 0 {
		err = c.mistakes
	}
	if ds, ok := err.(tree.Diagnostics); ok {
		return nil, c.Source, firstOf(ds, "mistakes")
	}
	return c.Tree, c.Source, err
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
