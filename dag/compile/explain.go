package compile

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// An explainer turns CUE's errors into one line for each mistake. The pipeline is at the labels
// in prefix.
type explainer struct {
	s      *Schema
	index  *syntaxIndex
	prefix []string
	root   cue.Value // what the files evaluate to; may be an error
}

// all groups errors by path: one diagnostic each.
func (x explainer) all(err error) tree.Diagnostics {
	var out tree.Diagnostics
	seen := map[string]int{}
	for _, e := range errors.Errors(err) {
		key := pathKey(e.Path())
		if k, again := seen[key]; again && len(e.Path()) > 0 {
			if strings.HasSuffix(out[k].Text, "errors in empty disjunction:") { // what follows says which
				out[k] = x.one(e)
			}
			continue
		}
		seen[key] = len(out)
		out = append(out, x.one(e))
	}
	return x.direct(err, unimported(out))
}

// unimported leaves out that an import is not used where it is said already that there is no such package.
func unimported(ds tree.Diagnostics) tree.Diagnostics {
	return slices.DeleteFunc(ds, func(d tree.Diagnostic) bool {
		name, ok := strings.CutPrefix(d.Text, "imported and not used: ")
		return ok && slices.ContainsFunc(ds, func(o tree.Diagnostic) bool {
			return o.Pos == d.Pos && o.Text != d.Text && strings.Contains(o.Text, strings.Fields(name)[0])
		})
	})
}

// direct leaves out what comes of a mistake in a value elsewhere, at the value's own place.
func (x explainer) direct(err error, ds tree.Diagnostics) tree.Diagnostics {
	own := map[tree.Pos]string{}
	for _, e := range errors.Errors(err) {
		labels := unquoteAll(e.Path())
		for _, c := range x.constants(labels) {
			own[x.index.pos(c.value)] = x.path(labels)
		}
	}
	return slices.DeleteFunc(ds, func(d tree.Diagnostic) bool {
		path, ok := own[d.Pos]
		return ok && d.Path != path && slices.ContainsFunc(ds, func(o tree.Diagnostic) bool { return o.Pos == d.Pos && o.Path == path })
	})
}

func (x explainer) one(e errors.Error) tree.Diagnostic {
	labels := unquoteAll(e.Path())
	text := strings.TrimPrefix(oneLine(e.Error()), strings.Join(e.Path(), ".")+": ")
	if _, mistake, ok := strings.Cut(text, "cannot get syntax for "); ok {
		_, text, _ = strings.Cut(mistake, ": ")
	}
	if _, mistake, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(text, "error in call to ") {
		text = mistake
	}
	d := tree.Diagnostic{Path: x.path(labels), Text: text, Pos: x.best(e, labels)}
	switch written := x.constants(labels); {
	case strings.Contains(text, "conflicting values") && len(written) > 1:
		d.Pos = x.index.pos(written[1].value)
		d.Text = fmt.Sprintf("set a second time to another value; first at %s", x.index.pos(written[0].value))
	case strings.Contains(text, "incomplete value"), strings.Contains(text, "non-concrete value"):
		d.Text = "no concrete value given"
		if want := x.want(labels); want != "" {
			d.Text += " (" + want + ")"
		}
	case strings.Contains(text, "cannot find package"):
		d.Text = x.missingPackage(text)
	case strings.Contains(text, "undefined field: #"):
		_, name, _ := strings.Cut(text, "undefined field: #")
		if near := rules.Nearest(name, keys(x.s.rules)); near != "" {
			d.Text += fmt.Sprintf("; did you mean %q?", "#"+near)
		}
	case strings.Contains(text, "field not allowed"):
		d.Text = "unknown field" + x.resembling(labels)
		if p := x.index.key(labels, tree.Pos{}); p.Line > 0 {
			d.Pos = p
		}
	}
	return d
}

// resembling names the field that an unknown one at labels was most probably meant to be.
func (x explainer) resembling(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	around, name := x.root, labels[len(labels)-1]
	for _, l := range labels[:len(labels)-1] {
		around = field(around, l)
	}
	var names []string
	for sel := range fields(around) {
		if n := sel.String(); sel.LabelType() == cue.StringLabel && sel.Unquoted() != name {
			names = append(names, strings.TrimRight(n, "?!"))
		}
	}
	return near(name, names)
}

// fields are the fields of a struct, declared ones and hidden ones too; of anything else there are none.
func fields(v cue.Value) iter.Seq2[cue.Selector, cue.Value] {
	return func(yield func(cue.Selector, cue.Value) bool) {
		it, err := v.Fields(cue.All())
		for err == nil && it.Next() && yield(it.Selector(), it.Value()) {
		}
	}
}

// field follows one label, which may be hidden or an index.
func field(v cue.Value, label string) cue.Value {
	sel := cue.Str(label)
	if n, err := strconv.Atoi(label); err == nil && v.IncompleteKind() == cue.ListKind {
		sel = cue.Index(n)
	}
	if f := v.LookupPath(cue.MakePath(sel)); f.Exists() {
		return f
	}
	for sel, f := range fields(v) {
		if sel.String() == label {
			return f
		}
	}
	return cue.Value{}
}

// missingPackage words an import that is neither built in nor beside the spec.
func (x explainer) missingPackage(text string) string {
	_, name, _ := strings.Cut(text, "cannot find package \"")
	name, _, _ = strings.Cut(name, "\"")
	if near := near(name, []string{modulePath + "/spec", modulePath + "/flow"}); near != "" && strings.HasPrefix(name, modulePath) {
		return fmt.Sprintf("no package %q%s", name, near)
	}
	return fmt.Sprintf("no package %q: it is not built in and dagrun asks no registry; put it under cue.mod/pkg", name)
}

func (x explainer) constants(labels []string) []entry {
	var out []entry
	for _, e := range x.index.entries[pathKey(labels)] {
		if e.constant {
			out = append(out, e)
		}
	}
	return out
}

// best picks the place of an error: of those CUE names, one in the user's files where a literal
// stands, else any in the user's files, else the nearest value around the path.
func (x explainer) best(e errors.Error, labels []string) tree.Pos {
	written := x.index.entries[pathKey(labels)]
	all := append([]token.Pos{e.Position()}, errors.Positions(e)...)
	for _, w := range written {
		for _, p := range all {
			if w.literal && w.value == p {
				return x.index.pos(p)
			}
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
func (x explainer) path(labels []string) string {
	labels = x.inside(labels)
	path := ""
	for _, l := range labels {
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
func (x explainer) inside(labels []string) []string {
	if n := len(x.prefix); n > 0 && len(labels) > n && slices.Equal(labels[:n], x.prefix) {
		return labels[n:]
	}
	if x.prefix == nil && len(labels) > 1 && labels[0] == "pipeline" {
		return labels[1:]
	}
	return labels
}

// want words what the rule at labels asks for, "" where none is known.
func (x explainer) want(labels []string) string {
	r := x.s.rules["Pipeline"]
	for _, l := range x.inside(labels) {
		if r = r.Below(l); r == nil {
			return ""
		}
	}
	return r.Wanting()
}

// unquoteAll turns the selectors of an error's path into plain names.
func unquoteAll(path []string) []string {
	out := make([]string, len(path))
	for i, p := range path {
		out[i] = p
		if strings.HasPrefix(p, `"`) {
			if s, err := strconv.Unquote(p); err == nil {
				out[i] = s
			}
		}
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// repeatedKinds finds nodes whose kind is written twice: two nodes of one name, which CUE unites.
func (x *syntaxIndex) repeatedKinds(prefix []string) tree.Diagnostics {
	nodes := append(slices.Clone(prefix), "nodes")
	var out tree.Diagnostics
	for _, id := range x.children[pathKey(nodes)] {
		var kinds []entry
		for _, e := range x.entries[pathKey(append(slices.Clone(nodes), id, "kind"))] {
			if e.constant {
				kinds = append(kinds, e)
			}
		}
		if len(kinds) > 1 {
			out = append(out, tree.Diagnostic{Pos: x.pos(kinds[1].key), Path: tree.Join("nodes", id),
				Text: fmt.Sprintf("kind is set a second time; first at %s", x.pos(kinds[0].key))})
		}
	}
	return out
}

// What CUE says of a mistake in what a template is given, it says where the template uses it, once for
// each node that the template makes.
var inTemplates = regexp.MustCompile(`(required field missing|undefined field): ([^ ;:,]+)`)

// atOrigin moves such diagnostics to where the user made the mistake: the map that lacks the field, the text
// that names nothing. One that is nowhere to be found in the user's files stays where it is.
func (x explainer) atOrigin(ds tree.Diagnostics) tree.Diagnostics {
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
	return unrepeated(out)
}

// origin finds in the user's files where a field is missing, or where a text names an undefined one.
func (x explainer) origin(text, says, name string) (out tree.Diagnostics) {
	for _, k := range keys(x.index.entries) { // sorted, for equal messages each time
		labels := strings.Split(k, "\x00")
		for _, e := range x.index.entries[k] {
			d := tree.Diagnostic{Pos: x.index.pos(e.value), Path: x.path(labels), Text: text}
			if says == "undefined field" {
				if s, err := literal.Unquote(e.text); e.text != "" && err == nil && s == name {
					d.Text += near(name, x.names())
					out = append(out, d)
				}
			} else if !e.constant && lacks(x.root, labels, name) {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

// names are the names of all fields in the user's files, sorted.
func (x explainer) names() []string {
	var out []string
	for _, list := range x.index.children {
		out = append(out, list...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lacks reports whether a map has a required field of a name and no value for it. What stands in definitions and hidden
// fields are templates themselves.
func lacks(v cue.Value, labels []string, name string) bool {
	for _, l := range labels {
		if strings.HasPrefix(l, "_") || strings.HasPrefix(l, "#") {
			return false
		}
		v = field(v, l)
	}
	for sel := range fields(v) {
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
