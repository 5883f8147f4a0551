package compile

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"dagrun.dev/internal/tree"
)

// loadCUESpec evaluates a CUE file or package and turns its pipeline into a tree.
//
// The evaluator gets the lean library and the rules say what the schema forbids. Where it finds
// fault itself even with the whole schema, the spec is evaluated with the bare library: CUE then
// tells the mistakes of the spec alone and the rules tell theirs beside them, in one line each.
func (s *Schema) loadCUESpec(f found, src *Source, o LoadOptions) (v *tree.Value, err error) {
	defer func() { // the evaluator is large; a mistake of its own is not to end the program
		if r := recover(); r != nil {
			v, err = nil, diagnose(f.name, fmt.Sprintf("CUE cannot evaluate this: %v", r))
		}
	}()
	if err := bounded(f); err != nil {
		return nil, err
	}
	if err := stale(f.dir, s.lib); err != nil {
		return nil, diagnose(f.name, err.Error())
	}
	lean, err := s.evaluate(f, s.lean(), o)
	if err != nil {
		return nil, err
	}
	src.Files, src.Name = lean.spec.own, lean.name
	bad := lean.faults()
	if bad == nil {
		if ds := lean.index.repeatedKinds(lean.prefix); len(ds) > 0 {
			return nil, ds
		}
		return s.checkCUE(lean, src, o)
	}
	// The spec may read what only the schema itself gives, such as defaults of a kind's settings.
	if whole, err := s.evaluate(f, s.lib, o); err == nil && whole.faults() == nil {
		return s.checkCUE(whole, src, o)
	}
	if v, ds := s.findFaults(f, o); len(ds) > 0 {
		return v, ds
	}
	return nil, lean.explain(s, bad)
}

// An evaluation is a CUE specification evaluated with one form of the library.
type evaluation struct {
	spec   *cueSpec
	index  *syntaxIndex
	p      cue.Value // the pipeline
	prefix []string  // where it is in the file
	name   string    // among several
}

func (s *Schema) evaluate(f found, lib map[string][]byte, o LoadOptions) (e evaluation, err error) {
	e, err = s.evaluateWith(f, lib, o, nil)
	if err != nil || len(o.Given) == 0 {
		return e, err
	}
	return s.evaluateWith(f, lib, o, defaults(e.p, o.Given))
}

// evaluateWith evaluates a specification with some expressions replaced.
func (s *Schema) evaluateWith(f found, lib map[string][]byte, o LoadOptions, by map[place]ast.Expr) (e evaluation, err error) {
	e.spec, err = loadCUE(f.dir, f.arg, lib, by)
	if err != nil {
		e.index = newSyntaxIndex(f, e.spec.inst.Files)
		return e, e.explain(s, err)
	}
	e.index = newSyntaxIndex(f, e.spec.ownSyntax())
	e.p, e.prefix, e.name, err = s.pickCUE(e.spec.value, e.index, o.Pipeline)
	return e, err
}

// faults returns what CUE finds wrong: in the pipeline, which must be concrete, or beside it.
func (e evaluation) faults() error {
	if err := concrete(e.p); err != nil {
		return err
	}
	return e.spec.value.Validate()
}

func (e evaluation) explain(s *Schema, err error) tree.Diagnostics {
	x := explainer{s: s, index: e.index, prefix: e.prefix, root: e.spec.value}
	return x.slips(x.all(err), e.spec.value)
}

func (e evaluation) walk(o LoadOptions) (*tree.Value, cueWalker) {
	w := cueWalker{index: e.index, lim: o.Limits}
	return w.value(e.p, e.prefix, "", e.index.nearest(e.prefix)), w
}

// checkCUE runs the rules over a pipeline that CUE finds no fault with.
func (s *Schema) checkCUE(e evaluation, src *Source, o LoadOptions) (*tree.Value, error) {
	v, w := e.walk(o)
	if len(w.found) > 0 {
		return nil, w.found
	}
	return s.check(v, src)
}

// findFaults evaluates a spec without the schema and returns what CUE and the rules say of it. The tree is nil
// where a mistake hides more than its own place.
func (s *Schema) findFaults(f found, o LoadOptions) (*tree.Value, tree.Diagnostics) {
	bare, err := s.evaluate(f, s.bare(), o)
	if err != nil {
		return nil, nil
	}
	var ds tree.Diagnostics
	if err := bare.spec.value.Validate(); err != nil {
		ds = bare.explain(s, err)
	}
	if err := concrete(bare.p); err != nil {
		ds = append(ds, bare.explain(s, err)...)
	}
	v, w := bare.walk(o)
	ds = append(ds, w.found...)
	told := append(slices.Clone(ds), w.hidden...)
	mistakes, _ := s.rules["Pipeline"].CheckTemplates(v, "")
	for _, d := range mistakes {
		if !covered(d.Path, told) {
			ds = append(ds, d)
		}
	}
	if len(w.hidden) > 0 {
		v = nil
	}
	return v, unrepeated(ds)
}

// covered says whether one of ds is about path or something around it.
func covered(path string, ds tree.Diagnostics) bool {
	for _, d := range ds {
		if d.Path != "" && below(path, d.Path) {
			return true
		}
	}
	return false
}

// pickCUE finds the pipeline as pick does in a document. Only the chosen pipeline need be
// concrete; the file may hold anything beside it.
func (s *Schema) pickCUE(root cue.Value, index *syntaxIndex, want string) (p cue.Value, labels []string, name string, err error) {
	top := root.LookupPath(cue.ParsePath("pipeline"))
	if !top.Exists() && slices.Contains(index.children[""], "pipeline") {
		return root, []string{"pipeline"}, "", nil // root is an error that hides its fields
	}
	if !top.Exists() {
		sh := cueShape(root)
		if len(sh.fields) == 0 && root.Err() == nil {
			return p, nil, "", tree.Diagnostics{{Pos: index.nearest(nil), Text: "no pipeline is declared here; write pipeline: spec.#Pipeline & {...}"}}
		}
		return root, nil, "", s.wrongName(sh, want, index.nearest(nil))
	}
	labels = []string{"pipeline"}
	sh := cueShape(top)
	if !s.several(sh) {
		return top, labels, "", s.wrongName(sh, want, index.nearest(labels))
	}
	name, text := choose(sh, want)
	if text != "" {
		return p, nil, "", tree.Diagnostics{{Pos: index.nearest(labels), Path: "pipeline", Text: text}}
	}
	return top.LookupPath(cue.MakePath(cue.Str(name))), append(labels, name), name, nil
}

func cueShape(v cue.Value) shape {
	sh := shape{isMap: v.IncompleteKind() == cue.StructKind}
	it, err := v.Fields()
	if err != nil {
		return sh
	}
	for it.Next() {
		x := it.Value()
		_, noName := x.LookupPath(cue.ParsePath("name")).String()
		_, noKind := x.LookupPath(cue.ParsePath("kind")).String()
		f := shapeField{it.Selector().Unquoted(), x.IncompleteKind() == cue.StructKind, noName == nil, noKind == nil}
		sh.fields = append(sh.fields, f)
		if f.name == "name" {
			sh.name, _ = x.String()
		}
	}
	return sh
}
