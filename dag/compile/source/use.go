package source

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"dagrun.dev/internal/tree"
)

// use fills the templates that a specification in YAML or JSON names with the values that it gives them, and unites
// what they make with the pipeline. A template is a definition of dagrun.dev/flow that makes parts of a pipeline. CUE
// sees the templates and their values, each at its place in the document, and not the pipeline, which may have a
// hundred thousand nodes.
func (r *reader) use(f found, p *tree.Value) (err error) {
	defer recovered(f, &err)
	list := p.Get("use")
	templates, err := templates(r.schema.Library)
	if err != nil {
		return err
	}
	calls, ds := calls(f, list, templates)
	if len(ds) > 0 {
		return ds
	}
	f.arg, f.made = "./use.cue", calls
	e := evaluation{explainer: explainer{definitions: templates, prefix: []string{made}}}
	e.want = r.schema.Rule("Pipeline")
	e.spec, err = loadCUE(f, r.schema.Names(), nil)
	e.index, e.root = newIndex(f.name, f.naming(), e.spec.files), e.spec.value
	if err != nil {
		return e.all(err)
	}
	e.pipeline = e.root.LookupPath(cue.ParsePath(made))
	if ds := append(e.faults(), e.lacking()...); len(ds) > 0 {
		return ds
	}
	k := walker{index: e.index, lim: tree.Defaults}
	more := k.value(e.pipeline, nil, "", 0, list.Pos)
	if ds := append(k.found, unite(p, more, "")...); len(ds) > 0 {
		return ds
	}
	p.Fields = slices.DeleteFunc(p.Fields, func(f tree.Field) bool { return f.Name == "use" })
	return nil
}

// lacking are the values that a template wants and is not given. Nothing else of what it is given need be concrete.
func (e *evaluation) lacking() tree.Diagnostics {
	var ds tree.Diagnostics
	for _, err := range errors.Errors(e.root.LookupPath(cue.ParsePath("use")).Validate(cue.Concrete(true))) {
		if strings.Contains(err.Error(), "required but not present") {
			ds = append(ds, e.one(err, unquoteAll(err.Path())))
		}
	}
	return ds
}
