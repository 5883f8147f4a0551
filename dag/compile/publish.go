package compile

import (
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// publishes checks what a node puts beside the specification.
func (b *builder) publishes(d *draft) {
	list := d.tree.Get("publish")
	b.into(d.tree, d.path, d.node, "publish")
	for i, p := range d.node.Publish {
		v, where := list.Items[i], tree.At(d.path+".publish", i)
		file, to := v.Get("file"), v.Get("to")
		switch {
		case !b.localPath(to, where+".to"):
		case dag.IsFolder(p.To):
			b.fail(to.Pos, where+".to", "want the name of a file, got that of a folder, %q", p.To)
		default:
			b.besidePlace(p.To, to.Pos, where+".to")
		}
		switch {
		case dag.IsFolder(p.File):
			b.fail(file.Pos, where+".file", "want the name of a file, got that of a folder, %q", p.File)
		case !slices.Contains(d.node.Writes, p.File) && !b.unknown.settings(d):
			b.fail(file.Pos, where+".file", "the node does not write %q%s", p.File, rules.DidYouMean(p.File, d.node.Writes))
		}
		twice := func(o dag.Publication) bool { return o.To == p.To }
		if slices.ContainsFunc(d.node.Publish[:i], twice) {
			b.fail(to.Pos, where+".to", "the node puts another file at %s", p.To)
		}
		if b.root != nil {
			d.public = append(d.public, reader{p.To, to.Pos, where + ".to"})
		} else if at := slices.IndexFunc(b.plan.Inputs, func(f dag.File) bool { return f.Path == p.To }); at >= 0 {
			b.madeOf(p.To, to.Pos, where+".to")
		}
		if p.Over == dag.OverAsk {
			ask := dag.CategoryPolicy{Category: dag.OverCategory, OnFail: dag.FailEscalate}
			same := func(c dag.CategoryPolicy) bool { return c.Category == ask.Category }
			if !slices.ContainsFunc(d.node.Retry.On, same) {
				d.node.Retry.On = append(slices.Clip(d.node.Retry.On), ask)
			}
		}
	}
}

// besidePlace refuses paths at which nothing may be put.
func (b *builder) besidePlace(to string, pos tree.Pos, where string) {
	if slices.ContainsFunc(strings.Split(to, "/"), func(s string) bool { return strings.EqualFold(s, ownFolder) }) {
		b.fail(pos, where, "%s is the folder that runs keep for themselves", ownFolder)
	}
	if slices.Contains(b.sources, to) {
		b.fail(pos, where, "%s is the specification itself, or holds values for it", to)
	}
	if b.files[to] != nil && b.root == nil {
		b.madeOf(to, pos, where)
	}
}

func (b *builder) madeOf(to string, pos tree.Pos, where string) {
	b.fail(pos, where, "the plan is made of %s (files, inputs), so that putting it there would change the plan", to)
}

// publishedInputs refuses to put a file where the plan takes one from.
func (b *builder) publishedInputs() {
	for _, d := range b.drafts {
		for _, p := range d.public {
			if b.files[p.name] != nil || b.beside[p.name] != nil {
				b.madeOf(p.name, p.pos, p.path)
			}
		}
	}
}

// salvages checks what counts of a node that has failed for good.
func (b *builder) salvages(d *draft, t *nodes.Traits) {
	v, path := d.tree.Get("salvage"), d.path+".salvage"
	if v == nil {
		return
	}
	b.into(d.tree, d.path, d.node, "salvage")
	b.checkNames("category", v.Get("on"), path+".on")
	s := d.node.Salvage
	if len(s.Files)+len(s.Outputs) == 0 {
		b.fail(v.Pos, path, "want files, outputs or both: nothing is named that counts")
	}
	for _, part := range []struct {
		field, does string
		names, of   []string
	}{
		{"files", "write", s.Files, d.node.Writes},
		{"outputs", "record", s.Outputs, slices.Sorted(maps.Keys(d.node.Outputs))},
	} {
		for i, name := range part.names {
			x, where := v.Get(part.field).Items[i], tree.At(path+"."+part.field, i)
			switch {
			case !slices.Contains(part.of, name):
				b.fail(x.Pos, where, "the node does not %s %q%s", part.does, name, rules.DidYouMean(name, part.of))
			case len(t.Leaves) == 0:
				b.fail(x.Pos, where, "with these settings kind %s leaves nothing when it is stopped", d.node.Kind)
			case t.Leaves[0] != "*" && !slices.Contains(t.Leaves, name):
				b.fail(x.Pos, where, "kind %s does not leave %q when it is stopped%s", d.node.Kind, name,
					rules.DidYouMean(name, t.Leaves))
			}
		}
	}
}
