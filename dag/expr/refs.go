package expr

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A Ref is one thing outside itself that an expression reads.
type Ref struct {
	Root     string // nodes, params or run
	Node     string // id, for nodes
	Field    string // out, status, category or generation, for nodes
	Name     string // of the output ("" = all of them), parameter or fact
	Optional bool   // written so that a missing value is no mistake: .?name, [?'name']
	Test     bool   // has(...): whether there is a value
	Offset   int    // of its first character in the source, in characters
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

// finder collects the references of a parsed expression.
type finder struct {
	lang     *Lang
	info     *ast.SourceInfo
	refs     []Ref
	at       []ast.Expr       // where each stands
	free     map[string]int   // further names, and where each stands first
	uses     map[string][]int // and everywhere it stands
	params   int              // how many of refs are parameters
	dynamic  bool             // an index of nodes is no literal
	problems []Problem
	loops    bool
	local    map[string]int
}

func (f *finder) fail(e ast.Expr, format string, args ...any) {
	f.problems = append(f.problems, Problem{Offset: f.offset(e), Text: fmt.Sprintf(format, args...)})
}

// offset returns where the leftmost part of e starts, in characters.
func (f *finder) offset(e ast.Expr) int {
	for {
		switch e.Kind() {
		case ast.SelectKind:
			e = e.AsSelect().Operand()
			continue
		case ast.CallKind:
			if c := e.AsCall(); c.IsMemberFunction() {
				e = c.Target()
				continue
			} else if fn := c.FunctionName(); fn == operators.Index || fn == operators.OptIndex || fn == operators.OptSelect {
				e = c.Args()[0]
				continue
			}
		}
		r, _ := f.info.GetOffsetRange(e.ID())
		return int(r.Start)
	}
}

// walk visits e and its parts from left to right.
func (f *finder) walk(e ast.Expr) {
	if steps, root := f.path(e); root != nil {
		if f.reference(e, root.AsIdent(), steps) {
			return
		}
	}
	switch e.Kind() {
	case ast.IdentKind:
		f.ident(e)
	case ast.SelectKind:
		f.walk(e.AsSelect().Operand())
	case ast.CallKind:
		c := e.AsCall()
		if fn := c.FunctionName(); (fn == operators.Divide || fn == operators.Modulo) && zero(c.Args()[1]) {
			f.fail(c.Args()[1], "division by zero")
		}
		if !f.lang.adopted {
			f.comparison(c)
		}
		if c.IsMemberFunction() && !f.namespaced(c) {
			f.walk(c.Target())
		}
		f.pattern(c)
		f.all(c.Args())
	case ast.ListKind:
		f.all(e.AsList().Elements())
	case ast.MapKind:
		for _, m := range e.AsMap().Entries() {
			f.walk(m.AsMapEntry().Key())
			f.walk(m.AsMapEntry().Value())
		}
	case ast.StructKind:
		f.fail(e, "no messages here: write a map, {'name': value}")
	case ast.ComprehensionKind:
		f.loops = true
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
	f.walk(c.IterRange())
	f.walk(c.AccuInit())
	vars := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
	for _, v := range vars {
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
	name := e.AsIdent()
	switch {
	case f.local[name] > 0 || strings.HasPrefix(name, "@"):
	case name == "nodes":
		f.fail(e, "nodes is read one at a time: nodes['id'].out.name, .status, .category or .generation")
	case name == "params" || name == "run":
		f.fail(e, "write %s.name", name)
	default:
		if _, seen := f.free[name]; !seen {
			f.free[name] = f.offset(e)
		}
		f.uses[name] = append(f.uses[name], f.offset(e))
	}
}

// A step is one selection on the way from a root to a value.
type step struct {
	name     string
	optional bool
	test     bool
	index    bool     // in brackets
	dynamic  bool     // the index is not a literal string
	expr     ast.Expr // the expression up to and with this step
}

// path takes a chain of selections apart; root is nil when it does not start at one of our names.
func (f *finder) path(e ast.Expr) (steps []step, root ast.Expr) {
	for {
		switch e.Kind() {
		case ast.IdentKind:
			name := e.AsIdent()
			if f.local[name] > 0 || name != "nodes" && name != "params" && name != "run" {
				return nil, nil
			}
			for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
				steps[i], steps[j] = steps[j], steps[i]
			}
			return steps, e
		case ast.SelectKind:
			s := e.AsSelect()
			steps = append(steps, step{name: s.FieldName(), test: s.IsTestOnly(), expr: e})
			e = s.Operand()
		case ast.CallKind:
			c := e.AsCall()
			fn := c.FunctionName()
			if fn != operators.Index && fn != operators.OptIndex && fn != operators.OptSelect {
				return nil, nil
			}
			st := step{optional: fn != operators.Index, index: fn != operators.OptSelect, expr: e}
			arg := c.Args()[1]
			if s, ok := f.literalString(arg); ok {
				st.name = s
			} else {
				st.dynamic = true
			}
			steps = append(steps, st)
			e = c.Args()[0]
		default:
			return nil, nil
		}
	}
}

// reference records what a chain of selections reads. It reports whether e was dealt with;
// if not, the parts of e are visited.
func (f *finder) reference(e ast.Expr, root string, steps []step) bool {
	if len(steps) == 0 {
		return false // ident says what is wrong
	}
	switch root {
	case "nodes":
		return f.nodeRef(e, steps)
	default:
		return f.nameRef(e, root, steps)
	}
}

// nodeRef reads nodes['id'].field and, for out, .name.
func (f *finder) nodeRef(e ast.Expr, steps []step) bool {
	first := steps[0]
	switch {
	case !first.index:
		f.fail(e, "write nodes['%s']: ids stand in brackets", first.name)
		return true
	case first.dynamic:
		index := first.expr.AsCall().Args()[1]
		f.walk(index)
		f.dynamic = true
		f.fail(e, "nodes[...] takes a literal id: a plan must know what is read")
		return true
	case len(steps) == 1:
		f.fail(e, "say what of the node: nodes['%s'].out.name, .status, .category or .generation", first.name)
		return true
	}
	r := Ref{Root: "nodes", Node: first.name, Field: steps[1].name, Offset: f.offset(e)}
	last := 1
	switch r.Field {
	case "status", "category", "generation":
	case "out":
		if len(steps) > 2 && !steps[2].dynamic {
			last, r.Name = 2, steps[2].name
		}
	default:
		f.fail(e, "nodes['%s'] has no %q; it has out, status, category, generation", first.name, r.Field)
		return true
	}
	for _, s := range steps[:last+1] {
		r.Optional = r.Optional || s.optional
	}
	r.Test = steps[last].test
	f.add(r, steps[last].expr)
	// What follows the value (fields of a map) stays as it is; its indexes may read more.
	f.rest(steps[last+1:])
	return true
}

// nameRef reads params.a.b or run.name.
func (f *finder) nameRef(e ast.Expr, root string, steps []step) bool {
	var names []string
	for _, s := range steps {
		if s.dynamic || s.test || s.optional {
			break
		}
		names = append(names, s.name)
	}
	if len(names) == 0 {
		f.fail(e, "write %s.name: what %s holds is known beforehand", root, root)
		return true
	}
	known := f.lang.known(root)
	for n := len(names); n > 0; n-- {
		name := strings.Join(names[:n], ".")
		if known[name] == groupType && n < len(names) {
			break // a group of parameters holds nothing else
		}
		if known[name] != "" {
			f.add(Ref{Root: root, Name: name, Offset: f.offset(e)}, steps[n-1].expr)
			f.rest(steps[n:])
			return true
		}
	}
	f.fail(e, "no %s; %s", root+"."+strings.Join(names, "."), suggest(strings.Join(names, "."), known))
	return true
}

func (f *finder) rest(steps []step) {
	for _, s := range steps {
		if s.dynamic {
			f.walk(s.expr.AsCall().Args()[1])
		}
	}
}

func (f *finder) add(r Ref, at ast.Expr) {
	if r.Root == "params" {
		f.params++
	}
	f.refs = append(f.refs, r)
	f.at = append(f.at, at)
}
