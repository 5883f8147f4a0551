package schema

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/tree"
)

// constant returns what is written out as data, or nil for any other expression.
func constant(e ast.Expr) *tree.Value {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return constant(e.X)
	case *ast.UnaryExpr:
		if x, ok := e.X.(*ast.BasicLit); ok && e.Op == token.SUB {
			return tree.ParseText("-"+x.Value, tree.Pos{})
		}
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return tree.ParseText(e.Value, tree.Pos{})
		}
		if s, err := literal.Unquote(e.Value); err == nil {
			return &tree.Value{Kind: tree.String, Str: s}
		}
	case *ast.ListLit:
		out := &tree.Value{Kind: tree.List}
		for _, x := range e.Elts {
			out.Items = append(out.Items, constant(x))
		}
		if !slices.Contains(out.Items, nil) {
			return out
		}
	case *ast.StructLit:
		return constantMap(e)
	}
	return nil
}

func constantMap(e *ast.StructLit) *tree.Value {
	out := &tree.Value{Kind: tree.Map}
	for _, d := range e.Elts {
		f, ok := d.(*ast.Field)
		if !ok {
			return nil
		}
		name, _, err := ast.LabelName(f.Label)
		x := constant(f.Value)
		if err != nil || x == nil || f.Constraint != token.ILLEGAL {
			return nil
		}
		out.Fields = append(out.Fields, tree.Field{Name: name, Value: x})
	}
	return out
}
