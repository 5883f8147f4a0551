package source

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// An explainer turns CUE's errors into one line for each mistake, at a place of the user's files. CUE's own words stay
// where they say what to do.
type explainer struct {
	index       *index
	prefix      []string  // where the pipeline is
	root        cue.Value // what the files evaluate to; may be an error
	definitions []string  // of the format
	want        *rules.Rule
}

// all returns one diagnostic for each path, and leaves out those that come of others.
func (x *explainer) all(err error) tree.Diagnostics {
	var out tree.Diagnostics
	seen := map[string]int{}
	own := map[tree.Pos]string{} // paths of the constants that are at fault, by their place
	for _, e := range errors.Errors(err) {
		labels := unquoteAll(e.Path())
		for _, c := range x.index.at(labels...).constants() {
			own[x.index.pos(c.value.Pos())] = x.path(labels)
		}
		key := strings.Join(labels, "\x00")
		k, again := seen[key]
		switch {
		case !again || key == "":
			seen[key] = len(out)
			out = append(out, x.one(e, labels))
		case strings.HasSuffix(out[k].Text, "errors in empty disjunction:"): // what follows says which
			out[k] = x.one(e, labels)
		}
	}
	independent := slices.Clone(out)
	independent = slices.DeleteFunc(independent, func(d tree.Diagnostic) bool { return follows(d, out, own) })
	return unrepeated(x.atOrigin(independent))
}

// follows says whether a diagnostic comes of another one at the same place: of a value that is used elsewhere too, or
// of an import of what is not there.
func follows(d tree.Diagnostic, all tree.Diagnostics, own map[tree.Pos]string) bool {
	path, isOwn := own[d.Pos]
	name, unused := strings.CutPrefix(d.Text, "imported and not used: ")
	return slices.ContainsFunc(all, func(o tree.Diagnostic) bool {
		return o.Pos == d.Pos && (isOwn && d.Path != path && o.Path == path ||
			unused && o.Text != d.Text && strings.Contains(o.Text, strings.Fields(name)[0]))
	})
}

// noPackage is what CUE says of an import that leads nowhere, of a name without a dot too.
var noPackage = regexp.MustCompile(`(?:cannot find|builtin) package "([^"]*)"`)

// runReference is what CUE says where somebody reads what only expressions of the run may read.
var runReference = regexp.MustCompile(`^reference "(nodes|params|run)" not found$`)

func (x *explainer) one(e errors.Error, labels []string) tree.Diagnostic {
	text := strings.TrimPrefix(strings.Join(strings.Fields(e.Error()), " "), strings.Join(e.Path(), ".")+": ")
	if _, mistake, ok := strings.Cut(text, "cannot get syntax for "); ok {
		_, text, _ = strings.Cut(mistake, ": ")
	}
	if _, mistake, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(text, "error in call to ") {
		text = mistake
	}
	d := tree.Diagnostic{Path: x.path(labels), Text: text, Pos: x.best(e, labels)}
	switch constants := x.index.at(labels...).constants(); {
	case strings.Contains(text, "conflicting values") && len(constants) > 1:
		d.Pos = x.index.pos(constants[1].value.Pos())
		d.Text = fmt.Sprintf("set a second time to another value; first at %s", x.index.pos(constants[0].value.Pos()))
	case strings.Contains(text, "incomplete value"), strings.Contains(text, "non-concrete value"):
		d.Text = "no concrete value given"
		if r := x.rule(labels); r != nil {
			d.Text += " (" + r.Wanting() + ")"
		}
	case noPackage.MatchString(text):
		name := noPackage.FindStringSubmatch(text)[1]
		near := rules.DidYouMean(name, []string{schema.Module + "/spec", schema.Module + "/flow"})
		if !strings.HasPrefix(name, schema.Module) || near == "" {
			near = ": it is not built in and dagrun asks no registry. Import a folder of yours by the module that " +
				"cue.mod/module.cue names, with the name of its package where that is another: \"MODULE/folder:name\"; " +
				"put what others have made under cue.mod/pkg"
		}
		d.Text = fmt.Sprintf("no package %q%s", name, near)
	case runReference.MatchString(text):
		d.Text = fmt.Sprintf("%s; CUE is read before there is a run: write ${%s.NAME} where a text may hold a value of it",
			text, runReference.FindStringSubmatch(text)[1])
	case strings.Contains(text, "undefined field: #"):
		_, name, _ := strings.Cut(text, "undefined field: #")
		if near := rules.Nearest(name, x.definitions); near != "" {
			d.Text += fmt.Sprintf("; did you mean %q?", "#"+near)
		}
	case strings.Contains(text, "field not allowed"):
		d.Text = "unknown field" + x.resembling(labels)
		if x.rule(labels) != nil { // so it is not the format that refuses it
			d.Text = "a definition that the value is made of has no such field; to let more in, put ... at the end of it"
		}
		d.Pos = x.index.key(x.index.at(labels...), d.Pos)
	}
	return d
}

// resembling names the field that an unknown one at labels was most probably meant to be.
func (x *explainer) resembling(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	last := len(labels) - 1
	var names []string
	for sel := range fields(x.value(labels[:last])) {
		if sel.LabelType() == cue.StringLabel && sel.Unquoted() != labels[last] {
			names = append(names, strings.TrimRight(sel.String(), "?!"))
		}
	}
	return rules.DidYouMean(labels[last], names)
}

// fields are the fields of a struct, declared ones and hidden ones too; of anything else there are none.
func fields(v cue.Value) iter.Seq2[cue.Selector, cue.Value] {
	return func(yield func(cue.Selector, cue.Value) bool) {
		it, err := v.Fields(cue.All())
		for err == nil && it.Next() && yield(it.Selector(), it.Value()) {
		}
	}
}

// value follows labels, which may be hidden fields or indices.
func (x *explainer) value(labels []string) cue.Value {
	v := x.root
next:
	for _, label := range labels {
		sel := cue.Str(label)
		if n, err := strconv.Atoi(label); err == nil && v.IncompleteKind() == cue.ListKind {
			sel = cue.Index(n)
		}
		if f := v.LookupPath(cue.MakePath(sel)); f.Exists() {
			v = f
			continue
		}
		for sel, f := range fields(v) {
			if sel.String() == label {
				v = f
				continue next
			}
		}
		return cue.Value{}
	}
	return v
}

// best picks the place of an error: of those CUE names, one in the user's files where a literal
// stands, else any in the user's files, else the nearest value around the path.
func (x *explainer) best(e errors.Error, labels []string) tree.Pos {
	all := append([]token.Pos{e.Position()}, errors.Positions(e)...)
	for _, p := range x.index.at(labels...).all() {
		if p.literal && slices.Contains(all, p.value.Pos()) {
			return x.index.pos(p.value.Pos())
		}
	}
	for _, p := range all {
		if at := x.index.pos(p); at.Line > 0 {
			return at
		}
	}
	return x.index.nearest(labels)
}

// path is the path for messages: relative to the pipeline where the labels lie in it.
func (x *explainer) path(labels []string) string {
	path := ""
	for _, l := range x.inside(labels) {
		if strings.HasPrefix(l, "let[") {
			continue
		}
		if n, err := strconv.Atoi(l); err == nil {
			path = tree.At(path, n)
			continue
		}
		path = tree.Join(path, l)
	}
	return path
}

// inside cuts the way to the pipeline off labels that lie in it.
func (x *explainer) inside(labels []string) []string {
	if n := len(x.prefix); n > 0 && len(labels) > n && slices.Equal(labels[:n], x.prefix) {
		return labels[n:]
	}
	if x.prefix == nil && len(labels) > 1 && labels[0] == "pipeline" {
		return labels[1:]
	}
	return labels
}

// rule is what the format asks for at labels, nil where none is known.
func (x *explainer) rule(labels []string) *rules.Rule {
	r := x.want
	for _, l := range x.inside(labels) {
		r = r.Below(l)
	}
	return r
}

// unquoteAll turns the selectors of an error's path into plain names.
func unquoteAll(path []string) []string {
	out := slices.Clone(path)
	for i, p := range path {
		if s, err := strconv.Unquote(p); err == nil && strings.HasPrefix(p, `"`) {
			out[i] = s
		}
	}
	return out
}

// What CUE says of a mistake in what a template is given, it says where the template uses it, once for
// each node that the template makes.
var inTemplates = regexp.MustCompile(`(required field missing|undefined field): ([^ ;:,]+)`)

// atOrigin moves such diagnostics to where the user made the mistake: the map that lacks the field, the text
// that names nothing. One that is nowhere to be found in the user's files stays where it is.
func (x *explainer) atOrigin(ds tree.Diagnostics) tree.Diagnostics {
	origins := map[string]tree.Diagnostics{}
	var out tree.Diagnostics
	for _, d := range ds {
		m := inTemplates.FindStringSubmatch(d.Text)
		if m == nil {
			out = append(out, d)
			continue
		}
		at, known := origins[m[0]]
		if !known {
			at = x.origin(m[0], m[1], m[2])
			origins[m[0]] = at
			out = append(out, at...)
		}
		if len(at) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// origin finds in the user's files where a field is missing, or where a text names an undefined one.
func (x *explainer) origin(text, says, name string) (out tree.Diagnostics) {
	x.index.walk(x.index.top, nil, func(w *written, labels []string) {
		for _, p := range w.parts {
			d := tree.Diagnostic{Pos: x.index.pos(p.value.Pos()), Path: x.path(labels), Text: text}
			switch {
			case says == "undefined field":
				if p.names(name) {
					d.Text += rules.DidYouMean(name, x.index.names())
					out = append(out, d)
				}
			case !p.constant() && x.lacks(labels, name):
				out = append(out, d)
				return
			}
		}
	})
	return out
}

// names says whether the part is a text that is a name.
func (p part) names(name string) bool {
	lit, ok := p.value.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	s, err := literal.Unquote(lit.Value)
	return err == nil && s == name
}

// lacks reports whether a map has a required field of a name and no value for it. What stands in definitions and
// hidden fields are templates themselves.
func (x *explainer) lacks(labels []string, name string) bool {
	template := func(l string) bool { return strings.HasPrefix(l, "_") || strings.HasPrefix(l, "#") }
	if slices.ContainsFunc(labels, template) {
		return false
	}
	for sel := range fields(x.value(labels)) {
		if sel.ConstraintType() == cue.RequiredConstraint && sel.Unquoted() == name {
			return true
		}
	}
	return false
}

// unrepeated leaves out what was said of a value before, where it is referred to from elsewhere.
func unrepeated(ds tree.Diagnostics) tree.Diagnostics {
	type said struct{ text, path string }
	all := make(map[said]bool, len(ds))
	for _, d := range ds {
		all[said{d.Text, d.Path}] = true
	}
	return slices.DeleteFunc(ds, func(d tree.Diagnostic) bool {
		for rest, found := d.Path, true; found; {
			if _, rest, found = strings.Cut(rest, "."); rest != "" && all[said{d.Text, rest}] {
				return true
			}
		}
		return false
	})
}
