package compile

import (
	"path/filepath"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/tree"
)

// A cueWalker turns an evaluated value into a tree. Places are those of the user's files: where
// a value is written out at its path, else where CUE says it comes from, else that of the
// nearest value around it.
type cueWalker struct {
	index  *syntaxIndex
	lim    tree.Limits
	values int
	found  tree.Diagnostics
	hidden tree.Diagnostics // paths that an error in CUE keeps from being seen
	full   bool             // a limit is passed
}

// value walks v, found at the given labels from the root of the file; around is the place of
// what holds it and path is for messages.
func (w *cueWalker) value(v cue.Value, labels []string, path string, around tree.Pos) *tree.Value {
	out := &tree.Value{Pos: w.index.place(v, labels, around)}
	w.values++
	switch {
	case w.full:
		return out
	case w.lim.Values > 0 && w.values > w.lim.Values:
		w.limit(out, path, "the specification has more than "+strconv.Itoa(w.lim.Values)+" values")
		return out
	case w.lim.Depth > 0 && len(labels) > w.lim.Depth:
		w.limit(out, path, "nested deeper than "+strconv.Itoa(w.lim.Depth)+" levels")
		return out
	}
	if s := w.shape(v, labels, path, around); s != nil {
		return s
	}
	if d, ok := v.Default(); ok {
		v = d
	}
	switch v.Kind() {
	case cue.NullKind:
	case cue.BoolKind:
		out.Kind = tree.Bool
		out.Bool, _ = v.Bool()
	case cue.IntKind:
		n, err := v.Int64()
		if err != nil {
			w.fail(out, path, "the number does not fit 64 bits")
		}
		out.Kind, out.Int = tree.Int, n
		if text := w.index.number(v, labels); text != "" {
			out.Written(text)
		}
	case cue.FloatKind:
		f, err := v.Float64()
		if err != nil {
			w.fail(out, path, "the number is out of range")
		}
		out.Kind, out.Float = tree.Float, f
		if text := w.index.number(v, labels); text != "" {
			out.Written(text)
		}
	case cue.StringKind:
		out.Kind = tree.String
		out.Str, _ = v.String()
	case cue.ListKind:
		out.Kind = tree.List
		it, _ := v.List()
		for i := 0; it.Next(); i++ {
			item := append(labels[:len(labels):len(labels)], strconv.Itoa(i))
			out.Items = append(out.Items, w.value(it.Value(), item, tree.At(path, i), out.Pos))
		}
	case cue.StructKind:
		w.fields(out, v, labels, path)
	case cue.BytesKind:
		w.fail(out, path, "bytes are not supported; use a string")
	default:
		// Not concrete, or an error inside: whoever validated the value reports it. A map hides
		// its fields then, but those written out can be had by name.
		if len(w.index.children[pathKey(labels)]) > 0 {
			w.fields(out, v, labels, path)
		} else {
			w.hidden = append(w.hidden, tree.Diagnostic{Path: path})
		}
	}
	return out
}

func (w *cueWalker) fields(out *tree.Value, v cue.Value, labels []string, path string) {
	out.Kind = tree.Map
	add := func(name string, v cue.Value) {
		at := append(labels[:len(labels):len(labels)], name)
		x := w.value(v, at, tree.Join(path, name), out.Pos)
		out.Fields = append(out.Fields, tree.Field{Name: name, Pos: w.index.key(at, x.Pos), Value: x})
	}
	if it, err := v.Fields(); err == nil {
		for it.Next() {
			add(it.Selector().Unquoted(), it.Value())
		}
	}
	if v.Err() == nil {
		return
	}
	for _, name := range w.index.children[pathKey(labels)] {
		if out.Get(name) != nil || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
			continue
		}
		x := v.LookupPath(cue.MakePath(cue.Str(name)))
		if !x.Exists() {
			w.hidden = append(w.hidden, tree.Diagnostic{Path: tree.Join(path, name)})
		}
		add(name, x)
	}
}

func (w *cueWalker) fail(at *tree.Value, path, text string) {
	w.found = append(w.found, tree.Diagnostic{Pos: at.Pos, Path: path, Text: text})
}

func (w *cueWalker) limit(at *tree.Value, path, text string) {
	w.full = true
	w.fail(at, path, text)
}

// A syntaxIndex knows where the values of the user's files are written, by their path.
type syntaxIndex struct {
	file     string                   // the specification itself, where no better place is known
	named    func(file string) string // name of a user's file in messages, "" for other files
	entries  map[string][]entry
	children map[string][]string // names of the fields written below a path, in order
	known    map[string]bool     // paths that are among them
}

// An entry is one place where the value of a path is written.
type entry struct {
	key, value token.Pos
	literal    bool   // a constant, list or map, not a reference
	constant   bool   // a constant
	text       string // of a text constant, as it is written
	number     string // of a number constant, as it is written
}

// newSyntaxIndex indexes the user's files.
func newSyntaxIndex(f found, files []*ast.File) *syntaxIndex {
	named := shortName(f)
	x := &syntaxIndex{file: f.name, named: named, entries: map[string][]entry{}, children: map[string][]string{}, known: map[string]bool{}}
	for _, f := range files {
		x.decls(f.Decls, nil)
	}
	return x
}

func pathKey(labels []string) string { return strings.Join(labels, "\x00") }

func (x *syntaxIndex) decls(decls []ast.Decl, labels []string) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(d.Label)
			if err != nil {
				continue // a pattern or computed label
			}
			k := pathKey(labels)
			if at := pathKey(append(labels[:len(labels):len(labels)], name)); !x.known[at] {
				x.known[at] = true
				x.children[k] = append(x.children[k], name)
			}
			x.expr(d.Value, append(labels[:len(labels):len(labels)], name), d.Label.Pos())
		case *ast.EmbedDecl:
			x.expr(d.Expr, labels, token.NoPos)
		}
	}
}

func (x *syntaxIndex) expr(e ast.Expr, labels []string, key token.Pos) {
	n := entry{key: key, value: e.Pos(), literal: true}
	switch e := e.(type) {
	case *ast.StructLit:
		x.decls(e.Elts, labels)
	case *ast.ListLit:
		for i, item := range e.Elts {
			x.expr(item, append(labels[:len(labels):len(labels)], strconv.Itoa(i)), token.NoPos)
		}
	case *ast.ParenExpr:
		x.expr(e.X, labels, key)
		return
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			x.expr(e.X, labels, key)
			x.expr(e.Y, labels, key)
			return
		}
		n.literal = false
	case *ast.UnaryExpr:
		_, n.constant = e.X.(*ast.BasicLit)
		n.number = numberLiteral(e)
	case *ast.BasicLit:
		n.constant, n.number = true, numberLiteral(e)
		if e.Kind == token.STRING {
			n.text = e.Value
		}
	case *ast.Interpolation:
	default:
		n.literal = false
	}
	if n.value.IsValid() {
		k := pathKey(labels)
		x.entries[k] = append(x.entries[k], n)
	}
}

// place returns where the value at labels is written.
func (x *syntaxIndex) place(v cue.Value, labels []string, around tree.Pos) tree.Pos {
	written := x.entries[pathKey(labels)]
	for _, e := range written {
		if e.literal {
			return x.pos(e.value)
		}
	}
	// A scalar is where it was made; a map or list that was referred to is where the reference is.
	if len(written) > 0 && v.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 {
		return x.pos(written[0].value)
	}
	if p := x.pos(v.Pos()); p.Line > 0 {
		return p
	}
	if len(written) > 0 {
		return x.pos(written[0].value)
	}
	return around
}

// number returns how the number at labels is written in the user's files, or "" where it is computed
// or cannot be found.
func (x *syntaxIndex) number(v cue.Value, labels []string) string {
	for _, e := range x.entries[pathKey(labels)] {
		if e.number != "" {
			return e.number
		}
	}
	switch src := cue.Dereference(v).Source().(type) {
	case *ast.Field:
		return numberLiteral(src.Value)
	case *ast.LetClause:
		return numberLiteral(src.Expr)
	case ast.Expr:
		return numberLiteral(src)
	}
	return ""
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

// key returns where the name of the field at labels is written.
func (x *syntaxIndex) key(labels []string, otherwise tree.Pos) tree.Pos {
	for _, e := range x.entries[pathKey(labels)] {
		if p := x.pos(e.key); p.Line > 0 {
			return p
		}
	}
	return otherwise
}

// nearest returns the place written for labels or for the nearest path around them.
func (x *syntaxIndex) nearest(labels []string) tree.Pos {
	for n := len(labels); n > 0; n-- {
		for _, e := range x.entries[pathKey(labels[:n])] {
			if p := x.pos(e.value); p.Line > 0 {
				return p
			}
		}
	}
	return tree.Pos{File: tree.FileOf(x.file)}
}

// pos returns a place of the user's files, or none.
func (x *syntaxIndex) pos(p token.Pos) tree.Pos {
	name := ""
	if p.IsValid() {
		name = x.named(p.Filename())
	}
	if name == "" {
		return tree.Pos{}
	}
	return tree.Pos{File: tree.FileOf(name), Line: int32(p.Line()), Col: int32(p.Column())}
}

// shortName returns the name of a file as a message should show it: as the user wrote the path.
// The library's files have none.
func shortName(f found) func(string) string {
	asked, dir := f.name, f.dir
	if f.abs != f.dir {
		asked = filepath.Dir(f.name)
	}
	return func(file string) string {
		if file == "" || strings.HasPrefix(file, virtualRoot) || strings.Contains(file, vendored+string(filepath.Separator)) {
			return ""
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return file
		}
		return filepath.Join(asked, rel)
	}
}
