package compile

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"dagrun.dev/internal/tree"
)

// loadCUESpec evaluates a CUE file or package and turns its pipeline into a tree.
//
// CUE checks it against the schema as `cue vet` does. Where it finds fault, the spec is
// evaluated once more without the schema and the rules tell what is wrong: in one line each,
// with the user's places. CUE's own words are used only for what the rules cannot see.
func (s *Schema) loadCUESpec(f found, src *Source, o LoadOptions) (*tree.Value, error) {
	if err := bounded(f); err != nil {
		return nil, err
	}
	if err := stale(f.dir, s.lib); err != nil {
		return nil, diagnose(f.name, err.Error())
	}
	real, err := loadCUE(f.dir, f.arg, s.lib)
	if err != nil {
		return nil, explainer{s: s, index: newSyntaxIndex(f, real.inst.Files)}.all(err)
	}
	src.Files = real.own
	index := newSyntaxIndex(f, real.ownSyntax())
	p, prefix, name, err := s.pickCUE(real.value, index, o.Pipeline)
	if err != nil {
		return nil, err
	}
	src.Name = name
	bad := validate(p)
	if bad == nil {
		bad = real.value.Validate()
	}
	if ds := index.repeatedKinds(prefix); len(ds) > 0 && bad == nil {
		return nil, ds
	}
	if bad == nil {
		w := cueWalker{index: index, lim: o.Limits}
		v := w.value(p, prefix, "", index.nearest(prefix))
		if len(w.found) > 0 {
			return nil, w.found
		}
		return s.check(v, src)
	}
	ds, bare := s.findFaults(f, o)
	if len(ds) == 0 && templated(bad, prefix, bare) {
		return s.check(bare, src)
	}
	if len(ds) == 0 {
		ds = explainer{s: s, index: index, prefix: prefix}.all(bad)
	}
	return nil, ds
}

// templated says that CUE finds fault only where a ${...} stands for a value it does not know:
// provider: "${params.agent.provider}" is no provider to CUE.
func templated(bad error, prefix []string, v *tree.Value) bool {
	if v == nil {
		return false
	}
	for _, e := range errors.Errors(bad) {
		labels := unquoteAll(e.Path())
		if len(labels) <= len(prefix) || !slices.Equal(labels[:len(prefix)], prefix) {
			return false
		}
		if !holdsTemplate(descend(v, labels[len(prefix):])) {
			return false
		}
	}
	return true
}

func descend(v *tree.Value, labels []string) *tree.Value {
	for _, l := range labels {
		if v == nil {
			return nil
		}
		if i, err := strconv.Atoi(l); err == nil && v.Kind == tree.List {
			if i >= len(v.Items) {
				return nil
			}
			v = v.Items[i]
			continue
		}
		v = v.Get(l)
	}
	return v
}

func holdsTemplate(v *tree.Value) bool {
	if v == nil {
		return false
	}
	if v.Kind == tree.String && strings.Contains(v.Str, "${") || slices.ContainsFunc(v.Items, holdsTemplate) {
		return true
	}
	return slices.ContainsFunc(v.Fields, func(f tree.Field) bool { return holdsTemplate(f.Value) })
}

// findFaults evaluates a spec without the schema and returns what CUE and the rules say of it,
// and the pipeline as it stands there.
func (s *Schema) findFaults(f found, o LoadOptions) (tree.Diagnostics, *tree.Value) {
	bare, err := loadCUE(f.dir, f.arg, s.withoutSchema())
	if err != nil {
		return nil, nil
	}
	index := newSyntaxIndex(f, bare.ownSyntax())
	p, prefix, _, err := s.pickCUE(bare.value, index, o.Pipeline)
	if err != nil {
		return nil, nil
	}
	x := explainer{s: s, index: index, prefix: prefix}
	var ds tree.Diagnostics
	if err := bare.value.Validate(); err != nil {
		ds = x.all(err)
	}
	if err := validate(p); err != nil {
		ds = append(ds, x.all(err)...)
	}
	w := cueWalker{index: index, lim: o.Limits}
	v := w.value(p, prefix, "", index.nearest(prefix))
	ds = append(ds, w.found...)
	told := append(slices.Clone(ds), w.hidden...)
	mistakes, _ := s.rules["Pipeline"].CheckTemplates(v, "")
	for _, d := range mistakes {
		if !covered(d.Path, told) {
			ds = append(ds, d)
		}
	}
	return ds, v
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
		_, err := x.LookupPath(cue.ParsePath("name")).String()
		f := shapeField{it.Selector().Unquoted(), x.IncompleteKind() == cue.StructKind, err == nil}
		sh.fields = append(sh.fields, f)
		if f.name == "name" {
			sh.name, _ = x.String()
		}
	}
	return sh
}
