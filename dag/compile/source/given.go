package source

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/parser"

	"dagrun.dev/internal/tree"
)

// placeOf is where an expression begins, in a file as CUE knows it.
func placeOf(n ast.Node) tree.Pos {
	p := n.Pos()
	return tree.Pos{File: tree.FileOf(p.Filename()), Line: int32(p.Line()), Col: int32(p.Column())}
}

// defaults finds the expressions that give the parameters their defaults, by dotted name. A default that is computed
// elsewhere is replaced where it is handed over. A map with a text as type is a parameter, any other map a group.
func defaults(out map[string][]tree.Pos, params cue.Value, written *tree.Value, name string) {
	if t := written.Get("type"); name == "" || t == nil || t.Kind != tree.String {
		for _, f := range written.Map() {
			defaults(out, params.LookupPath(cue.MakePath(cue.Str(f.Name))), f.Value, strings.TrimPrefix(name+"."+f.Name, "."))
		}
		return
	}
	v := params.LookupPath(cue.MakePath(cue.Str("default")))
	parts := []cue.Value{v}
	if op, args := v.Expr(); op == cue.AndOp {
		parts = args
	}
	for _, part := range parts {
		if _, settled := part.Default(); !settled && !part.IsConcrete() {
			continue // a type or a bound, which holds for any value
		}
		if old := exprOf(part.Source()); old != nil && old.Pos().IsValid() {
			out[name] = append(out[name], placeOf(old))
		}
	}
}

// replace puts values in the place of expressions. They stand where those stood, for messages.
func replace(f *ast.File, given map[tree.Pos]string) {
	if len(given) == 0 {
		return
	}
	astutil.Apply(f, func(c astutil.Cursor) bool {
		old, ok := c.Node().(ast.Expr)
		if !ok || !old.Pos().IsValid() {
			return true
		}
		value, ok := given[placeOf(old)]
		if !ok {
			return true
		}
		x, err := parser.ParseExpr(old.Pos().Filename(), value)
		if err != nil {
			return true
		}
		at := old.Pos()
		ast.Walk(x, func(n ast.Node) bool { ast.SetPos(n, at); return true }, nil)
		c.Replace(x)
		return false
	}, nil)
}
