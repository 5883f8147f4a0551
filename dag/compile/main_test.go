package compile

import (
	"os"
	"path/filepath"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
	"dagrun.dev/internal/tree"
)

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
