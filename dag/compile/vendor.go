package compile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// schemaFile is the JSON Schema for editors of YAML, below the vendored library.
const schemaFile = "pipeline.schema.json"

// Vendor makes dir ready for editors: cue.mod/module.cue where no module is around, the built-in
// library under cue.mod/pkg/dagrun.dev (what `cue vet` and the CUE language server read) and,
// beside it, the JSON Schema for YAML files. An existing copy is brought up to date and files
// that this version no longer has are removed. It returns the paths written or removed,
// relative to the module's root; called twice, it writes nothing the second time.
//
// cue.mod/pkg is the one place that dagrun, the cue command and its language server all read
// without a registry; another place would be a change of this file and of loadCUE.
func (s *Schema) Vendor(dir string) (written []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root := moduleRoot(dir)
	if root == "" {
		root = dir
		module := fmt.Sprintf("module: %q\nlanguage: version: %q\n", "spec.local@v0", languageVersion)
		if err := writeFile(filepath.Join(root, "cue.mod", "module.cue"), []byte(module)); err != nil {
			return nil, err
		}
		written = append(written, filepath.Join("cue.mod", "module.cue"))
	}
	under := filepath.Join(root, vendored)
	want := map[string][]byte{schemaFile: s.JSONSchema()}
	for path, src := range s.lib {
		want[path] = src
	}
	changed, extra, err := compareVendored(under, want)
	if err != nil {
		return written, err
	}
	for _, path := range changed {
		if err := writeFile(filepath.Join(under, filepath.FromSlash(path)), want[path]); err != nil {
			return written, err
		}
		written = append(written, filepath.Join(vendored, filepath.FromSlash(path)))
	}
	for _, path := range extra {
		if err := os.Remove(filepath.Join(under, filepath.FromSlash(path))); err != nil {
			return written, err
		}
		written = append(written, filepath.Join(vendored, filepath.FromSlash(path)))
	}
	sort.Strings(written)
	return written, nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// compareVendored returns the files of want that are missing or different below under, and the
// CUE files there that want does not have; both sorted.
func compareVendored(under string, want map[string][]byte) (changed, extra []string, err error) {
	for path, src := range want {
		have, err := os.ReadFile(filepath.Join(under, filepath.FromSlash(path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if err != nil || !bytes.Equal(have, src) {
			changed = append(changed, path)
		}
	}
	sort.Strings(changed)
	err = filepath.WalkDir(under, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".cue") {
			return err
		}
		rel, err := filepath.Rel(under, name)
		if rel = filepath.ToSlash(rel); want[rel] == nil {
			extra = append(extra, rel)
		}
		return err
	})
	return changed, extra, err
}
