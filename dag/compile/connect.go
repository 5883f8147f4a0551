package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// A reading is an expression of a node that may read other nodes.
type reading struct {
	pos      tree.Pos
	path     string
	src      string
	want     string // type of the result
	run      bool   // facts of the run may be read
	e        *expr.Expr
	value    string         // name of the output it computes, for routes
	template *expr.Template // instead of src: a value whose strings hold ${...}
	rule     *rules.Rule    // of the template's value
	nodes    []string       // ids that are read
	tree     *tree.Value    // of an undo action: its settings, which may read the node itself
}

// names checks that every id that a node names is there. Those that are not are taken out of its needs.
func (b *builder) names(d *draft) {
	list, field := needed(d.tree.Get("needs"), "needs")
	b.ids(d, list, field)
	b.ids(d, d.tree.Get("history"), "history")
	b.ids(d, d.tree.Get("onFail").Get("compensate").Get("back"), "onFail.compensate.back")
	b.templateNeeds(d)
	if d.loose {
		gone := func(id string) bool { o := b.byID[fold(id)]; return o == nil || o.id != id || o == d }
		d.node.Needs = slices.DeleteFunc(d.node.Needs, gone)
		d.node.History = slices.DeleteFunc(d.node.History, gone)
	}
}

// ids checks a list of ids of other nodes, each named once.
func (b *builder) ids(d *draft, v *tree.Value, field string) {
	b.lists++
	for i, x := range v.List() {
		other, text := b.other(d, x.Str)
		switch {
		case text != "" && field != "history" && b.anyBelow(x.Str):
			text = fmt.Sprintf("no node %q; write %q for all nodes below it", x.Str, x.Str+"/*")
		case text != "":
		case other == nil:
			continue
		case other.listed == b.lists:
			text = fmt.Sprintf("node %q is named already", x.Str)
		default:
			other.listed = b.lists
			continue
		}
		b.fail(x.Pos, d.path+"."+tree.At(field, i), "%s", text)
	}
}

// other returns the node of that id, which must not be d, or what is wrong. It returns neither where mistakes leave
// unknown which nodes there are.
func (b *builder) other(d *draft, id string) (other *draft, text string) {
	switch other = b.byID[fold(id)]; {
	case other == nil && b.unknown.ids:
	case other == nil:
		text = fmt.Sprintf("no node %q%s", id, b.nearID(id))
	case other.id != id:
		text = fmt.Sprintf("no node %q; did you mean %q?", id, other.id)
	case other == d:
		text = "a node cannot name itself here"
	default:
		return other, ""
	}
	d.loose = true
	return nil, text
}

// anyBelow says whether an id that no node has is the beginning of others, as build is of build/linux.
func (b *builder) anyBelow(id string) bool {
	return len(b.mistakes) <= 20 && b.byID[fold(id)] == nil &&
		slices.ContainsFunc(b.drafts, func(d *draft) bool { return strings.HasPrefix(d.id, id+"/") })
}

// nearID suggests an id; a walk over all of them is paid for the first few mistakes only.
func (b *builder) nearID(id string) string {
	if len(b.mistakes) > 20 {
		return ""
	}
	ids := make([]string, len(b.drafts))
	for i, d := range b.drafts {
		ids[i] = d.id
	}
	return rules.DidYouMean(id, ids)
}

// connect makes needs of what a node reads and does not need yet.
func (b *builder) connect() {
	var edges []implied
	for _, d := range b.drafts {
		if d.bad {
			continue
		}
		for _, id := range d.readIDs() {
			if !slices.Contains(d.node.Needs, id) && !slices.Contains(d.node.History, id) {
				edges = append(edges, implied{b.byID[fold(id)], d})
			}
		}
	}
	b.infer(edges)
	b.publishedInputs()
	b.plan.Files, b.plan.Inputs = byPath(b.files), byPath(b.beside)
	if !b.unknown.money {
		b.reserve()
	}
}

func (d *draft) readIDs() (ids []string) {
	for i := range d.reads {
		ids = union(ids, d.reads[i].nodes)
	}
	return ids
}

// An implied edge: by reads what on records and does not need it.
type implied struct{ on, by *draft }

// infer adds the needs that readings imply. Where the reader comes after what it reads anyway,
// by other needs or other readings, no edge is added: one more would change which skips and
// failures reach it. What starts as soon as some of its needs have succeeded comes after none of them for sure.
func (b *builder) infer(edges []implied) {
	if len(edges) == 0 {
		return
	}
	deps := b.dependents()
	for _, e := range edges {
		deps[e.on.index] = append(deps[e.on.index], e.by.index)
	}
	order, n := inOrder(deps)
	acyclic := n == len(deps)
	at := make([]int32, len(deps))
	for k, i := range order {
		at[i] = int32(k)
	}
	slices.SortStableFunc(edges, func(a, b implied) int { return int(a.on.index - b.on.index) })
	for i, list := range deps {
		deps[i] = slices.DeleteFunc(list, func(j int32) bool {
			n := b.drafts[j].node
			return n.AtLeast > 0 && !n.WaitAll
		})
	}
	r := reach{deps: deps, at: at, stamp: make([]int32, len(deps))}
	for len(edges) > 0 {
		n := 1
		for n < len(edges) && edges[n].on == edges[0].on {
			n++
		}
		if acyclic {
			r.beyond(edges[:n])
		}
		for _, e := range edges[:n] {
			if !acyclic || !r.marked(e.by.index) {
				b.need(e.by, e.on)
			}
		}
		edges = edges[n:]
	}
}

// dependents are the nodes that need a node, by index.
func (b *builder) dependents() [][]int32 {
	deps := make([][]int32, len(b.drafts))
	for i, d := range b.drafts {
		for _, id := range d.node.Needs {
			j := b.byID[fold(id)].index
			deps[j] = append(deps[j], int32(i))
		}
	}
	return deps
}

// inOrder puts nodes into an order in which each of the first n comes after what it depends on. Those on a cycle and
// below one come last.
func inOrder(deps [][]int32) (order []int32, n int) {
	waits := make([]int, len(deps))
	for _, list := range deps {
		for _, j := range list {
			waits[j]++
		}
	}
	order = make([]int32, 0, len(waits))
	for i, n := range waits {
		if n == 0 {
			order = append(order, int32(i))
		}
	}
	for k := 0; k < len(order); k++ {
		for _, j := range deps[order[k]] {
			if waits[j]--; waits[j] == 0 {
				order = append(order, j)
			}
		}
	}
	n = len(order)
	for i, left := range waits {
		if left > 0 {
			order = append(order, int32(i))
		}
	}
	return order, n
}

// reach finds what lies at least two edges below a node. It does not look further than the
// last of the readers in question, so that a chain of readings costs what it is long.
type reach struct {
	deps  [][]int32
	at    []int32
	stamp []int32
	mark  int32
	stack []int32
}

func (r *reach) marked(i int32) bool { return r.stamp[i] == r.mark }

func (r *reach) beyond(edges []implied) {
	last := int32(0)
	for _, e := range edges {
		last = max(last, r.at[e.by.index])
	}
	r.mark++
	r.stack = append(r.stack[:0], r.deps[edges[0].on.index]...)
	for len(r.stack) > 0 {
		i := r.stack[len(r.stack)-1]
		r.stack = r.stack[:len(r.stack)-1]
		for _, j := range r.deps[i] {
			if r.at[j] <= last && !r.marked(j) {
				r.stamp[j] = r.mark
				r.stack = append(r.stack, j)
			}
		}
	}
}

func (b *builder) need(d, on *draft) {
	if d.node.AtLeast > 0 {
		b.fail(d.place("needs"), d.path+".needs",
			"reads node %q, which is not before it; with atLeast every need must be written", on.id)
		return
	}
	d.node.Needs = append(d.node.Needs[:len(d.node.Needs):len(d.node.Needs)], on.id)
}

// readings parses the expressions of a node.
func (b *builder) readings(d *draft) {
	if v := d.tree.Get("when"); v != nil {
		b.read(d, b.lang, reading{pos: v.Pos, path: d.path + ".when", src: d.node.When, want: "bool", run: true})
	}
	control := !b.isKind(d.node.Kind)
	route := d.node.Role().Decides
	if !b.unknown.settings(d) && (d.node.Dynamic || route) {
		b.readTemplate(d, b.lang, d.with, reading{path: d.path + ".with", rule: b.s.Settings(d.node.Kind), run: control})
	}
	if !b.unknown.settings(d) && route {
		b.readRoute(d)
	}
	for _, r := range d.actions {
		b.readTemplate(d, b.lang, r.tree, r)
	}
	if f := d.tree.Get("foreach"); f != nil && d.node.Foreach != nil {
		in := f.Get("in")
		b.read(d, b.lang, reading{pos: in.Pos, path: d.path + ".foreach.in", src: d.node.Foreach.In, want: "list"})
		lang, err := b.lang.WithItem(d.node.Foreach.Var)
		if err != nil {
			b.fail(f.Pos, d.path+".foreach", "%v", err)
			return
		}
		key := f.Get("key")
		b.read(d, lang, reading{pos: key.Pos, path: d.path + ".foreach.key", src: d.node.Foreach.Key})
		b.readTemplate(d, lang, f.Get("node"), reading{path: d.path + ".foreach.node", rule: b.templateRule(f.Get("node"))})
		b.itemWhen(d.node.Foreach.Var, f.Get("node").Get("when"), d.path+".foreach.node.when")
	}
}

// itemWhen finds in the condition of an item what would fail once there are items: it is read when they are filled in.
func (b *builder) itemWhen(as string, v *tree.Value, path string) {
	if v == nil || expr.HasTemplate(v) {
		return
	}
	src := strings.TrimSpace(v.Str)
	_, problems := b.lang.Parse(src)
	if item, err := b.lang.With(as); len(problems) > 0 && err == nil {
		if _, of := item.Parse(src); len(of) == 0 {
			b.fail(v.Pos, path, "a condition is read when its item is filled in: write what is of the item as ${%s.value}, "+
				"and in quotes where it is text", as)
			return
		}
	}
	b.problems(v.Pos, path, v.Str, problems)
}

// templateRule is the rule of a node of the template's kind. Its settings are found below with.
func (b *builder) templateRule(node *tree.Value) *rules.Rule {
	return &rules.Rule{Fields: []rules.Field{{Name: "with", Rule: b.s.Settings(node.Get("kind").Text())}}}
}

func (b *builder) isKind(name string) bool {
	_, ok := b.s.Registry.Kind(name)
	return ok
}

func (b *builder) readRoute(d *draft) {
	for i, r := range d.with.Get("rules").Items {
		path := tree.At(d.path+".with.rules", i)
		w := r.Get("when")
		b.read(d, b.lang, reading{pos: w.Pos, path: path + ".when", src: w.Str, want: "bool", run: true})
		for k, x := range r.Get("require").List() {
			that := x.Get("that")
			path := tree.At(path+".require", k) + ".that"
			b.read(d, b.lang, reading{pos: that.Pos, path: path, src: that.Str, want: "bool", run: true})
		}
	}
	for _, f := range sortedMap(d.with.Get("values")) {
		path := tree.Join(d.path+".with.values", f.Name)
		b.read(d, b.lang, reading{pos: f.Value.Pos, path: path, src: f.Value.Str, run: true, value: f.Name})
	}
}

func (b *builder) read(d *draft, lang *expr.Lang, r reading) {
	e, problems := lang.Parse(r.src)
	b.problems(r.pos, r.path, r.src, problems)
	if e == nil {
		return
	}
	r.e = e
	r.nodes = b.targets(d, e.Refs(), r.pos, r.path)
	d.reads = append(d.reads, r)
}

func (b *builder) readTemplate(d *draft, lang *expr.Lang, v *tree.Value, r reading) {
	t, mistakes := lang.ParseTemplate(v, r.path, false)
	b.ok(mistakes)
	t.Refs(func(t *expr.Template, x expr.Ref) {
		if r.tree == nil || x.Root != "nodes" || x.Node != d.id {
			r.nodes = union(r.nodes, b.targets(d, []expr.Ref{x}, t.Value.Pos, t.Path))
		}
	})
	r.template = t
	d.reads = append(d.reads, r)
}

// targets returns the ids of nodes that are read and refuses those that are not there.
func (b *builder) targets(d *draft, refs []expr.Ref, pos tree.Pos, path string) []string {
	var out []string
	for _, r := range refs {
		if r.Root != "nodes" {
			continue
		}
		other := b.byID[fold(r.Node)]
		if other != nil && (r.Field == "out" || r.Field == "items") {
			other.heard = true
		}
		if slices.Contains(out, r.Node) {
			continue
		}
		switch {
		case other == d:
			b.fail(pos, path, "reads %s, which is this node itself", r)
		case other == nil && b.unknown.ids:
			d.loose = true
		case other == nil || other.id != r.Node:
			b.fail(pos, path, "reads %s, but there is no node %q%s", r, r.Node, b.nearID(r.Node))
			d.loose = true
		default:
			out = append(out, r.Node)
		}
	}
	return out
}

// vain warns of what a node does for nothing: it reads what nobody writes, it asks what does not matter.
func (b *builder) vain(g *dag.Graph) {
	b.unwritten(g)
	b.tooEarly(g)
	b.indifferent()
}

// unwritten warns of reads that no node can satisfy. Where a pattern stands for nothing, or for what may be written
// before or after, that is a mistake.
func (b *builder) unwritten(g *dag.Graph) {
	var written []string
	for _, d := range b.drafts {
		for _, r := range d.single {
			switch {
			case dag.IsFolder(r.name):
				b.fail(r.pos, r.path, "want one file, got the folder %q: name a file in it (%q), or read all of it by `reads`",
					r.name, r.name+"index.html")
			case len(g.Writers(r.name)) == 0:
				b.fail(r.pos, r.path, "want the name of one artifact, got the pattern %q: patterns can be read by `reads`", r.name)
			}
		}
		for _, name := range d.node.Reads {
			if !dag.IsPattern(name) && len(g.Writers(name)) > 0 {
				continue
			}
			before, aside := b.makers(g, d, name)
			switch {
			case dag.IsPattern(name) && aside != nil:
				b.fail(d.place("reads"), d.path+".reads", "reads %q, which items of node %q may write, but neither node needs "+
					"the other: the order would depend on timing", name, aside.id)
			case dag.IsPattern(name) && !before && !slices.Contains(d.node.Optional, name):
				b.fail(d.place("reads"), d.path+".reads", "reads %q, but no node before this one writes what matches it; "+
					"need the nodes that do, or write {path: %q, optional: true}", name, name)
			}
			if before || dag.IsPattern(name) || slices.Contains(d.node.Optional, name) || len(b.warnings) > 50 {
				continue
			}
			if written == nil {
				written = []string{}
				for i := range g.Plan.Nodes {
					written = append(written, g.Plan.Nodes[i].Writes...)
				}
				sort.Strings(written)
				written = slices.Compact(written)
			}
			what := "writes"
			if slices.Contains(b.known["accumulator"], name) {
				what = "appends to"
			}
			b.warn(d.pos, d.path, "reads %q, which no node %s%s", name, what, b.unwrittenFile(name, written))
		}
	}
}

// indifferent refuses questions of which every answer does the same: none refuses, and nobody reads which it was. A no
// would let all behind it run.
func (b *builder) indifferent() {
	for _, d := range b.drafts {
		asked := struct {
			Kind string
			With json.RawMessage
		}{d.node.Kind, d.node.With}
		at, read := ".with.options", ".out.answer"
		if f := d.node.Foreach; f != nil {
			at, read = ".foreach.node.with.options", ".items"
			if json.Unmarshal(f.Template, &asked) != nil {
				continue
			}
		}
		if n := (dag.Node{Kind: asked.Kind}); d.heard || !n.Role().Asks {
			continue
		}
		var w struct {
			Options []dag.Option
			Refuses *[]string
		}
		reject := func(o dag.Option) bool { return len(dag.Refusing([]string{o.Name}, nil)) > 0 }
		if json.Unmarshal(asked.With, &w) == nil && w.Refuses == nil && len(w.Options) > 1 &&
			!slices.ContainsFunc(w.Options, reject) {
			b.fail(d.pos, d.path+at, "every answer does the same: none refuses, and no node reads nodes['%s']%s; "+
				"name those that refuse, refuses: [%s], or say that none does, refuses: []",
				d.id, read, w.Options[len(w.Options)-1].Name)
		}
	}
}

// makers reports whether what a node reads, under a name or by a pattern, is written before it, as far as the plan
// knows, and returns a run-time foreach that stands neither before nor after it and whose items seem to write it.
func (b *builder) makers(g *dag.Graph, d *draft, name string) (before bool, aside *draft) {
	i, _ := g.Index(d.id)
	for _, o := range b.drafts {
		k, in := g.Index(o.id)
		if !in || o == d {
			continue
		}
		writes := func(w string) bool { return dag.Matches(name, w) || dag.IsFolder(w) && strings.HasPrefix(name, w) }
		if slices.ContainsFunc(o.node.Writes, writes) {
			before = before || g.Ancestor(k, i)
		}
		if o.items == nil {
			continue
		}
		sure, maybe := o.items.mayWrite(name)
		switch {
		case g.Ancestor(k, i):
			before = before || maybe
		case sure && !g.Ancestor(i, k):
			aside = o
		}
	}
	return before, aside
}
