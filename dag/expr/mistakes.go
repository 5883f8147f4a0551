package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// comparison refuses to compare the status of a node with a text that no status is: the answer would
// be the same in every run.
func (f *finder) comparison(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Equals, operators.NotEquals:
		if f.isStatus(args[0]) {
			f.status(args[1])
		} else if f.isStatus(args[1]) {
			f.status(args[0])
		}
	case operators.In:
		if f.isStatus(args[0]) && args[1].Kind() == ast.ListKind {
			for _, e := range args[1].AsList().Elements() {
				f.status(e)
			}
		}
	}
}

// isStatus says whether e is nodes['id'].status.
func (f *finder) isStatus(e ast.Expr) bool {
	steps, root := f.path(e)
	return root != nil && root.AsIdent() == "nodes" && len(steps) == 2 && steps[0].index && steps[1].name == "status" &&
		!steps[0].optional && !steps[1].optional && !steps[1].test
}

// status refuses a literal that no status is.
func (f *finder) status(e ast.Expr) {
	s, ok := f.literalString(e)
	if !ok || slices.Contains(dag.ViewStatuses, s) {
		return
	}
	near := rules.Nearest(s, dag.ViewStatuses)
	if near != "" {
		near = fmt.Sprintf("; did you mean %q?", near)
	}
	f.fail(e, "no status is %q; known: %s%s", s, strings.Join(dag.ViewStatuses, ", "), near)
}

// pattern refuses a regular expression that is too large, before it is compiled.
func (f *finder) pattern(c ast.CallExpr) {
	args := c.Args()
	if c.FunctionName() != overloads.Matches || len(args) == 0 {
		return
	}
	last := args[len(args)-1]
	if src, ok := f.literalString(last); ok {
		if _, _, err := rules.CompilePattern(src); errors.Is(err, rules.ErrPattern) {
			f.fail(last, "%v", err)
		}
	}
}

func zero(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	v := e.AsLiteral()
	return v.Equal(types.IntZero) == types.True
}
