package compile

import (
	"fmt"
	"slices"
	"strings"
	"sync"

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
	b.templateNames(tmpl, path+".node")
	full := b.merged(tmpl, kind)
	raw, err := dag.AppendCanonical(nil, full.AppendJSON(nil))
	if err != nil {
		b.fail(tmpl.Pos, path+".node", "%v", err)
		return
	}
	d.node.Foreach = &dag.Foreach{In: bare(str(v.Get("in"))), Var: as.Str, Key: bare(str(v.Get("key"))), Template: raw, Most: num(v.Get("most"))}
	b.templateFiles(d, kind, full, path+".node")
}

// templateNames checks what a template names for sure: what is not declared would be found out only after the nodes
// before it have been paid for.
func (b *builder) templateNames(tmpl *tree.Value, path string) {
	check := func(what, field string, v *tree.Value) {
		if v != nil && !expr.HasTemplate(v) {
			b.checkNames(what, v, path+"."+field)
		}
	}
	check("breaker", "breaker", tmpl.Get("breaker"))
	check("pool", "pool", tmpl.Get("pool"))
	check("accumulator", "appends", tmpl.Get("appends"))
	for _, f := range fieldsOf(tmpl.Get("retry").Get("on")) {
		check("category", tree.Join("retry.on", f.Name), &tree.Value{Kind: tree.String, Str: f.Name, Pos: f.Pos})
	}
	for _, field := range []string{"reads", "writes"} {
		if v := tmpl.Get(field); v != nil {
			for i, x := range v.Items {
				if !expr.HasTemplate(x) {
					b.localPath(x, tree.At(tree.Join(path, field), i))
				}
			}
		}
	}
}

// templateNeeds checks the nodes that a template names for sure. Its own nodes are not there yet.
func (b *builder) templateNeeds(d *draft) {
	needs := d.tree.Get("foreach").Get("node").Get("needs")
	field := "foreach.node.needs"
	if needs != nil && needs.Kind == tree.Map {
		needs, field = needs.Get("of"), field+".of"
	}
	if needs == nil {
		return
	}
	for i, x := range needs.Items {
		if own := x.Str == d.id || strings.HasPrefix(x.Str, d.id+"/"); !own && !expr.HasTemplate(x) {
			b.id(d, x.Str, x.Pos, tree.At(field, i))
		}
	}
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

// overlay returns a with what only c has, as the layers of policies are read: maps are merged field by field, but the
// formula of a retry replaces delays below it, a category is taken as a whole, and a timeout that is a text is the one
// of an attempt.
func overlay(a, c *tree.Value) *tree.Value {
	if a.Kind != tree.Map || c.Kind != tree.Map {
		return a
	}
	out := &tree.Value{Kind: tree.Map, Pos: a.Pos}
	for _, f := range a.Fields {
		if x := c.Get(f.Name); x != nil {
			switch f.Name {
			case "retry":
				f.Value = overlayRetry(f.Value, x)
			case "timeout":
				f.Value = overlayTimeout(f.Value, x)
			default:
				f.Value = overlay(f.Value, x)
			}
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

func overlayRetry(a, c *tree.Value) *tree.Value {
	out := overlay(a, c)
	if out == a {
		return a
	}
	if a.Get("delays") == nil && (a.Get("base") != nil || a.Get("factor") != nil || a.Get("cap") != nil) {
		out.Fields = slices.DeleteFunc(out.Fields, func(f tree.Field) bool { return f.Name == "delays" })
	}
	for i, f := range out.Fields {
		if on := a.Get("on"); f.Name == "on" && on != nil {
			out.Fields[i].Value = firstOfEach(on, c.Get("on"))
		}
	}
	return out
}

// firstOfEach returns the fields of a, and those of c that a does not have.
func firstOfEach(a, c *tree.Value) *tree.Value {
	out := &tree.Value{Kind: tree.Map, Pos: a.Pos, Fields: slices.Clone(a.Fields)}
	for _, f := range fieldsOf(c) {
		if a.Get(f.Name) == nil {
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

func overlayTimeout(a, c *tree.Value) *tree.Value {
	if a.Kind == tree.String && c.Kind == tree.String {
		return a
	}
	return overlay(timeouts(a), timeouts(c))
}

// timeouts is a timeout as a map.
func timeouts(v *tree.Value) *tree.Value {
	if v.Kind != tree.String {
		return v
	}
	return &tree.Value{Kind: tree.Map, Pos: v.Pos, Fields: []tree.Field{{Name: "attempt", Pos: v.Pos, Value: v}}}
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
	finish := sync.OnceValues(func() (*finisher, error) { return s.finisher(p) })
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

func (s *Schema) finisher(p *dag.Plan) (*finisher, error) {
	b := newBuilder(s, Source{}, nil)
	b.adopt(p)
	var err error
	b.lang, err = expr.NewLang(p.Params)
	return &finisher{p, *b}, err
}

// builder returns one for a single node.
func (f *finisher) builder() *builder {
	b := f.of
	b.plan = &dag.Plan{Format: dag.Format}
	b.byID, b.dirs, b.perPlace = map[string]*draft{}, map[string]*draft{}, map[tree.Pos]*told{}
	return &b
}

// node completes a node that a run-time foreach made.
func (f *finisher) node(parent *dag.Node, id string, spec *tree.Value) (dag.Node, error) {
	b := f.builder()
	b.draft(id, tree.Pos{}, spec, tree.Join("nodes", id))
	var n dag.Node
	for _, d := range b.drafts { // none of an id that no node can have
		d.node = &n
		for _, x := range b.s.CheckNode(spec, d.path) {
			b.report(x)
		}
		if !b.failed() {
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
	if !reserved(f.plan, &n) && f.plan.Budget.CapUSD > 0 {
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
