package source

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/parser"
)

// A place is where an expression begins in a file.
type place struct {
	file   string
	offset int
}

func placeOf(n ast.Node) place { return place{n.Pos().Filename(), n.Pos().Offset()} }

// replacements finds the expressions that give the parameters their defaults, and what stands in for each: a
// specification may refer to a parameter's default (a threshold that is used in a template, say). A default that is
// computed elsewhere is replaced where it is handed over.
func replacements(pipeline cue.Value, given map[string]string) map[place]ast.Expr {
	out := map[place]ast.Expr{}
	for name, value := range given {
		path := []cue.Selector{cue.Str("params")}
		for _, part := range strings.Split(name, ".") {
			path = append(path, cue.Str(part))
		}
		v := pipeline.LookupPath(cue.MakePath(append(path, cue.Str("default"))...))
		parts := []cue.Value{v}
		if op, args := v.Expr(); op == cue.AndOp {
			parts = args
		}
		for _, part := range parts {
			if _, settled := part.Default(); !settled && !part.IsConcrete() {
				continue // a type or a bound, which holds for any value
			}
			if old := exprOf(part.Source()); old != nil && old.Pos().IsValid() {
				if x, err := parser.ParseExpr(old.Pos().Filename(), value); err == nil {
					out[placeOf(old)] = x
				}
			}
		}
	}
	return out
}

// replace puts expressions in the place of others. They stand where those stood, for messages.
func replace(f *ast.File, by map[place]ast.Expr) {
	if len(by) == 0 {
		return
	}
	astutil.Apply(f, func(c astutil.Cursor) bool {
		old, ok := c.Node().(ast.Expr)
		if !ok || !old.Pos().IsValid() {
			return true
		}
		x, ok := by[placeOf(old)]
		if !ok {
			return true
		}
		at := old.Pos()
		ast.Walk(x, func(n ast.Node) bool { ast.SetPos(n, at); return true }, nil)
		c.Replace(x)
		return false
	}, nil)
}
