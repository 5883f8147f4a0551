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

// comparison refuses to compare the status of a node with a text that no status is.
func (f *finder) comparison(status ast.Expr, with ...ast.Expr) {
	root, steps := f.chain(status)
	if f.lang.adopted || len(steps) != 2 || root.AsIdent() != "nodes" || !steps[0].index || steps[1].name != "status" ||
		steps[0].optional || steps[1].optional || steps[1].test {
		return
	}
	for _, e := range with {
		s, ok := f.literalText(e)
		if !ok || slices.Contains(dag.ViewStatuses, s) {
			continue
		}
		f.fail("%s", noStatus(s))
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
