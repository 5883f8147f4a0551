package compile

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// nodes drafts the nodes that are written out.
func (b *builder) nodes(p *tree.Value) {
	all := p.Get("nodes")
	if all == nil {
		return
	}
	for _, f := range all.Fields {
		b.draft(f.Name, f.Pos, f.Value, tree.Join("nodes", f.Name))
	}
}

// draft enters a node. Ids are unique whatever their case, because they name files.
func (b *builder) draft(id string, pos tree.Pos, v *tree.Value, path string) {
	if other := b.byID[fold(id)]; other != nil {
		if other.id == id {
			b.fail(pos, path, "node %q is there already; first at %s", id, other.tree.Pos)
		} else {
			b.fail(pos, path, "the id differs only by case from that of node %q (%s)", other.id, other.tree.Pos)
		}
		return
	}
	d := &draft{id: id, path: path, tree: v}
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
	kind := str(v.Get("kind"))
	l := b.layers(v, kind)
	n := d.node
	*n = dag.Node{ID: d.id, Kind: kind, Title: str(v.Get("title")), Dynamic: n.Dynamic, Pos: v.Pos.String()}
	b.policies(n, l, d.path)
	b.needs(n, v.Get("needs"), d.path)
	n.When = bare(str(v.Get("when")))
	n.Always = truth(v.Get("always"))
	n.Priority = num(v.Get("priority"))
	n.History = strs(v.Get("history"))
	n.Secrets = strs(v.Get("secrets"))
	n.Group = str(v.Get("group"))
	n.Reads, n.Writes, n.Appends = strs(v.Get("reads")), strs(v.Get("writes")), strs(v.Get("appends"))
	for _, f := range sortedMap(v.Get("outputs")) {
		output(n, f.Name, f.Value.Str)
	}
	b.dir(d, v.Get("dir"))
	b.describe(d)
	b.undo(d, v.Get("compensate"))
	b.runForeach(d, v.Get("foreach"))
	b.paths(d)
	return len(b.mistakes) == before
}

func truth(v *tree.Value) bool { return v != nil && v.Bool }

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
// stay, and every other string becomes a template too, so that they can be told apart later.
// The template of a run-time foreach stays as it is.
func (b *builder) resolve(d *draft) bool {
	before := len(b.mistakes)
	d.with = d.tree.Get("with")
	if !expr.HasTemplate(d.tree) {
		return true
	}
	out := &tree.Value{Kind: tree.Map, Pos: d.tree.Pos, Fields: make([]tree.Field, 0, len(d.tree.Fields))}
	for _, f := range d.tree.Fields {
		path := tree.Join(d.path, f.Name)
		switch f.Name {
		case "with":
			f.Value, d.node.Dynamic = b.settings(d.tree, f.Value, path)
			d.with = f.Value
		case "compensate", "foreach":
		case "when":
			f.Value = &tree.Value{Kind: tree.String, Str: bare(f.Value.Str), Pos: f.Value.Pos}
			if expr.HasTemplate(f.Value) {
				f.Value = b.cast(f.Value, path)
			}
		default:
			if expr.HasTemplate(f.Value) {
				f.Value = b.cast(f.Value, path)
			}
		}
		out.Fields = append(out.Fields, f)
	}
	d.tree = out
	if len(b.mistakes) > before {
		return false
	}
	for _, x := range b.s.CheckNode(out, d.path) {
		b.report(x)
	}
	d.with = out.Get("with")
	return len(b.mistakes) == before
}

// settings resolves the settings of a node; late says that ${...} are left for the run.
func (b *builder) settings(node, with *tree.Value, path string) (_ *tree.Value, late bool) {
	if !expr.HasTemplate(with) {
		return with, false
	}
	m, mistakes := b.lang.NewMold(with, path, true, expr.Decls{})
	for _, x := range mistakes {
		b.report(x)
	}
	if len(mistakes) > 0 {
		return with, false
	}
	late = m.Late()
	// A route's texts are resolved one by one, when its rule holds: they stay templates.
	out, err := m.Cast(nil, nil, late || str(node.Get("kind")) == "route")
	if err != nil {
		b.absorb(located(err, path))
		return with, false
	}
	return out, late
}

func (b *builder) needs(n *dag.Node, v *tree.Value, path string) {
	if v == nil {
		return
	}
	list := v
	if v.Kind == tree.Map {
		list = v.Get("of")
		n.AtLeast = num(v.Get("atLeast"))
		n.WaitAll = n.AtLeast > 0 && str(v.Get("wait")) == "all"
		n.Again = num(v.Get("again"))
		if n.Again > 0 && n.AtLeast == 0 {
			b.fail(v.Get("again").Pos, path+".needs.again", "without atLeast it has no meaning")
		}
		if n.AtLeast > len(list.Items) {
			b.fail(v.Get("atLeast").Pos, path+".needs.atLeast", "want at most %d, the number of needs, got %d", len(list.Items), n.AtLeast)
		}
	}
	n.Needs = strs(list)
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
	if other := b.dirs[fold(v.Str)]; other != nil {
		b.fail(v.Pos, here, "the folder %q is that of node %q too (%s)", v.Str, other.id, other.tree.Pos)
		return
	}
	b.dirs[fold(v.Str)] = d
}

// describe checks the settings and merges what the kind says of them.
func (b *builder) describe(d *draft) {
	n, path := d.node, d.path+".with"
	if d.with == nil {
		d.with = &tree.Value{Kind: tree.Map, Pos: d.tree.Pos}
	}
	before := len(b.mistakes)
	for _, x := range b.s.CheckWith(n.Kind, d.with, path) {
		b.report(x)
	}
	if len(b.mistakes) > before {
		return
	}
	raw, err := dag.AppendCanonical(nil, d.with.AppendJSON(nil))
	if err != nil {
		b.fail(d.with.Pos, path, "%v", err)
		return
	}
	if string(raw) != "{}" {
		n.With = raw
	}
	t, ok := b.traits(d, n.Kind, b.sampled(d, raw), path)
	if !ok {
		return
	}
	d.traits = t
	n.Ambient = t.Ambient && n.Effect != "pure" // who says that a command is pure says that it is not
	if n.Effect == "" {
		n.Effect = t.Effect
	}
	if n.Effect == "probe" && !t.Probes {
		pos := d.tree.Pos
		if v := d.tree.Get("effect"); v != nil {
			pos = v.Pos
		}
		b.fail(pos, d.path+".effect", "want a node whose settings name a probe; with these, kind %s has none", n.Kind)
	}
	n.Reads, n.Writes, n.Appends = union(n.Reads, t.Reads), union(n.Writes, t.Writes), union(n.Appends, t.Appends)
	n.Secrets = union(n.Secrets, t.Secrets)
	n.Paid = t.Paid
	for _, name := range keys(t.Outputs) {
		typ := t.Outputs[name]
		if own := n.Outputs[name]; own != "" && own != typ {
			b.fail(d.tree.Get("outputs").Get(name).Pos, d.path+".outputs."+name, "kind %s records %q as %s, not %s", n.Kind, name, typ, own)
		}
		output(n, name, typ)
	}
	if p := t.Prompt; p != nil {
		n.Call = &dag.Call{Provider: p.Provider, Model: p.Model, Chars: p.Chars, Files: p.Files, Reads: p.Reads, MaxOutput: p.MaxOutput}
	}
	n.Files = b.inputs(d, t.Files, path)
	b.checkFiles(d, raw, path)
}

// child returns the field or item of v that a label names, or nil.
func child(v *tree.Value, label string) *tree.Value {
	if v.Kind != tree.List {
		return v.Get(label)
	}
	if i, err := strconv.Atoi(label); err == nil && i >= 0 && i < len(v.Items) {
		return v.Items[i]
	}
	return nil
}

// sampled is what a kind is shown of settings that recorded values will complete: where an
// expression stands for a number, a list and so on, a value that the rules allow stands for it.
func (b *builder) sampled(d *draft, raw json.RawMessage) json.RawMessage {
	if !d.node.Dynamic {
		return raw
	}
	return sample(b.s.withRule(d.node.Kind), d.with).AppendJSON(nil)
}

func sample(r *rules.Rule, v *tree.Value) *tree.Value {
	out := *v
	switch v.Kind {
	case tree.String:
		if r == nil || !strings.Contains(v.Str, "${") || r.Valid(&tree.Value{Kind: tree.String, Str: "text"}) || r.Types.Has(tree.String) {
			return v
		}
		for _, try := range samples {
			if r.Valid(try) {
				return try
			}
		}
	case tree.List:
		out.Items = make([]*tree.Value, len(v.Items))
		for i, x := range v.Items {
			out.Items[i] = sample(ruleBelow(r, strconv.Itoa(i)), x)
		}
	case tree.Map:
		out.Fields = slices.Clone(v.Fields)
		for i, f := range out.Fields {
			out.Fields[i].Value = sample(ruleBelow(r, f.Name), f.Value)
		}
	}
	return &out
}

var samples = []*tree.Value{
	{Kind: tree.Int, Int: 1}, {Kind: tree.Bool}, {Kind: tree.Int}, {Kind: tree.Int, Int: 100}, {Kind: tree.Int, Int: 1000},
	{Kind: tree.Float, Float: 0.5}, {Kind: tree.List}, {Kind: tree.Map},
}

func ruleBelow(r *rules.Rule, label string) *rules.Rule {
	if r == nil {
		return nil
	}
	return r.Below(label)
}

// traits asks a kind, or the table of control nodes.
func (b *builder) traits(d *draft, kind string, with json.RawMessage, path string) (nodes.Traits, bool) {
	k, ok := b.s.kinds.Kind(kind)
	if !ok {
		return b.controlTraits(d, kind), true
	}
	t, err := k.Describe(with)
	if err != nil {
		b.fail(d.with.Pos, path, "%v", err)
		return t, false
	}
	for _, p := range t.Problems {
		b.problem(d.with, path, p)
	}
	for _, c := range t.Categories {
		v := *at(d.with, c.Path) // its place; a step of a list may have no value of its own
		v.Kind, v.Str = tree.String, c.Name
		b.checkNames("category", &v, path+"."+c.Path)
	}
	return t, len(t.Problems) == 0
}

// problem gives a problem of settings its place: that of the value at its path, or of the
// nearest one around it.
func (b *builder) problem(with *tree.Value, path string, p nodes.Problem) {
	where := path
	if p.Path != "" {
		where += "." + p.Path
	}
	b.fail(at(with, p.Path).Pos, where, "%s", p.Text)
}

// at returns the value at a path within settings, or the nearest one around it.
func at(v *tree.Value, path string) *tree.Value {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(v, step)
		if next == nil {
			break
		}
		v = next
	}
	return v
}

// paths checks the names of artifacts and accumulators.
func (b *builder) paths(d *draft) {
	for _, list := range []string{"reads", "writes"} {
		if v := d.tree.Get(list); v != nil {
			for i, x := range v.Items {
				b.localPath(x, tree.At(tree.Join(d.path, list), i))
			}
		}
	}
	b.checkNames("accumulator", d.tree.Get("appends"), d.path+".appends")
	b.inSettings(d, d.traits.Appends, func(v *tree.Value, path string) { b.checkNames("accumulator", v, path) })
	b.inSettings(d, d.traits.Reads, func(v *tree.Value, path string) { b.localPath(v, path) })
	b.inSettings(d, d.traits.Writes, func(v *tree.Value, path string) { b.localPath(v, path) })
	for _, w := range d.node.Writes {
		if b.isAcc[w] {
			b.fail(d.tree.Pos, d.path, "writes %q, which is an accumulator: append to it", w)
		}
		if first, _, _ := strings.Cut(w, "/"); first == ownFolder {
			b.fail(d.tree.Pos, d.path, "writes %q: %s is the run's own folder", w, ownFolder)
		}
	}
}

// ownFolder is where a run keeps its own files within the output folder.
const ownFolder = "_orchestrator"

// inSettings calls check for names that the kind found in the settings, at their places.
func (b *builder) inSettings(d *draft, names []string, check func(v *tree.Value, path string)) {
	for _, name := range names {
		v, path := find1(d.with, name, d.path+".with")
		if v == nil {
			v, path = &tree.Value{Pos: d.with.Pos}, d.path+".with"
		}
		check(&tree.Value{Kind: tree.String, Str: name, Pos: v.Pos}, path)
	}
}

// find1 returns the first string of v that equals s, and its path.
func find1(v *tree.Value, s, path string) (*tree.Value, string) {
	switch v.Kind {
	case tree.String:
		if v.Str == s {
			return v, path
		}
	case tree.List:
		for i, x := range v.Items {
			if y, p := find1(x, s, tree.At(path, i)); y != nil {
				return y, p
			}
		}
	case tree.Map:
		for _, f := range v.Fields {
			if y, p := find1(f.Value, s, tree.Join(path, f.Name)); y != nil {
				return y, p
			}
		}
	}
	return nil, ""
}

// union appends what is new, keeping order.
func union(a, more []string) []string {
	for _, s := range more {
		if !contains(a, s) {
			a = append(a[:len(a):len(a)], s)
		}
	}
	return a
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// kindOf reads the kind of a node in spec form, which may not be a template.
func (b *builder) kindOf(v *tree.Value, path string) (string, bool) {
	k := v.Get("kind")
	switch {
	case v.Kind != tree.Map:
		b.fail(v.Pos, path, "want a node, got %s", rules.Show(v))
	case k == nil:
		b.fail(v.Pos, tree.Join(path, "kind"), "missing field (want one of %s)", strings.Join(b.s.names, ", "))
	case k.Kind != tree.String || strings.Contains(k.Str, "${"):
		b.fail(k.Pos, tree.Join(path, "kind"), "the kind is fixed: want one of %s", strings.Join(b.s.names, ", "))
	default:
		return k.Str, true
	}
	return "", false
}

// withRule returns the rules of a kind's settings, or nil.
func (s *Schema) withRule(kind string) *rules.Rule { return s.rules["Node"].Field("with").Cases[kind] }
