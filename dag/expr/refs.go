package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"dagrun.dev/internal/rules"
)

// A Ref is one thing outside itself that an expression reads.
type Ref struct {
	Root     string // nodes, params or run
	Node     string // id, for nodes
	Field    string // out, status, category, generation or items, for nodes
	Name     string // of the output ("" = all of them), parameter or fact
	Optional bool   // written so that a missing value is no mistake: .?name, [?'name']
	Test     bool   // has(...): whether there is a value
}

// String prints the reference as it is written.
func (r Ref) String() string {
	if r.Root != "nodes" {
		return r.Root + "." + r.Name
	}
	s := "nodes['" + r.Node + "']." + r.Field
	if r.Name != "" {
		s += "." + r.Name
	}
	return s
}

// How references are compiled: the finder replaces each by a call of a function that only this
// package can name, whose overload has the type declared for the value:
//
//	nodes['a'].out.n + 1   becomes   @ref_int(@refs, 0) + 1
//
// so that CEL's own checker types the whole expression, and one program serves all expressions
// of one shape.
const refsName = "@refs"

var refsType = cel.OpaqueType("refs")

func refFunction(typ string, optional bool) string {
	if optional {
		return "@opt_" + typ
	}
	return "@ref_" + typ
}

// refValues hands a program the values of its references.
type refValues struct {
	ref.Val // of no use; makes this a value
	get     func(i int) ref.Val
}

func (refValues) Type() ref.Type { return refsType }

func getRef(refs, i ref.Val) ref.Val {
	return refs.(refValues).get(int(i.(types.Int)))
}

// A finder collects the references of a parsed expression, and what is wrong with it, in one walk
// from left to right.
type finder struct {
	lang     *Lang
	info     *ast.SourceInfo
	refs     []Ref
	at       []ast.Expr         // where each stands
	against  [][]string         // the texts that each is compared with
	compared map[int64][]string // those by the id of the expression, before it is a reference
	free     []name             // variables, at each place where one stands
	reads    []string           // fields of what formulas are about
	local    map[string]int     // variables of the loops around, and how many loops call one so
	loops    bool
	recorded bool // it reads what is known at run time only: nodes or run
	problems []string
}

// A name is a variable in an expression.
type name struct {
	text   string
	offset int // of its first character in the source, in characters
}

func (f *finder) fail(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func (f *finder) walk(e ast.Expr) {
	if root, steps := f.chain(e); len(steps) > 0 {
		f.reference(root, steps)
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		f.ident(e)
	case ast.SelectKind:
		s := e.AsSelect()
		if o := s.Operand(); o.Kind() == ast.IdentKind && f.isSubject(o.AsIdent()) && !s.IsTestOnly() {
			f.field(s.FieldName())
			return
		}
		if o := s.Operand(); o.Kind() == ast.IdentKind {
			f.ofItem(o.AsIdent(), s.FieldName())
		}
		f.walk(s.Operand())
	case ast.CallKind:
		c := e.AsCall()
		f.mistakes(c)
		if c.IsMemberFunction() && !f.namespaced(c) {
			f.walk(c.Target())
		}
		f.all(c.Args())
	case ast.ListKind:
		f.all(e.AsList().Elements())
	case ast.MapKind:
		for _, m := range e.AsMap().Entries() {
			f.walk(m.AsMapEntry().Key())
			f.walk(m.AsMapEntry().Value())
		}
	case ast.StructKind:
		f.fail("no messages here: write a map, {'name': value}")
	case ast.ComprehensionKind:
		f.comprehension(e.AsComprehension())
	}
}

// namespaced says that c calls a function such as sets.contains, not a method of a variable.
func (f *finder) namespaced(c ast.CallExpr) bool {
	t := c.Target()
	return t.Kind() == ast.IdentKind && f.local[t.AsIdent()] == 0 && f.lang.vars[t.AsIdent()] == "" &&
		f.lang.env.HasFunction(t.AsIdent()+"."+c.FunctionName())
}

func (f *finder) all(es []ast.Expr) {
	for _, e := range es {
		f.walk(e)
	}
}

func (f *finder) comprehension(c ast.ComprehensionExpr) {
	f.loops = true
	f.walk(c.IterRange())
	f.walk(c.AccuInit())
	for _, v := range []string{c.IterVar(), c.IterVar2(), c.AccuVar()} {
		if f.isSubject(v) { // CEL would read its field all the same
			f.fail("%s is what the expression is about: give the variable of the loop another name", v)
		}
		f.local[v]++
	}
	f.walk(c.LoopCondition())
	f.walk(c.LoopStep())
	f.local[c.IterVar()]--
	f.local[c.IterVar2()]--
	f.walk(c.Result())
	f.local[c.AccuVar()]--
}

func (f *finder) ident(e ast.Expr) {
	switch id := e.AsIdent(); {
	case f.local[id] > 0 || strings.HasPrefix(id, "@"):
	case id == "nodes":
		f.fail("nodes is read one at a time: nodes['id'].out.name, .status, .category, .generation or .items")
	case id == "params" || id == "run":
		f.fail("write %s.name", id)
	case f.isSubject(id):
		f.fail("%s is read by its fields, which are always there: %s.NAME; %s", id, id, suggest("", f.lang.fields))
	default:
		at, _ := f.info.GetOffsetRange(e.ID())
		f.free = append(f.free, name{id, int(at.Start)})
	}
}

func (f *finder) isSubject(id string) bool {
	return id != "" && id == f.lang.subject && f.local[id] == 0
}

// field notes that a field of what formulas are about is read.
func (f *finder) field(name string) {
	if _, known := f.lang.fields[name]; !known {
		f.fail("%s has no %q; %s", f.lang.subject, name, suggest(name, f.lang.fields))
		return
	}
	f.reading(name)
}

// ofItem refuses what an item of a foreach never has.
func (f *finder) ofItem(item, name string) {
	if f.local[item] > 0 || f.lang.vars[item] != itemType || slices.Contains(itemFields, name) {
		return
	}
	meant := rules.DidYouMean(name, itemFields)
	if meant == "" {
		meant = fmt.Sprintf("; a field of the item itself is %s.value.%s", item, name)
	}
	f.fail("%s has no %q; it has %s%s", item, name, strings.Join(itemFields, ", "), meant)
}

func (f *finder) reading(name string) {
	if !slices.Contains(f.reads, name) {
		f.reads = append(f.reads, name)
	}
}

// A step is one selection on the way from a root to a value.
type step struct {
	name     string
	optional bool
	test     bool
	index    bool     // in brackets
	dynamic  ast.Expr // an index that is not a literal text
	expr     ast.Expr // the expression up to and with this step
}

// chain takes a row of selections apart that starts at nodes, params or run; there are no steps where it does not.
func (f *finder) chain(e ast.Expr) (root ast.Expr, steps []step) {
	for {
		s := step{expr: e}
		switch e.Kind() {
		case ast.IdentKind:
			if id := e.AsIdent(); f.local[id] > 0 || id != "nodes" && id != "params" && id != "run" {
				return nil, nil
			}
			slices.Reverse(steps)
			return e, steps
		case ast.SelectKind:
			sel := e.AsSelect()
			s.name, s.test = sel.FieldName(), sel.IsTestOnly()
			e = sel.Operand()
		case ast.CallKind:
			c := e.AsCall()
			fn := c.FunctionName()
			if fn != operators.Index && fn != operators.OptIndex && fn != operators.OptSelect {
				return nil, nil
			}
			s.optional, s.index = fn != operators.Index, fn != operators.OptSelect
			var literal bool
			if s.name, literal = f.literalText(c.Args()[1]); !literal {
				s.dynamic = c.Args()[1]
			}
			e = c.Args()[0]
		default:
			return nil, nil
		}
		steps = append(steps, s)
	}
}

// reference records what a chain of selections reads. What follows the value (fields of a map) stays as
// it is; its indexes may read more.
func (f *finder) reference(root ast.Expr, steps []step) {
	r := Ref{Root: root.AsIdent()}
	n := 0
	if r.Root == "nodes" {
		n = f.nodeRef(&r, steps)
	} else {
		n = f.nameRef(&r, steps)
	}
	if n == 0 {
		return
	}
	f.recorded = f.recorded || r.Root != "params"
	f.refs = append(f.refs, r)
	f.at = append(f.at, steps[n-1].expr)
	f.against = append(f.against, f.compared[steps[n-1].expr.ID()])
	for _, s := range steps[n:] {
		if s.dynamic != nil {
			f.walk(s.dynamic)
		}
	}
}

// nodeRef reads nodes['id'].field and, for out, .name. It returns how many steps that takes, or 0 after a mistake.
func (f *finder) nodeRef(r *Ref, steps []step) int {
	first := steps[0]
	switch {
	case !first.index:
		f.fail("write nodes['%s']: ids stand in brackets", first.name)
		return 0
	case first.dynamic != nil:
		f.walk(first.dynamic)
		f.recorded = true
		f.fail("nodes[...] takes a literal id: a plan must know what is read")
		return 0
	case len(steps) == 1:
		f.fail("say what of the node: nodes['%s'].out.name, .status, .category, .generation or .items", first.name)
		return 0
	}
	r.Node, r.Field = first.name, steps[1].name
	n := 2
	switch r.Field {
	case "status", "category", "generation", "items":
	case "out":
		if len(steps) > 2 && steps[2].dynamic == nil {
			n, r.Name = 3, steps[2].name
		}
	default:
		f.fail("nodes['%s'] has no %q; it has out, status, category, generation, items", first.name, r.Field)
		return 0
	}
	r.Optional = slices.ContainsFunc(steps[:n], func(s step) bool { return s.optional })
	r.Test = steps[n-1].test
	return n
}

// nameRef reads params.a.b or run.name: the longest name that is known.
func (f *finder) nameRef(r *Ref, steps []step) int {
	var names []string
	for _, s := range steps {
		if s.dynamic != nil || s.test || s.optional {
			break
		}
		names = append(names, s.name)
	}
	if len(names) == 0 {
		f.fail("write %s.name: what %s holds is known beforehand", r.Root, r.Root)
		return 0
	}
	known := f.lang.known(r.Root)
	for n := len(names); n > 0; n-- {
		r.Name = strings.Join(names[:n], ".")
		if known[r.Name] == groupType && n < len(names) {
			break // a group of parameters holds nothing else
		}
		if known[r.Name] != "" {
			return n
		}
	}
	all := strings.Join(names, ".")
	f.fail("no %s.%s; %s", r.Root, all, suggest(all, known))
	return 0
}

// literalText returns the text of a string literal, or of a sum of literals as expansion
// leaves it: 'fit/' + 'S1' + '/p' + string(2-1).
func (f *finder) literalText(e ast.Expr) (string, bool) {
	if e.Kind() == ast.LiteralKind {
		s, ok := e.AsLiteral().(types.String)
		return string(s), ok
	}
	if !isConstant(e) {
		return "", false
	}
	p, err := f.lang.env.PlanProgram(ast.NewAST(e, f.info), cel.CustomDecoratorV2(metered))
	if err != nil {
		return "", false
	}
	v, _, err := p.Eval(&activation{budget: budget{left: maxFolding}})
	s, ok := v.(types.String)
	return string(s), ok && err == nil
}

// isConstant says that e is made of literals and calls.
func isConstant(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.CallKind:
		c := e.AsCall()
		return (!c.IsMemberFunction() || isConstant(c.Target())) && !slices.ContainsFunc(c.Args(), notConstant)
	}
	return false
}

func notConstant(e ast.Expr) bool { return !isConstant(e) }
