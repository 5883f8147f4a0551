package source

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"

	"dagrun.dev/internal/tree"
)

// evaluated evaluates a CUE file or package and turns its pipeline into a tree.
//
// Of the format the evaluator sees the names only, so that what it finds wrong are mistakes of the specification
// itself. A specification may read what only the definitions give, such as the default of a setting: where there are
// faults, it is evaluated against these too, and what is no fault then was none.
func (r *reader) evaluated(f found, o Options) (out Loaded, err error) {
	defer recovered(f, &err)
	if err := contained(f); err != nil {
		return out, err
	}
	if err := r.schema.Stale(f.dir); err != nil {
		return out, failure(f.name, err.Error())
	}
	e, err := r.evaluate(f, r.schema.Names(), o)
	if err != nil {
		return out, err
	}
	faults := e.faults()
	if len(faults) > 0 {
		if whole, err := r.evaluate(f, r.schema.Library, o); err == nil {
			if also := whole.faults(); len(also) == 0 {
				e, faults = whole, nil
			} else {
				faults = slices.DeleteFunc(faults, func(d tree.Diagnostic) bool { return !related(d.Path, also) })
			}
		}
	}
	if len(faults) == 0 {
		faults = e.repeatedKinds()
	}
	for _, file := range e.spec.files {
		out.Files = append(out.Files, file.Filename)
	}
	k := walker{index: e.index, lim: o.Limits}
	out.Tree = k.value(e.pipeline, e.index.at(e.prefix...), "", len(e.prefix), e.index.nearest(e.prefix))
	if k.full {
		return out, k.found
	}
	out.Defaults = map[string][]tree.Pos{}
	defaults(out.Defaults, e.pipeline.LookupPath(cue.MakePath(cue.Str("params"))), out.Tree.Get("params"), "")
	if list := out.Tree.Get("use"); list != nil {
		k.fail(list, "use", "this is for YAML and JSON; in CUE import dagrun.dev/flow and write flow.#Name & {...}")
	}
	if len(faults)+len(k.found) == 0 {
		faults = k.hidden // CUE finds nothing wrong: values that lead back to themselves on the way through a template
	}
	out.Faults = unrepeated(append(faults, k.found...))
	for _, d := range k.hidden {
		out.Hidden = append(out.Hidden, d.Path)
	}
	return out, nil
}

// recovered makes an error of a panic: the evaluator is large, and a mistake of its own is not to end the program.
func recovered(f found, err *error) {
	if p := recover(); p != nil {
		*err = failure(f.name, fmt.Sprintf("CUE cannot evaluate this: %v", p))
	}
}

// related says whether a diagnostic is about a path, something in it or something around it.
func related(path string, ds tree.Diagnostics) bool {
	return slices.ContainsFunc(ds, func(d tree.Diagnostic) bool {
		return tree.Within(path, d.Path) || tree.Within(d.Path, path)
	})
}

// An evaluation is a CUE specification evaluated with one form of the library.
type evaluation struct {
	explainer
	spec     *cueSpec
	pipeline cue.Value
}

func (r *reader) evaluate(f found, lib map[string][]byte, o Options) (e evaluation, err error) {
	e.definitions = r.schema.Definitions()
	e.want = r.schema.Rule("Pipeline")
	e.spec, err = loadCUE(f, lib, o.Given)
	e.index, e.root = newIndex(f.name, f.naming(), e.spec.files), e.spec.value
	if err != nil {
		return e, e.all(err)
	}
	e.pipeline, e.prefix, err = r.pickCUE(e.root, e.index, o.Pipeline)
	return e, err
}

// faults are what CUE finds wrong: in the pipeline, which must be concrete, and beside it.
func (e *evaluation) faults() (ds tree.Diagnostics) {
	if err := e.root.Validate(); err != nil {
		ds = e.all(err)
	}
	if err := concrete(e.pipeline); err != nil {
		ds = append(ds, e.all(err)...)
	}
	return ds
}

// repeatedKinds finds nodes whose kind is written twice: two nodes of one name, which CUE unites.
func (e *evaluation) repeatedKinds() (out tree.Diagnostics) {
	nodes := e.index.at(append(slices.Clone(e.prefix), "nodes")...)
	for _, id := range nodes.fields() {
		if kinds := nodes.field(id).field("kind").constants(); len(kinds) > 1 {
			out = append(out, tree.Diagnostic{Pos: e.index.pos(kinds[1].key), Path: tree.Join("nodes", id),
				Text: fmt.Sprintf("kind is set a second time; first at %s", e.index.pos(kinds[0].key))})
		}
	}
	return out
}

// pickCUE finds the pipeline as pick does in a document. Only the chosen pipeline need be
// concrete; the file may hold anything beside it.
func (r *reader) pickCUE(root cue.Value, x *index, want string) (p cue.Value, labels []string, err error) {
	if !root.LookupPath(cue.ParsePath("pipeline")).Exists() && x.at("pipeline") != nil {
		return root, []string{"pipeline"}, nil // root is an error that hides its fields
	}
	doc := shallow(root, 3)
	doc.Pos = x.nearest(nil)
	if top := doc.Get("pipeline"); top != nil {
		// What is beside it is the file's own.
		doc = &tree.Value{Kind: tree.Map, Pos: doc.Pos, Fields: []tree.Field{{Name: "pipeline", Value: top}}}
		labels, top.Pos = []string{"pipeline"}, x.nearest([]string{"pipeline"})
	} else if root.Err() != nil {
		return root, nil, nil
	}
	_, name, err := r.pick(doc, want)
	if err != nil {
		return p, nil, err
	}
	if name != "" {
		labels = append(labels, name)
	}
	for _, l := range labels {
		root = root.LookupPath(cue.MakePath(cue.Str(l)))
	}
	return root, labels, nil
}

// shallow is as much of a value, a few levels deep, as distinguishes pipelines: maps and texts.
func shallow(v cue.Value, levels int) *tree.Value {
	out := &tree.Value{}
	switch v.IncompleteKind() {
	case cue.StructKind:
		out.Kind = tree.Map
	case cue.StringKind:
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
