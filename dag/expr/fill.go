package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// A Template is a value whose strings may hold ${...}, parsed once and filled in as often as needed.
// Once checked it is immutable; it may be filled at the same time from anywhere, and what it gives
// shares the parts that hold no ${...}.
type Template struct {
	Value *tree.Value // as it stands in the source
	Path  string
	Parts []*Template // items of a list, fields of a map, by their index there

	lang   *Lang
	pieces []piece // of a string that holds ${...}
	fixed  bool    // holds no ${...} at all
}

type piece struct {
	text string
	src  string   // between the braces
	expr *Expr    // nil where it has mistakes
	prog *Program // expr, checked
	late *holes   // reads recorded values: stays an expression
}

// Template parses v and types its expressions with d. Where late is true, those that read nodes or run
// are kept for later. The mistakes name the place of their string; path is the path of v.
func (l *Lang) Template(v *tree.Value, path string, late bool, d Decls) (*Template, tree.Diagnostics) {
	t, mistakes := l.ParseTemplate(v, path, late)
	return t, append(mistakes, t.Check(d)...)
}

// ParseTemplate is Template without the types: Check says what is wrong with them.
func (l *Lang) ParseTemplate(v *tree.Value, path string, late bool) (*Template, tree.Diagnostics) {
	var mistakes tree.Diagnostics
	return l.template(v, path, late, &mistakes), mistakes
}

func (l *Lang) template(v *tree.Value, path string, late bool, mistakes *tree.Diagnostics) *Template {
	t := &Template{Value: v, Path: path, lang: l, fixed: true}
	part := func(v *tree.Value, path string) {
		p := l.template(v, path, late, mistakes)
		t.Parts, t.fixed = append(t.Parts, p), t.fixed && p.fixed
	}
	switch v.Kind {
	case tree.String:
		if strings.Contains(v.Str, "${") {
			t.fixed = false
			t.parse(late, mistakes)
		}
	case tree.List:
		for i, x := range v.Items {
			part(x, tree.At(path, i))
		}
	case tree.Map:
		for _, f := range v.Fields {
			if strings.Contains(f.Name, "${") && !l.adopted {
				text := fmt.Sprintf("the name %s is not filled in: ${...} may stand in values only", quoteShort(f.Name))
				*mistakes = append(*mistakes, tree.Diagnostic{Pos: f.Pos, Path: path, Text: text})
			}
			part(f.Value, tree.Join(path, f.Name))
		}
	}
	return t
}

func (t *Template) parse(late bool, mistakes *tree.Diagnostics) {
	parts, err := Split(t.Value.Str)
	if err != nil {
		*mistakes = append(*mistakes, tree.Diagnostic{Pos: t.Value.Pos, Path: t.Path, Text: err.Error()})
		return
	}
	for _, p := range parts {
		x := piece{text: p.Text, src: p.Source}
		if p.Source != "" {
			var problems []string
			if late {
				x.late, problems = t.lang.lateHoles(p.Source)
			}
			if x.late == nil && len(problems) == 0 {
				x.expr, problems = t.lang.Parse(p.Source)
			}
			*mistakes = append(*mistakes, t.diagnose(x, problems)...)
		}
		t.pieces = append(t.pieces, x)
	}
}

func (t *Template) diagnose(p piece, problems []string) (out tree.Diagnostics) {
	for _, text := range problems {
		out = append(out, Diagnose(t.Value.Pos, t.Path, "${"+p.src+"}", text))
	}
	return out
}

// Check types what can be parsed, and readies it to be filled.
func (t *Template) Check(d Decls) (mistakes tree.Diagnostics) {
	for _, x := range t.Parts {
		if !x.fixed {
			mistakes = append(mistakes, x.Check(d)...)
		}
	}
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.expr == nil {
			continue
		}
		prog, problems := p.expr.Check(d, "")
		switch p.prog = prog; {
		case prog == nil:
		case prog.Type == "optional":
			problems = []string{"there may be no value; write .orValue(...) to say what then"}
		case len(t.pieces) > 1 && (prog.Type == "list" || prog.Type == "map" || prog.Type == "null"):
			problems = []string{noText(prog.Type)}
		}
		mistakes = append(mistakes, t.diagnose(*p, problems)...)
	}
	return mistakes
}

// Type is the type of a string that is one expression, once checked; else it is empty.
func (t *Template) Type() string {
	if len(t.pieces) == 1 && t.pieces[0].prog != nil {
		return t.pieces[0].prog.Type
	}
	return ""
}

// Refs calls found for what the expressions read, with the string in which they stand.
func (t *Template) Refs(found func(t *Template, r Ref)) {
	for _, x := range t.Parts {
		x.Refs(found)
	}
	for _, p := range t.pieces {
		if p.expr != nil {
			for _, r := range p.expr.Refs() {
				found(t, r)
			}
		}
	}
}

func noText(typ string) string {
	return "a " + typ + " cannot be part of a text; write json(...) or .join(', ')"
}

// Diagnose words a problem of an expression that stands in a string at pos.
func Diagnose(pos tree.Pos, path, src, text string) tree.Diagnostic {
	if strings.Contains(text, "unknown name") && strings.HasPrefix(src, "${") {
		text += "; write $${ for a literal ${"
	}
	return tree.Diagnostic{Pos: pos, Path: path, Text: "in " + quoteShort(src) + ": " + text}
}

// Fixed says that filling always gives the same, whatever the variables.
func (t *Template) Fixed() bool {
	return t.fixed || !t.any(func(p piece) bool { return p.late != nil || p.prog != nil && p.prog.expr.shaped.vars })
}

// Late says that ${...} are kept for later.
func (t *Template) Late() bool { return t.any(func(p piece) bool { return p.late != nil }) }

func (t *Template) any(is func(piece) bool) bool {
	return slices.ContainsFunc(t.pieces, is) || slices.ContainsFunc(t.Parts, func(x *Template) bool { return x.any(is) })
}

// HasTemplate says whether a string of v, or a name in it, holds ${.
func HasTemplate(v *tree.Value) bool {
	return v.Any(func(x *tree.Value) bool {
		return x.Kind == tree.String && strings.Contains(x.Str, "${") ||
			slices.ContainsFunc(x.Fields, func(f tree.Field) bool { return strings.Contains(f.Name, "${") })
	})
}

// Fill fills the template in. Strings that keep ${...} for later stay templates, and then every other
// string with a literal ${ is escaped if templates is true: the result is to be filled in again.
func (t *Template) Fill(vars map[string]any, sc dag.Scope, templates bool) (*tree.Value, error) {
	if t.fixed {
		return t.Value, nil
	}
	if t.Value.Kind == tree.String {
		v, err := t.fillString(vars, sc, templates)
		if err != nil {
			return nil, tree.Diagnostic{Pos: t.Value.Pos, Path: t.Path, Text: err.Error()}
		}
		return v, nil
	}
	out := &tree.Value{Kind: t.Value.Kind, Pos: t.Value.Pos}
	out.Fields, out.Items = slices.Clone(t.Value.Fields), slices.Clone(t.Value.Items)
	for i, x := range t.Parts {
		v, err := x.Fill(vars, sc, templates)
		if err != nil {
			return nil, err
		}
		if out.Kind == tree.List {
			out.Items[i] = v
		} else {
			out.Fields[i].Value = v
		}
	}
	return out, nil
}

func (t *Template) fillString(vars map[string]any, sc dag.Scope, templates bool) (*tree.Value, error) {
	if len(t.pieces) == 1 && t.pieces[0].prog != nil {
		v, err := t.pieces[0].prog.Eval(vars, sc)
		if err != nil {
			return nil, err
		}
		v.PlaceAt(t.Value.Pos)
		if templates {
			v = Escaped(v)
		}
		return v, nil
	}
	late := false
	pieces := make([]Piece, len(t.pieces))
	for i, p := range t.pieces {
		pieces[i].Text = p.text
		var err error
		if p.late != nil {
			late = true
			pieces[i].Source, err = p.late.fill(vars)
		} else if p.prog != nil {
			pieces[i].Text, err = p.prog.text(vars, sc)
		}
		if err != nil {
			return nil, err
		}
	}
	out := &tree.Value{Kind: tree.String, Pos: t.Value.Pos}
	if late || templates {
		out.Str = Join(pieces)
		return out, nil
	}
	for _, p := range pieces {
		out.Str += p.Text
	}
	return out, nil
}

// text evaluates an expression within a longer string.
func (p *Program) text(vars map[string]any, sc dag.Scope) (string, error) {
	v, err := p.Eval(vars, sc)
	if err != nil {
		return "", err
	}
	s, err := Text(v)
	if err != nil {
		return "", fmt.Errorf("%s: %w", quoteShort(p.expr.src), err)
	}
	return s, nil
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

// Escaped returns v as a template that stands for it.
func Escaped(v *tree.Value) *tree.Value {
	if v.Kind == tree.String && strings.Contains(v.Str, "${") {
		return &tree.Value{Kind: tree.String, Str: Escape(v.Str), Pos: v.Pos}
	}
	return v.Edited(func(_ string, x *tree.Value) *tree.Value { return Escaped(x) })
}
