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
// The evaluator gets the lean library, which forbids nothing: what it finds wrong are mistakes of the spec itself, and come
// first. The rules report what the schema forbids, once, where CUE has said nothing.
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
	e, err := s.evaluate(f, s.lean(), o)
	if err != nil {
		return nil, err
	}
	faults := e.faults(s)
	if len(faults) > 0 { // it may read what only the schema itself gives, such as defaults of a kind's settings
		if whole, err := s.evaluate(f, s.lib, o); err == nil && len(whole.faults(s)) == 0 {
			e, faults = whole, nil
		}
	}
	src.Files, src.Name = e.spec.own, e.name
	if faults == nil {
		faults = e.index.repeatedKinds(e.prefix)
	}
	return s.checkCUE(e, faults, src, o)
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

func (e evaluation) explain(s *Schema, err error) tree.Diagnostics {
	x := explainer{s: s, index: e.index, prefix: e.prefix, root: e.spec.value}
	return x.atOrigin(x.all(err))
}

func (e evaluation) walk(o LoadOptions) (*tree.Value, cueWalker) {
	w := cueWalker{index: e.index, lim: o.Limits}
	return w.value(e.p, e.prefix, "", e.index.nearest(e.prefix)), w
}

// faults are what CUE finds wrong: in the pipeline, which must be concrete, and beside it.
func (e evaluation) faults(s *Schema) (ds tree.Diagnostics) {
	if err := e.spec.value.Validate(); err != nil {
		ds = e.explain(s, err)
	}
	if err := concrete(e.p); err != nil {
		ds = append(ds, e.explain(s, err)...)
	}
	return ds
}

// checkCUE adds to what CUE finds wrong what the rules say of the rest. The tree is nil where a mistake hides more than
// its own place.
func (s *Schema) checkCUE(e evaluation, ds tree.Diagnostics, src *Source, o LoadOptions) (*tree.Value, error) {
	v, w := e.walk(o)
	if w.full {
		return nil, w.found
	}
	ds = append(ds, w.found...)
	known := append(slices.Clone(ds), w.hidden...)
	mistakes, doubts := s.rules["Pipeline"].CheckTemplates(v, "")
	for _, d := range mistakes {
		if !covered(d.Path, known) {
			ds = append(ds, d)
		}
	}
	if len(w.hidden) > 0 {
		v = nil
	}
	if len(ds) > 0 {
		return v, unrepeated(ds)
	}
	src.Warnings = append(src.Warnings, doubts...)
	return v, nil
}

// pickCUE finds the pipeline as pick does in a document. Only the chosen pipeline need be
// concrete; the file may hold anything beside it.
func (s *Schema) pickCUE(root cue.Value, index *syntaxIndex, want string) (p cue.Value, labels []string, name string, err error) {
	if !root.LookupPath(cue.ParsePath("pipeline")).Exists() && slices.Contains(index.children[""], "pipeline") {
		return root, []string{"pipeline"}, "", nil // root is an error that hides its fields
	}
	doc := shallow(root, 3)
	doc.Pos = index.nearest(nil)
	if top := doc.Get("pipeline"); top != nil {
		doc = &tree.Value{Kind: tree.Map, Fields: []tree.Field{{Name: "pipeline", Value: top}}} // what is beside it is the file's own
		labels, top.Pos = []string{"pipeline"}, index.nearest([]string{"pipeline"})
	} else if root.Err() != nil {
		return root, nil, "", nil
	}
	if _, name, err = s.pick(doc, want); err != nil {
		return p, nil, "", err
	}
	if name != "" {
		labels = append(labels, name)
	}
	for _, l := range labels {
		root = root.LookupPath(cue.MakePath(cue.Str(l)))
	}
	return root, labels, name, nil
}

// shallow is as much of a value, a few levels deep, as distinguishes pipelines: maps and texts.
func shallow(v cue.Value, levels int) *tree.Value {
	out := &tree.Value{}
	switch {
	case v.IncompleteKind() == cue.StructKind:
		out.Kind = tree.Map
	case v.IncompleteKind() == cue.StringKind:
		out.Kind = tree.String
		out.Str, _ = v.String()
		return out
	}
	it, err := v.Fields()
	for levels > 0 && err == nil && it.Next() {
		if it.Selector().IsString() {
			out.Fields = append(out.Fields, tree.Field{Name: it.Selector().Unquoted(), Value: shallow(it.Value(), levels-1)})
		}
	}
	return out
}
