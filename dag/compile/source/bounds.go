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
	index *index
	named map[string]int // how many structs a field at the top may become
	worst tree.Diagnostic
}

// tooMany returns the place at which too many alternatives meet; its text is empty where there is none.
func tooMany(x *index) tree.Diagnostic {
	a := &alternatives{index: x, named: map[string]int{}}
	a.look(x.top, "")
	return a.worst
}

// look counts what meets at a path and below it. Alternatives of one another do not meet: each is looked at by itself.
func (a *alternatives) look(w *written, path string) {
	if a.worst.Text == "" && a.met(w) > mostAlternatives {
		a.worst = tree.Diagnostic{Pos: a.index.pos(w.parts[len(w.parts)-1].value.Pos()), Path: path, Text: fmt.Sprintf(
			"more than %d combinations of alternatives meet here, and CUE tries each: "+
				"write the alternatives side by side in fields of their own, or choose with if", mostAlternatives)}
	}
	for _, p := range w.parts {
		if sides := sidesOf(p.value); len(sides) > 1 {
			for _, e := range sides {
				a.look(writtenAs(e), path)
			}
		}
	}
	for _, name := range w.names {
		a.look(w.field(name), tree.Join(path, name))
	}
}

// sidesOf are the alternatives of a disjunction, or the expression itself.
func sidesOf(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return sidesOf(e.X)
	case *ast.UnaryExpr: // the default
		return sidesOf(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.OR {
			return append(sidesOf(e.X), sidesOf(e.Y)...)
		}
	}
	return []ast.Expr{e}
}

func writtenAs(e ast.Expr) *written {
	w := &written{}
	w.expr(e, token.NoPos)
	return w
}

// met is how many structs what is written at one path may become: 0 where it is none.
func (a *alternatives) met(w *written) (n int) {
	for _, p := range w.all() {
		x := a.count(p.value)
		if n == 0 || x == 0 {
			n += x
		} else {
			n = min(n*x, mostAlternatives+1)
		}
	}
	return n
}

// count is how many structs one part may become. What is embedded in a struct is a part of its own.
func (a *alternatives) count(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.StructLit:
		return 1
	case *ast.Ident:
		if _, known := a.named[e.Name]; !known {
			a.named[e.Name] = 1 // while it is being counted
			a.named[e.Name] = a.met(a.index.top.field(e.Name))
		}
		return a.named[e.Name]
	}
	sides := sidesOf(e)
	if len(sides) == 1 {
		return 0
	}
	n := a.met(writtenAs(sides[0]))
	for _, side := range sides[1:] {
		x := a.met(writtenAs(side))
		if n == 0 || x == 0 { // no choice between structs
			n = min(n+x, 1)
		} else {
			n = min(n+x, mostAlternatives+1)
		}
	}
	return n
}
