package compile

import (
	"fmt"
	"slices"
	"strconv"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// typeAll types every expression against what the nodes it reads declare. Nodes are visited needs
// first, because a route's values have the types of their expressions.
func (b *builder) typeAll() {
	if !slices.ContainsFunc(b.drafts, func(d *draft) bool { return len(d.reads) > 0 }) {
		return
	}
	n := len(b.drafts)
	m := &missing{b: b, skip: make([]string, n), behind: make([]*draft, n), depth: make([]int, n)}
	order, _ := inOrder(b.dependents())
	for _, i := range order {
		d := b.drafts[i]
		m.enter(d)
		m.follow(d)
		for k := range d.reads {
			b.typeOne(d, &d.reads[k], m)
		}
	}
}

func (b *builder) typeOne(d *draft, r *reading, m *missing) {
	decls := expr.Decls{Run: r.run, Node: func(id string) (expr.NodeDecl, error) {
		t := b.byID[fold(id)]
		if t == nil || t == d {
			return expr.NodeDecl{Open: true}, nil // reported already
		}
		n := expr.NodeDecl{Outputs: t.node.Outputs, Missing: m.why(d, t), Pos: t.pos.String(), Open: t.bad,
			Kind: t.node.Kind}
		n.Words = t.words
		if t.items != nil {
			it := t.items.Items
			it.Missing = m.whyItem(d, t)
			n.Items = &it
		}
		return n, nil
	}}
	if r.template != nil {
		if b.ok(r.template.Check(decls)) && r.rule != nil {
			b.settingTypes(r.rule, r.template)
		}
		return
	}
	p, problems := r.e.Check(decls, r.want)
	b.problems(r.pos, r.path, r.src, problems)
	b.unseen(d, r, m)
	if r.value == "" || p == nil {
		return
	}
	typ := p.Type
	if typ == "optional" { // the value is recorded where there is one
		typ = p.Of + "?"
	}
	output(d.node, r.value, typ)
}

// unseen warns of a condition that asks whether a node has failed, where the run does not come to the condition then.
func (b *builder) unseen(d *draft, r *reading, m *missing) {
	for i, ref := range r.e.Refs() {
		if ref.Field != "status" || !slices.Contains(r.e.Compared(i), string(dag.StatusFailed)) {
			continue
		}
		t := b.byID[fold(ref.Node)]
		if t == nil || t == d || t.bad || d.bad || m.failureSeen(d, t) {
			continue
		}
		text := fmt.Sprintf("%s is never %q here: when %s fails, nothing that needs it is decided; write onFail: continue "+
			"there, or always: true here", ref, dag.StatusFailed, t.id)
		if t.items != nil {
			text = fmt.Sprintf("%s says nothing of how the items ended; write nodes['%s'].items.exists(i, i.status == '%s')",
				ref, t.id, dag.StatusFailed)
		}
		b.warn(r.pos, r.path, "%s", text)
	}
}

// failureSeen says whether d may be decided after t has failed.
func (m *missing) failureSeen(d, t *draft) bool {
	n := t.node
	return goesOn(n.OnFail) || slices.ContainsFunc(n.Retry.On, categoryGoesOn) || readsAnyway(d) != "" ||
		slices.Contains(d.node.History, t.id) ||
		n.Breaker != "" && m.b.whenOpen(n.Breaker) == dag.OpenContinue || n.OnFail == dag.FailCompensate
}

// missing says whether a node's values may be missing when another one reads them.
type missing struct {
	b    *builder
	skip []string // by index: why the node may be skipped

	behind []*draft // by index: the nearest node that the node is skipped with; nil: none
	depth  []int    // by index: how many such nodes stand one behind the other before it
}

// enter notes why a node may be skipped; its needs were entered before.
func (m *missing) enter(d *draft) {
	n := d.node
	switch {
	case d.bad || d.loose: // not known whole
		return
	case n.When != "":
		m.skip[d.index] = "it has a `when`"
		return
	case n.Breaker != "" && m.b.whenOpen(n.Breaker) == dag.OpenSkip:
		m.skip[d.index] = fmt.Sprintf("breaker %q may skip it", n.Breaker)
		return
	}
	for _, id := range n.Needs {
		if m.skip[m.b.byID[fold(id)].index] == "" {
			return
		}
	}
	if len(n.Needs) > 0 && !n.Always {
		m.skip[d.index] = fmt.Sprintf("it is skipped when %s", listed(n.Needs)+" skipped")
	}
}

// whenOpen is what nodes do while a breaker is open.
func (b *builder) whenOpen(name string) dag.WhenOpen {
	br, ok := b.plan.BreakerByName(name)
	if !ok {
		return ""
	}
	return br.WhenOpen
}

func listed(ids []string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("%q is", ids[0])
	}
	return "all its needs are"
}

// why says why t may have no values for the reader d; empty when it always has.
func (m *missing) why(d, t *draft) string {
	n := t.node
	switch {
	case slices.Contains(d.node.History, t.id) && !slices.Contains(d.node.Needs, t.id):
		return "it is in `history` and may not have run"
	case readsAnyway(d) != "":
		return readsAnyway(d)
	case m.skip[t.index] != "" && !m.follows(d, t):
		return m.skip[t.index]
	case goesOn(n.OnFail):
		return fmt.Sprintf("it has `onFail: %s`", n.OnFail)
	case slices.ContainsFunc(n.Retry.On, categoryGoesOn):
		return "it goes on after some failures (`retry.on`)"
	case n.Breaker != "" && m.b.whenOpen(n.Breaker) == dag.OpenContinue:
		return fmt.Sprintf("breaker %q lets the run go on without it", n.Breaker)
	}
	return ""
}

// follows says that d is skipped wherever t is: it needs nothing else.
func (m *missing) follows(d, t *draft) bool {
	for d != nil && m.depth[d.index] > m.depth[t.index] {
		d = m.behind[d.index]
	}
	return d == t
}

// follow notes the nearest node that d is skipped with, all of whose needs have been entered.
func (m *missing) follow(d *draft) {
	n := d.node
	if n.When != "" || n.Always || n.AtLeast > 0 || len(n.Needs) == 0 {
		return
	}
	nearest := m.b.byID[fold(n.Needs[0])]
	for _, id := range n.Needs[1:] {
		nearest = m.common(nearest, m.b.byID[fold(id)])
	}
	if nearest != nil {
		m.behind[d.index], m.depth[d.index] = nearest, m.depth[nearest.index]+1
	}
}

// common returns the nearest node that two are both skipped with, or are; nil: there is none.
func (m *missing) common(x, y *draft) *draft {
	for x != y {
		if x == nil || y == nil {
			return nil
		}
		if m.depth[x.index] < m.depth[y.index] {
			x, y = y, x
		}
		x = m.behind[x.index]
	}
	return x
}

// whyItem says why an item of the foreach t may have no values for the reader d; empty when all have.
func (m *missing) whyItem(d, t *draft) string {
	n := &t.items.node
	opened := m.b.whenOpen(n.Breaker)
	switch {
	case readsAnyway(d) != "":
		return readsAnyway(d)
	case t.items.when:
		return "the items have a `when`"
	case goesOn(n.OnFail):
		return fmt.Sprintf("the items have `onFail: %s`", n.OnFail)
	case slices.ContainsFunc(n.Retry.On, categoryGoesOn):
		return "the run goes on after some of their failures (`retry.on`)"
	case opened == dag.OpenSkip || opened == dag.OpenContinue:
		return fmt.Sprintf("breaker %q lets the run go on without some", n.Breaker)
	}
	return ""
}

// readsAnyway says why a node runs also where what it reads has no values; empty when it does not.
func readsAnyway(d *draft) string {
	switch {
	case d.node.Always:
		return "this node is `always` run, also after failures"
	case d.node.AtLeast > 0:
		return fmt.Sprintf("this node starts when %d of its needs have succeeded", d.node.AtLeast)
	}
	return ""
}

// goesOn says whether the run goes on after a failure.
func goesOn(f dag.OnFail) bool { return f == dag.FailContinue || f == dag.FailEscalate }

func categoryGoesOn(p dag.CategoryPolicy) bool { return goesOn(p.OnFail) }

// settingTypes holds the types of expressions that stand for a whole setting against what the
// rules allow there: a number where a text is wanted would be found out only while running.
func (b *builder) settingTypes(r *rules.Rule, t *expr.Template) {
	allowed := typesOf(r)
	if got, known := exprTypes[t.Type()]; known && allowed != 0 && allowed&got == 0 {
		hint := ""
		switch {
		case !allowed.Has(tree.String):
		case got == rules.TypesOf(tree.List) || got == rules.TypesOf(tree.Map):
			hint = "; write json(...)"
		default:
			hint = "; write string(...)"
		}
		b.fail(t.Value.Pos, t.Path, "in %q: want %s, got %s%s", t.Value.Str, allowed, t.Type(), hint)
	}
	for i, x := range t.Parts {
		label := strconv.Itoa(i)
		if t.Value.Kind == tree.Map {
			label = t.Value.Fields[i].Name
		}
		b.settingTypes(r.Below(label), x)
	}
}

var exprTypes = map[string]rules.Types{
	"string": rules.TypesOf(tree.String), "bool": rules.TypesOf(tree.Bool), "int": rules.TypesOf(tree.Int),
	"number": rules.Number, "list": rules.TypesOf(tree.List), "map": rules.TypesOf(tree.Map),
	"null": rules.TypesOf(tree.Null),
}

// typesOf returns the types a rule allows, alternatives included; 0 = any.
func typesOf(r *rules.Rule) rules.Types {
	if r == nil || r.Types != 0 || len(r.AnyOf) == 0 {
		if r == nil {
			return 0
		}
		return r.Types
	}
	var t rules.Types
	for _, a := range r.AnyOf {
		x := typesOf(a)
		if x == 0 {
			return 0
		}
		t |= x
	}
	return t
}
