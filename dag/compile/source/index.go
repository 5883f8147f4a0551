package source

import (
	"slices"
	"strconv"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/tree"
)

// An index knows where the values of the user's files are written, by their path. Positions that CUE gives lead into
// the library and into templates as often as to what the user wrote.
type index struct {
	spec  string                   // the specification itself, where no better place is known
	named func(file string) string // name of a user's file in messages, "" for other files
	top   *written
}

// A written is what the user's files say at one path. A nil one says nothing.
type written struct {
	parts []part   // the expressions that are united there
	names []string // of the fields below, in order
	below map[string]*written
}

// A part is one expression of a path's value.
type part struct {
	key     token.Pos // of the field's name
	value   ast.Expr
	literal bool // a constant, list or map, not a reference
}

// constant says whether the part is a number, text, truth value or null as written.
func (p part) constant() bool {
	e := p.value
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = u.X
	}
	_, ok := e.(*ast.BasicLit)
	return ok
}

func newIndex(file string, named func(file string) string, files []*ast.File) *index {
	x := &index{spec: file, named: named, top: &written{}}
	for _, file := range files {
		x.top.decls(file.Decls)
	}
	return x
}

// at returns what is written at a path, or nil.
func (x *index) at(labels ...string) *written {
	w := x.top
	for _, l := range labels {
		w = w.field(l)
	}
	return w
}

func (w *written) field(name string) *written {
	if w == nil {
		return nil
	}
	return w.below[name]
}

// fields are the names of the fields that are written below.
func (w *written) fields() []string {
	if w == nil {
		return nil
	}
	return w.names
}

// add returns the place of a field, made where it is new.
func (w *written) add(name string) *written {
	if w.below == nil {
		w.below = map[string]*written{}
	}
	if w.below[name] == nil {
		w.below[name] = &written{}
		w.names = append(w.names, name)
	}
	return w.below[name]
}

func (w *written) decls(decls []ast.Decl) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			if name, _, err := ast.LabelName(d.Label); err == nil { // no pattern or computed label
				w.add(name).expr(d.Value, d.Label.Pos())
			}
		case *ast.EmbedDecl:
			w.expr(d.Expr, token.NoPos)
		}
	}
}

func (w *written) expr(e ast.Expr, key token.Pos) {
	p := part{key: key, value: e}
	switch e := e.(type) {
	case *ast.ParenExpr:
		w.expr(e.X, key)
		return
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			w.expr(e.X, key)
			w.expr(e.Y, key)
			return
		}
	case *ast.StructLit:
		p.literal = true
		w.decls(e.Elts)
	case *ast.ListLit:
		p.literal = true
		for i, item := range e.Elts {
			w.add(strconv.Itoa(i)).expr(item, token.NoPos)
		}
	case *ast.UnaryExpr, *ast.BasicLit, *ast.Interpolation:
		p.literal = true
	}
	if e.Pos().IsValid() {
		w.parts = append(w.parts, p)
	}
}

// all are the parts of the path's value.
func (w *written) all() []part {
	if w == nil {
		return nil
	}
	return w.parts
}

func (w *written) constants() (out []part) {
	for _, p := range w.all() {
		if p.constant() {
			out = append(out, p)
		}
	}
	return out
}

// place returns where a value is written: as a literal, else where CUE says it comes from, else around.
func (x *index) place(v cue.Value, w *written, around tree.Pos) tree.Pos {
	parts := w.all()
	for _, p := range parts {
		if p.literal {
			return x.pos(p.value.Pos())
		}
	}
	// A scalar is where it was made; a map or list that was referred to is where the reference is.
	if len(parts) > 0 && v.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 {
		return x.pos(parts[0].value.Pos())
	}
	if p := x.pos(v.Pos()); p.Line > 0 {
		return p
	}
	if len(parts) > 0 {
		return x.pos(parts[0].value.Pos())
	}
	return around
}

// key returns where the name of a field is written.
func (x *index) key(w *written, otherwise tree.Pos) tree.Pos {
	return x.first(w, func(p part) token.Pos { return p.key }, otherwise)
}

// nearest returns the place written for a path or for the nearest one around it.
func (x *index) nearest(labels []string) tree.Pos {
	best := tree.Pos{File: tree.FileOf(x.spec)}
	w := x.top
	for _, l := range labels {
		w = w.field(l)
		best = x.first(w, func(p part) token.Pos { return p.value.Pos() }, best)
	}
	return best
}

// first returns the first place of the parts of a path that is in the user's files.
func (x *index) first(w *written, of func(part) token.Pos, otherwise tree.Pos) tree.Pos {
	for _, p := range w.all() {
		if at := x.pos(of(p)); at.Line > 0 {
			return at
		}
	}
	return otherwise
}

// number returns how a number is written in the user's files, or "" where it is computed or cannot be found.
func (x *index) number(v cue.Value, w *written) string {
	for _, p := range w.all() {
		if n := numberLiteral(p.value); n != "" {
			return n
		}
	}
	return numberLiteral(exprOf(cue.Dereference(v).Source()))
}

// numberLiteral returns a number as it is written, or "" for any other expression.
func numberLiteral(e ast.Expr) string {
	sign := ""
	if u, ok := e.(*ast.UnaryExpr); ok && (u.Op == token.SUB || u.Op == token.ADD) {
		sign, e = u.Op.String(), u.X
	}
	if lit, ok := e.(*ast.BasicLit); ok && (lit.Kind == token.INT || lit.Kind == token.FLOAT) {
		return sign + lit.Value
	}
	return ""
}

// exprOf returns the expression of a field or binding, or the expression itself.
func exprOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.Field:
		return n.Value
	case *ast.LetClause:
		return n.Expr
	case ast.Expr:
		return n
	}
	return nil
}

// names are the names of all fields in the user's files, sorted.
func (x *index) names() []string {
	var out []string
	x.walk(x.top, nil, func(w *written, _ []string) { out = append(out, w.names...) })
	slices.Sort(out)
	return slices.Compact(out)
}

// walk visits what is written at and below a path, in the order of the files.
func (x *index) walk(w *written, labels []string, visit func(*written, []string)) {
	visit(w, labels)
	for _, name := range w.names {
		x.walk(w.below[name], append(slices.Clip(labels), name), visit)
	}
}

// pos returns a place of the user's files, or none.
func (x *index) pos(p token.Pos) tree.Pos {
	name := ""
	if p.IsValid() {
		name = x.named(p.Filename())
	}
	if name == "" {
		return tree.Pos{}
	}
	return tree.Pos{File: tree.FileOf(name), Line: int32(p.Line()), Col: int32(p.Column())}
}
