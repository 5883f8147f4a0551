package expr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// A Program is a typed expression, ready to evaluate from any goroutine.
type Program struct {
	*compiled
	expr *Expr
	fns  []string
}

// A compiled is what the programs of one shape, with references of the same types, share.
type compiled struct {
	Type string // of the result: string, int, number, bool, list, map, null, optional or any
	Of   string // of what an optional result holds, in the same words; else empty

	kind     *cel.Type // of the result, as CEL has it
	prog     cel.Program
	problems []string
}

// compile types src with its references bound to functions and plans its evaluation.
func (l *Lang) compile(src string, loops bool, fns []string) *compiled {
	a, f, problems := l.parse(src)
	if len(problems) > 0 {
		return &compiled{problems: problems}
	}
	rewrite(a.NativeRep(), f.at, f.refs, fns)
	env, items, err := l.withItems(l.env, fns)
	if err != nil {
		return &compiled{problems: []string{err.Error()}}
	}
	if items != nil {
		outByName(a.NativeRep())
	}
	checked, iss := env.Check(a)
	if iss.Err() != nil {
		problems = problemsOf(iss)
		for i := range problems {
			problems[i] = noField(problems[i], items)
		}
		return &compiled{problems: problems}
	}
	if problems := unguarded(checked.NativeRep(), f.refs, items); len(problems) > 0 {
		return &compiled{problems: problems}
	}
	opts := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(metered)}
	if loops {
		opts = append(opts, cel.InterruptCheckFrequency(maxSteps))
	}
	p, err := env.Program(checked, opts...)
	if err != nil {
		return &compiled{problems: []string{err.Error()}}
	}
	if len(f.refs)+len(f.free)+len(f.reads) == 0 { // it has one value, or none at all
		if _, err := evaluate(p, loops, &activation{}); err != nil {
			return &compiled{problems: []string{err.Error()}}
		}
	}
	out := &compiled{prog: p, kind: checked.OutputType(), Type: typeName(checked.OutputType())}
	if out.Type == "optional" {
		out.Of = typeName(checked.OutputType().Parameters()[0])
	}
	return out
}

func typeName(t *cel.Type) string {
	if t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type" {
		return "optional"
	}
	return cmp.Or(typeNames[t.Kind()], "any")
}

// typeNames are the types of results in the words of a specification.
var typeNames = map[types.Kind]string{
	types.StringKind: "string", types.IntKind: "int", types.UintKind: "int", types.DoubleKind: "number",
	types.BoolKind: "bool", types.ListKind: "list", types.MapKind: "map", types.NullTypeKind: "null",
}

// Eval evaluates the expression. vars holds the variables (see Native), sc what it reads of the
// run; nil where the plan is made. The error names the expression.
func (p *Program) Eval(vars map[string]any, sc dag.Scope) (*tree.Value, error) {
	v, err := p.Val(vars, sc)
	if err != nil {
		return nil, err
	}
	return p.toTree(v)
}

func (p *Program) toTree(v any) (*tree.Value, error) {
	t, err := toTree(v.(ref.Val))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", quoteShort(p.expr.src), err)
	}
	return t, nil
}

// Val evaluates the expression to a value that can be a variable of further expressions.
func (p *Program) Val(vars map[string]any, sc dag.Scope) (any, error) {
	v, err := p.run(&activation{vars: vars}, sc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", quoteShort(p.expr.src), err)
	}
	return v, nil
}

// run evaluates the expression with the variables of act.
func (p *Program) run(act *activation, sc dag.Scope) (ref.Val, error) {
	if len(p.fns) > 0 {
		act.refs = p.references(sc)
	}
	return evaluate(p.prog, p.expr.shaped.loops, act)
}

// references gives an evaluation the values of what the expression reads.
func (p *Program) references(sc dag.Scope) refValues {
	read := make([]ref.Val, len(p.fns)) // a loop may ask for the same value each time
	return refValues{get: func(i int) ref.Val {
		if read[i] == nil {
			read[i] = p.read(i, sc)
		}
		return read[i]
	}}
}

// evaluate runs a program. Its calls are paid for, and its loops counted.
func evaluate(p cel.Program, loops bool, act *activation) (ref.Val, error) {
	act.budget.left = maxWork
	if !loops {
		v, _, err := p.Eval(act)
		return v, err
	}
	v, _, err := p.ContextEval(spent, act)
	if errors.Is(err, interpreter.InterruptError{}) {
		err = fmt.Errorf("needs more than %d steps", maxSteps)
	}
	return v, err
}

// spent is a context that is over. Programs with loops look at it once, after maxSteps steps of
// their loops, so that the same expression is cut at the same step everywhere.
var spent = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// activation resolves the names of one evaluation.
type activation struct {
	vars   map[string]any
	value  func(name string) (any, bool) // instead of vars, for formulas
	refs   refValues
	budget budget
}

var _ interpreter.Activation = (*activation)(nil)

func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case refsName:
		return a.refs, true
	case budgetName:
		return &a.budget, true
	}
	if a.value != nil {
		return a.value(name)
	}
	v, ok := a.vars[name]
	return v, ok
}

func (a *activation) Parent() interpreter.Activation { return nil }

// read returns the value of reference i, with the type its function promises.
func (p *Program) read(i int, sc dag.Scope) ref.Val {
	r := p.expr.shaped.refs[i]
	r.Node = p.expr.id(r.Node)
	optional := r.Optional || r.Test
	typ := p.fns[i][len("@ref_"):]
	v, err := p.raw(r, sc)
	var out ref.Val
	switch {
	case err != nil:
	case v == nil && optional:
		return types.OptionalNone
	case v == nil:
		err = fmt.Errorf("has no value")
	default:
		out, err = typed(v, typ)
	}
	if err != nil {
		return types.NewErr("%s %v", r, err)
	}
	if optional {
		return types.OptionalOf(out)
	}
	return out
}

// raw returns what r reads; nil where nothing is recorded.
func (p *Program) raw(r Ref, sc dag.Scope) (*tree.Value, error) {
	switch {
	case r.Root == "params":
		return p.expr.lang.params[r.Name], nil
	case sc == nil:
		return nil, fmt.Errorf("is not recorded yet")
	case r.Root == "run":
		return factOf(sc.Run()[r.Name])
	}
	view, ok := sc.View(r.Node)
	if !ok {
		return nil, fmt.Errorf("may not be read here: it is neither before this node nor in its history")
	}
	switch r.Field {
	case "status":
		return text(string(view.Status)), nil
	case "category":
		return text(view.Category), nil
	case "generation":
		return &tree.Value{Kind: tree.Int, Int: int64(view.Generation)}, nil
	case "items":
		if view.Items == nil {
			return nil, nil
		}
		return itemsTree(view.Items())
	}
	if r.Name != "" {
		return recorded(view.Out[r.Name])
	}
	if view.Out == nil {
		return nil, nil
	}
	all := &tree.Value{Kind: tree.Map}
	for name, raw := range view.Out {
		v, err := recorded(raw)
		if err != nil {
			return nil, err
		}
		if v != nil {
			all.Set(name, tree.Pos{}, v)
		}
	}
	return all, nil
}

func text(s string) *tree.Value { return &tree.Value{Kind: tree.String, Str: s} }

// recorded reads a recorded value; null is no value.
func recorded(raw json.RawMessage) (*tree.Value, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := tree.ParseJSON("", raw, tree.Defaults)
	if err != nil || v.Kind == tree.Null {
		return nil, err
	}
	return v, nil
}

// factOf reads a fact of the run; the host may give any JSON value.
func factOf(v any) (*tree.Value, error) {
	if v == nil {
		return nil, fmt.Errorf("is not given by this host")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return recorded(b)
}
