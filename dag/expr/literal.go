package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// literalString returns the text of a string literal, or of a sum of literals as expansion
// leaves it: 'fit/' + 'S1' + '/p' + string(2-1).
func (f *finder) literalString(e ast.Expr) (string, bool) {
	if e.Kind() == ast.LiteralKind {
		s, ok := e.AsLiteral().(types.String)
		return string(s), ok
	}
	if !constant(e) {
		return "", false
	}
	p, err := f.lang.env.PlanProgram(ast.NewAST(e, f.info))
	if err != nil {
		return "", false
	}
	v, _, err := p.Eval(map[string]any{})
	s, ok := v.(types.String)
	return string(s), ok && err == nil
}

// constant says that e is made of literals and the cheap operations on them.
func constant(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.CallKind:
		c := e.AsCall()
		if !cheap[c.FunctionName()] || c.IsMemberFunction() && !constant(c.Target()) {
			return false
		}
		for _, a := range c.Args() {
			if !constant(a) {
				return false
			}
		}
		return true
	}
	return false
}

// cheap are the functions whose cost and result are linear in what they are given: what is made of them and
// of literals is computed when it is read.
var cheap = map[string]bool{
	operators.Add: true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true,
	operators.Modulo: true, operators.Negate: true, operators.LogicalAnd: true, operators.LogicalOr: true,
	operators.LogicalNot: true, operators.Equals: true, operators.NotEquals: true, operators.Less: true,
	operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.Conditional: true, operators.Index: true, operators.OptIndex: true, operators.OptSelect: true,
	operators.In: true, "size": true, "string": true, "int": true, "double": true, "bool": true,
	"floor": true, "rotate": true, "pad": true, "slice": true, "orValue": true, "hasValue": true,
	"value": true, "startsWith": true, "endsWith": true, "contains": true, "lowerAscii": true,
	"upperAscii": true, "trim": true,
}
