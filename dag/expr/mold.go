package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// A Mold is a value whose strings may hold ${...}, parsed once and cast as often as needed.
// It is immutable; casts may run at the same time, and share the parts that hold no ${...}.
type Mold struct {
	val    *tree.Value // as it stands in the source
	path   string      // of a string that holds ${...}
	pieces []piece     // of a string
	items  []*Mold
	fields []*Mold // by index in val.Fields
	fixed  bool    // holds no ${...} at all
}

type piece struct {
	text string
	prog *Program // evaluated when cast
	late *holes   // reads recorded values: stays an expression
}

// NewMold parses v. Expressions that read nodes or run are kept for later when late is true
// and typed at once with d otherwise. The mistakes name the place of their string; path is the
// path of v.
func (l *Lang) NewMold(v *tree.Value, path string, late bool, d Decls) (*Mold, tree.Diagnostics) {
	b := &molder{lang: l, late: late, decls: d}
	return b.mold(v, path), b.mistakes
}

type molder struct {
	lang     *Lang
	late     bool
	decls    Decls
	mistakes tree.Diagnostics
}

func (b *molder) mold(v *tree.Value, path string) *Mold {
	m := &Mold{val: v, fixed: true}
	switch v.Kind {
	case tree.String:
		if strings.Contains(v.Str, "${") {
			m.fixed, m.path = false, path
			m.pieces = b.pieces(v, path)
		}
	case tree.List:
		m.items = make([]*Mold, len(v.Items))
		for i, x := range v.Items {
			m.items[i] = b.mold(x, tree.At(path, i))
			m.fixed = m.fixed && m.items[i].fixed
		}
	case tree.Map:
		m.fields = make([]*Mold, len(v.Fields))
		for i, f := range v.Fields {
			if strings.Contains(f.Name, "${") && !b.lang.adopted {
				b.mistakes = append(b.mistakes, tree.Diagnostic{Pos: f.Pos, Path: path, Text: fmt.Sprintf("the name %s is not filled in: ${...} may stand in values only", quoteShort(f.Name))})
			}
			m.fields[i] = b.mold(f.Value, tree.Join(path, f.Name))
			m.fixed = m.fixed && m.fields[i].fixed
		}
	}
	return m
}

func (b *molder) pieces(v *tree.Value, path string) []piece {
	parts, err := Split(v.Str)
	if err != nil {
		b.mistakes = append(b.mistakes, tree.Diagnostic{Pos: v.Pos, Path: path, Text: err.Error()})
		return nil
	}
	var out []piece
	for _, p := range parts {
		if p.Source == "" {
			out = append(out, piece{text: p.Text})
			continue
		}
		x, problems := b.piece(p.Source)
		for _, q := range problems {
			b.mistakes = append(b.mistakes, Diagnose(v.Pos, path, "${"+p.Source+"}", q))
		}
		if t := x.prog; t != nil && len(parts) > 1 && (t.Type == "list" || t.Type == "map" || t.Type == "null") {
			b.mistakes = append(b.mistakes, Diagnose(v.Pos, path, "${"+p.Source+"}", Problem{0, noText(t.Type)}))
		}
		out = append(out, x)
	}
	return out
}

func noText(typ string) string {
	return "a " + typ + " cannot be part of a text; write json(...) or .join(', ')"
}

// Diagnose words a problem of an expression that stands in a string at pos.
func Diagnose(pos tree.Pos, path, src string, p Problem) tree.Diagnostic {
	text := p.Text
	if strings.Contains(text, "unknown name") && strings.HasPrefix(src, "${") {
		text += "; write $${ for a literal ${"
	}
	return tree.Diagnostic{Pos: pos, Path: path, Text: "in " + quoteShort(src) + ": " + text}
}

func (b *molder) piece(src string) (piece, []Problem) {
	if b.late {
		h, problems := b.lang.lateHoles(src)
		if h != nil || len(problems) > 0 {
			return piece{late: h}, problems
		}
	}
	e, problems := b.lang.Parse(src)
	if len(problems) > 0 {
		return piece{}, problems
	}
	p, problems := e.Check(b.decls, "")
	if p != nil && p.Type == "optional" {
		problems = []Problem{{0, "there may be no value; write .orValue(...) to say what then"}}
	}
	return piece{prog: p}, problems
}

// Fixed says that every cast gives the same, whatever the variables.
func (m *Mold) Fixed() bool {
	if m.fixed {
		return true
	}
	for _, p := range m.pieces {
		if p.late != nil || p.prog != nil && p.prog.expr.shaped.vars {
			return false
		}
	}
	varies := func(x *Mold) bool { return !x.Fixed() }
	return !slices.ContainsFunc(m.items, varies) && !slices.ContainsFunc(m.fields, varies)
}

// Late says that casts keep ${...} for later.
func (m *Mold) Late() bool {
	for _, p := range m.pieces {
		if p.late != nil {
			return true
		}
	}
	return slices.ContainsFunc(m.items, (*Mold).Late) || slices.ContainsFunc(m.fields, (*Mold).Late)
}

// HasTemplate says whether a string of v, or a name in it, holds ${.
func HasTemplate(v *tree.Value) bool {
	switch v.Kind {
	case tree.String:
		return strings.Contains(v.Str, "${")
	case tree.List:
		return slices.ContainsFunc(v.Items, HasTemplate)
	case tree.Map:
		for i := range v.Fields {
			if strings.Contains(v.Fields[i].Name, "${") || HasTemplate(v.Fields[i].Value) {
				return true
			}
		}
	}
	return false
}

// Cast fills the mold. Strings that keep ${...} for later stay templates, and then every other
// string with a literal ${ is escaped if templates is true: the result is to be cast again.
func (m *Mold) Cast(vars map[string]any, sc dag.Scope, templates bool) (*tree.Value, error) {
	if m.fixed {
		return m.val, nil
	}
	switch m.val.Kind {
	case tree.List:
		out := &tree.Value{Kind: tree.List, Pos: m.val.Pos, Items: make([]*tree.Value, len(m.items))}
		for i, x := range m.items {
			v, err := x.Cast(vars, sc, templates)
			if err != nil {
				return nil, err
			}
			out.Items[i] = v
		}
		return out, nil
	case tree.Map:
		out := &tree.Value{Kind: tree.Map, Pos: m.val.Pos, Fields: make([]tree.Field, len(m.fields))}
		for i, x := range m.fields {
			v, err := x.Cast(vars, sc, templates)
			if err != nil {
				return nil, err
			}
			f := m.val.Fields[i]
			f.Value = v
			out.Fields[i] = f
		}
		return out, nil
	}
	v, err := m.castString(vars, sc, templates)
	if err != nil {
		return nil, tree.Diagnostic{Pos: m.val.Pos, Path: m.path, Text: err.Error()}
	}
	return v, nil
}

func (m *Mold) castString(vars map[string]any, sc dag.Scope, templates bool) (*tree.Value, error) {
	if len(m.pieces) == 1 && m.pieces[0].prog != nil {
		v, err := m.pieces[0].prog.Eval(vars, sc)
		if err != nil {
			return nil, err
		}
		place(v, m.val.Pos, templates)
		return v, nil
	}
	late := false
	pieces := make([]Piece, 0, len(m.pieces))
	for _, p := range m.pieces {
		switch {
		case p.late != nil:
			src, err := p.late.fill(vars)
			if err != nil {
				return nil, err
			}
			late = true
			pieces = append(pieces, Piece{Source: src})
		case p.prog != nil:
			v, err := p.prog.Eval(vars, sc)
			if err != nil {
				return nil, err
			}
			s, err := Text(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", quoteShort(p.prog.expr.src), err)
			}
			pieces = append(pieces, Piece{Text: s})
		default:
			pieces = append(pieces, Piece{Text: p.text})
		}
	}
	out := &tree.Value{Kind: tree.String, Pos: m.val.Pos}
	if late || templates {
		out.Str = Join(pieces)
		return out, nil
	}
	for _, p := range pieces {
		out.Str += p.Text
	}
	return out, nil
}

// Text returns what a value becomes inside a longer string: scalars only.
func Text(v *tree.Value) (string, error) {
	switch v.Kind {
	case tree.String:
		return v.Str, nil
	case tree.Bool, tree.Int, tree.Float:
		return string(v.AppendJSON(nil)), nil
	}
	return "", errors.New(noText(kindNames[v.Kind]))
}

// place gives v and its parts a place, and makes its strings templates if asked to.
func place(v *tree.Value, pos tree.Pos, template bool) {
	v.Pos = pos
	if template && v.Kind == tree.String {
		v.Str = Escape(v.Str)
	}
	for _, x := range v.Items {
		place(x, pos, template)
	}
	for i := range v.Fields {
		v.Fields[i].Pos = pos
		place(v.Fields[i].Value, pos, template)
	}
}

// TemplateRefs calls found for what the ${...} in the strings of v read, with the place and path
// of the string. Expressions that cannot be parsed are left out: NewMold tells what is wrong.
func (l *Lang) TemplateRefs(v *tree.Value, path string, found func(pos tree.Pos, path string, r Ref)) {
	switch v.Kind {
	case tree.String:
		if !strings.Contains(v.Str, "${") {
			return
		}
		pieces, _ := Split(v.Str)
		for _, p := range pieces {
			if p.Source == "" {
				continue
			}
			if e, problems := l.Parse(p.Source); len(problems) == 0 {
				for _, r := range e.Refs() {
					found(v.Pos, path, r)
				}
			}
		}
	case tree.List:
		for i, x := range v.Items {
			l.TemplateRefs(x, tree.At(path, i), found)
		}
	case tree.Map:
		for i := range v.Fields {
			l.TemplateRefs(v.Fields[i].Value, tree.Join(path, v.Fields[i].Name), found)
		}
	}
}
