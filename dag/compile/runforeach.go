package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/glob"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// runForeach reads a run-time expansion. The template is checked as far as it can be: names of
// fields and fixed values now, the rest when an item fills it. The pipeline's defaults go into the
// template, so that the plan is all a run needs.
func (b *builder) runForeach(d *draft, v *tree.Value) {
	if v == nil {
		return
	}
	path := d.path + ".foreach"
	if !d.node.Role().Joins {
		b.fail(d.tree.Get("kind").Pos, d.path+".kind",
			"a node with foreach makes nodes and does nothing itself: want kind join, got %q", d.node.Kind)
		return
	}
	as, tmpl := v.Get("as"), v.Get("node")
	b.late = append(b.late, tmpl.Get("group").Text())
	kind, ok := b.kindOf(tmpl, path+".node")
	if !ok {
		return
	}
	const onList = "; one list may hold the items of both: " +
		"LIST.map(a, a.parts.map(b, {'of': a.name, 'part': b})).flatten()"
	for _, field := range [][2]string{{"foreach", onList}, {"dir", ""}} {
		if x := tmpl.Get(field[0]); x != nil {
			b.fail(x.Pos, path+".node."+field[0], "the nodes of a foreach have no %s of their own%s", field[0], field[1])
			return
		}
	}
	if !b.ok(b.s.CheckNode(tmpl, path+".node")) {
		return
	}
	full := b.withDefaults(tmpl, kind)
	// What is not declared would be found out only after the nodes before it have been paid for.
	b.references(full, path+".node", func(x *tree.Value) bool { return expr.HasTemplate(x) })
	d.node.Foreach = &dag.Foreach{
		In: bare(v.Get("in").Text()), Var: as.Str, Key: bare(v.Get("key").Text()),
		Template: b.canonical(full, path+".node"), Most: int(v.Get("most").Int),
	}
	d.items = &madeItems{Items: expr.Items{Outputs: map[string]string{}}, when: tmpl.Get("when").Text() != "",
		writes: strs(full.Get("writes"))}
	b.sameNames(d.node.Foreach, full.Get("writes"), path+".node.writes")
	b.into(full, path+".node", &d.items.node, "breaker", "outputs")
	if f := full.Get("onFail"); f != nil {
		d.items.node.OnFail = dag.OnFail(f.Plain())
	}
	d.items.node.Retry = b.retry(full.Get("retry"), path+".node.retry")
	maps.Copy(d.items.Outputs, d.items.node.Outputs)
	if most := v.Get("most"); most.Pos != v.Pos { // it is written, and not the default
		d.node.Foreach.Expect = d.node.Foreach.Most
	}
	if x := v.Get("expect"); x != nil {
		if d.node.Foreach.Expect = int(x.Int); x.Int > v.Get("most").Int {
			b.fail(x.Pos, path+".expect", "want at most %d, which is `most`, got %d", v.Get("most").Int, x.Int)
		}
	}
	d.items.node.ID, d.items.node.Kind, d.items.node.Effect = d.id+"/...", kind, dag.Pure
	b.into(full, path+".node", &d.items.node, "reserve", "estimate")
	b.into(full.Get("timeout"), path+".node.timeout", &d.items.node.Timeout)
	b.described(d, kind, full, path+".node")
	b.templateInputs(d, tmpl.Get("inputs"), path+".node.inputs")
	item := d.items.node
	item.Outputs = nil
	d.node.Foreach.Item = &item
}

// sameNames warns of what every item would write under one name: with more than one item that is a mistake, which would
// be found only when everything before it has run.
func (b *builder) sameNames(f *dag.Foreach, writes *tree.Value, path string) {
	for i, w := range writes.List() {
		if f.Most > 1 && !expr.HasTemplate(w) {
			b.warn(w.Pos, tree.At(path, i), "every item writes %q, which only a list of one item can: put the item into the "+
				"name, as in %q, or say that there is one at most: most: 1", w.Str, "${"+f.Key+"}/"+w.Str)
		}
	}
}

// madeItems are what is known of the items of a run-time foreach before there are any.
type madeItems struct {
	expr.Items
	node   dag.Node // policies only
	when   bool     // they have a condition
	writes []string // with ${...}
}

// mayWrite says whether some item may write what is read under a name or by a pattern; sure: part of what it writes is
// known, and fits.
func (m *madeItems) mayWrite(read string) (sure, maybe bool) {
	maybe = m.Open
	for _, w := range m.writes {
		parts, err := expr.Split(w)
		if err != nil {
			continue
		}
		known := []string{""}
		for _, p := range parts {
			if p.Source != "" {
				known = append(known, "")
			} else {
				known[len(known)-1] += p.Text
			}
		}
		if !dag.IsFolder(read) { // as dag.Matches has it
			known[len(known)-1] = strings.TrimSuffix(known[len(known)-1], "/")
		}
		if dag.IsFolder(w) && !dag.IsPattern(read) && !dag.IsFolder(read) { // a file in it
			known = append(known[:len(known)-1], known[len(known)-1]+"/", "")
		}
		fits := glob.Overlap(read, known)
		maybe = maybe || fits
		sure = sure || fits && strings.Join(known, "") != ""
	}
	return sure, maybe
}

// templateNeeds checks the nodes that a template names for sure. Its own nodes are not there yet.
func (b *builder) templateNeeds(d *draft) {
	list, field := needed(d.tree.Get("foreach").Get("node").Get("needs"), "foreach.node.needs")
	for i, x := range list.List() {
		if own := x.Str == d.id || strings.HasPrefix(x.Str, d.id+"/"); own || expr.HasTemplate(x) {
			continue
		}
		if _, text := b.other(d, x.Str); text != "" {
			b.fail(x.Pos, d.path+"."+tree.At(field, i), "%s", text)
		}
	}
}

// described finds the input files that a template names for sure, so that they are copied when the plan is adopted,
// and the values that its kind records.
func (b *builder) described(d *draft, kind string, tmpl *tree.Value, path string) {
	with := tmpl.Get("with")
	if with == nil {
		with = &tree.Value{Kind: tree.Map}
	}
	t, err := describeKind(b.s.Registry, kind, sample(b.s.Settings(kind), with).AppendJSON(nil))
	if err != nil {
		d.items.Open = true
		return // settings that only an item makes whole
	}
	maps.Copy(d.items.Outputs, t.Outputs)
	d.items.node.Paid = t.Paid
	if p := t.Prompt; p != nil {
		d.items.node.Call = &dag.Call{Provider: p.Provider, Model: p.Model, Chars: p.Chars, MaxOutput: p.MaxOutput}
	}
	d.items.writes = union(d.items.writes, t.Writes)
	fixed := slices.DeleteFunc(t.Files, func(name string) bool { return strings.Contains(name, "${") })
	d.node.Files = union(d.node.Files, b.inputs(with, fixed, path+".with"))
}

// templateInputs finds the input files that a template names for sure. Those that depend on the item are among the
// inputs of the foreach node, which are there for its items.
func (b *builder) templateInputs(d *draft, list *tree.Value, path string) {
	for i, v := range list.List() {
		switch {
		case !expr.HasTemplate(v):
			one := &tree.Value{Kind: tree.List, Items: []*tree.Value{v}}
			d.node.Inputs = union(d.node.Inputs, b.nodeInputs(one, path))
		case len(d.node.Inputs) == 0:
			b.fail(v.Pos, tree.At(path, i), "%q depends on the item, and which files there are is part of the plan: name "+
				"those that items may have in inputs of node %q, by a pattern for example", v.Str, d.id)
		}
	}
}

// NewEvaluator returns the evaluator that a host gives to a run of plan p. It completes the
// nodes of a run-time foreach with the schema, defaults and kinds that Compile uses; their input
// files are those that the plan holds.
func NewEvaluator(p *dag.Plan, kinds *nodes.Registry) (dag.Evaluator, error) {
	s, err := schema.For(kinds)
	if err != nil {
		return nil, err
	}
	e, err := expr.New(p)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	finish := sync.OnceValues(func() (*finisher, error) { return newFinisher(s, p) })
	e.Finish = func(parent *dag.Node, id string, spec *tree.Value) (dag.Node, error) {
		f, err := finish()
		if err != nil {
			return dag.Node{}, err
		}
		return f.node(parent, id, spec)
	}
	return e, nil
}

// A finisher completes the nodes that run-time foreach makes, from any goroutine.
type finisher struct {
	plan *dag.Plan
	of   builder // what the plan declares; nothing of it changes
}

func newFinisher(s *schema.Schema, p *dag.Plan) (*finisher, error) {
	b := newBuilder(s, source.Source{}, nil)
	head := *p
	head.Nodes = nil
	b.plan = &head
	b.know(p)
	for _, f := range p.Files {
		b.files[f.Path] = &inputFile{file: f}
	}
	var err error
	b.lang, err = expr.NewLang(p.Params)
	return &finisher{p, *b}, err
}

// builder returns one for a single node.
func (f *finisher) builder() *builder {
	b := f.of
	b.byID, b.dirs = map[string]*draft{}, map[string]*draft{}
	return &b
}

// node completes a node that a run-time foreach made.
func (f *finisher) node(parent *dag.Node, id string, spec *tree.Value) (dag.Node, error) {
	b := f.builder()
	b.draft(id, tree.Pos{}, spec, tree.Join("nodes", id))
	var n dag.Node
	for _, d := range b.drafts { // none of an id that no node can have
		d.node = &n
		if b.ok(b.s.CheckNode(spec, d.path)) {
			b.complete(d)
		}
	}
	if b.failed() {
		first := b.mistakes[0]
		first.Pos = tree.Pos{} // a plan has no places
		return dag.Node{}, first
	}
	if n.Group == "" {
		n.Group = parent.Group
	}
	n.Pos = parent.Pos
	n.Needs = union([]string{parent.ID}, n.Needs)
	if !reserved(dag.NewEstimator(f.plan), &n) && f.plan.Budget.CapUSD > 0 {
		return dag.Node{}, fmt.Errorf("node %s %s", id, unreserved)
	}
	return n, nil
}
