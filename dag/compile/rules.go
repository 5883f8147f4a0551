package compile

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// A ruleCompiler turns CUE definitions into rules, through CUE's public API only. What rules
// cannot say is collected in opaque; a schema with such parts is refused, so that CUE and the rules
// accept the same values. A differential test keeps it so.
type ruleCompiler struct {
	defs   map[string]*rules.Rule // by name of the definition, without #
	open   map[string]bool        // being compiled
	wants  map[string]string      // regular expression of a definition -> its error text
	opaque []string               // paths and reasons
}

func newRuleCompiler() *ruleCompiler {
	return &ruleCompiler{defs: map[string]*rules.Rule{}, open: map[string]bool{}, wants: map[string]string{}}
}

// inexpressible returns the first part of a file's syntax that evaluation would make disappear
// from the schema although it constrains data.
func inexpressible(f *ast.File) (what string, at token.Pos) {
	ast.Walk(f, func(n ast.Node) bool {
		if what != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.Comprehension:
			what = "a comprehension"
		case *ast.LetClause:
			what = "a let clause"
		case *ast.Alias:
			what = "an alias"
		case *ast.Field:
			switch n.Label.(type) {
			case *ast.Interpolation, *ast.ParenExpr:
				what = "a computed field"
			}
		}
		if what != "" {
			at = n.Pos()
		}
		return what == ""
	}, nil)
	return what, at
}

// definitions compiles every definition of a package.
func (c *ruleCompiler) definitions(pkg cue.Value) error {
	it, err := pkg.Fields(cue.Definitions(true))
	if err != nil {
		return err
	}
	var structs []cue.Value
	var names []string
	for it.Next() {
		if !it.Selector().IsDefinition() {
			continue
		}
		name := strings.TrimPrefix(it.Selector().String(), "#")
		if it.Value().IncompleteKind() == cue.StringKind {
			c.definition(name, it.Value()) // first: patterns take their wording from these
			continue
		}
		names, structs = append(names, name), append(structs, it.Value())
	}
	for i, v := range structs {
		c.definition(names[i], v)
	}
	return nil
}

func (c *ruleCompiler) definition(name string, v cue.Value) *rules.Rule {
	if r := c.defs[name]; r != nil {
		return r
	}
	if c.open[name] {
		c.refuse(v, "the definition contains itself")
		return &rules.Rule{}
	}
	c.open[name] = true
	r := c.value(v)
	if r.Name == "" {
		r.Name = name
	}
	r.Doc = doc(v)
	c.defs[name] = r
	if len(r.Match) == 1 && r.Want != "" {
		c.wants[r.Match[0]] = r.Want
	}
	return r
}

func (c *ruleCompiler) refuse(v cue.Value, why string) {
	c.opaque = append(c.opaque, fmt.Sprintf("%s: %s", v.Path(), why))
}

// value compiles any value. A reference to a definition is compiled once and shared.
func (c *ruleCompiler) value(v cue.Value) *rules.Rule {
	op, args := v.Expr()
	if op == cue.SelectorOp {
		if _, path := v.ReferencePath(); len(path.Selectors()) == 1 && path.Selectors()[0].IsDefinition() {
			name := strings.TrimPrefix(path.String(), "#")
			return c.definition(name, cue.Dereference(v))
		}
		c.refuse(v, "a reference to something else than a definition")
		return &rules.Rule{}
	}
	r := &rules.Rule{Types: c.types(v)}
	if op == cue.NoOp && len(args) == 1 { // a value without its default
		if inner, innerArgs := args[0].Expr(); inner != cue.NoOp {
			op, args = inner, innerArgs
		} else if r.Types == rules.TypesOf(tree.List) {
			v = args[0]
		}
	}
	switch {
	case op == cue.OrOp:
		c.or(r, v, args)
	case r.Types == rules.TypesOf(tree.Map):
		c.structure(r, v)
	case r.Types == rules.TypesOf(tree.List):
		c.list(r, v, op, args)
	default:
		c.scalar(r, v, op, args)
	}
	return r
}

var kindBits = map[cue.Kind]rules.Types{
	cue.NullKind:   rules.TypesOf(tree.Null),
	cue.BoolKind:   rules.TypesOf(tree.Bool),
	cue.IntKind:    rules.TypesOf(tree.Int),
	cue.FloatKind:  rules.TypesOf(tree.Float),
	cue.StringKind: rules.TypesOf(tree.String),
	cue.ListKind:   rules.TypesOf(tree.List),
	cue.StructKind: rules.TypesOf(tree.Map),
}

func (c *ruleCompiler) types(v cue.Value) rules.Types {
	k := v.IncompleteKind()
	if k == cue.TopKind {
		return 0
	}
	var t rules.Types
	for bit, types := range kindBits {
		if k&bit != 0 {
			t |= types
			k &^= bit
		}
	}
	if t == 0 || k&^cue.NumberKind != 0 {
		c.refuse(v, fmt.Sprintf("no rule for type %v", v.IncompleteKind()))
	}
	return t
}

// or compiles a disjunction: a list of constants, a union of types, or alternatives. An
// error("text") among them is the wording of the whole.
func (c *ruleCompiler) or(r *rules.Rule, v cue.Value, args []cue.Value) {
	var alts []*rules.Rule
	for _, a := range args {
		if text, ok := errorText(a); ok {
			r.Want = text
			continue
		}
		alt := c.value(a)
		c.closeLiteral(a, alt)
		if n := len(alt.AnyOf); n > 0 && alt.Want == "" && alt.Match == nil {
			alts = append(alts, alt.AnyOf...)
		} else {
			alts = append(alts, alt)
		}
	}
	if len(alts) == 1 {
		want := r.Want
		*r = *alts[0]
		r.Name = ""
		if want != "" {
			r.Want = want
		}
		return
	}
	allConst, allTypes, union := true, true, rules.Types(0)
	for _, a := range alts {
		allConst = allConst && len(a.Enum) > 0
		allTypes = allTypes && bareType(a)
		union |= a.Types
	}
	r.Types = union
	switch {
	case allTypes:
	case allConst:
		for _, a := range alts {
			r.Enum = append(r.Enum, a.Enum...)
		}
	default:
		r.AnyOf = gathered(alts)
	}
}

// gathered puts the constants among alternatives into one.
func gathered(alts []*rules.Rule) []*rules.Rule {
	var out []*rules.Rule
	var consts *rules.Rule
	for _, a := range alts {
		switch {
		case len(a.Enum) == 0:
			out = append(out, a)
		case consts == nil:
			consts = &rules.Rule{Types: a.Types, Enum: a.Enum}
			out = append(out, consts)
		default:
			consts.Types |= a.Types
			consts.Enum = append(slices.Clip(consts.Enum), a.Enum...)
		}
	}
	return out
}

// bareType says whether the rule constrains nothing but the type.
func bareType(r *rules.Rule) bool {
	return r.Types != 0 && len(r.Enum) == 0 && r.Min == nil && r.Max == nil && len(r.Match) == 0 &&
		len(r.NotMatch) == 0 && len(r.Not) == 0 && len(r.AnyOf) == 0 &&
		r.Types&rules.TypesOf(tree.Map, tree.List) == 0
}

// closeLiteral closes a struct written out as an alternative of a definition: CUE shows the
// alternative outside the definition that closes it.
func (c *ruleCompiler) closeLiteral(a cue.Value, r *rules.Rule) {
	lit, ok := a.Source().(*ast.StructLit)
	if !ok {
		return
	}
	for _, e := range lit.Elts {
		if _, ok := e.(*ast.Ellipsis); ok {
			return
		}
	}
	r.Open = false
}

// errorText returns the text of an error("text") alternative.
func errorText(v cue.Value) (string, bool) {
	if v.Err() == nil {
		return "", false
	}
	if op, args := v.Expr(); op == cue.CallOp && len(args) == 2 {
		s, err := args[1].String()
		return s, err == nil
	}
	return "", false
}

func (c *ruleCompiler) structure(r *rules.Rule, v cue.Value) {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		c.refuse(v, err.Error())
		return
	}
	everything := false
	for it.Next() {
		sel := it.Selector()
		if sel.ConstraintType() == cue.PatternConstraint {
			key := c.value(sel.Pattern())
			if len(key.Match) == 1 && key.Want == "" {
				key.Want = c.wants[key.Match[0]]
			}
			everything = everything || bareType(key)
			r.Patterns = append(r.Patterns, rules.Pattern{Key: key, Rule: c.value(it.Value())})
			continue
		}
		r.Fields = append(r.Fields, c.field(sel, it.Value()))
	}
	r.Open = !everything && v.Allows(cue.AnyString)
}

func (c *ruleCompiler) field(sel cue.Selector, v cue.Value) rules.Field {
	f := rules.Field{Name: sel.Unquoted(), Doc: doc(v)}
	if by, cases, ok := c.indexed(v); ok {
		f.By, f.Cases, f.Rule = by, cases, &rules.Rule{Types: rules.TypesOf(tree.Map)}
		f.Rule.Open = true
		if sel.ConstraintType() == 0 {
			f.Default = &tree.Value{Kind: tree.Map}
		}
		return f
	}
	f.Rule = c.value(v)
	switch sel.ConstraintType() {
	case cue.RequiredConstraint:
		f.Required = true
	case cue.OptionalConstraint:
	default:
		if v.Validate(cue.Concrete(true), cue.Final()) != nil {
			f.Required = true
			break
		}
		f.Default = constant(v)
	}
	return f
}

// indexed recognises #Map[sibling]: the rule of a field picked by a sibling's value.
func (c *ruleCompiler) indexed(v cue.Value) (by string, cases map[string]*rules.Rule, ok bool) {
	if v.Err() == nil { // the sibling is not known in a schema
		return "", nil, false
	}
	op, args := v.Expr()
	if op != cue.IndexOp || len(args) != 2 {
		return "", nil, false
	}
	_, path := args[1].ReferencePath()
	sels := path.Selectors()
	it, err := args[0].Fields()
	if len(sels) == 0 || err != nil {
		c.refuse(v, "index that is not a sibling field")
		return "", nil, true
	}
	cases = map[string]*rules.Rule{}
	for it.Next() {
		cases[it.Selector().Unquoted()] = c.value(it.Value())
	}
	last := sels[len(sels)-1]
	return strings.TrimRight(last.String(), "!?"), cases, true
}

func (c *ruleCompiler) list(r *rules.Rule, v cue.Value, op cue.Op, args []cue.Value) {
	if op == cue.CallOp {
		c.refuse(v, "a validator of lists")
	}
	if op == cue.AndOp {
		for _, a := range args {
			if op, _ := a.Expr(); op == cue.CallOp {
				c.refuse(a, "a validator of lists")
			}
		}
	}
	if rest := v.LookupPath(cue.MakePath(cue.AnyIndex)); rest.Exists() {
		r.Items = c.value(rest)
	}
	it, err := v.List()
	if err != nil {
		c.refuse(v, err.Error())
		return
	}
	for it.Next() {
		r.Prefix = append(r.Prefix, c.value(it.Value()))
	}
}
