package compile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"

	"cuelang.org/go/cue/parser"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/internal/yamltree"
)

// A Source says where a specification came from.
type Source struct {
	Path     string   // as asked for, or as found in the current folder
	Dir      string   // absolute folder of the spec: relative files start here
	Language string   // cue, yaml or json
	Files    []string // absolute paths of the files of the spec itself, sorted
	Name     string   // of the pipeline among several, else ""
	// Warnings are what is valid but probably meant otherwise.
	Warnings tree.Diagnostics
}

// LoadOptions say what to load and how carefully. The zero value is for one's own specs.
type LoadOptions struct {
	Pipeline  string      // which of several pipelines
	Limits    tree.Limits // zero: tree.Defaults
	Untrusted bool        // evaluate CUE in a child process with limits, see Child
	// Given are values of parameters (JSON by dotted name) to stand in the place of their defaults in
	// a specification in CUE.
	Given map[string]string
}

// Load reads the pipeline of a specification: a .cue, .yaml, .yml or .json file, or the folder
// of a CUE package or of a file named spec; empty means that of the current folder. The tree is the
// pipeline itself, not the file around it, checked by the rules, defaults filled in. A bad
// specification is a tree.Diagnostics with every mistake at once, sorted by place.
//
// The same pipeline in two languages gives the same tree but for places and order of fields.
func (s *Schema) Load(path string, o LoadOptions) (*tree.Value, Source, error) {
	if o.Limits == (tree.Limits{}) {
		o.Limits = tree.Defaults
	}
	f, err := find(path)
	if err != nil {
		return nil, Source{Path: path}, err
	}
	src := Source{Path: f.name, Dir: f.dir, Language: f.language}
	var v *tree.Value
	switch {
	case f.language == "cue" && o.Untrusted:
		v, err = s.loadInChild(f, &src, o)
	case f.language == "cue":
		v, err = s.loadCUESpec(f, &src, o)
	default:
		v, err = s.loadData(f, &src, o)
	}
	var ds tree.Diagnostics
	if errors.As(err, &ds) {
		err = told(ds, "mistakes")
	}
	if err != nil {
		return nil, src, err
	}
	return v, src, nil
}

// loadData reads YAML or JSON.
func (s *Schema) loadData(f found, src *Source, o LoadOptions) (*tree.Value, error) {
	data, err := readFile(f, o.Limits.Bytes)
	if err != nil {
		return nil, err
	}
	src.Files = []string{f.abs}
	var v *tree.Value
	if f.language == "yaml" {
		v, src.Warnings, err = yamltree.Parse(f.name, data, o.Limits)
	} else {
		v, err = tree.ParseJSON(f.name, data, o.Limits)
	}
	var d tree.Diagnostic
	if errors.As(err, &d) {
		return nil, tree.Diagnostics{d}
	}
	if err != nil {
		return nil, err
	}
	p, name, err := s.pick(v, o.Pipeline)
	if err != nil {
		return nil, err
	}
	src.Name = name
	return s.check(p, src)
}

// check runs the rules over a pipeline.
func (s *Schema) check(p *tree.Value, src *Source) (*tree.Value, error) {
	r := s.rules["Pipeline"]
	mistakes, doubts := r.CheckTemplates(p, "")
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	src.Warnings = append(src.Warnings, doubts...)
	return p, nil
}

// pick finds the pipeline in a document: its field pipeline, the one of that name below it, or
// the document itself.
func (s *Schema) pick(doc *tree.Value, want string) (p *tree.Value, name string, err error) {
	bad := func(pos tree.Pos, path, text string) error {
		return tree.Diagnostics{{Pos: pos, Path: path, Text: text}}
	}
	if doc.Kind != tree.Map {
		return nil, "", bad(doc.Pos, "", "want a map that holds a pipeline, got "+rules.Show(doc))
	}
	p = doc.Get("pipeline")
	if p == nil {
		if len(doc.Fields) == 0 {
			return nil, "", bad(doc.Pos, "", "no pipeline is declared here; write pipeline: {name: ..., nodes: ...}")
		}
		if err := s.wrongName(shapeOf(doc), want, doc.Pos); err != nil {
			return nil, "", err
		}
		return doc, "", nil
	}
	var ds tree.Diagnostics
	for _, f := range doc.Fields {
		if f.Name != "pipeline" && !strings.HasPrefix(f.Name, "x-") {
			ds = append(ds, tree.Diagnostic{Pos: f.Pos, Path: tree.Join("", f.Name),
				Text: "unknown field beside pipeline; names that start with x- are free"})
		}
	}
	if len(ds) > 0 {
		return nil, "", ds
	}
	shape := shapeOf(p)
	if !s.several(shape) {
		if err := s.wrongName(shape, want, p.Pos); err != nil {
			return nil, "", err
		}
		return p, "", nil
	}
	name, text := choose(shape, want)
	if text != "" {
		return nil, "", bad(p.Pos, "pipeline", text)
	}
	return p.Get(name), name, nil
}

// A shape is what tells one pipeline from several named ones.
type shape struct {
	isMap  bool
	name   string // a scalar field name, if any
	fields []shapeField
}

type shapeField struct {
	name  string
	isMap bool
	named bool // has a scalar field name itself
}

func shapeOf(v *tree.Value) shape {
	sh := shape{isMap: v.Kind == tree.Map}
	for _, f := range v.Fields {
		n := f.Value.Get("name")
		sh.fields = append(sh.fields, shapeField{f.Name, f.Value.Kind == tree.Map, n != nil && n.Kind == tree.String})
		if f.Name == "name" && f.Value.Kind == tree.String {
			sh.name = f.Value.Str
		}
	}
	return sh
}

// several says whether a map holds several named pipelines and not the fields of one.
func (s *Schema) several(sh shape) bool {
	if !sh.isMap || sh.name != "" || len(sh.fields) == 0 {
		return false
	}
	for _, f := range sh.fields {
		if !f.isMap || s.rules["Pipeline"].Field(f.name) != nil && !f.named {
			return false
		}
	}
	return true
}

// wrongName refuses a single pipeline when another is asked for by name.
func (s *Schema) wrongName(sh shape, want string, pos tree.Pos) error {
	if want == "" || want == sh.name {
		return nil
	}
	return tree.Diagnostics{{Pos: pos, Text: fmt.Sprintf("no pipeline %q here; there is one, named %q", want, sh.name)}}
}

// choose returns the name of the pipeline to take, or why none can be taken.
func choose(sh shape, want string) (name, mistake string) {
	var names []string
	for _, f := range sh.fields {
		names = append(names, f.name)
	}
	switch {
	case want == "" && len(names) == 1:
		return names[0], ""
	case want == "":
		return "", "several pipelines; pick one with --pipeline: " + strings.Join(names, ", ")
	case slices.Contains(names, want):
		return want, ""
	}
	mistake = fmt.Sprintf("no pipeline %q", want)
	if near := rules.Nearest(want, names); near != "" {
		return "", fmt.Sprintf("%s; did you mean %q?", mistake, near)
	}
	return "", mistake + "; there are " + strings.Join(names, ", ")
}

// found is a specification before it is read.
type found struct {
	name     string // for messages
	abs, dir string
	arg      string // for CUE's loader: "./p.cue", "." or ".:pkg"
	language string
}

var languages = map[string]string{".cue": "cue", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}

// specNames are the files that stand for their folder, in order.
var specNames = []string{"spec.cue", "spec.yaml", "spec.yml", "spec.json"}

// find says what a path names. Errors are diagnostics with the path as the place.
func find(path string) (found, error) {
	if path == "" {
		return findIn(".", "", "no specification in the current folder; name one, or add spec.cue, spec.yaml or a CUE package")
	}
	info, err := os.Stat(path)
	if err != nil {
		return found{}, notFound(path, err)
	}
	if info.IsDir() {
		return findIn(path, path, "the folder holds no specification: no CUE package and no spec.cue, spec.yaml, spec.yml or spec.json")
	}
	return findFile(path)
}

func findFile(path string) (found, error) {
	language := languages[strings.ToLower(filepath.Ext(path))]
	if language == "" {
		return found{}, diagnose(path, "want a .cue, .yaml, .yml or .json file, or the folder of a CUE package")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return found{}, diagnose(path, reason(err))
	}
	f := found{name: path, abs: abs, dir: filepath.Dir(abs), arg: "." + string(filepath.Separator) + filepath.Base(abs), language: language}
	if language == "cue" {
		return f, regular(path)
	}
	return f, nil
}

// findIn looks for the specification of a folder: the file spec, else the CUE package. name is
// empty for the current folder when nothing was asked for; spec.cue then stands for itself, so
// that it is the same as spec.cue given by name, and for its package otherwise.
func findIn(dir, name, none string) (found, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return found{}, diagnose(name, reason(err))
	}
	packages := map[string]bool{}
	files := map[string]bool{}
	for _, e := range list {
		files[e.Name()] = true
		if filepath.Ext(e.Name()) != ".cue" || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := regular(path); err != nil {
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
		var names []string
		for p := range packages {
			names = append(names, p)
		}
		sort.Strings(names)
		return found{}, diagnose(dir, "the folder holds several CUE packages ("+strings.Join(names, ", ")+"); name a file")
	}
	return found{}, diagnose(name, none)
}

func cuePackage(dir, which string) (found, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return found{}, diagnose(dir, reason(err))
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

// regular refuses pipes, devices and sockets before anything waits for them.
func regular(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return notFound(path, err)
	case info.IsDir():
		return diagnose(path, "a folder, not a file")
	case !info.Mode().IsRegular():
		return diagnose(path, "not a regular file but "+fileType(info.Mode()))
	case info.Size() == 0:
		return diagnose(path, "the file is empty")
	}
	return nil
}

func fileType(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// readFile reads a regular file of at most limit bytes. What claims to hold nothing, such as
// the files of /proc, is empty.
func readFile(f found, limit int64) ([]byte, error) {
	file, err := os.OpenFile(f.abs, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, notFound(f.name, err)
	}
	defer file.Close()
	if err := regular(f.name); err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		return nil, tooLarge(f, limit)
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, diagnose(f.name, reason(err))
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(f, limit)
	}
	return data, nil
}

func tooLarge(f found, limit int64) error {
	return diagnose(f.name, fmt.Sprintf("the file has more than %d bytes", limit))
}

func notFound(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return diagnose(path, reason(err))
	}
	text := "no such file or folder"
	if list, err := os.ReadDir(filepath.Dir(path)); err == nil {
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		if near := rules.Nearest(filepath.Base(path), names); near != "" {
			text += fmt.Sprintf("; did you mean %q?", filepath.Join(filepath.Dir(path), near))
		}
	}
	return diagnose(path, text)
}

// reason is the system's word for an error, without the operation and the path.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func diagnose(path, text string) error {
	return tree.Diagnostics{{Pos: tree.Pos{File: tree.FileOf(path)}, Text: text}}
}

// mostTold is how many mistakes a person is shown: a generated specification may hold one of them
// ten thousand times.
const mostTold = 100

// told sorts diagnostics and leaves the number in the place of those beyond the first hundred.
func told(ds tree.Diagnostics, what string) tree.Diagnostics {
	ds = sorted(ds)
	if more := len(ds) - mostTold; more > 0 {
		ds = append(ds[:mostTold:mostTold], tree.Diagnostic{Text: fmt.Sprintf("and %d more %s", more, what)})
	}
	return ds
}

// sorted orders diagnostics by place, then path. One mistake in a template or behind an alias
// shows at many paths: it is told once, with their number.
func sorted(ds tree.Diagnostics) tree.Diagnostics {
	sort.SliceStable(ds, func(i, j int) bool {
		a, b := ds[i], ds[j]
		return cmp.Or(cmp.Compare(a.Pos.File.String(), b.Pos.File.String()), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.Text, b.Text), cmp.Compare(len(a.Path), len(b.Path)),
			cmp.Compare(a.Path, b.Path)) < 0
	})
	var out tree.Diagnostics
	for i := 0; i < len(ds); {
		j := i + 1
		for j < len(ds) && ds[j].Pos == ds[i].Pos && ds[j].Text == ds[i].Text && (ds[i].Pos.Line > 0 || ds[j].Path == ds[i].Path) {
			j++
		}
		out = append(out, ds[i])
		if more := len(slices.Compact(ds[i:j])) - 1; more > 0 {
			out[len(out)-1].Text += fmt.Sprintf(" (%d times more from here)", more)
		}
		i = j
	}
	return out
}
