package compile

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// given returns the parameters that have another value than their default, as JSON by dotted
// name. A specification in CUE may refer to a parameter's default (a threshold that is used in a
// template, say), so that such a specification is evaluated again with these in the place of the
// defaults.
func given(p *tree.Value, values []dag.Param) map[string]string {
	out := map[string]string{}
	for _, v := range values {
		d := p.Get("params")
		for _, name := range strings.Split(v.Name, ".") {
			d = d.Get(name)
		}
		def := d.Get("default")
		if def == nil {
			continue
		}
		if raw, err := dag.AppendCanonical(nil, def.AppendJSON(nil)); err == nil && string(raw) != string(v.Value) {
			out[v.Name] = string(v.Value)
		}
	}
	return out
}

// A place is where an expression begins in a file.
type place struct {
	file   string
	offset int
}

func placeOf(n ast.Node) place { return place{n.Pos().Filename(), n.Pos().Offset()} }

// defaults finds the expressions that give the parameters their defaults, and what stands in for
// each. A default that is computed elsewhere is replaced where it is handed over.
func defaults(pipeline cue.Value, given map[string]string) map[place]ast.Expr {
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

func exprOf(n ast.Node) ast.Expr {
	if f, ok := n.(*ast.Field); ok {
		return f.Value
	}
	x, _ := n.(ast.Expr)
	return x
}

// replace puts expressions in the place of others. They stand where those stood, for messages.
func replace(f *ast.File, by map[place]ast.Expr) {
	astutil.Apply(f, func(c astutil.Cursor) bool {
		old, ok := c.Node().(ast.Expr)
		if !ok || !old.Pos().IsValid() {
			return true
		}
		x, ok := by[placeOf(old)]
		if !ok {
			return true
		}
		move(x, old.Pos())
		c.Replace(x)
		return false
	}, nil)
}

// move gives every part of an expression one position.
func move(x ast.Expr, to token.Pos) {
	ast.Walk(x, func(n ast.Node) bool { ast.SetPos(n, to); return true }, nil)
}
