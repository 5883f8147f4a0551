package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/regular"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// An inputFile is an input file as it was when the plan was made.
type inputFile struct {
	file dag.File
	bad  string // why it cannot be read
}

// inputs digests the files that settings name, relative to the folder of the spec. No path leads
// out of that folder, whatever links say.
func (b *builder) inputs(with *tree.Value, names []string, where string) []string {
	var out []string
	for _, name := range names {
		v, at := whereIs(name, with, where)
		if !b.localPath(v, at) {
			continue
		}
		f := b.input(name)
		if f.bad != "" {
			b.fail(v.Pos, at, "%s", f.bad)
			continue
		}
		out = union(out, []string{name})
	}
	sort.Strings(out)
	return out
}

func (b *builder) input(name string) *inputFile {
	if f := b.files[name]; f != nil {
		return f
	}
	if b.root == nil { // the files of the plan are all there is
		return &inputFile{bad: "there are no input files here: " + name}
	}
	b.files[name] = b.digest(name)
	return b.files[name]
}

// digest reads a file below the folder of the spec.
func (b *builder) digest(name string) *inputFile {
	f := &inputFile{file: dag.File{Path: name}}
	r, err := b.open(name)
	if err != nil {
		f.bad = b.why(name, err)
		return f
	}
	defer r.Close()
	h := sha256.New()
	if f.file.Size, err = io.Copy(h, r); err != nil {
		f.bad = b.why(name, err)
		return f
	}
	f.file.Digest = hex.EncodeToString(h.Sum(nil))
	return f
}

func (b *builder) open(name string) (io.ReadCloser, error) { return regular.OpenIn(b.root, name) }

// why words the failure to read an input file.
func (b *builder) why(name string, err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "file " + name + " may not be read"
	case !errors.Is(err, fs.ErrNotExist):
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return "file " + name + ": " + err.Error()
	}
	text := "no file " + name + " in the folder of the spec"
	var names []string
	if dir, err := b.root.Open(path.Dir(name)); err == nil {
		list, _ := dir.ReadDir(1000)
		dir.Close()
		for _, e := range list {
			names = append(names, path.Join(path.Dir(name), e.Name()))
		}
		sort.Strings(names)
	}
	return text + rules.DidYouMean(name, names)
}

// checkFiles lets a kind hold its settings against the content of the files.
func (b *builder) checkFiles(d *draft, t *nodes.Traits, with json.RawMessage, where string) {
	k, ok := b.s.Registry.Kind(d.node.Kind)
	if !ok || b.root == nil {
		return
	}
	if _, able := nodes.Able[nodes.FileChecker](k, nil); !able { // most kinds
		return
	}
	s, err := k.Parse(with)
	if sharer, ok := s.(nodes.Sharer); ok && err == nil && d.node.Call != nil {
		for _, block := range sharer.Shared(b.open) {
			d.node.Call.Shared = append(d.node.Call.Shared, dag.Block(block))
		}
	}
	for _, name := range t.Files {
		if f := b.files[name]; f == nil || f.bad != "" {
			return // reported already
		}
	}
	if err != nil {
		b.problem(d.with, where, nodes.Problem{Text: err.Error()})
		return
	}
	problems, warnings := s.(nodes.FileChecker).CheckFiles(b.open)
	for _, p := range problems {
		b.problem(d.with, where, p)
	}
	for _, w := range warnings {
		b.warn(d.with.Pos, where, "%s", strings.TrimSpace(w))
	}
}

// byPath are input files as the plan holds them.
func byPath(files map[string]*inputFile) (list []dag.File) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if f := files[name]; f.bad == "" {
			list = append(list, f.file)
		}
	}
	return list
}
