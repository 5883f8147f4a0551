package compile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/glob"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// nodes drafts the nodes that are written out.
func (b *builder) nodes(p *tree.Value) {
	all := p.Get("nodes")
	if all == nil {
		return
	}
	for _, f := range all.Fields {
		path := tree.Join("nodes", f.Name)
		b.draft(f.Name, f.Pos, b.scripts(f.Value, path), path)
	}
	all.Fields = nil // the drafts have them now
}

// draft enters a node. Ids are unique whatever their case, because they name files.
func (b *builder) draft(id string, pos tree.Pos, v *tree.Value, path string) {
	if n := len(id); n > longestID || longPart(id) > longestPart {
		b.fail(pos, path,
			"the id has %d characters; want at most %d, and at most %d between slashes, because it names a folder",
			n, longestID, longestPart)
		return
	}
	if other := b.byID[fold(id)]; other != nil {
		switch {
		case other.id != id:
			b.fail(pos, path, "the id differs only by case from that of node %q (%s)", other.id, other.pos)
		case other.pos == v.Pos:
			b.fail(pos, path, "node %q is there already: the id must differ for each item", id)
		default:
			b.fail(pos, path, "node %q is there already; first at %s", id, other.pos)
		}
		return
	}
	d := &draft{id: id, path: path, tree: v, pos: v.Pos, index: int32(len(b.drafts))}
	b.byID[fold(id)] = d
	b.drafts = append(b.drafts, d)
}

// complete fills parameters and defaults into a node, checks its settings and lets its kind
// describe them. It reports whether all is well with the node.
func (b *builder) complete(d *draft) bool {
	before := len(b.mistakes)
	if !b.resolve(d) {
		return false
	}
	v := d.tree
	d.needsPos, d.readsPos, d.writesPos = posOf(v.Get("needs")), posOf(v.Get("reads")), posOf(v.Get("writes"))
	kind := v.Get("kind").Text()
	n := d.node
	*n = dag.Node{ID: d.id, Kind: kind, Dynamic: n.Dynamic, Pos: b.placeOf(v.Pos)}
	b.into(v, d.path, n, "title", "when", "always", "priority", "history", "secrets", "group",
		"writes", "appends", "outputs", "milestone", "short", "show")
	b.reads(n, v.Get("reads"))
	n.When = bare(n.When)
	n.Inputs = b.nodeInputs(v.Get("inputs"), d.path+".inputs")
	full := b.withDefaults(v, kind)
	b.policies(n, full, d.path)
	b.references(full, d.path, func(*tree.Value) bool { return false })
	b.needs(n, b.matchNeeds(d, v.Get("needs")), d.path)
	b.later(d)
	b.dir(d, v.Get("dir"))
	if !b.unknown.settings(d) {
		before := len(b.mistakes)
		t := b.describe(d)
		known := len(b.mistakes) == before
		b.touched(d, &t)
		if known { // what the node leaves
			b.salvages(d, &t)
		}
	}
	b.publishes(d)
	b.shown(d)
	b.undo(d, full)
	b.runForeach(d, v.Get("foreach"))
	return len(b.mistakes) == before
}

// placeOf is the text of a place. All nodes of a foreach block have the same.
func (b *builder) placeOf(pos tree.Pos) string {
	if pos != b.placed.pos || b.placed.text == "" {
		b.placed.pos, b.placed.text = pos, pos.String()
	}
	return b.placed.text
}

// shown holds the values that people are to follow against those that the node records.
func (b *builder) shown(d *draft) {
	if d.node.Show == nil || b.unknown.settings(d) {
		return
	}
	records := slices.Sorted(maps.Keys(d.node.Outputs))
	if d.node.Role().Decides {
		for _, f := range d.with.Get("values").Map() { // typed later
			records = append(records, f.Name)
		}
	}
	for i, name := range d.node.Show.Values {
		if !slices.Contains(records, name) {
			list := d.tree.Get("show").Get("values")
			b.fail(list.Items[i].Pos, tree.At(d.path+".show.values", i), "kind %s records no value %q here%s",
				d.node.Kind, name, rules.DidYouMean(name, records))
		}
	}
}

func posOf(v *tree.Value) tree.Pos {
	if v == nil {
		return tree.Pos{}
	}
	return v.Pos
}

func output(n *dag.Node, name, typ string) {
	if n.Outputs == nil {
		n.Outputs = map[string]string{}
	}
	n.Outputs[name] = typ
}

// bare takes the ${} off an expression that stands where an expression is wanted.
func bare(src string) string {
	if !strings.HasPrefix(src, "${") {
		return src
	}
	if p, err := expr.Split(src); err == nil && len(p) == 1 && p[0].Source != "" {
		return p[0].Source
	}
	return src
}

// resolve fills parameters into a node. In its settings, expressions that read recorded values
// stay, and every other string becomes a template too, so that they can be distinguished later.
// The template of a run-time foreach stays as it is.
func (b *builder) resolve(d *draft) bool {
	before := len(b.mistakes)
	d.with = d.tree.Get("with")
	if !expr.HasTemplate(d.tree) {
		return true
	}
	out := &tree.Value{Kind: tree.Map, Pos: d.pos, Fields: make([]tree.Field, 0, len(d.tree.Fields))}
	for _, f := range d.tree.Fields {
		path := tree.Join(d.path, f.Name)
		switch f.Name {
		case "with":
			if expr.HasTemplate(f.Value) {
				d.template = f.Value
			}
			f.Value, d.node.Dynamic = b.settings(d.tree, f.Value, path)
			d.with = f.Value
		case "compensate", "foreach":
		case "onFail":
			f.Value = b.onFail(f, path)
		case "when":
			f.Value = &tree.Value{Kind: tree.String, Str: bare(f.Value.Str), Pos: f.Value.Pos}
			if expr.HasTemplate(f.Value) {
				f.Value = b.fill(f.Value, path)
			}
		default:
			if expr.HasTemplate(f.Value) {
				f.Value = b.fixed(f, path)
			}
		}
		out.Fields = append(out.Fields, f)
	}
	d.tree = out
	if len(b.mistakes) > before {
		return false
	}
	if len(b.unknown.fields[d.id]) > 0 {
		return true // what is there was checked; what is not would be found missing
	}
	ok := b.ok(b.s.CheckNode(out, d.path))
	d.with = out.Get("with") // with its defaults
	return ok
}

// onFail fills parameters into all of onFail but the settings of the action that it may hold.
func (b *builder) onFail(f tree.Field, path string) *tree.Value {
	how := f.Value.Get("compensate")
	own := how.Get("own")
	if own != nil {
		f.Value = f.Value.Clone()
		how = f.Value.Get("compensate")
		how.Fields = slices.DeleteFunc(how.Fields, func(x tree.Field) bool { return x.Name == "own" })
	}
	if expr.HasTemplate(f.Value) {
		f.Value = b.fixed(f, path)
	}
	if own != nil {
		f.Value.Get("compensate").Set("own", own.Pos, own)
	}
	return f.Value
}

// fixed fills parameters into a field in which no ${...} may be left for the run. One that is left
// all the same was written as $${: it is text, and checked as such.
func (b *builder) fixed(f tree.Field, path string) *tree.Value {
	before := len(b.mistakes)
	v := b.fill(f.Value, path)
	if rule := b.s.Rule("Node").Field(f.Name); rule != nil && len(b.mistakes) == before && expr.HasTemplate(v) {
		b.ok(rule.Rule.Check(v, path))
	}
	return v
}

// settings resolves the settings of a node; late says that ${...} are left for the run.
func (b *builder) settings(node, with *tree.Value, path string) (_ *tree.Value, late bool) {
	if !expr.HasTemplate(with) {
		return with, false
	}
	m := b.template(b.lang, with, path, true)
	if m == nil {
		return with, false
	}
	late = m.Late()
	// A route's texts are resolved one by one, when its rule holds: they stay templates.
	out, err := m.Fill(nil, nil, late || roleOf(node.Get("kind").Text()).Decides)
	if err != nil {
		b.absorb(err)
		return with, false
	}
	return out, late
}

// needed is the list of ids in a node's needs, and its path.
func needed(v *tree.Value, path string) (list *tree.Value, where string) {
	if v != nil && v.Kind == tree.Map {
		return v.Get("of"), path + ".of"
	}
	return v, path
}

// matchNeeds puts the nodes that a pattern stands for in its place, in the order of the plan.
func (b *builder) matchNeeds(d *draft, v *tree.Value) *tree.Value {
	list, where := needed(v, d.path+".needs")
	if list == nil || !slices.ContainsFunc(list.Items, func(x *tree.Value) bool { return glob.Is(x.Str) }) {
		return v
	}
	out := &tree.Value{Kind: tree.List, Pos: list.Pos}
	for i, x := range list.Items {
		if !glob.Is(x.Str) {
			out.Items = append(out.Items, x)
			continue
		}
		ids, text := b.matching(x.Str)
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == d.id })
		if text == "" && len(ids) == 0 && !b.unknown.ids {
			text = "no node matches " + x.Str
		}
		if text != "" {
			b.fail(x.Pos, tree.At(where, i), "%s", text)
		}
		for _, id := range ids {
			if !slices.ContainsFunc(out.Items, func(o *tree.Value) bool { return o.Str == id }) {
				out.Items = append(out.Items, &tree.Value{Kind: tree.String, Str: id, Pos: x.Pos})
			}
		}
	}
	if v != list {
		v = &tree.Value{Kind: tree.Map, Pos: v.Pos, Fields: slices.Clone(v.Fields)}
		v.Set("of", out.Pos, out)
		out = v
	}
	d.tree = &tree.Value{Kind: tree.Map, Pos: d.tree.Pos, Fields: slices.Clone(d.tree.Fields)}
	d.tree.Set("needs", out.Pos, out)
	return out
}

// matching returns the ids that a pattern stands for, or what is wrong with it.
func (b *builder) matching(pattern string) (ids []string, text string) {
	if b.root == nil {
		return nil, "a pattern may not stand in the needs of an item of a run-time foreach: name the nodes"
	}
	if err := glob.Check(pattern); err != nil {
		return nil, err.Error()
	}
	ids, known := b.ofPattern[pattern]
	if !known {
		for _, o := range b.drafts {
			if glob.Match(pattern, o.id) {
				ids = append(ids, o.id)
			}
		}
		b.ofPattern[pattern] = ids
	}
	return ids, ""
}

func (b *builder) needs(n *dag.Node, v *tree.Value, path string) {
	list, _ := needed(v, path)
	n.Needs = strs(list)
	if list == v {
		return
	}
	b.into(v, path+".needs", n, "atLeast", "again")
	n.WaitAll = n.AtLeast > 0 && v.Get("wait").Text() == "all"
	if n.Again > 0 && n.AtLeast == 0 {
		b.fail(v.Get("again").Pos, path+".needs.again", "again requires atLeast")
	}
	if n.AtLeast > len(list.Items) {
		const text = "want at most %d, the number of needs, got %d"
		b.fail(v.Get("atLeast").Pos, path+".needs.atLeast", text, len(list.Items), n.AtLeast)
	}
}

// reads reads a list of names, and of {path, optional}.
func (b *builder) reads(n *dag.Node, v *tree.Value) {
	for _, x := range v.List() {
		name := readPath(x).Str
		n.Reads = union(n.Reads, []string{name})
		if o := x.Get("optional"); o != nil && o.Bool {
			n.Optional = union(n.Optional, []string{name})
		}
	}
}

// readPath is the name in an entry of reads.
func readPath(x *tree.Value) *tree.Value {
	if p := x.Get("path"); p != nil {
		return p
	}
	return x
}

func (b *builder) dir(d *draft, v *tree.Value) {
	if v == nil {
		return
	}
	here := d.path + ".dir"
	if !b.localPath(v, here) {
		return
	}
	d.node.Dir = v.Str
	b.notOwn(v.Str, v.Pos, here)
	other := b.dirs[fold(v.Str)]
	if id, ok := strings.CutPrefix(fold(v.Str), nodesFolder); ok && other == nil && b.byID[id] != d {
		other = b.byID[id]
	}
	if other != nil {
		b.fail(v.Pos, here, "the folder %q is that of node %q too (%s)", v.Str, other.id, other.pos)
		return
	}
	b.dirs[fold(v.Str)] = d
}

// nodesFolder is where the folders of nodes are that name none.
const nodesFolder = "nodes/"

// notOwn refuses a path in the run's own folder that the run keeps for itself.
func (b *builder) notOwn(path string, pos tree.Pos, where string) {
	if dag.Own(path) {
		first, _, _ := strings.Cut(path, "/")
		b.fail(pos, where, "the run keeps %s for itself; take another name", first)
	}
}

// later refuses an id that is the folder of another node's later generation: a.g2.
func (b *builder) later(d *draft) {
	i := strings.LastIndex(d.id, ".g")
	if i < 0 {
		return
	}
	if _, err := strconv.Atoi(d.id[i+2:]); err != nil {
		return
	}
	if other := b.byID[fold(d.id[:i])]; other != nil {
		b.fail(d.pos, d.path, "the id is the folder of node %q when that runs again; take another", other.id)
	}
}

// kindOf reads the kind of a node in spec form, which may not be a template.
func (b *builder) kindOf(v *tree.Value, path string) (string, bool) {
	k := v.Get("kind")
	switch {
	case v.Kind != tree.Map:
		b.fail(v.Pos, path, "want a node, got %s", rules.Show(v))
	case k == nil:
		b.fail(v.Pos, tree.Join(path, "kind"), "missing field (want one of %s)", strings.Join(b.s.Kinds, ", "))
	case k.Kind != tree.String || strings.Contains(k.Str, "${"):
		b.fail(k.Pos, tree.Join(path, "kind"), "the kind is fixed: want one of %s", strings.Join(b.s.Kinds, ", "))
	default:
		return k.Str, true
	}
	return "", false
}
