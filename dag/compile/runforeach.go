package compile

import (
	"fmt"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
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
	if d.node.Kind != "join" {
		b.fail(d.tree.Get("kind").Pos, d.path+".kind", "a node with foreach makes nodes and does nothing itself: want kind join, got %q", d.node.Kind)
		return
	}
	as, tmpl := v.Get("as"), v.Get("node")
	if text := unreadable(as.Str); text != "" {
		b.fail(as.Pos, path+".as", "%s", text)
		return
	}
	b.late = append(b.late, str(tmpl.Get("group")))
	kind, ok := b.kindOf(tmpl, path+".node")
	if !ok {
		return
	}
	for _, field := range []string{"foreach", "dir"} {
		if x := tmpl.Get(field); x != nil {
			b.fail(x.Pos, path+".node."+field, "the nodes of a foreach have no %s of their own", field)
			return
		}
	}
	before := b.count
	for _, x := range b.s.CheckNode(tmpl, path+".node") {
		b.report(x)
	}
	if b.count > before {
		return
	}
	full := b.merged(tmpl, kind)
	raw, err := dag.AppendCanonical(nil, full.AppendJSON(nil))
	if err != nil {
		b.fail(tmpl.Pos, path+".node", "%v", err)
		return
	}
	d.node.Foreach = &dag.Foreach{In: bare(str(v.Get("in"))), Var: as.Str, Key: bare(str(v.Get("key"))), Template: raw, Most: num(v.Get("most"))}
	b.templateFiles(d, kind, full, path+".node")
}

// merged lays a template over the pipeline's defaults.
func (b *builder) merged(tmpl *tree.Value, kind string) *tree.Value {
	out := tmpl
	for _, d := range []*tree.Value{b.defaults.Get(kind), b.defaults.Get("*")} {
		if d != nil {
			out = overlay(out, d)
		}
	}
	return out
}

// overlay returns a with what only c has; maps are merged field by field.
func overlay(a, c *tree.Value) *tree.Value {
	if a.Kind != tree.Map || c.Kind != tree.Map {
		return a
	}
	out := &tree.Value{Kind: tree.Map, Pos: a.Pos}
	for _, f := range a.Fields {
		if x := c.Get(f.Name); x != nil {
			f.Value = overlay(f.Value, x)
		}
		out.Fields = append(out.Fields, f)
	}
	for _, f := range c.Fields {
		if a.Get(f.Name) == nil {
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// templateFiles finds the input files that a template names for sure, so that they are copied
// when the plan is adopted, and names the artifacts and accumulators the expanded nodes may touch.
func (b *builder) templateFiles(d *draft, kind string, tmpl *tree.Value, path string) {
	k, ok := b.s.kinds.Kind(kind)
	with := tmpl.Get("with")
	if !ok || with == nil {
		return
	}
	t, err := k.Describe(sample(b.s.withRule(kind), with).AppendJSON(nil))
	if err != nil {
		return // settings that only an item makes whole
	}
	var fixed []string
	for _, name := range t.Files {
		if !expr.HasTemplate(&tree.Value{Kind: tree.String, Str: name}) {
			fixed = append(fixed, name)
		}
	}
	c := &draft{id: d.id, path: path, tree: tmpl, pos: tmpl.Pos, with: with, node: &dag.Node{Kind: kind}}
	d.node.Files = union(d.node.Files, b.inputs(c, fixed, path+".with"))
}

// NewEvaluator returns the evaluator that a host gives to a run of plan p. It completes the
// nodes of a run-time foreach with the schema, defaults and kinds that Compile uses; their input
// files are those that the plan holds.
func NewEvaluator(p *dag.Plan, kinds *nodes.Registry) (dag.Evaluator, error) {
	s, err := schemaFor(kinds)
	if err != nil {
		return nil, err
	}
	e, err := expr.New(p)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	e.Finish = func(parent *dag.Node, id string, spec *tree.Value) (dag.Node, error) {
		return s.finishNode(p, parent, id, spec)
	}
	return e, nil
}

// finishNode completes a node that a run-time foreach made.
func (s *Schema) finishNode(p *dag.Plan, parent *dag.Node, id string, spec *tree.Value) (dag.Node, error) {
	b := newBuilder(s, Source{}, nil)
	b.adopt(p)
	var err error
	if b.lang, err = expr.NewLang(p.Params); err != nil {
		return dag.Node{}, err
	}
	b.draft(id, tree.Pos{}, spec, tree.Join("nodes", id))
	d := b.drafts[0]
	d.node = new(dag.Node)
	for _, x := range s.CheckNode(spec, d.path) {
		b.report(x)
	}
	if !b.failed() {
		b.complete(d)
	}
	if b.failed() {
		first := b.mistakes[0]
		first.Pos = tree.Pos{} // a plan has no places
		return dag.Node{}, first
	}
	n := *d.node
	if n.Group == "" {
		n.Group = parent.Group
	}
	n.Pos = parent.Pos
	n.Needs = union([]string{parent.ID}, n.Needs)
	if !reserved(p, &n) && p.Budget.CapUSD > 0 {
		return dag.Node{}, fmt.Errorf("node %s %s", id, unreserved)
	}
	return n, nil
}

// adopt takes over what a plan declares.
func (b *builder) adopt(p *dag.Plan) {
	for _, x := range p.Breakers {
		b.known["breaker"] = append(b.known["breaker"], x.Name)
		b.whenOpen[x.Name] = x.WhenOpen
	}
	for _, x := range p.Pools {
		b.known["pool"] = append(b.known["pool"], x.Name)
	}
	for _, x := range p.Accumulators {
		b.known["accumulator"] = append(b.known["accumulator"], x.Name)
		b.isAcc[x.Name] = true
	}
	for _, x := range p.Categories {
		b.known["category"] = append(b.known["category"], x.Name)
	}
	for _, f := range p.Files {
		b.files[f.Path] = &inputFile{file: f}
	}
}
