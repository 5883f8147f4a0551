package compile

import (
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// publishes checks what a node puts beside the specification.
func (b *builder) publishes(d *draft) {
	list := d.tree.Get("publish")
	if list == nil {
		return
	}
	b.into(d.tree, d.path, d.node, "publish")
	for i, p := range d.node.Publish {
		v, where := list.Items[i], tree.At(d.path+".publish", i)
		file, to := v.Get("file"), v.Get("to")
		if b.localPath(to, where+".to") {
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
