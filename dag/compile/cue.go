package compile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"
)

// modulePath is the module of the built-in library.
const modulePath = "dagrun.dev"

// libraryModule is the module file of the library.
const libraryModule = "module: \"" + modulePath + "@v0\"\nlanguage: version: \"" + languageVersion + "\"\n"

// vendored is where the library's files stand below a module's root.
var vendored = filepath.Join("cue.mod", "pkg", modulePath)

// A cueSpec is a CUE file or package, loaded and evaluated.
type cueSpec struct {
	value cue.Value
	inst  *build.Instance
	dir   string   // absolute
	own   []string // the user's files, absolute, sorted; imported ones of the same module too
}

// loadCUE loads dir/arg (a file "./p.cue", or "." for the package of the folder) with lib as
// the built-in library, offline, with expressions of the user's files replaced. Every call parses
// anew: syntax trees are never shared.
func loadCUE(dir, arg string, lib map[string][]byte, by map[place]ast.Expr) (*cueSpec, error) {
	overlay := map[string]load.Source{}
	root := moduleRoot(dir)
	if root == "" { // no module: one that exists in memory only
		root = dir
		overlay[filepath.Join(root, "cue.mod", "module.cue")] = load.FromString(
			"module: \"spec.local@v0\"\nlanguage: version: \"" + languageVersion + "\"\n")
	}
	registry := offline{root: virtualRoot, lib: lib}
	under := filepath.Join(root, vendored)
	if dependsOnUs(root) {
		under = registry.root
		overlay[filepath.Join(under, "cue.mod", "module.cue")] = load.FromString(libraryModule)
	}
	for path, src := range lib {
		overlay[filepath.Join(under, filepath.FromSlash(path))] = load.FromBytes(src)
	}
	inst := load.Instances([]string{arg}, &load.Config{
		Dir: dir, Overlay: overlay, Env: []string{}, Registry: registry})[0]
	s := &cueSpec{inst: inst, dir: dir}
	if inst.Err != nil {
		return s, inst.Err
	}
	s.own = ownFiles(inst, under)
	if len(by) > 0 {
		for _, f := range s.ownSyntax() {
			replace(f, by)
		}
	}
	s.value = newContext().BuildInstance(inst)
	return s, nil
}

// virtualRoot is where the loader sees the library of a module that depends on it; not on disk.
var virtualRoot = filepath.Join(string(filepath.Separator), "dagrun-builtin")

// languageVersion is that of specs outside any module.
const languageVersion = "v0.17.0"

// moduleRoot returns the nearest folder upwards that holds cue.mod/module.cue, or "".
func moduleRoot(dir string) string {
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

// dependsOnUs says whether the module at root lists the library as a dependency. CUE then wants
// it from a registry and not from cue.mod/pkg.
func dependsOnUs(root string) bool {
	name := filepath.Join(root, "cue.mod", "module.cue")
	src, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	f, err := modfile.ParseNonStrict(src, name)
	if err != nil {
		return false
	}
	_, ok := f.Deps[modulePath+"@v0"]
	return ok
}

// ownFiles lists the files of a package and of what it imports, without the library's.
func ownFiles(inst *build.Instance, library string) []string {
	seen := map[string]bool{}
	var visit func(*build.Instance)
	visit = func(in *build.Instance) {
		for _, f := range in.Files {
			if !strings.HasPrefix(f.Filename, library+string(filepath.Separator)) {
				seen[f.Filename] = true
			}
		}
		for _, dep := range in.Imports {
			visit(dep)
		}
	}
	visit(inst)
	var out []string
	for f := range seen {
		out = append(out, f)
	}
	sort.Strings(out)
	return out
}

// ownSyntax returns the syntax trees of the user's files.
func (s *cueSpec) ownSyntax() []*ast.File {
	own := map[string]bool{}
	for _, f := range s.own {
		own[f] = true
	}
	var out []*ast.File
	var visit func(*build.Instance)
	visit = func(in *build.Instance) {
		for _, f := range in.Files {
			if own[f.Filename] {
				own[f.Filename] = false
				out = append(out, f)
			}
		}
		for _, dep := range in.Imports {
			visit(dep)
		}
	}
	visit(s.inst)
	return out
}

// offline knows one module, the library, and refuses every other without asking anybody.
type offline struct {
	root string // where the loader's overlay holds the library's files; not on disk
	lib  map[string][]byte
}

func (o offline) ModFile(_ context.Context, mv module.Version) (*modfile.File, error) {
	if mv.Path() != modulePath+"@v0" {
		return nil, refuse(mv.Path())
	}
	return modfile.ParseNonStrict([]byte(libraryModule), "module.cue")
}

func (o offline) Fetch(_ context.Context, mv module.Version) (module.SourceLoc, error) {
	if mv.Path() != modulePath+"@v0" {
		return module.SourceLoc{}, refuse(mv.Path())
	}
	m := fstest.MapFS{"cue.mod/module.cue": {Data: []byte(libraryModule)}}
	for path, src := range o.lib {
		m[path] = &fstest.MapFile{Data: src}
	}
	return module.SourceLoc{FS: rooted{m, o.root}, Dir: "."}, nil
}

func (o offline) ModuleVersions(_ context.Context, path string) ([]string, error) {
	if strings.HasPrefix(path, modulePath) {
		return []string{"v0.0.1"}, nil
	}
	return nil, refuse(path)
}

func refuse(path string) error {
	return fmt.Errorf("module %s is not built in and dagrun asks no registry; put it under cue.mod/pkg", path)
}

// rooted is a file system whose files the loader finds below root, in its overlay.
type rooted struct {
	fs.FS
	root string
}

func (r rooted) OSRoot() string { return r.root }

// stale compares the vendored library of dir's module with the built-in one. It returns an
// error that names the first file that differs, nil where nothing is vendored.
func stale(dir string, lib map[string][]byte) error {
	root := moduleRoot(dir)
	if root == "" {
		return nil
	}
	under := filepath.Join(root, vendored)
	if _, err := os.Stat(under); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	changed, extra, err := compareVendored(under, lib)
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
