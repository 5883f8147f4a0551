// Package source reads specifications in CUE, YAML and JSON into trees that know their places. It is the only importer
// of CUE besides package schema. It knows what each language finds wrong, and not what the format forbids.
package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/dag/compile/schema"
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
	// Warnings are what is valid but probably meant otherwise.
	Warnings tree.Diagnostics
}

// Options say what to load and how carefully. The zero value is for one's own specs.
type Options struct {
	Pipeline  string      // which of several pipelines
	Limits    tree.Limits // zero: tree.Defaults
	Untrusted bool        // evaluate CUE in a child process with limits, see Child
	// Given are values (JSON) to stand in the place of expressions of a specification in CUE: it may refer to a
	// parameter's default (a threshold that is used in a template, say). See Loaded.Defaults.
	Given map[tree.Pos]string
}

// A Loaded is what a specification says.
type Loaded struct {
	Source
	// Tree is the pipeline itself, not the file around it. The same pipeline in two languages gives the same tree but for
	// places and order of fields.
	Tree *tree.Value
	// Faults are what CUE finds wrong with it, and Hidden the paths whose values faults keep from being seen.
	Faults tree.Diagnostics
	Hidden []string
	// Defaults are the expressions of a specification in CUE that give its parameters their defaults, by dotted name.
	Defaults map[string][]tree.Pos
}

// Load reads the pipeline of a specification: a .cue, .yaml, .yml or .json file, or the folder
// of a CUE package or of a file named spec; empty means that of the current folder. What cannot be read is a
// tree.Diagnostics.
func Load(s *schema.Schema, path string, o Options) (Loaded, error) {
	if o.Limits == (tree.Limits{}) {
		o.Limits = tree.Defaults
	}
	f, err := find(path)
	if err != nil {
		return Loaded{Source: Source{Path: path}}, err
	}
	r := reader{s}
	var out Loaded
	switch {
	case f.language != "cue":
		out, err = r.data(f, o)
	case o.Untrusted:
		out, err = inChild(f, o)
	default:
		out, err = r.watched(f, o)
	}
	out.Path, out.Dir, out.Language = f.name, f.dir, f.language
	return out, err
}

type reader struct{ schema *schema.Schema }

// data reads YAML or JSON.
func (r *reader) data(f found, o Options) (out Loaded, err error) {
	out.Files = []string{f.abs}
	doc, warnings, err := document(f, o.Limits)
	if err != nil {
		return out, err
	}
	out.Warnings = warnings
	if out.Tree, _, err = r.pick(doc, o.Pipeline); err != nil || out.Tree.Get("use") == nil {
		return out, err
	}
	if o.Untrusted {
		return inChild(f, o)
	}
	return out, r.use(f, out.Tree)
}

// Document reads a file of data in YAML or, by its name, in JSON.
func Document(path string) (*tree.Value, error) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, notFound(path, err)
	}
	language := languages[strings.ToLower(filepath.Ext(path))]
	doc, _, err := document(found{name: path, abs: file, dir: filepath.Dir(file), language: language}, tree.Defaults)
	return doc, err
}

func document(f found, lim tree.Limits) (doc *tree.Value, warnings tree.Diagnostics, err error) {
	data, err := readFile(f, lim.Bytes)
	if err != nil {
		return nil, nil, err
	}
	if f.language == "json" {
		doc, err = tree.ParseJSON(f.name, data, lim)
	} else {
		doc, warnings, err = yamltree.Parse(f.name, data, lim)
	}
	var d tree.Diagnostic
	if errors.As(err, &d) {
		err = tree.Diagnostics{d}
	}
	return doc, warnings, err
}

// failure is a mistake that has no place in a file.
func failure(path, text string) error {
	return tree.Diagnostics{{Pos: tree.Pos{File: tree.FileOf(path)}, Text: text}}
}

// pick finds the pipeline in a document: its field pipeline, the one of that name below it, or
// the document itself.
func (r *reader) pick(doc *tree.Value, want string) (p *tree.Value, name string, err error) {
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
		if ds := r.beside(doc); len(ds) > 0 {
			return nil, "", ds
		}
		if r.several(p) {
			name, text := choose(p, want)
			if text != "" {
				return bad(p.Pos, "pipeline", text)
			}
			return p.Get(name), name, nil
		}
	}
	if only := p.Get("name").Text(); want != "" && want != only {
		return bad(p.Pos, "", fmt.Sprintf("no pipeline %q here; there is one, named %q", want, only))
	}
	return p, "", nil
}

// beside refuses what stands beside the field pipeline.
func (r *reader) beside(doc *tree.Value) (ds tree.Diagnostics) {
	for _, f := range doc.Fields {
		if f.Name == "pipeline" || strings.HasPrefix(f.Name, "x-") {
			continue
		}
		text := "unknown field beside pipeline; names that start with x- are free"
		if r.schema.Rule("Pipeline").Field(f.Name) != nil {
			text = `unknown field here; it belongs under "pipeline"`
		}
		ds = append(ds, tree.Diagnostic{Pos: f.Pos, Path: tree.Join("", f.Name), Text: text})
	}
	return ds
}

// several says whether a map holds several named pipelines and not the fields of one.
func (r *reader) several(v *tree.Value) bool {
	if v.Kind != tree.Map || v.Get("name").Text() != "" || len(v.Fields) == 0 {
		return false
	}
	for _, f := range v.Fields {
		isNode, isNamed := isText(f.Value.Get("kind")), isText(f.Value.Get("name"))
		if f.Value.Kind != tree.Map || isNode || r.schema.Rule("Pipeline").Field(f.Name) != nil && !isNamed {
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
	return "", fmt.Sprintf("no pipeline %q%s", want, rules.OrKnown(want, names))
}
