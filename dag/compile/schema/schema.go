// Package schema is the format of specifications: the CUE definitions that dagrun brings along, as files for CUE and
// as rules for the checker. It reads their syntax and evaluates nothing; package source reads specifications.
package schema

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
	"dagrun.dev/schemas"
)

// A Schema is the CUE module dagrun.dev, made of schemas/ and of each kind's own file, and the rules compiled from its
// package spec. It is immutable and may be used from any goroutine.
type Schema struct {
	Registry *nodes.Registry
	Kinds    []string          // of node, sorted: those of the registry and those that the host carries out itself
	Library  map[string][]byte // files of module dagrun.dev: spec/spec.cue, flow/...

	rules map[string]*rules.Rule // by definition, without #

	// Tables of spec, in its order: what categories of failure mean and what models cost.
	Categories, Prices *tree.Value

	rowDocs map[string]string
}

// For returns the schema of a registry's kinds, made once per process and registry. It fails for a kind's schema that
// rules cannot express: a mistake in the program.
func For(kinds *nodes.Registry) (*Schema, error) {
	made, _ := byRegistry.LoadOrStore(kinds, sync.OnceValues(func() (*Schema, error) { return assemble(kinds) }))
	return made.(func() (*Schema, error))()
}

var byRegistry sync.Map // *nodes.Registry -> func() (*Schema, error)

func assemble(kinds *nodes.Registry) (*Schema, error) {
	s := &Schema{Registry: kinds, Library: map[string][]byte{}}
	err := fs.WalkDir(schemas.Library, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".cue") {
			s.Library[path], err = schemas.Library.ReadFile(path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	for _, k := range kinds.Kinds() {
		s.Library["spec/kind_"+k.Name+".cue"] = []byte(k.Schema)
	}
	c := newCompiler()
	if err := s.parse(c); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	for name := range c.syntax {
		c.definition(name, "")
	}
	if err := c.err(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s.rules, s.Categories, s.Prices, s.rowDocs = c.rules, c.tables["categories"], c.tables["prices"], c.rowDocs
	s.fillIn(s.Categories, "Category")
	s.fillIn(s.Prices, "Price")
	return s, nil
}

// parse reads the definitions and tables of package spec, and adds the file with the list of all kinds to it.
func (s *Schema) parse(c *compiler) error {
	for _, path := range s.specFiles() {
		if err := s.read(c, path); err != nil {
			return err
		}
	}
	definitions := c.controlKinds()
	for _, k := range s.Registry.Kinds() {
		if definitions[k.Name] != "" {
			return fmt.Errorf("two kinds named %s", k.Name)
		}
		definitions[k.Name] = "#" + strings.ToUpper(k.Name[:1]) + k.Name[1:]
	}
	s.Kinds = slices.Sorted(maps.Keys(definitions))
	s.Library["spec/kinds.cue"] = kindsFile(s.Kinds, definitions)
	return s.read(c, "spec/kinds.cue")
}

// read parses one file of the library.
func (s *Schema) read(c *compiler, path string) error {
	f, err := parser.ParseFile(path, s.Library[path], parser.ParseComments)
	if err != nil {
		line, _, _ := strings.Cut(errors.Details(err, nil), "\n")
		return fmt.Errorf("%s", line)
	}
	for _, d := range f.Decls {
		if field, ok := d.(*ast.Field); ok { // not the package clause; CUE refuses what else may not stand here
			c.declare(field)
		}
	}
	return nil
}

// kindsFile generates #Kinds (settings by kind) and #Kind (the names).
func kindsFile(names []string, definitions map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("package spec\n\n// The settings of every kind of node, by its name.\n#Kinds: {\n")
	for _, n := range names {
		fmt.Fprintf(&b, "\t%q: %s\n", n, definitions[n])
	}
	b.WriteString("}\n\n// The kinds of node.\n#Kind: ")
	for _, n := range names {
		fmt.Fprintf(&b, "%q | ", n)
	}
	fmt.Fprintf(&b, "error(\"unknown node kind; want one of %s\")\n", strings.Join(names, ", "))
	return b.Bytes()
}

// specFiles returns the library's files of package spec, sorted.
func (s *Schema) specFiles() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Library)), func(path string) bool {
		return !strings.HasPrefix(path, "spec/")
	})
}

// fillIn gives the rows of a table the defaults of their definition.
func (s *Schema) fillIn(rows *tree.Value, definition string) {
	for _, row := range rows.Fields {
		s.rules[definition].Check(row.Value, row.Name)
	}
}

// Names returns the library with a package spec whose definitions say nothing. Evaluating a specification against the
// definitions themselves takes twice to three times as long and says nothing that the rules do not say better; of the
// format, an evaluation therefore sees the names only. What it evaluates to is checked by the rules, which fill the
// defaults in.
func (s *Schema) Names() map[string][]byte {
	lib := maps.Clone(s.Library)
	for _, path := range s.specFiles() {
		delete(lib, path)
	}
	var b bytes.Buffer
	b.WriteString("package spec\n\n#Kinds: {\n")
	for _, k := range s.Kinds {
		fmt.Fprintf(&b, "\t%q: _\n", k)
	}
	b.WriteString("}\n")
	for _, name := range s.Definitions() {
		open := "_"
		if s.rules[name].Types == rules.TypesOf(tree.Map) { // else a definition that refers to it would be closed
			open = "{...}"
		}
		if name != "Kinds" {
			fmt.Fprintf(&b, "#%s: %s\n", name, open)
		}
	}
	lib["spec/spec.cue"] = b.Bytes()
	return lib
}

// Rule returns the rules of a definition of dagrun.dev/spec: "Pipeline", "Node", "Agent".
// It is nil for a name that is not defined.
func (s *Schema) Rule(definition string) *rules.Rule { return s.rules[definition] }

// Definitions are the names of all definitions of dagrun.dev/spec, without #, sorted.
func (s *Schema) Definitions() []string {
	return slices.Sorted(maps.Keys(s.rules))
}

// CategoryDoc is the comment of a row of Categories.
func (s *Schema) CategoryDoc(name string) string { return s.rowDocs[tree.Join("categories", name)] }

// Settings returns the rules of a kind's settings, or nil for an unknown kind.
func (s *Schema) Settings(kind string) *rules.Rule { return s.rules["Node"].Field("with").Cases[kind] }

// CheckNode checks a node whose strings may hold ${...}: every mistake at once, defaults filled in.
func (s *Schema) CheckNode(node *tree.Value, path string) tree.Diagnostics {
	mistakes, _ := s.rules["Node"].CheckTemplates(node, path)
	return mistakes
}

// CheckSettings checks the settings of a kind and fills defaults in. late says that ${...} are left in
// them for the run.
func (s *Schema) CheckSettings(kind string, with *tree.Value, path string, late bool) tree.Diagnostics {
	r := s.Settings(kind)
	if r == nil {
		return tree.Diagnostics{{Pos: with.Pos, Path: path, Text: fmt.Sprintf("unknown node kind %q", kind)}}
	}
	if !late { // a ${ that is left is text
		return r.Check(with, path)
	}
	mistakes, _ := r.CheckTemplates(with, path)
	return mistakes
}
