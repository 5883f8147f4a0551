package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	v, src, err := s.load(path, o)
	var ds tree.Diagnostics
	if errors.As(err, &ds) {
		err = firstOf(ds, "mistakes")
	}
	if err != nil {
		return nil, src, err
	}
	return v, src, nil
}

// load is Load with all mistakes, and with the tree where they are mistakes in it.
func (s *Schema) load(path string, o LoadOptions) (*tree.Value, Source, error) {
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
		v, src, err = s.loadWatched(f, src, o)
	default:
		v, err = s.loadData(f, &src, o)
	}
	return v, src, err
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

// check runs the rules over a pipeline. The tree is returned with its mistakes too.
func (s *Schema) check(p *tree.Value, src *Source) (*tree.Value, error) {
	r := s.rules["Pipeline"]
	mistakes, doubts := r.CheckTemplates(p, "")
	if len(mistakes) > 0 {
		return p, mistakes
	}
	src.Warnings = append(src.Warnings, doubts...)
	return p, nil
}

// pick finds the pipeline in a document: its field pipeline, the one of that name below it, or
// the document itself.
func (s *Schema) pick(doc *tree.Value, want string) (p *tree.Value, name string, err error) {
	bad := func(pos tree.Pos, path, text string) (*tree.Value, string, error) {
		return nil, "", tree.Diagnostics{{Pos: pos, Path: path, Text: text}}
	}
	if doc.Kind != tree.Map {
		return bad(doc.Pos, "", "want a map that holds a pipeline, got "+rules.Show(doc))
	}
	p = doc.Get("pipeline")
	switch {
	case p == nil && len(doc.Fields) == 0:
		return bad(doc.Pos, "", "no pipeline is declared here; write pipeline: {name: ..., nodes: ...}")
	case p == nil:
		p = doc
	default:
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
		if s.several(p) {
			name, text := choose(p, want)
			if text != "" {
				return bad(p.Pos, "pipeline", text)
			}
			return p.Get(name), name, nil
		}
	}
	if only := str(p.Get("name")); want != "" && want != only {
		return bad(p.Pos, "", fmt.Sprintf("no pipeline %q here; there is one, named %q", want, only))
	}
	return p, "", nil
}

// several says whether a map holds several named pipelines and not the fields of one.
func (s *Schema) several(v *tree.Value) bool {
	if v.Kind != tree.Map || str(v.Get("name")) != "" || len(v.Fields) == 0 {
		return false
	}
	for _, f := range v.Fields {
		isNode, isNamed := isText(f.Value.Get("kind")), isText(f.Value.Get("name"))
		if f.Value.Kind != tree.Map || isNode || s.rules["Pipeline"].Field(f.Name) != nil && !isNamed {
			return false
		}
	}
	return true
}

func isText(v *tree.Value) bool { return v != nil && v.Kind == tree.String }

// choose returns the name of the pipeline to take, or why none can be taken.
func choose(v *tree.Value, want string) (name, mistake string) {
	var names []string
	for _, f := range v.Fields {
		names = append(names, f.Name)
	}
	switch {
	case want == "" && len(names) == 1:
		return names[0], ""
	case want == "":
		return "", "several pipelines; pick one with --pipeline: " + strings.Join(names, ", ")
	case slices.Contains(names, want):
		return want, ""
	}
	if near := near(want, names); near != "" {
		return "", fmt.Sprintf("no pipeline %q%s", want, near)
	}
	return "", fmt.Sprintf("no pipeline %q; there are %s", want, strings.Join(names, ", "))
}
