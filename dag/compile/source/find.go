package source

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/regular"
	"dagrun.dev/internal/rules"
)

// found is a specification before it is read.
type found struct {
	name     string // for messages
	abs, dir string
	arg      string    // for CUE's loader: "./p.cue", "." or ".:pkg"
	made     *ast.File // in the place of the file that arg names
	language string
}

// naming returns the name of a file as a message should show it: as the user wrote the path.
// The library's files have none.
func (f found) naming() func(string) string {
	asked, dir := f.name, f.dir
	if f.abs != f.dir {
		asked = filepath.Dir(f.name)
	}
	return func(file string) string {
		if file == "" || strings.Contains(file, schema.Vendored+string(filepath.Separator)) {
			return ""
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return file
		}
		return filepath.Join(asked, rel)
	}
}

var languages = map[string]string{".cue": "cue", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}

// specNames are the files that stand for their folder, in order.
var specNames = []string{"spec.cue", "spec.yaml", "spec.yml", "spec.json"}

// find says what a path names. Errors are diagnostics with the path as the place.
func find(path string) (found, error) {
	if path == "" {
		const none = "no specification in the current folder; name one, or add spec.cue, spec.yaml or a CUE package"
		return findIn(".", "", none)
	}
	info, err := os.Stat(path)
	if err != nil {
		return found{}, notFound(path, err)
	}
	if info.IsDir() {
		const none = "the folder holds no specification: no CUE package and no spec.cue, spec.yaml, spec.yml or spec.json"
		return findIn(path, path, none)
	}
	if !info.Mode().IsRegular() {
		return found{}, readable(path)
	}
	return findFile(path)
}

func findFile(path string) (found, error) {
	language := languages[strings.ToLower(filepath.Ext(path))]
	if language == "" {
		return found{}, failure(path, "want a .cue, .yaml, .yml or .json file, or the folder of a CUE package")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return found{}, failure(path, reason(err))
	}
	arg := "." + string(filepath.Separator) + filepath.Base(abs)
	f := found{name: path, abs: abs, dir: filepath.Dir(abs), arg: arg, language: language}
	if language == "cue" {
		return f, readable(path)
	}
	return f, nil
}

// findIn looks for the specification of a folder: the file spec, else the CUE package. name is
// empty for the current folder when nothing was asked for; spec.cue then stands for itself, so
// that it is the same as spec.cue given by name, and for its package otherwise.
func findIn(dir, name, none string) (found, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return found{}, failure(name, reason(err))
	}
	packages := map[string]bool{}
	files := map[string]bool{}
	for _, e := range list {
		files[e.Name()] = true
		hidden := strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") // from CUE
		if filepath.Ext(e.Name()) != ".cue" || hidden || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := readable(path); err != nil {
			return found{}, err
		}
		if pkg := packageOf(path); pkg != "" {
			packages[pkg] = true
		}
	}
	if pkg := packageOf(filepath.Join(dir, "spec.cue")); pkg != "" && name != "" {
		return cuePackage(dir, ":"+pkg)
	}
	for _, spec := range specNames {
		if files[spec] {
			return findFile(filepath.Join(dir, spec))
		}
	}
	if len(packages) == 1 {
		return cuePackage(dir, "")
	}
	if len(packages) > 1 {
		names := strings.Join(slices.Sorted(maps.Keys(packages)), ", ")
		return found{}, failure(dir, "the folder holds several CUE packages ("+names+"); name a file")
	}
	for _, file := range slices.Sorted(maps.Keys(files)) { // one that could be meant
		if lang := languages[strings.ToLower(filepath.Ext(file))]; lang == "cue" || lang == "yaml" {
			none += "; there is " + filepath.Join(dir, file)
			break
		}
	}
	return found{}, failure(name, none)
}

func cuePackage(dir, which string) (found, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return found{}, failure(dir, reason(err))
	}
	return found{name: dir, abs: abs, dir: abs, arg: "." + which, language: "cue"}, nil
}

// packageOf returns the package clause of a CUE file, "" without one or where it cannot be read.
func packageOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	f, err := parser.ParseFile(path, io.LimitReader(file, 1<<20), parser.PackageClauseOnly)
	if err != nil || f == nil {
		return ""
	}
	return f.PackageName()
}

// readable refuses pipes, devices and sockets before anything waits for them.
func readable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return notFound(path, err)
	case !info.Mode().IsRegular():
		return failure(path, (&regular.NotRegular{Mode: info.Mode()}).Error())
	case info.Size() == 0:
		return failure(path, "the file is empty")
	}
	return nil
}

// readFile reads a specification of one file, up to a byte more than limit. It may not lead out of its folder.
func readFile(f found, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, notFound(f.name, err)
	}
	defer root.Close()
	data, err := readIn(root, filepath.Base(f.abs), limit)
	switch {
	case err != nil:
		return nil, notFound(f.name, err)
	case len(data) == 0:
		return nil, failure(f.name, "the file is empty")
	}
	return data, nil
}

// readIn reads a regular file up to a byte more than limit.
func readIn(root *os.Root, name string, limit int64) ([]byte, error) {
	file, err := regular.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit+1))
}

func notFound(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return failure(path, reason(err))
	}
	text := "no such file or folder"
	if list, err := os.ReadDir(filepath.Dir(path)); err == nil {
		var names []string
		for _, e := range list {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
		text += rules.DidYouMean(filepath.Clean(path), names)
	}
	return failure(path, text)
}

// reason is the system's word for an error, without the operation and the path.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
