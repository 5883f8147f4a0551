package compile

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/tree"
)

// mostAlternatives is how many combinations of struct alternatives may meet in one value: CUE tries each, ten disjunctions
// of two take ten seconds, eleven three times that, and thirty never end.
const mostAlternatives = 1024

// An alternatives counts what CUE would have to try. It reads syntax: references to definitions and fields at the top of
// the files are followed, what loops and templates make is not seen.
type alternatives struct {
	top     map[string][]ast.Expr // values of the fields at the top of the files
	named   map[string]int        // how many structs each may become
	structs map[string]bool       // and whether it is one
	byPath  map[string]int
	worst   tree.Diagnostic
	pos     func(token.Pos) tree.Pos
}

// tooMany returns the place at which too many alternatives meet; its text is empty where there is none.
func tooMany(files []*ast.File, pos func(token.Pos) tree.Pos) tree.Diagnostic {
	a := &alternatives{top: map[string][]ast.Expr{}, named: map[string]int{}, structs: map[string]bool{}, byPath: map[string]int{}, pos: pos}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.Field); ok {
				name, _, _ := ast.LabelName(d.Label)
				a.top[name] = append(a.top[name], d.Value)
			}
		}
	}
	for _, f := range files {
		a.decls(f.Decls, "")
	}
	return a.worst
}

// decls counts what stands in a struct: by field, and what is embedded.
func (a *alternatives) decls(decls []ast.Decl, path string) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			if name, _, err := ast.LabelName(d.Label); err == nil {
				a.field(d.Value, tree.Join(path, name))
			}
		case *ast.EmbedDecl:
			a.meet(path, d.Expr)
		}
	}
}

// field counts the values of a field, which may be written several times.
func (a *alternatives) field(e ast.Expr, path string) {
	a.meet(path, e)
	a.inside(e, path)
}

// inside counts what stands in the structs and lists of an expression. Alternatives of one another do not meet.
func (a *alternatives) inside(e ast.Expr, path string) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		a.inside(e.X, path)
	case *ast.UnaryExpr:
		a.inside(e.X, path)
	case *ast.BinaryExpr:
		other := path
		if e.Op != token.AND {
			other = tree.Join(path, a.pos(e.Y.Pos()).String())
		}
		a.inside(e.X, path)
		a.inside(e.Y, other)
	case *ast.StructLit:
		a.decls(e.Elts, path)
	case *ast.ListLit:
		for i, x := range e.Elts {
			a.field(x, tree.At(path, i))
		}
	}
}

// meet unites an expression with what else stands at its path.
func (a *alternatives) meet(path string, e ast.Expr) {
	n := max(a.byPath[path], 1) * a.count(e)
	a.byPath[path] = min(n, mostAlternatives+1)
	if n > mostAlternatives && a.worst.Text == "" {
		a.worst = tree.Diagnostic{Pos: a.pos(e.Pos()), Path: path, Text: fmt.Sprintf(
			"more than %d combinations of alternatives meet here, and CUE tries each: write the alternatives side by side in fields of their own, or choose with if", mostAlternatives)}
	}
}

// count is how many structs an expression may become.
func (a *alternatives) count(e ast.Expr) int {
	n := 1
	switch e := e.(type) {
	case *ast.ParenExpr:
		n = a.count(e.X)
	case *ast.UnaryExpr:
		n = a.count(e.X)
	case *ast.BinaryExpr:
		switch {
		case e.Op == token.AND:
			n = a.count(e.X) * a.count(e.Y)
		case e.Op == token.OR && a.isStruct(e.X) && a.isStruct(e.Y):
			n = a.count(e.X) + a.count(e.Y)
		}
	case *ast.StructLit:
		for _, d := range e.Elts {
			if d, ok := d.(*ast.EmbedDecl); ok {
				n = min(n*a.count(d.Expr), mostAlternatives+1)
			}
		}
	case *ast.Ident:
		if known, ok := a.named[e.Name]; ok {
			return known
		}
		a.named[e.Name] = 1 // while it is being counted
		for _, x := range a.top[e.Name] {
			n = min(n*a.count(x), mostAlternatives+1)
		}
		a.named[e.Name] = n
	}
	return min(n, mostAlternatives+1)
}

// isStruct says whether an expression is a struct, or a choice of them.
func (a *alternatives) isStruct(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return a.isStruct(e.X)
	case *ast.UnaryExpr:
		return a.isStruct(e.X)
	case *ast.BinaryExpr:
		return a.isStruct(e.X) || a.isStruct(e.Y)
	case *ast.StructLit:
		return true
	case *ast.Ident:
		is, known := a.structs[e.Name]
		if !known {
			a.structs[e.Name] = false
			is = slices.ContainsFunc(a.top[e.Name], a.isStruct)
			a.structs[e.Name] = is
		}
		return is
	}
	return false
}
