package expr

import (
	"errors"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// mistakes finds calls that type well and would fail, or give the same answer, in every run.
func (f *finder) mistakes(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Divide, operators.Modulo:
		if by := args[1]; by.Kind() == ast.LiteralKind && by.AsLiteral().Equal(types.IntZero) == types.True {
			f.fail("division by zero")
		}
	case operators.Equals, operators.NotEquals:
		f.comparison(args[0], args[1])
		f.comparison(args[1], args[0])
	case operators.In:
		if args[1].Kind() == ast.ListKind {
			f.comparison(args[0], args[1].AsList().Elements()...)
		}
	case overloads.Matches:
		if len(args) > 0 {
			f.pattern(args[len(args)-1])
		}
	}
}

// comparison refuses to compare the status of a node with a text that no status is, and notes with which texts a
// value, a status or a parameter is compared.
func (f *finder) comparison(e ast.Expr, with ...ast.Expr) {
	root, steps := f.chain(e)
	none, or := "", false // what stands for a missing value may be compared with, too
	if len(steps) == 0 && e.Kind() == ast.CallKind {
		if c := e.AsCall(); c.FunctionName() == "orValue" && c.IsMemberFunction() {
			root, steps = f.chain(c.Target())
			none, or = f.literalText(c.Args()[0])
		}
	}
	if f.lang.adopted || len(steps) == 0 {
		return
	}
	status := len(steps) == 2 && root.AsIdent() == "nodes" && steps[0].index && steps[1].name == "status" &&
		!slices.ContainsFunc(steps, func(s step) bool { return s.optional || s.test })
	read := steps[len(steps)-1].expr.ID()
	for _, e := range with {
		s, ok := f.literalText(e)
		switch {
		case !ok || or && s == none:
		case status && !slices.Contains(dag.ViewStatuses, s):
			f.fail("%s", noStatus(s))
		default:
			if f.compared == nil {
				f.compared = map[int64][]string{}
			}
			f.compared[read] = append(f.compared[read], s)
		}
	}
}

// pattern refuses a regular expression that is too large, before it is compiled.
func (f *finder) pattern(e ast.Expr) {
	if src, ok := f.literalText(e); ok {
		if _, _, err := rules.CompilePattern(src); errors.Is(err, rules.ErrPattern) {
			f.fail("%v", err)
		}
	}
}
