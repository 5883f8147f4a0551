package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"dagrun.dev/internal/tree"
)

// Check returns one diagnostic for every mistake in v, in source order but for missing fields,
// which follow the others of their map. It fills the defaults of absent fields in; such a value
// has the place of the map it was added to. path is the path of v itself, empty for a document.
func (r *Rule) Check(v *tree.Value, path string) tree.Diagnostics {
	c := checker{root: path, fill: true}
	c.value(r, v)
	return c.found
}

// CheckTemplates is Check for a specification whose strings may still hold ${...}: one that is nothing but ${...} is
// accepted wherever it stands, because what it will be is not known yet, and one with other text beside it wherever a
// text may stand. doubts are what is valid
// but probably meant otherwise: an unknown field of an open map whose name resembles a declared one.
func (r *Rule) CheckTemplates(v *tree.Value, path string) (mistakes, doubts tree.Diagnostics) {
	c := checker{root: path, fill: true, templates: true}
	c.value(r, v)
	return c.found, c.doubts
}

// Valid says whether v satisfies r. It changes nothing.
func (r *Rule) Valid(v *tree.Value) bool {
	var c checker
	c.value(r, v)
	return len(c.found) == 0
}

// A checker walks a value and its rule together.
type checker struct {
	fill      bool   // add defaults
	templates bool   // strings may hold ${...}
	root      string // path of the value that the walk starts from
	steps     []step // from there to the value being checked
	found     tree.Diagnostics
	doubts    tree.Diagnostics
}

func (c *checker) push(in *Rule, name string, index int) {
	if c.steps == nil {
		c.steps = make([]step, 0, 4)
	}
	c.steps = append(c.steps, step{name, index, in})
}

func (c *checker) pop() { c.steps = c.steps[:len(c.steps)-1] }

func (c *checker) path() string {
	path := c.root
	for _, s := range c.steps {
		if s.index < 0 {
			path = tree.Join(path, s.name)
		} else {
			path = tree.At(path, s.index)
		}
	}
	return path
}

func (c *checker) report(pos tree.Pos, text string) {
	c.found = append(c.found, tree.Diagnostic{Pos: pos, Path: c.path(), Text: text})
}

func (c *checker) value(r *Rule, v *tree.Value) {
	if r == nil {
		return
	}
	if c.templates && v.Kind == tree.String && strings.Contains(v.Str, "${") {
		whole := strings.HasPrefix(v.Str, "${") && strings.HasSuffix(v.Str, "}")
		escaped := strings.Contains(v.Str, "$${") // it is shown as it will be, when it is checked again
		if !whole && !escaped && !r.Types.Has(tree.String) {
			c.report(v.Pos, r.mistake(v))
		}
		return
	}
	if Number&(1<<v.Kind) != 0 && v.Str != "" && r.plainText() {
		c.report(v.Pos, fmt.Sprintf("%s is text here and would become %s; write it in quotes", v.Str, v.AppendJSON(nil)))
		return
	}
	if !r.Types.Has(v.Kind) || !r.scalar(v) {
		c.report(v.Pos, r.mistake(v))
		return
	}
	if len(r.AnyOf) > 0 {
		c.anyOf(r, v)
		return
	}
	switch v.Kind {
	case tree.Map:
		if r.aboutMaps() {
			c.fields(r, v)
		}
	case tree.List:
		if r.aboutLists() {
			c.items(r, v)
		}
	}
}

// plainText says whether r takes texts, and numbers and truth values as their text.
func (r *Rule) plainText() bool {
	const all = Number | 1<<tree.String
	return r.Types&all == all && !r.Types.Has(tree.Map) && !r.Types.Has(tree.List) && len(r.AnyOf) == 0 && len(r.Enum) == 0
}

func (r *Rule) aboutMaps() bool {
	return len(r.Fields) > 0 || len(r.Patterns) > 0 || r.Types == TypesOf(tree.Map)
}

func (r *Rule) aboutLists() bool {
	return len(r.Prefix) > 0 || r.Items != nil || r.Types == TypesOf(tree.List)
}

// scalar checks what concerns v alone: the set of values, bounds and patterns.
func (r *Rule) scalar(v *tree.Value) bool {
	if len(r.Enum) > 0 && !r.listed(v) {
		return false
	}
	switch v.Kind {
	case tree.Int, tree.Float:
		n := v.Number()
		return (r.Min == nil || n > *r.Min || n == *r.Min && !r.MinX) &&
			(r.Max == nil || n < *r.Max || n == *r.Max && !r.MaxX)
	case tree.String:
		return r.text(v.Str)
	}
	return true
}

func (r *Rule) text(s string) bool {
	for _, re := range r.Match {
		if !compiled(re).MatchString(s) {
			return false
		}
	}
	for _, re := range r.NotMatch {
		if compiled(re).MatchString(s) {
			return false
		}
	}
	for _, no := range r.Not {
		if s == no {
			return false
		}
	}
	return true
}

func (r *Rule) listed(v *tree.Value) bool {
	for _, e := range r.Enum {
		if tree.Equal(e, v) || e.Kind == tree.Float && v.Kind == tree.Int && e.Float == float64(v.Int) {
			return true
		}
	}
	return false
}

// anyOf checks the alternatives. The mistakes reported are those of the only alternative for v's
// type; where the type leaves a choice, the wording of the whole rule.
func (c *checker) anyOf(r *Rule, v *tree.Value) {
	var only *Rule
	candidates := 0
	for _, a := range r.AnyOf {
		if a.Types.Has(v.Kind) {
			only = a
			candidates++
		}
	}
	if candidates == 1 && (v.Kind == tree.Map || v.Kind == tree.List || r.Want == "") {
		c.value(only, v)
		return
	}
	var nearest tree.Diagnostics
	for _, a := range r.AnyOf {
		try := checker{root: c.path(), templates: c.templates}
		try.value(a, v)
		if len(try.found) == 0 {
			if c.fill {
				c.value(a, v)
			}
			return
		}
		if a.Types.Has(v.Kind) && (nearest == nil || len(try.found) < len(nearest)) {
			nearest = try.found
		}
	}
	if r.Want == "" && v.Kind == tree.Map && len(nearest) > 0 {
		c.report(v.Pos, r.mistake(v)+"; nearest: "+strings.TrimPrefix(nearest[0].Path+": "+nearest[0].Text, c.path()+"."))
		return
	}
	c.report(v.Pos, r.mistake(v))
}

func (c *checker) fields(r *Rule, v *tree.Value) {
	declared := 0
	for i := range v.Fields {
		f := &v.Fields[i]
		c.push(r, f.Name, -1)
		if d := r.Field(f.Name); d != nil {
			declared++
			before := len(c.found)
			if c.cases(d, v, f.Value); len(c.found) == before { // else it says less of the same
				c.value(d.Rule, f.Value)
			}
		} else {
			c.undeclared(r, v, f)
		}
		c.pop()
	}
	if declared < len(r.Fields) {
		c.absent(r, v)
	}
}

// undeclared checks a field of v that is not named by the rule.
func (c *checker) undeclared(r *Rule, v *tree.Value, f *tree.Field) {
	switch key, rule, ok := r.pattern(f.Name); {
	case ok:
		c.value(rule, f.Value)
	case r.Open:
		if text := r.unknown(f.Name); strings.Contains(text, "did you mean") {
			c.doubts = append(c.doubts, tree.Diagnostic{Pos: f.Pos, Path: c.path(), Text: text})
		}
	case key != nil:
		c.report(f.Pos, key.mistake(&tree.Value{Kind: tree.String, Str: f.Name}))
	default:
		var from step
		if n := len(c.steps); n > 1 {
			from = c.steps[n-2]
		}
		c.report(f.Pos, r.misplaced(v, f.Name, from))
	}
}

// cases checks a field whose rule depends on a sibling.
func (c *checker) cases(d *Field, v, val *tree.Value) {
	if d.By == "" {
		return
	}
	if by := v.Get(d.By); by != nil && by.Kind == tree.String {
		if rule := d.Cases[by.Str]; rule != nil {
			c.value(rule, val)
		}
	}
}

// absent reports required fields that are missing and fills in defaults.
func (c *checker) absent(r *Rule, v *tree.Value) {
	for i := range r.Fields {
		d := &r.Fields[i]
		if !d.Required && d.Default == nil || v.Get(d.Name) != nil {
			continue
		}
		c.push(r, d.Name, -1)
		if d.Required {
			c.report(v.Pos, "missing field ("+d.Rule.Wanting()+")")
		} else if c.fill || d.By != "" {
			val := d.Default.Clone()
			val.PlaceAt(v.Pos)
			c.cases(d, v, val)
			if c.fill {
				v.Fields = append(v.Fields, tree.Field{Name: d.Name, Pos: v.Pos, Value: val})
			}
		}
		c.pop()
	}
}

func (c *checker) items(r *Rule, v *tree.Value) {
	if n := len(r.Prefix); len(v.Items) < n {
		c.report(v.Pos, fmt.Sprintf("want at least %s, got %d", count(n, "item"), len(v.Items)))
	}
	for i, x := range v.Items {
		c.push(r, "", i)
		switch {
		case i < len(r.Prefix):
			c.value(r.Prefix[i], x)
		case r.Items != nil:
			c.value(r.Items, x)
		default:
			c.report(x.Pos, fmt.Sprintf("one item too many; want %d", len(r.Prefix)))
			c.pop()
			return
		}
		c.pop()
	}
}

// Field returns the named field of a map's rule, or nil.
func (r *Rule) Field(name string) *Field {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return &r.Fields[i]
		}
	}
	return nil
}

// pattern returns the rule of a field by the shape of its name; where there is none, the key
// rule that the name fails, if there is exactly one.
func (r *Rule) pattern(name string) (key, rule *Rule, ok bool) {
	k := tree.Value{Kind: tree.String, Str: name}
	for _, pt := range r.Patterns {
		if pt.Key.Valid(&k) {
			return pt.Key, pt.Rule, true
		}
	}
	if len(r.Patterns) == 1 && len(r.Fields) == 0 {
		return r.Patterns[0].Key, nil, false
	}
	return nil, nil, false
}

// Below returns the rule of a field or, for a decimal number, an item. It is nil where none is known.
func (r *Rule) Below(label string) *Rule {
	if r == nil {
		return nil
	}
	if d := r.Field(label); d != nil {
		return d.Rule
	}
	if _, rule, ok := r.pattern(label); ok {
		return rule
	}
	if i, err := strconv.Atoi(label); err == nil && i >= 0 {
		if i < len(r.Prefix) {
			return r.Prefix[i]
		}
		return r.Items
	}
	return nil
}

// Regular expressions are compiled once per process. Those of the schema are tested; one that does not compile is a
// mistake in the program.
var compiledREs sync.Map // string -> *regexp.Regexp

func compiled(re string) *regexp.Regexp {
	x, ok := compiledREs.Load(re)
	if !ok {
		x, _ = compiledREs.LoadOrStore(re, regexp.MustCompile(re))
	}
	return x.(*regexp.Regexp)
}
