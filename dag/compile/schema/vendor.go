package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"dagrun.dev/internal/regular"
	"dagrun.dev/schemas"
)

// Module is the path of the library as a CUE module.
const Module = "dagrun.dev"

// LanguageVersion is that of specifications outside any module.
const LanguageVersion = "v0.17.0"

// Vendored is where the library's files stand below a module's root. It is the one place that dagrun, the cue command
// and its language server all read without a registry.
var Vendored = filepath.Join("cue.mod", "pkg", Module)

// editorSchema is the name of the JSON Schema for editors of YAML, below the vendored library.
const editorSchema = "pipeline.schema.json"

// ModuleRoot returns the nearest folder upwards that holds cue.mod/module.cue, or "".
func ModuleRoot(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, "cue.mod", "module.cue")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// ModuleFile is the module file of a specification that lies in no module.
func ModuleFile() []byte {
	return fmt.Appendf(nil, "module: %q\nlanguage: version: %q\n", "spec.local@v0", LanguageVersion)
}

// Vendor makes dir ready for editors: cue.mod/module.cue where no module is around, the built-in
// library under cue.mod/pkg/dagrun.dev (what `cue vet` and the CUE language server read) and,
// beside it, the JSON Schema for YAML files. An existing copy is brought up to date and files
// that this version no longer has are removed. It returns the paths written or removed,
// relative to the module's root; called twice, it writes nothing the second time.
func (s *Schema) Vendor(dir string) (written []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root := ModuleRoot(dir)
	if root == "" {
		root = dir
		if err := writeFile(filepath.Join(root, "cue.mod", "module.cue"), ModuleFile()); err != nil {
			return nil, err
		}
		written = append(written, filepath.Join("cue.mod", "module.cue"))
	}
	under := filepath.Join(root, Vendored)
	want := maps.Clone(s.Library)
	if want[editorSchema], err = schemas.Library.ReadFile(editorSchema); err != nil {
		return nil, err
	}
	changed, extra, err := compareVendored(under, want)
	if err != nil {
		return written, err
	}
	for _, path := range append(changed, extra...) {
		name := filepath.Join(under, filepath.FromSlash(path))
		if content, still := want[path]; still {
			err = writeFile(name, content)
		} else {
			err = os.Remove(name)
		}
		if err != nil {
			return written, err
		}
		written = append(written, filepath.Join(Vendored, filepath.FromSlash(path)))
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
		have, err := regular.Read(filepath.Join(under, filepath.FromSlash(path)), 1<<24)
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

// Stale compares the vendored library of dir's module with the built-in one. It returns an
// error that names the first file that differs, nil where nothing is vendored.
func (s *Schema) Stale(dir string) error {
	root := ModuleRoot(dir)
	if root == "" {
		return nil
	}
	under := filepath.Join(root, Vendored)
	if _, err := os.Stat(under); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	changed, extra, err := compareVendored(under, s.Library)
	if err != nil {
		return err
	}
	if all := append(changed, extra...); len(all) > 0 {
		sort.Strings(all)
		return fmt.Errorf("%s is not what this dagrun has built in; run `dagrun init --update`",
			filepath.Join(under, filepath.FromSlash(all[0])))
	}
	return nil
}
