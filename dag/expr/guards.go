package expr

import (
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// unguarded finds where an expression reads a value of an item that may be absent, as if it always were there. It is
// where the reader has asked before:
//
//	items.map(i, i.out.?rows.orValue(0))
//	items.filter(i, i.status == 'completed').map(i, i.out.rows)
//	items.map(i, has(i.out.rows) ? i.out.rows : 0)
//
// and wherever else &&, ||, ! and ?: say so.
func unguarded(a *ast.AST, refs []Ref, items map[string]*Items) []string {
	if len(items) == 0 {
		return nil
	}
	g := &guards{a: a, refs: refs, items: items}
	g.walk(a.Expr(), nil)
	return g.problems
}

// guards goes over an expression with what is known at each place of it: "i" says that item i has completed,
// "i.out.rows" that the value is there; "[list" and "[list.out.rows" say so of every item of a list.
type guards struct {
	a        *ast.AST
	refs     []Ref
	items    map[string]*Items
	problems []string
}

// of returns the items that e is one of, or that e is the values of one of.
func (g *guards) of(e ast.Expr, out bool) *Items {
	t := g.a.GetType(e.ID())
	if t == nil || t.Kind() != types.StructKind || strings.HasSuffix(t.TypeName(), ".out") != out {
		return nil
	}
	return g.items[strings.TrimSuffix(t.TypeName(), ".out")]
}

func (g *guards) walk(e ast.Expr, known []string) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		g.walk(s.Operand(), known)
		if it := g.of(s.Operand(), true); it != nil && !s.IsTestOnly() {
			g.value(s, it, known)
		}
	case ast.CallKind:
		g.call(e.AsCall(), known)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			g.walk(x, known)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			g.walk(x.AsMapEntry().Key(), known)
			g.walk(x.AsMapEntry().Value(), known)
		}
	case ast.ComprehensionKind:
		g.loop(e.AsComprehension(), known)
	}
}

// value looks at a reading of a value.
func (g *guards) value(s ast.SelectExpr, it *Items, known []string) {
	typ, optional := dag.OutputType(it.Outputs[s.FieldName()])
	if it.Missing == "" && !optional {
		return
	}
	out := g.place(s.Operand())
	asked := func(of string) bool { return out != "" && slices.Contains(known, of) }
	if !asked(strings.TrimSuffix(out, ".out")) && !asked(out+"."+s.FieldName()) {
		why := fmt.Sprintf("an item may have no %q: %s", s.FieldName(), it.Missing)
		if it.Missing == "" {
			why = fmt.Sprintf("an item may give no %q: it is optional", s.FieldName())
		}
		text := fmt.Sprintf("%s; write .out.?%s.orValue(%s)", why, s.FieldName(), valueTypes[typ].none)
		if it.Missing != "" && !optional {
			text += ", or take only the items whose status is 'completed'"
		}
		g.problems = append(g.problems, text)
	}
}

func (g *guards) call(c ast.CallExpr, known []string) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		g.walk(args[0], known)
		g.walk(args[1], with(known, g.if_(args[0], true)))
		return
	case operators.LogicalOr:
		g.walk(args[0], known)
		g.walk(args[1], with(known, g.if_(args[0], false)))
		return
	case operators.Conditional:
		g.walk(args[0], known)
		g.walk(args[1], with(known, g.if_(args[0], true)))
		g.walk(args[2], with(known, g.if_(args[0], false)))
		return
	case operators.Equals, operators.NotEquals:
		g.status(args[0], args[1])
		g.status(args[1], args[0])
	case operators.In:
		if args[1].Kind() == ast.ListKind {
			g.status(args[0], args[1].AsList().Elements()...)
		}
	}
	if c.IsMemberFunction() {
		g.walk(c.Target(), known)
	}
	for _, x := range args {
		g.walk(x, known)
	}
}

// status refuses to compare the status of an item with a text that no status is.
func (g *guards) status(e ast.Expr, with ...ast.Expr) {
	if e.Kind() != ast.SelectKind || e.AsSelect().FieldName() != "status" || g.of(e.AsSelect().Operand(), false) == nil {
		return
	}
	for _, x := range with {
		if s, ok := literalOf(x); ok && !slices.Contains(dag.ViewStatuses, s) {
			g.problems = append(g.problems, noStatus(s))
		}
	}
}

func noStatus(s string) string {
	return fmt.Sprintf("no status is %q; known: %s%s", s, strings.Join(dag.ViewStatuses, ", "),
		rules.DidYouMean(s, dag.ViewStatuses))
}

func literalOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// if_ says what is known where a condition is true, or where it is false.
func (g *guards) if_(e ast.Expr, true_ bool) []string {
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() && true_ && g.of(s.Operand(), true) != nil {
			return []string{g.place(s.Operand()) + "." + s.FieldName()}
		}
	case ast.CallKind:
		c := e.AsCall()
		args := c.Args()
		switch fn := c.FunctionName(); {
		case fn == operators.LogicalNot:
			return g.if_(args[0], !true_)
		case fn == operators.LogicalAnd && true_, fn == operators.LogicalOr && !true_:
			return with(g.if_(args[0], true_), g.if_(args[1], true_))
		case fn == operators.Equals && true_, fn == operators.NotEquals && !true_:
			return append(g.completed(args[0], args[1]), g.completed(args[1], args[0])...)
		case fn == "hasValue" && true_ && c.Target().Kind() == ast.CallKind:
			o := c.Target().AsCall()
			if o.FunctionName() == operators.OptSelect && g.of(o.Args()[0], true) != nil {
				name, _ := literalOf(o.Args()[1])
				return []string{g.place(o.Args()[0]) + "." + name}
			}
		}
	}
	return nil
}

// completed says what is known where a status is equal to a text.
func (g *guards) completed(status, text ast.Expr) []string {
	if s, ok := literalOf(text); !ok || s != string(dag.StatusCompleted) || status.Kind() != ast.SelectKind {
		return nil
	}
	if s := status.AsSelect(); s.FieldName() == "status" && g.of(s.Operand(), false) != nil {
		return []string{g.place(s.Operand())}
	}
	return nil
}

func (g *guards) loop(c ast.ComprehensionExpr, known []string) {
	g.walk(c.IterRange(), known)
	g.walk(c.AccuInit(), known)
	element := c.IterVar()
	if c.HasIterVar2() {
		element = c.IterVar2()
	}
	inner := g.without(known, c.IterVar(), c.IterVar2(), c.AccuVar())
	bound := with(inner, prefixed("["+c.AccuVar(), g.each(c.AccuInit(), known)))
	inner = with(bound, prefixed(element, g.each(c.IterRange(), known)))
	g.walk(c.LoopCondition(), inner)
	g.walk(c.LoopStep(), inner)
	g.walk(c.Result(), bound)
}

// each says what is known of every item of a list, as it would follow the item's name.
func (g *guards) each(list ast.Expr, known []string) (out []string) {
	switch list.Kind() {
	case ast.IdentKind:
		name := "[" + list.AsIdent()
		for _, k := range known {
			if rest, ok := strings.CutPrefix(k, name); ok && (rest == "" || rest[0] == '.') {
				out = append(out, rest)
			}
		}
	case ast.CallKind:
		c := list.AsCall()
		switch c.FunctionName() {
		case "slice", "reverse", "distinct", "@sortByAssociatedKeys":
			if c.IsMemberFunction() {
				return g.each(c.Target(), known)
			}
		}
	case ast.ComprehensionKind:
		c := list.AsComprehension()
		if r := c.IterRange(); r.Kind() == ast.ListKind && r.AsList().Size() == 0 { // cel.bind
			return g.each(c.Result(), with(known, prefixed("["+c.AccuVar(), g.each(c.AccuInit(), known))))
		}
		cond, ok := filtered(c)
		if !ok {
			return nil
		}
		out = g.each(c.IterRange(), known)
		for _, k := range g.if_(cond, true) {
			if rest, ok := strings.CutPrefix(k, c.IterVar()); ok && (rest == "" || rest[0] == '.') {
				out = append(out, rest)
			}
		}
	}
	return out
}

// filtered returns the condition of list.filter(i, condition).
func filtered(c ast.ComprehensionExpr) (cond ast.Expr, ok bool) {
	step := c.LoopStep()
	if step.Kind() != ast.CallKind || step.AsCall().FunctionName() != operators.Conditional {
		return nil, false
	}
	args := step.AsCall().Args()
	if args[1].Kind() != ast.CallKind || args[1].AsCall().FunctionName() != operators.Add {
		return nil, false
	}
	added := args[1].AsCall().Args()[1]
	if added.Kind() != ast.ListKind || added.AsList().Size() != 1 {
		return nil, false
	}
	x := added.AsList().Elements()[0]
	return args[0], x.Kind() == ast.IdentKind && x.AsIdent() == c.IterVar()
}

// without leaves out what is known of variables that others of the same name hide.
func (g *guards) without(known []string, vars ...string) (out []string) {
	for _, k := range known {
		name := strings.TrimPrefix(k, "[")
		if i := strings.IndexAny(name, ".["); i >= 0 {
			name = name[:i]
		}
		if !slices.Contains(vars, name) {
			out = append(out, k)
		}
	}
	return out
}

func with(known, more []string) []string { return slices.Concat(known, more) }

func prefixed(name string, rest []string) (out []string) {
	for _, r := range rest {
		out = append(out, name+r)
	}
	return out
}

// place names what an expression reads, the same for the same; empty where it is more than a row of selections.
func (g *guards) place(e ast.Expr) string {
	join := func(of ast.Expr, step string) string {
		if p := g.place(of); p != "" {
			return p + step
		}
		return ""
	}
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return join(e.AsSelect().Operand(), "."+e.AsSelect().FieldName())
	case ast.CallKind:
		c := e.AsCall()
		args := c.Args()
		switch {
		case c.FunctionName() == operators.Index && args[1].Kind() == ast.LiteralKind:
			return join(args[0], fmt.Sprintf("[%v]", args[1].AsLiteral().Value()))
		case strings.HasPrefix(c.FunctionName(), "@ref_"): // what is read may be read twice
			return g.refs[args[1].AsLiteral().(types.Int)].String()
		}
	}
	return ""
}
