package compile

import (
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// defaultGrace is how long a program has between being asked to end and being killed, where neither node nor
// pipeline says otherwise.
const defaultGrace = dag.Duration(5e9)

// defaultGrowth makes the third attempt's time limit longer, where there is one.
const defaultGrowth = 1.5

// withDefaults lays a node, or the template of one, over the pipeline's defaults for its kind and for all kinds.
func (b *builder) withDefaults(node *tree.Value, kind string) *tree.Value {
	for _, d := range []*tree.Value{b.defaults.Get(kind), b.defaults.Get("*")} {
		node = overlay(node, d)
	}
	return node
}

// overlay returns a with what only under has. Maps are merged field by field, but a formula replaces delays below it,
// what is said of a category is taken as a whole, and a timeout that is a text is that of an attempt.
func overlay(a, under *tree.Value) *tree.Value {
	if under == nil || a.Kind != tree.Map || under.Kind != tree.Map {
		return a
	}
	out := &tree.Value{Kind: tree.Map, Pos: a.Pos, Fields: slices.Clone(a.Fields)}
	for i, f := range out.Fields {
		below := under.Get(f.Name)
		switch {
		case below == nil:
		case f.Name == "timeout":
			out.Fields[i].Value = overlay(timeouts(f.Value), timeouts(below))
		case f.Name == "on" && f.Value.Kind == tree.Map:
			out.Fields[i].Value = replaced(f.Value, below)
		default:
			out.Fields[i].Value = overlay(f.Value, below)
		}
	}
	formula := a.Get("base") != nil || a.Get("factor") != nil || a.Get("cap") != nil
	for _, f := range under.Fields {
		if a.Get(f.Name) == nil && !(f.Name == "delays" && formula) {
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// replaced returns the fields of a, each as a whole, and those of under that a does not have.
func replaced(a, under *tree.Value) *tree.Value {
	m := &tree.Value{Kind: tree.Map, Pos: under.Pos, Fields: slices.Clone(under.Fields)}
	for _, f := range a.Map() {
		m.Set(f.Name, f.Pos, f.Value)
	}
	return m
}

// timeouts is a timeout as a map.
func timeouts(v *tree.Value) *tree.Value {
	if v.Kind != tree.String {
		return v
	}
	return &tree.Value{Kind: tree.Map, Pos: v.Pos, Fields: []tree.Field{{Name: "attempt", Pos: v.Pos, Value: v}}}
}

// policies reads how a node is run. v is the node with the pipeline's defaults.
func (b *builder) policies(n *dag.Node, v *tree.Value, path string) {
	b.into(v, path, n, "breaker", "pool", "effect", "reserve", "estimate", "labels")
	switch f := v.Get("onFail"); {
	case f != nil && f.Kind == tree.Map: // see undo
		n.OnFail = dag.FailCompensate
	case f != nil && f.Str != string(dag.FailRun):
		n.OnFail = dag.OnFail(f.Str)
	}
	n.Retry = b.retry(v.Get("retry"), tree.Join(path, "retry"))
	n.Timeout = dag.Timeout{Grace: defaultGrace}
	if t := v.Get("timeout"); t != nil {
		b.into(timeouts(t), tree.Join(path, "timeout"), &n.Timeout)
		if n.Timeout.Attempt > 0 && n.Timeout.Growth == 0 {
			n.Timeout.Growth = defaultGrowth
		}
	}
}

func (b *builder) retry(v *tree.Value, path string) dag.Retry {
	var all dag.RetryChange
	b.into(v, path, &all)
	r := all.Over(dag.DefaultRetry)
	r.Stated = all.Attempts > 0
	for _, f := range sortedMap(v.Get("on")) {
		here := tree.Join(path+".on", f.Name)
		p := dag.CategoryPolicy{Category: f.Name}
		b.into(f.Value, here, &p, "then", "onFail")
		b.into(f.Value, here, &p.Retry)
		r.On = append(r.On, p)
	}
	return r
}

// steady leaves failures of the steady categories at one attempt, unless more are asked for: by attempts of the node or
// its defaults, by what either says of the category, or by the pipeline's own row for it.
func (b *builder) steady(d *draft, t *nodes.Traits) {
	r := &d.node.Retry
	for _, name := range t.Steady {
		said := func(p dag.CategoryPolicy) bool { return p.Category == name }
		if r.Stated || slices.ContainsFunc(r.On, said) || b.ownRows[name] {
			continue
		}
		if len(b.steadied) == 0 || b.steadied[0].Category != name {
			b.steadied = []dag.CategoryPolicy{{Category: name, Retry: dag.RetryChange{Attempts: 1}}}
		}
		if len(r.On) > 0 {
			r.On = append(slices.Clip(r.On), b.steadied...)
		} else {
			r.On = b.steadied
		}
		slices.SortFunc(r.On, func(a, b dag.CategoryPolicy) int { return strings.Compare(a.Category, b.Category) })
		v := d.tree.Get("retry")
		if waits := v.Get("base") != nil || v.Get("delays") != nil; waits && len(r.On) == 1 && len(t.Categories) == 0 {
			b.warn(v.Pos, d.path+".retry", "says how long to wait and not how often to try: after %s there is no further "+
				"attempt unless attempts asks for it", name)
		}
	}
}
