package compile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
	"dagrun.dev/schemas"
)

// A Schema is the format of specifications: the embedded CUE definitions, those of a
// registry's kinds, and the rules compiled from both. It is immutable and may be used from any
// goroutine.
type Schema struct {
	kinds *nodes.Registry
	names []string               // of all kinds, sorted
	lib   map[string][]byte      // files of module dagrun.dev: spec/spec.cue, flow/...
	rules map[string]*rules.Rule // by definition, without #

	categories, prices table
}

// NewSchema assembles the CUE package dagrun.dev/spec from schemas/spec and every kind's
// Schema, and compiles its definitions to rules. It fails for a schema that CUE refuses or that
// rules cannot express: a mistake in the program.
func NewSchema(kinds *nodes.Registry) (*Schema, error) {
	s := &Schema{kinds: kinds, lib: map[string][]byte{}}
	if err := s.assemble(); err != nil {
		return nil, fmt.Errorf("compile: schema: %w", err)
	}
	pkg, err := buildSpec(s.lib)
	if err != nil {
		return nil, fmt.Errorf("compile: schema: %s", firstLine(err))
	}
	c := newRuleCompiler()
	if err := c.definitions(pkg); err != nil {
		return nil, fmt.Errorf("compile: schema: %s", firstLine(err))
	}
	if len(c.opaque) > 0 {
		return nil, fmt.Errorf("compile: schema: rules cannot express %s", strings.Join(c.opaque, "; "))
	}
	s.rules = c.defs
	if err := s.tables(pkg); err != nil {
		return nil, fmt.Errorf("compile: schema: %w", err)
	}
	return s, nil
}

// schemaFor returns the schema of a registry, compiled once per process and registry.
func schemaFor(kinds *nodes.Registry) (*Schema, error) {
	type result struct {
		s   *Schema
		err error
	}
	once, _ := schemasByRegistry.LoadOrStore(kinds, sync.OnceValue(func() result {
		s, err := NewSchema(kinds)
		return result{s, err}
	}))
	r := once.(func() result)()
	return r.s, r.err
}

var schemasByRegistry sync.Map // *nodes.Registry -> func() result

// assemble collects the library: the embedded files, one for each kind, and the generated list
// of kinds.
func (s *Schema) assemble() error {
	err := fs.WalkDir(schemas.Library, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".cue") {
			return err
		}
		s.lib[path], err = schemas.Library.ReadFile(path)
		return err
	})
	if err != nil {
		return err
	}
	control, err := controlKinds(s.lib["spec/control.cue"])
	if err != nil {
		return err
	}
	defs := map[string]string{}
	for name, def := range control {
		defs[name] = def
	}
	for _, k := range s.kinds.Kinds() {
		if defs[k.Name()] != "" {
			return fmt.Errorf("two kinds named %s", k.Name())
		}
		defs[k.Name()] = "#" + strings.ToUpper(k.Name()[:1]) + k.Name()[1:]
		s.lib["spec/kind_"+k.Name()+".cue"] = []byte(k.Schema())
	}
	for name := range defs {
		s.names = append(s.names, name)
	}
	sort.Strings(s.names)
	s.lib["spec/kinds.cue"] = kindsFile(s.names, defs)
	return nil
}

// controlKinds reads the map of control nodes, name to definition, out of the embedded schema.
func controlKinds(src []byte) (map[string]string, error) {
	f, err := parser.ParseFile("control.cue", src)
	if err != nil {
		return nil, err
	}
	kinds := map[string]string{}
	for _, d := range f.Decls {
		field, ok := d.(*ast.Field)
		if !ok || labelName(field.Label) != "#ControlKinds" {
			continue
		}
		list, _ := field.Value.(*ast.StructLit)
		for _, e := range list.Elts {
			f := e.(*ast.Field)
			kinds[labelName(f.Label)] = f.Value.(*ast.Ident).Name
		}
	}
	return kinds, nil
}

func labelName(l ast.Label) string {
	name, _, _ := ast.LabelName(l)
	return name
}

// kindsFile generates #Kinds (settings by kind) and #Kind (the names).
func kindsFile(names []string, defs map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("package spec\n\n// The settings of every kind of node, by its name.\n#Kinds: {\n")
	for _, n := range names {
		fmt.Fprintf(&b, "\t%q: %s\n", n, defs[n])
	}
	b.WriteString("}\n\n// The kinds of node.\n#Kind: ")
	for _, n := range names {
		fmt.Fprintf(&b, "%q | ", n)
	}
	fmt.Fprintf(&b, "error(\"unknown node kind; want one of %s\")\n", strings.Join(names, ", "))
	return b.Bytes()
}

// buildSpec evaluates the package dagrun.dev/spec of a library.
func buildSpec(lib map[string][]byte) (cue.Value, error) {
	inst := build.NewContext().NewInstance("dagrun.dev/spec", nil)
	for _, path := range specFiles(lib) {
		f, err := parser.ParseFile(path, lib[path], parser.ParseComments)
		if err != nil {
			return cue.Value{}, err
		}
		if what, at := inexpressible(f); what != "" {
			return cue.Value{}, errors.Newf(at, "rules cannot express %s", what)
		}
		if err := inst.AddSyntax(f); err != nil {
			return cue.Value{}, err
		}
	}
	if err := inst.Complete(); err != nil {
		return cue.Value{}, err
	}
	v := newContext().BuildInstance(inst)
	return v, v.Err()
}

// newContext returns a CUE context that the environment cannot change: CUE_DEBUG=opendef=1
// would let unknown fields pass.
func newContext() *cue.Context { return cuecontext.New(cuecontext.CUE_DEBUG("")) }

// specFiles returns a library's files of package spec, sorted.
func specFiles(lib map[string][]byte) []string {
	var out []string
	for path := range lib {
		if strings.HasPrefix(path, "spec/") {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func firstLine(err error) string {
	text := errors.Details(err, nil)
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Kinds returns the registry the schema was made for.
func (s *Schema) Kinds() *nodes.Registry { return s.kinds }

// Rule returns the rules of a definition of dagrun.dev/spec: "Pipeline", "Node", "Agent".
// It is nil for a name that is not defined.
func (s *Schema) Rule(definition string) *rules.Rule { return s.rules[definition] }

// CheckNode checks a node that expansion made, as Load does for those written out: every
// mistake at once, defaults filled in.
func (s *Schema) CheckNode(node *tree.Value, path string) tree.Diagnostics {
	mistakes, _ := s.rules["Node"].CheckTemplates(node, path)
	return mistakes
}

// CheckWith checks the settings of a kind and fills defaults in. late says that ${...} are left in
// them for the run.
func (s *Schema) CheckWith(kind string, with *tree.Value, path string, late bool) tree.Diagnostics {
	r := s.rules["Node"].Field("with").Cases[kind]
	if r == nil {
		return tree.Diagnostics{{Pos: with.Pos, Path: path, Text: fmt.Sprintf("unknown node kind %q", kind)}}
	}
	if !late { // a ${ that is left is text
		return r.Check(with, path)
	}
	mistakes, _ := r.CheckTemplates(with, path)
	return mistakes
}

// A table is data that the schema brings along: what categories of failure mean, what models
// cost. A pipeline's own rows are laid over it.
type table struct {
	rows []tree.Field // in the schema's order
}

// tables reads the tables out of the built package.
func (s *Schema) tables(pkg cue.Value) error {
	for name, t := range map[string]*table{"categories": &s.categories, "prices": &s.prices} {
		b, err := pkg.LookupPath(cue.ParsePath(name)).MarshalJSON()
		if err != nil {
			return fmt.Errorf("%s: %s", name, firstLine(err))
		}
		v, err := tree.ParseJSON("dagrun.dev/spec", b, tree.Limits{})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.rows = v.Fields
	}
	return nil
}

// with returns the rows, by name, with those of a pipeline laid over them: a row of the same name is replaced as a whole.
func (t table) with(own *tree.Value) []tree.Field {
	m := &tree.Value{Kind: tree.Map}
	m.Fields = append(m.Fields, t.rows...)
	if own != nil {
		for _, f := range own.Fields {
			m.Set(f.Name, f.Pos, f.Value)
		}
	}
	return sortedMap(m)
}

// JSONSchema returns the JSON Schema (draft 2020-12) of specifications in YAML and JSON, for
// editors: a pipeline by itself, or the field pipeline with one or several named ones. It is
// rendered from the rules and accepts what they accept.
func (s *Schema) JSONSchema() []byte {
	defs := map[string]any{}
	pipeline := s.rules["Pipeline"].JSONSchema(defs)
	several := map[string]any{"type": "object", "additionalProperties": pipeline}
	doc := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://dagrun.dev/pipeline.schema.json",
		"title":   "dagrun pipeline",
		"type":    "object",
		"$defs":   defs,
		"if":      map[string]any{"required": []string{"pipeline"}},
		"then": map[string]any{
			"properties":           map[string]any{"pipeline": map[string]any{"anyOf": []any{pipeline, several}}},
			"patternProperties":    map[string]any{"^x-": true},
			"additionalProperties": false,
		},
		"else": pipeline,
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		panic(err) // maps, strings and numbers always encode
	}
	return b.Bytes()
}
