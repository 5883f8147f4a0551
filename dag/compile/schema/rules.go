package schema

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// A compiler turns the syntax of CUE definitions into rules.
//
// A schema is written in a small part of CUE: types, constants, bounds, patterns, alternatives with a default and an
// error text, structs, lists, references to definitions, and #Map[sibling]. Anything else is refused, so that CUE and
// the rules accept the same values. Nothing is evaluated, which would take ten times as long at every start of the
// program; a differential test holds the rules to what CUE makes of the same definitions.
type compiler struct {
	syntax  map[string]*ast.Field  // of the definitions, by name without #
	rules   map[string]*rules.Rule // compiled; nil while being compiled
	tables  map[string]*tree.Value // fields that are data, by name
	rowDocs map[string]string      // comments above the rows of tables, by TABLE.ROW
	refused []string               // what rules cannot say: path and reason
}

func newCompiler() *compiler {
	return &compiler{syntax: map[string]*ast.Field{}, rules: map[string]*rules.Rule{},
		tables: map[string]*tree.Value{}, rowDocs: map[string]string{}}
}

// declare notes a field at the top of a file.
func (c *compiler) declare(f *ast.Field) {
	name, _, _ := ast.LabelName(f.Label)
	definition, ok := strings.CutPrefix(name, "#")
	switch {
	case ok && c.syntax[definition] != nil:
		c.refuse(name, "a second definition of that name")
	case ok:
		c.syntax[definition] = f
	default:
		if rows := constant(f.Value); rows != nil {
			c.tables[name] = rows
			if table, ok := f.Value.(*ast.StructLit); ok {
				for i, d := range table.Elts {
					c.rowDocs[tree.Join(name, rows.Fields[i].Name)] = docOf(d.(*ast.Field))
				}
			}
		}
	}
}

// controlKinds are the kinds of node that the host carries out itself, and their definitions.
func (c *compiler) controlKinds() map[string]string {
	out := map[string]string{}
	for _, d := range c.syntax["ControlKinds"].Value.(*ast.StructLit).Elts {
		f := d.(*ast.Field)
		name, _, _ := ast.LabelName(f.Label)
		out[name] = f.Value.(*ast.Ident).Name
	}
	return out
}

// err says what rules cannot express.
func (c *compiler) err() error {
	if len(c.refused) == 0 {
		return nil
	}
	slices.Sort(c.refused)
	return fmt.Errorf("rules cannot express %s", strings.Join(slices.Compact(c.refused), "; "))
}

func (c *compiler) refuse(path, why string) *rules.Rule {
	c.refused = append(c.refused, path+": "+why)
	return &rules.Rule{}
}

// definition compiles a definition once; all that refer to it share the rule.
func (c *compiler) definition(name, path string) *rules.Rule {
	r, begun := c.rules[name]
	field := c.syntax[name]
	switch {
	case r != nil:
		return r
	case begun:
		return c.refuse("#"+name, "the definition contains itself")
	case field == nil:
		return c.refuse(path, "a reference to #"+name+", which is not defined")
	}
	c.rules[name] = nil
	r = anonymous(c.value(field.Value, "#"+name))
	r.Name, r.Doc = name, docOf(field)
	c.rules[name] = r
	return r
}

// anonymous returns a copy of a rule that is no definition.
func anonymous(r *rules.Rule) *rules.Rule {
	out := *r
	out.Name, out.Doc = "", ""
	return &out
}

var typesByName = map[string]rules.Types{
	"_": 0, "bool": rules.TypesOf(tree.Bool), "string": rules.TypesOf(tree.String),
	"int": rules.TypesOf(tree.Int), "float": rules.TypesOf(tree.Float), "number": rules.Number,
}

func (c *compiler) value(e ast.Expr, path string) *rules.Rule {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.value(e.X, path)
	case *ast.Ident:
		if name, ok := strings.CutPrefix(e.Name, "#"); ok {
			return c.definition(name, path)
		}
		if types, ok := typesByName[e.Name]; ok {
			return &rules.Rule{Types: types}
		}
		return c.refuse(path, "a reference to something else than a definition")
	case *ast.BinaryExpr:
		switch e.Op {
		case token.OR:
			return c.or(e, path)
		case token.AND:
			return c.and(c.value(e.X, path), c.value(e.Y, path), path)
		}
	case *ast.UnaryExpr:
		if r := bound(e); r != nil {
			return r
		}
	case *ast.StructLit:
		return c.structure(e, path)
	case *ast.ListLit:
		return c.list(e, path)
	}
	if x := constant(e); x != nil {
		return &rules.Rule{Types: rules.TypesOf(x.Kind), Enum: []*tree.Value{x}}
	}
	return c.refuse(path, fmt.Sprintf("an expression of another form (%T)", e))
}

// bound compiles one bound or pattern, or returns nil.
func bound(e *ast.UnaryExpr) *rules.Rule {
	x := constant(e.X)
	if x == nil {
		return nil
	}
	r := &rules.Rule{Types: rules.TypesOf(tree.String)}
	switch e.Op {
	case token.MAT:
		r.Match = []string{x.Str}
		return r
	case token.NMAT:
		r.NotMatch = []string{x.Str}
		return r
	case token.NEQ:
		return &rules.Rule{Not: []string{x.Str}} // of any type
	}
	n := x.Number()
	r.Types = rules.Number
	switch e.Op {
	case token.GTR, token.GEQ:
		r.Min, r.MinX = &n, e.Op == token.GTR
	case token.LSS, token.LEQ:
		r.Max, r.MaxX = &n, e.Op == token.LSS
	default:
		return nil
	}
	return r
}

// and unites two rules about scalars.
func (c *compiler) and(a, b *rules.Rule, path string) *rules.Rule {
	r := anonymous(a)
	for _, x := range []*rules.Rule{a, b} {
		if len(x.AnyOf)+len(x.Enum) > 0 || x.Types != 0 && x.Types&rules.TypesOf(tree.Map, tree.List) != 0 {
			return c.refuse(path, "a conjunction of something else than types, bounds and patterns")
		}
	}
	switch {
	case r.Types == 0:
		r.Types = b.Types
	case b.Types != 0 && r.Types&b.Types == 0:
		return c.refuse(path, "a conjunction that no value satisfies")
	case b.Types != 0:
		r.Types &= b.Types
	}
	if b.Min != nil && (r.Min == nil || *b.Min > *r.Min || *b.Min == *r.Min && b.MinX) {
		r.Min, r.MinX = b.Min, b.MinX
	}
	if b.Max != nil && (r.Max == nil || *b.Max < *r.Max || *b.Max == *r.Max && b.MaxX) {
		r.Max, r.MaxX = b.Max, b.MaxX
	}
	r.Match = slices.Concat(r.Match, b.Match)
	r.NotMatch = slices.Concat(r.NotMatch, b.NotMatch)
	r.Not = slices.Concat(r.Not, b.Not)
	if b.Want != "" {
		r.Want = b.Want
	}
	return r
}

// or compiles a disjunction: a list of constants, a union of types, or alternatives. An error("text") among them is
// the wording of the whole; *x is the default, and an alternative only where no other takes it.
func (c *compiler) or(e *ast.BinaryExpr, path string) *rules.Rule {
	var alts []*rules.Rule
	var preferred *rules.Rule
	want := ""
	for _, a := range disjuncts(e) {
		if text, ok := errorText(a); ok {
			want = text
			continue
		}
		if u, ok := a.(*ast.UnaryExpr); ok && u.Op == token.MUL {
			preferred = c.value(u.X, path)
			continue
		}
		alt := c.value(a, path)
		if len(alt.AnyOf) > 0 && alt.Want == "" {
			alts = append(alts, alt.AnyOf...)
		} else {
			alts = append(alts, alt)
		}
	}
	if preferred != nil && !accepted(preferred, fallback(e), alts) {
		alts = append([]*rules.Rule{preferred}, alts...)
	}
	r := union(alts)
	if want != "" {
		r = anonymous(r)
		r.Want = want
	}
	return r
}

// accepted says whether one of the alternatives takes the default.
func accepted(preferred *rules.Rule, def *tree.Value, alts []*rules.Rule) bool {
	return def != nil && slices.ContainsFunc(alts, func(a *rules.Rule) bool { return a.Valid(def) })
}

func disjuncts(e ast.Expr) []ast.Expr {
	switch x := e.(type) {
	case *ast.ParenExpr:
		if inner, ok := x.X.(*ast.BinaryExpr); ok && inner.Op == token.OR {
			return disjuncts(inner)
		}
	case *ast.BinaryExpr:
		if x.Op == token.OR {
			return append(disjuncts(x.X), disjuncts(x.Y)...)
		}
	}
	return []ast.Expr{e}
}

// errorText returns the text of an error("text") alternative.
func errorText(e ast.Expr) (string, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	name, _ := call.Fun.(*ast.Ident)
	text := constant(call.Args[0])
	if name == nil || name.Name != "error" || text == nil {
		return "", false
	}
	return text.Str, true
}

// union returns a rule that takes what one of the alternatives takes.
func union(alts []*rules.Rule) *rules.Rule {
	if len(alts) == 1 {
		return alts[0]
	}
	out := &rules.Rule{}
	var consts *rules.Rule // all constants are one alternative
	onlyTypes := true
	for _, a := range alts {
		out.Types |= a.Types
		onlyTypes = onlyTypes && bareType(a)
		switch {
		case len(a.Enum) == 0:
			out.AnyOf = append(out.AnyOf, a)
		case consts == nil:
			consts = &rules.Rule{Types: a.Types, Enum: a.Enum}
			out.AnyOf = append(out.AnyOf, consts)
		default:
			consts.Types |= a.Types
			consts.Enum = slices.Concat(consts.Enum, a.Enum)
		}
	}
	switch {
	case onlyTypes:
		out.AnyOf = nil
	case len(out.AnyOf) == 1:
		return consts
	}
	return out
}

// bareType says whether the rule constrains nothing but the type.
func bareType(r *rules.Rule) bool {
	return r.Types != 0 && r.Types&rules.TypesOf(tree.Map, tree.List) == 0 && r.Min == nil && r.Max == nil &&
		len(r.Enum)+len(r.Match)+len(r.NotMatch)+len(r.Not)+len(r.AnyOf) == 0
}

func (c *compiler) structure(e *ast.StructLit, path string) *rules.Rule {
	r := &rules.Rule{Types: rules.TypesOf(tree.Map)}
	for _, d := range e.Elts {
		switch d := d.(type) {
		case *ast.Ellipsis:
			r.Open = true
		case *ast.EmbedDecl:
			if x := c.value(d.Expr, path); x.Types == r.Types {
				r.Fields = append(r.Fields, x.Fields...)
				r.Patterns = append(r.Patterns, x.Patterns...)
			} else {
				c.refuse(path, "an embedding of something else than a struct")
			}
		case *ast.Field:
			if pattern, ok := d.Label.(*ast.ListLit); ok && len(pattern.Elts) == 1 {
				key := anonymous(c.value(pattern.Elts[0], path))
				r.Patterns = append(r.Patterns, rules.Pattern{Key: key, Rule: c.value(d.Value, path+"[_]")})
				continue
			}
			name, isIdent, err := ast.LabelName(d.Label)
			if err != nil || isIdent && strings.HasPrefix(name, "#") || isIdent && strings.HasPrefix(name, "_") {
				c.refuse(path, "a computed or hidden field")
				continue
			}
			r.Fields = append(r.Fields, c.field(d, name, tree.Join(path, name)))
		case *ast.Comprehension:
			c.refuse(path, "a comprehension")
		default:
			c.refuse(path, fmt.Sprintf("a declaration of another form (%T)", d))
		}
	}
	return r
}

func (c *compiler) field(d *ast.Field, name, path string) rules.Field {
	f := rules.Field{Name: name, Doc: docOf(d), Required: d.Constraint == token.NOT}
	if x, ok := d.Value.(*ast.IndexExpr); ok {
		c.indexed(&f, x, path)
	} else {
		f.Rule = c.value(d.Value, path)
	}
	if d.Constraint != token.ILLEGAL { // neither ! nor ?
		return f
	}
	f.Default = fallback(d.Value)
	if f.Default == nil && f.Rule.Types == rules.TypesOf(tree.Map) {
		f.Default = &tree.Value{Kind: tree.Map}
	}
	if f.Default != nil && len(f.Rule.Check(f.Default, "")) > 0 { // which fills in what is below it
		f.Default = nil
	}
	f.Required = f.Default == nil
	return f
}

// indexed compiles #Map[sibling]: the rule of a field picked by a sibling's value.
func (c *compiler) indexed(f *rules.Field, e *ast.IndexExpr, path string) {
	f.Rule = &rules.Rule{Types: rules.TypesOf(tree.Map), Open: true}
	of, sibling := c.value(e.X, path), e.Index
	name, ok := sibling.(*ast.Ident)
	if !ok || of.Types != f.Rule.Types {
		c.refuse(path, "an index that is not a sibling field")
		return
	}
	f.By, f.Cases = name.Name, map[string]*rules.Rule{}
	for _, x := range of.Fields {
		f.Cases[x.Name] = x.Rule
	}
}

func (c *compiler) list(e *ast.ListLit, path string) *rules.Rule {
	r := &rules.Rule{Types: rules.TypesOf(tree.List)}
	for i, x := range e.Elts {
		rest, ok := x.(*ast.Ellipsis)
		switch {
		case !ok:
			r.Prefix = append(r.Prefix, c.value(x, tree.At(path, i)))
		case rest.Type == nil:
			r.Items = &rules.Rule{}
		default:
			r.Items = c.value(rest.Type, tree.At(path, i))
		}
	}
	return r
}

// fallback returns the value of an expression where nothing else is said: a constant, the default of a disjunction, an
// open list's empty one. It is nil where there is none.
func fallback(e ast.Expr) *tree.Value {
	for _, a := range disjuncts(e) {
		if u, ok := a.(*ast.UnaryExpr); ok && u.Op == token.MUL {
			return constant(u.X)
		}
	}
	if l, ok := e.(*ast.ListLit); ok && len(l.Elts) == 1 {
		if _, ok := l.Elts[0].(*ast.Ellipsis); ok {
			return &tree.Value{Kind: tree.List}
		}
	}
	return constant(e)
}

// docOf returns the comment above a field as plain text: of several, the nearest.
func docOf(f *ast.Field) (doc string) {
	for _, g := range ast.Comments(f) {
		if text := strings.TrimSpace(g.Text()); g.Doc && text != "" {
			doc = text
		}
	}
	return doc
}
