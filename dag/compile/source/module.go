package source

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/tree"
)

// A cueSpec is a CUE file or package, loaded and evaluated.
type cueSpec struct {
	value cue.Value
	files []*ast.File // the user's, imported ones of the same module too, by name; before an error all that were read
}

// loadCUE loads a file or the package of a folder with lib as the built-in library, offline, with given values (JSON)
// in the place of expressions of the user's files. Every call parses anew: syntax trees are never shared.
func loadCUE(f found, lib map[string][]byte, given map[tree.Pos]string) (*cueSpec, error) {
	root := schema.ModuleRoot(f.dir)
	moduleFile := schema.ModuleFile()
	if root == "" { // no module: one that exists in memory only
		root = f.dir
	} else {
		moduleFile = withoutUs(filepath.Join(root, "cue.mod", "module.cue"))
	}
	overlay := map[string]load.Source{}
	if moduleFile != nil {
		overlay[filepath.Join(root, "cue.mod", "module.cue")] = load.FromBytes(moduleFile)
	}
	under := filepath.Join(root, schema.Vendored)
	for path, src := range lib {
		overlay[filepath.Join(under, filepath.FromSlash(path))] = load.FromBytes(src)
	}
	if f.made != nil {
		overlay[filepath.Join(f.dir, f.arg)] = load.FromFile(f.made)
	}
	config := &load.Config{Dir: f.dir, Overlay: overlay, Env: []string{}, Registry: offline{}}
	inst := load.Instances([]string{f.arg}, config)[0]
	s := &cueSpec{files: inst.Files}
	if inst.Err != nil {
		return s, inst.Err
	}
	s.files = ownFiles(inst, under)
	for _, file := range s.files {
		replace(file, given)
	}
	s.value = newContext().BuildInstance(inst)
	return s, nil
}

// newContext returns a CUE context that the environment cannot change: CUE_DEBUG=opendef=1
// would let unknown fields pass.
func newContext() *cue.Context { return cuecontext.New(cuecontext.CUE_DEBUG("")) }

// withoutUs returns a module file without the library among its dependencies, nil where it is not there: CUE wants a
// dependency from a registry and not from cue.mod/pkg.
func withoutUs(name string) []byte {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	const us = schema.Module + "@v0"
	f, err := modfile.ParseNonStrict(src, name)
	if err != nil || f.Deps[us] == nil {
		return nil
	}
	delete(f.Deps, us)
	out, err := modfile.Format(f)
	if err != nil {
		return nil
	}
	return out
}

// ownFiles are the files of a package and of what it imports, without the library's, by name.
func ownFiles(inst *build.Instance, library string) []*ast.File {
	seen := map[string]*ast.File{}
	var visit func(*build.Instance)
	visit = func(in *build.Instance) {
		for _, f := range in.Files {
			if !strings.HasPrefix(f.Filename, library+string(filepath.Separator)) {
				seen[f.Filename] = f
			}
		}
		for _, dep := range in.Imports {
			visit(dep)
		}
	}
	visit(inst)
	byName := func(a, b *ast.File) int { return strings.Compare(a.Filename, b.Filename) }
	return slices.SortedFunc(maps.Values(seen), byName)
}

// offline is a registry that refuses every module without asking anybody.
type offline struct{}

func refuse(path string) error {
	return fmt.Errorf("module %s is not built in and dagrun asks no registry; put it under cue.mod/pkg", path)
}

func (offline) ModFile(_ context.Context, mv module.Version) (*modfile.File, error) {
	return nil, refuse(mv.Path())
}

func (offline) Fetch(_ context.Context, mv module.Version) (module.SourceLoc, error) {
	return module.SourceLoc{}, refuse(mv.Path())
}

func (offline) ModuleVersions(_ context.Context, path string) ([]string, error) {
	return nil, refuse(path)
}
