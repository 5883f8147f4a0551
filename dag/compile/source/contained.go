package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/regular"
	"dagrun.dev/internal/tree"
)

// A container finds what CUE would read for a specification before it does: the files of the package, of what it
// imports and what they embed. CUE follows links wherever they lead, waits for the writer of a pipe, and has no bound
// of its own. A file system of ours (load.Config.FS) would do without this, but at v0.17.1 CUE finds no package below
// cue.mod/pkg in one, where the library stands.
type container struct {
	root     *os.Root // of the module, or the folder of the specification
	dir      string   // its path
	module   string   // path of the module, without its version
	name     string   // of the specification, for messages
	pos      func(token.Pos) tree.Pos
	named    func(file string) string // name of a file in messages
	seen     map[string]bool          // files and folders that have been looked at, below root
	bytes    int64                    // of the files that were read
	mistakes tree.Diagnostics
}

// contained refuses a specification that reads outside of its folder, or what is no regular file, or CUE that is too
// large, too deep, or has too many alternatives. The folder is that of its module.
func contained(f found) error {
	dir := cmp.Or(schema.ModuleRoot(f.dir), f.dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return notFound(f.name, err)
	}
	defer root.Close()
	c := container{root: root, dir: dir, module: "spec.local", // as schema.ModuleFile has it
		name: f.name, pos: newIndex(f.name, f.naming(), nil).pos, named: f.naming(), seen: map[string]bool{}}
	if src := c.read("cue.mod/module.cue", tree.Pos{File: tree.FileOf("cue.mod/module.cue")}); src != nil {
		c.module = moduleOf(src)
	}
	var own []*ast.File
	if f.abs != f.dir {
		own = append(own, c.file(c.inRoot(f.abs), tree.Pos{File: tree.FileOf(f.name)}))
	} else { // a package has files in the folders above it too
		own = c.folder(c.inRoot(f.dir))
		for at := c.inRoot(f.dir); at != "."; {
			at = path.Dir(at)
			c.folder(at)
		}
	}
	if len(c.mistakes) > 0 {
		return c.mistakes
	}
	own = slices.DeleteFunc(own, func(f *ast.File) bool { return f == nil })
	if d := tooMany(newIndex(f.name, f.naming(), own)); d.Text != "" {
		return tree.Diagnostics{d}
	}
	return nil
}

// inRoot is a path of the machine as one below the root.
func (c *container) inRoot(abs string) string {
	rel, err := filepath.Rel(c.dir, abs)
	if err != nil {
		return "."
	}
	return filepath.ToSlash(rel)
}

// folder looks at the CUE files of a folder, which may not be there.
func (c *container) folder(dir string) (files []*ast.File) {
	list, _ := fs.ReadDir(c.root.FS(), dir)
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".cue") && !e.IsDir() {
			at := tree.Pos{File: tree.FileOf(c.named(filepath.Join(c.dir, dir, e.Name())))}
			files = append(files, c.file(path.Join(dir, e.Name()), at))
		}
	}
	return files
}

// file looks at a file and at what it imports and embeds. It returns nil where it cannot.
func (c *container) file(name string, at tree.Pos) *ast.File {
	src := c.read(name, at)
	if src == nil {
		return nil
	}
	if c.bytes += int64(len(src)); c.bytes > cueBytes {
		const text = "the CUE source has more than %d bytes; write many nodes as foreach, or as JSON or YAML"
		c.mistakes = tree.Diagnostics{{Pos: tree.Pos{File: tree.FileOf(c.name)}, Text: fmt.Sprintf(text, cueBytes)}}
		return nil
	}
	if at.Line = int32(tooDeep(src)); at.Line > 0 {
		text := fmt.Sprintf("nested deeper than %d levels", cueDepth)
		c.mistakes = append(c.mistakes, tree.Diagnostic{Pos: at, Text: text})
		return nil
	}
	f, err := parser.ParseFile(filepath.Join(c.dir, filepath.FromSlash(name)), src)
	if err != nil {
		return nil // evaluating it says what is wrong
	}
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			c.imported(n)
		case *ast.Attribute:
			c.embedded(path.Dir(name), n)
		}
		return true
	}, nil)
	return f
}

// read returns a file; nil where it is not there, has been read, or is refused.
func (c *container) read(name string, at tree.Pos) []byte {
	if c.seen[name] {
		return nil
	}
	c.seen[name] = true
	src, err := readIn(c.root, name, cueBytes)
	if c.refuse(at, name, err) {
		return nil
	}
	return src
}

// refuse reports whether a file or folder cannot be opened, and notes it where that is not because it is missing.
func (c *container) refuse(at tree.Pos, name string, err error) bool {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.mistakes = append(c.mistakes, tree.Diagnostic{Pos: at, Text: name + " cannot be read: " + reason(err)})
	}
	return err != nil
}

// imported looks at the files of an imported package: in the module, or below cue.mod.
func (c *container) imported(spec *ast.ImportSpec) {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return
	}
	name, _, _ = strings.Cut(name, ":")
	parts := strings.Split(name, "/")
	for i := range parts { // without the version of a module
		parts[i], _, _ = strings.Cut(parts[i], "@")
	}
	name = strings.Join(parts, "/")
	dirs := []string{"cue.mod/gen/" + name, "cue.mod/usr/" + name, "cue.mod/pkg/" + name}
	if rest, ok := strings.CutPrefix(name+"/", c.module+"/"); ok {
		dirs = append(dirs, path.Clean(rest))
	}
	for _, dir := range dirs {
		if c.seen[dir+"/"] || !fs.ValidPath(dir) {
			continue
		}
		c.seen[dir+"/"] = true
		if _, err := regular.StatIn(c.root, dir); !c.refuse(c.pos(spec.Pos()), dir, err) {
			c.folder(dir)
		}
	}
}

// embedArgument is a file or pattern in an attribute: @embed(file=name,type=text).
var embedArgument = regexp.MustCompile(`\b(file|glob)\s*=\s*("(?:[^"\\]|\\.)*"|[^,)]*)`)

// embedded looks at what an attribute embeds into a file of dir.
func (c *container) embedded(dir string, a *ast.Attribute) {
	if !strings.HasPrefix(a.Text, "@embed(") {
		return
	}
	for _, m := range embedArgument.FindAllStringSubmatch(a.Text, -1) {
		name := strings.TrimSpace(m[2])
		if text, err := strconv.Unquote(name); err == nil {
			name = text
		}
		names := []string{path.Join(dir, name)}
		if m[1] == "glob" {
			names, _ = fs.Glob(c.root.FS(), names[0])
		}
		for _, name := range names {
			if c.seen[name] || !fs.ValidPath(name) {
				continue
			}
			file, err := regular.OpenIn(c.root, name)
			if err == nil {
				_ = file.Close()
			}
			var kind *regular.NotRegular
			if errors.As(err, &kind) && kind.Mode.IsDir() {
				continue // CUE passes it by, or says that it is one
			}
			c.refuse(c.pos(a.Pos()), name, err)
			c.seen[name] = true
		}
	}
}

var moduleLine = regexp.MustCompile(`(?m)^\s*module:\s*"([^"@]*)`)

// moduleOf returns the path that a module file declares.
func moduleOf(src []byte) string {
	if m := moduleLine.FindSubmatch(src); m != nil {
		return string(m[1])
	}
	return ""
}
