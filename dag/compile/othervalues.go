package compile

import (
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/tree"
)

// An otherValue is a value that a parameter may have, and has not.
type otherValue struct {
	name, shown string
	params      []dag.Param // all, with this one's value
	lang        *expr.Lang  // made when a node asks for it
}

// others lists the allowed values of parameters that are not in force.
func (ps *params) others() (list []*otherValue) {
	for i, p := range ps.b.plan.Params {
		d := ps.byName[p.Name]
		for _, v := range d.enum {
			if tree.Equal(v, d.val) {
				continue
			}
			raw, err := dag.AppendCanonical(nil, v.AppendJSON(nil))
			if err != nil {
				continue
			}
			o := &otherValue{name: p.Name, shown: v.Plain(), params: slices.Clone(ps.b.plan.Params)}
			o.params[i].Value = raw
			list = append(list, o)
		}
	}
	return list
}

// otherValues warns of settings that would be mistakes if a parameter they read had another of its allowed values: a
// provider that can do less, say. What would only be missing can be given together with that value. Of nodes
// that would be wrong in the same way the first is named, and of the values that are wrong for one setting.
func (b *builder) otherValues(d *draft) {
	if d.template == nil {
		return
	}
	k, ok := b.s.Registry.Kind(d.node.Kind)
	if !ok {
		return
	}
	type fault struct {
		text   string
		values []string // of the parameter, with which it is one
	}
	faults, order := map[[2]string]*fault{}, [][2]string(nil) // by parameter and path
	for _, o := range b.others {
		if !reads(d.template, "params."+o.name) {
			continue
		}
		with := o.fill(d.template, d.with, d.node.Dynamic)
		if with == nil || len(b.s.CheckSettings(d.node.Kind, with, "", true)) > 0 {
			continue
		}
		t, err := k.Describe(sample(b.s.Settings(d.node.Kind), with).AppendJSON(nil))
		if err != nil {
			continue
		}
		for _, p := range t.Problems {
			if p.Path == "" || !stands(with, p.Path) {
				continue
			}
			at := [2]string{o.name, p.Path}
			if faults[at] == nil {
				faults[at], order = &fault{text: p.Text}, append(order, at)
			}
			faults[at].values = append(faults[at].values, o.shown)
		}
	}
	for _, x := range order {
		f, name, path := faults[x], x[0], x[1]
		key := name + " " + path + " " + f.text
		if b.warned[key] {
			continue
		}
		b.warned[key] = true
		others := ""
		if more := f.values[1:]; len(more) > 0 {
			others = fmt.Sprintf(" (as with %s)", strings.Join(more, ", "))
		}
		b.warn(at(d.with, path).Pos, d.path+".with."+path, "with %s=%s%s: %s", name, f.values[0], others, f.text)
	}
}

// fill returns settings with this value in them, by what of their template reads it; nil where that cannot be. late
// says that they are to be filled in again.
func (o *otherValue) fill(template, with *tree.Value, late bool) *tree.Value {
	switch {
	case template == nil || !reads(template, "params."+o.name):
		return with
	case template.Kind != tree.String:
		cannot := false
		out := with.Edited(func(label string, x *tree.Value) *tree.Value {
			filled := o.fill(child(template, label), x, late)
			cannot = cannot || filled == nil
			return filled
		})
		if cannot {
			return nil
		}
		return out
	}
	if o.lang == nil {
		lang, err := expr.NewLang(o.params)
		if err != nil {
			return nil
		}
		o.lang = lang
	}
	m, mistakes := o.lang.Template(template, "", true, expr.Decls{})
	if len(mistakes) > 0 {
		return nil
	}
	out, err := m.Fill(nil, nil, late)
	if err != nil {
		return nil
	}
	return out
}

// reads reports whether a text of v holds an expression with a name.
func reads(v *tree.Value, name string) bool {
	return v.Any(func(x *tree.Value) bool { return strings.Contains(x.Str, "${") && strings.Contains(x.Str, name) })
}

// stands reports whether settings have a value at a path that says something.
func stands(v *tree.Value, path string) bool {
	for _, step := range strings.FieldsFunc(path, isStep) {
		if v = child(v, step); v == nil {
			return false
		}
	}
	return v.Kind != tree.String || v.Str != ""
}
