package source

import (
	"fmt"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/tree"
)

// Bounds of CUE source. The evaluator is slow on wide structs and recursive on deep ones:
// large generated graphs belong into foreach, JSON or YAML.
const (
	cueBytes = 4 << 20 // of all files of a specification
	cueDepth = 1000    // of brackets, and of a: b: c: chains
)

// tooDeep returns the line at which source gets deeper than cueDepth, or 0.
func tooDeep(src []byte) int {
	var s scanner.Scanner
	file := token.NewFile("", -1, len(src))
	s.Init(file, src, func(token.Pos, string, []any) {}, 0)
	brackets, chain := 0, 0
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return 0
		case token.LBRACE, token.LBRACK, token.LPAREN:
			brackets++
			chain = 0
		case token.RBRACE, token.RBRACK, token.RPAREN:
			brackets--
		case token.COMMA:
			chain = 0
		case token.COLON:
			chain++
		}
		if brackets > cueDepth || chain > cueDepth {
			return pos.Line()
		}
	}
}

// mostAlternatives is how many combinations of struct alternatives may meet in one value: CUE tries each, ten
// disjunctions of two take ten seconds, eleven three times that, and thirty never end.
const mostAlternatives = 1024

// An alternatives counts what CUE would have to try. It reads syntax: references to definitions and fields at the top
// of the files are followed, what loops and templates make is not seen.
type alternatives struct {
	top    map[string][]ast.Expr // values of the fields at the top of the files
	named  map[string]int        // how many structs each may become
	byPath map[string]int
	worst  tree.Diagnostic
	pos    func(token.Pos) tree.Pos
}

// tooMany returns the place at which too many alternatives meet; its text is empty where there is none.
func tooMany(files []*ast.File, pos func(token.Pos) tree.Pos) tree.Diagnostic {
	a := &alternatives{top: map[string][]ast.Expr{}, named: map[string]int{}, byPath: map[string]int{}, pos: pos}
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
	n := united(a.byPath[path], a.count(e))
	a.byPath[path] = n
	if n > mostAlternatives && a.worst.Text == "" {
		a.worst = tree.Diagnostic{Pos: a.pos(e.Pos()), Path: path, Text: fmt.Sprintf(
			"more than %d combinations of alternatives meet here, and CUE tries each: "+
				"write the alternatives side by side in fields of their own, or choose with if", mostAlternatives)}
	}
}

// count is how many structs an expression may become: 0 for one that is none.
func (a *alternatives) count(e ast.Expr) int {
	n := 0
	switch e := e.(type) {
	case *ast.ParenExpr:
		n = a.count(e.X)
	case *ast.UnaryExpr:
		n = a.count(e.X)
	case *ast.BinaryExpr:
		x, y := a.count(e.X), a.count(e.Y)
		switch {
		case e.Op == token.AND:
			n = united(x, y)
		case x == 0 || y == 0: // no choice between structs
			n = min(x+y, 1)
		default:
			n = x + y
		}
	case *ast.StructLit:
		n = 1
		for _, d := range e.Elts {
			if d, ok := d.(*ast.EmbedDecl); ok {
				n = united(n, a.count(d.Expr))
			}
		}
	case *ast.Ident:
		if known, ok := a.named[e.Name]; ok {
			return known
		}
		a.named[e.Name] = 1 // while it is being counted
		for _, x := range a.top[e.Name] {
			n = united(n, a.count(x))
		}
		a.named[e.Name] = n
	}
	return min(n, mostAlternatives+1)
}

// united is how many structs two expressions may become together.
func united(x, y int) int {
	if x == 0 || y == 0 {
		return x + y
	}
	return min(x*y, mostAlternatives+1)
}
