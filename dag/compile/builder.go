package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/tree"
)

// A builder makes one plan. It belongs to one goroutine.
type builder struct {
	s    *schema.Schema
	src  source.Source
	root *os.Root // folder of the spec
	// sources are the files in it that the plan is made of, but for those that nodes name.
	sources []string
	plan    *dag.Plan
	lang    *expr.Lang // parameters, no variables

	others []*otherValue   // allowed values of parameters that are not in force
	warned map[string]bool // what they would do wrong

	drafts      []*draft
	byID        map[string]*draft // by id in lower case
	unknown     unknowns          // what mistakes leave unknown
	defaults    *tree.Value
	escalations *tree.Value
	ownRows     map[string]bool       // categories that mean something else than in the format
	steadied    []dag.CategoryPolicy  // what steady added last: most nodes say nothing beside it, and share it
	known       map[string][]string   // names of breakers, pools, accumulators, categories, sorted
	dirs        map[string]*draft     // folders that nodes name
	files       map[string]*inputFile // input files by path as written

	beside     map[string]*inputFile    // files that inputs name, by path
	matched    map[string]string        // what is wrong with a name in inputs; empty = it is in order
	folders    map[string][]fs.DirEntry // beside the spec, as far as they were read
	ofPattern  map[string][]string      // ids that match a pattern in needs
	isFile     map[string]bool          // whether names are files beside the spec
	inputBytes int64                    // of all beside

	placed struct { // the last place that was asked for
		pos  tree.Pos
		text string
	}

	lists int      // of ids, checked so far
	late  []string // groups of the nodes that run-time foreach will make

	mistakes tree.Diagnostics
	warnings tree.Diagnostics
}

// A draft is a node on its way into the plan.
type draft struct {
	id       string
	path     string      // of the node, for messages
	tree     *tree.Value // nil once the node is complete
	with     *tree.Value // checked settings; templates where the node is dynamic; nil once the node is complete
	template *tree.Value // settings as they stand, where parameters are read; nil once the node is complete
	node     *dag.Node
	items    *madeItems          // of a run-time foreach
	notes    []string            // what its kind says is worth showing
	single   []reader            // settings that name one artifact, and look like patterns
	public   []reader            // paths beside the specification at which it puts files
	actions  []reading           // undo actions that read recorded values
	reads    []reading           // of other nodes
	index    int32               // in the graph of written needs
	bad      bool                // something is wrong with it: what it declares is not known whole
	loose    bool                // it names nodes that are not there: what it comes after is not known whole
	heard    bool                // its values are read
	words    map[string][]string // all that a value may be, where its kind says so

	listed int // number of the last list of ids that names it

	triggerPos tree.Pos // of its own onFail, where that undoes something

	// Places of the node and of the fields that the graph may find fault with.
	pos, needsPos, readsPos, writesPos tree.Pos
}

// A reader is a setting that names what the node reads.
type reader struct {
	name string
	pos  tree.Pos
	path string
}

// place returns the place of a field, or that of the node.
func (d *draft) place(field string) tree.Pos {
	at := d.pos
	switch field {
	case "needs":
		at = d.needsPos
	case "reads":
		at = d.readsPos
	case "writes":
		at = d.writesPos
	}
	if at == (tree.Pos{}) {
		return d.pos
	}
	return at
}

func newBuilder(s *schema.Schema, src source.Source, root *os.Root) *builder {
	return &builder{
		s: s, src: src, root: root, plan: &dag.Plan{Format: dag.Format},
		byID: map[string]*draft{}, known: map[string][]string{}, dirs: map[string]*draft{}, files: map[string]*inputFile{},
		beside: map[string]*inputFile{}, matched: map[string]string{}, folders: map[string][]fs.DirEntry{},
		ofPattern: map[string][]string{},
		isFile:    map[string]bool{},
	}
}

// fail records a mistake.
func (b *builder) fail(pos tree.Pos, path, format string, args ...any) {
	b.report(tree.Diagnostic{Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (b *builder) report(d tree.Diagnostic) { b.mistakes = append(b.mistakes, d) }

// ok records mistakes and says whether there are none.
func (b *builder) ok(ds tree.Diagnostics) bool {
	b.mistakes = append(b.mistakes, ds...)
	return len(ds) == 0
}

// problems records what is wrong with an expression.
func (b *builder) problems(pos tree.Pos, path, src string, list []string) {
	for _, text := range list {
		b.report(expr.Diagnose(pos, path, src, text))
	}
}

// template compiles one, or returns nil where it has mistakes.
func (b *builder) template(lang *expr.Lang, v *tree.Value, path string, late bool) *expr.Template {
	m, mistakes := lang.Template(v, path, late, expr.Decls{})
	if !b.ok(mistakes) {
		return nil
	}
	return m
}

func (b *builder) warn(pos tree.Pos, path, format string, args ...any) {
	b.warnings = append(b.warnings, tree.Diagnostic{Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

// absorb records the mistakes of an error.
func (b *builder) absorb(err error) {
	var ds tree.Diagnostics
	var d tree.Diagnostic
	switch {
	case errors.As(err, &ds):
		b.ok(ds)
	case errors.As(err, &d):
		b.report(d)
	default:
		b.fail(tree.Pos{File: tree.FileOf(b.src.Path)}, "", "%v", err)
	}
}
