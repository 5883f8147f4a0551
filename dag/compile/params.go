package compile

import (
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile/source"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// A param is a declared parameter.
type param struct {
	name string // dotted
	typ  string
	enum []*tree.Value
	rule *rules.Rule // of its values
	val  *tree.Value // nil: none given yet
	bad  bool        // something is wrong with the declaration or with a value given
	pos  tree.Pos
	path string
}

// params reads the declarations, lays the overrides over the defaults and makes the language of
// the pipeline's expressions.
func (b *builder) params(p *tree.Value, files, set []string) {
	ps := &params{b: b, byName: map[string]*param{}}
	if decl := p.Get("params"); decl != nil {
		ps.group(decl, "", "params")
	}
	for _, f := range files {
		ps.file(f)
	}
	for _, s := range set {
		ps.set(s)
	}
	for _, name := range ps.names() {
		d := ps.byName[name]
		if d.bad {
			b.unknown.param(name)
			continue
		}
		if d.val == nil {
			ps.refuse(d.pos, d.path, name, "no value: there is no default; give one with --set %s=...", name)
			continue
		}
		raw, err := dag.AppendCanonical(nil, d.val.AppendJSON(nil))
		if err != nil {
			ps.refuse(d.val.Pos, d.path, name, "%v", err)
			continue
		}
		b.plan.Params = append(b.plan.Params, dag.Param{Name: name, Type: d.typ, Value: raw})
	}
	ps.shown(p)
	lang, err := expr.NewLang(b.plan.Params)
	if err != nil {
		b.fail(p.Pos, "params", "%v", err)
		b.unknown.param("")
		lang, _ = expr.NewLang(nil)
	}
	lang.Restrict(ps.listed())
	b.lang, b.others, b.warned = lang, ps.others(), map[string]bool{}
}

type params struct {
	b      *builder
	byName map[string]*param
}

// listed returns what the parameters that are texts may be, where that is declared.
func (ps *params) listed() map[string][]string {
	words := map[string][]string{}
	for name, d := range ps.byName {
		for _, v := range d.enum {
			if d.typ == "string" && v.Kind == tree.String {
				words[name] = append(words[name], v.Str)
			}
		}
	}
	return words
}

// shown warns of numbers that are written otherwise than they will stand in the texts of the pipeline.
func (ps *params) shown(p *tree.Value) {
	spelled := map[string]*param{}
	for _, name := range ps.names() {
		if d := ps.byName[name]; d.val != nil {
			if _, ok := respelled(d.val); ok {
				spelled["params."+name] = d
			}
		}
	}
	if len(spelled) == 0 {
		return
	}
	inTexts(p, func(text *tree.Value, src string) {
		if d := spelled[src]; d != nil {
			as, _ := respelled(d.val)
			ps.b.warn(text.Pos, d.path, "%s stands as %s in this text; declare %s as a string to keep it", d.val.Str, as, d.name)
			delete(spelled, src)
		}
	})
}

// refuse records a mistake that leaves a parameter without a value.
func (ps *params) refuse(pos tree.Pos, path, name, format string, args ...any) {
	ps.b.fail(pos, path, format, args...)
	ps.b.unknown.param(name)
}

func (ps *params) names() []string { return slices.Sorted(maps.Keys(ps.byName)) }

const wantParam = "want {type, default, enum, doc} or a group of parameters"

// group reads declarations: a map with a text as type is a parameter, any other map a group.
func (ps *params) group(v *tree.Value, name, path string) {
	if v.Kind != tree.Map {
		ps.refuse(v.Pos, path, name, "%s, got %s", wantParam, rules.Show(v))
		return
	}
	if t := v.Get("type"); t != nil && t.Kind == tree.String && name != "" {
		ps.declare(v, t, name, path)
		return
	}
	if len(v.Fields) == 0 && name != "" {
		ps.refuse(v.Pos, path, name, "%s, got an empty map", wantParam)
	}
	for _, f := range v.Fields {
		here := tree.Join(path, f.Name)
		if !isIdent(f.Name) {
			ps.refuse(f.Pos, here, f.Name, "want a name of letters, digits and '_', so that expressions can read it")
			continue
		}
		if slices.Contains([]string{"in", "true", "false", "null"}, f.Name) { // params.as can be read, params.in cannot
			ps.refuse(f.Pos, here, f.Name, "%q is a word of the expression language; take another name", f.Name)
			continue
		}
		dotted := f.Name
		if name != "" {
			dotted = name + "." + f.Name
		}
		ps.group(f.Value, dotted, here)
	}
}

func (ps *params) declare(v, t *tree.Value, name, path string) {
	d := &param{name: name, typ: t.Str, pos: v.Pos, path: path}
	wrong := ps.b.s.Rule("Param").Check(v, path)
	if d.bad = !ps.b.ok(wrong); d.bad && pathsOf(wrong).cover(tree.Join(path, "type")) {
		ps.b.unknown.param(name)
		return
	}
	ps.byName[name] = d
	d.rule = &rules.Rule{Types: exprTypes[d.typ], Want: wantTyped[d.typ], Open: true, Items: &rules.Rule{}}
	if d.enum = v.Get("enum").List(); len(d.enum) > 0 {
		for i, x := range d.enum {
			d.bad = !ps.b.ok(d.rule.Check(x, tree.At(tree.Join(path, "enum"), i))) || d.bad
		}
		d.rule = &rules.Rule{Enum: d.enum}
	}
	if def := v.Get("default"); def != nil {
		if expr.HasTemplate(def) {
			ps.b.warn(def.Pos, tree.Join(path, "default"), "${...} is not filled in here: the parameter holds it as text")
		}
		ps.give(d, def, tree.Join(path, "default"))
	}
}

// wantTyped are the words for a value of the wrong type.
var wantTyped = map[string]string{
	"string": "want a string", "int": "want an int", "number": "want a number", "bool": "want true or false",
	"list": `want a list such as ["a", "b"]`, "map": `want a map such as {"a": 1}`,
}

// give sets a value after checking it.
func (ps *params) give(d *param, v *tree.Value, path string) {
	if !ps.b.ok(d.rule.Check(v, path)) {
		d.bad = true
		return
	}
	d.val = v
}

// set applies --set path=value. For a parameter of type string the value is taken as it is.
func (ps *params) set(text string) {
	pos := tree.Pos{File: tree.FileOf("--set " + text)}
	name, raw, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		ps.b.fail(pos, "", "want path=value")
		return
	}
	d := ps.byName[name]
	switch {
	case d == nil:
		ps.unknown(pos, name)
	case d.typ == "string":
		ps.give(d, &tree.Value{Kind: tree.String, Str: raw, Pos: pos}, "params."+name)
	default:
		ps.give(d, tree.ParseText(raw, pos), "params."+name)
	}
}

func (ps *params) unknown(pos tree.Pos, name string) {
	if slices.Contains(ps.b.unknown.params, "") {
		return // any may be declared
	}
	names := ps.names()
	if len(names) == 0 {
		ps.b.fail(pos, "", "no parameter %q; the pipeline declares none", name)
		return
	}
	if n := ps.inGroup(name); n != "" {
		ps.b.fail(pos, "", "%q is a group of parameters; set one of it, such as %s=...", name, n)
		return
	}
	ps.b.fail(pos, "", "no parameter %q; declared: %s%s", name, strings.Join(names, ", "), rules.DidYouMean(name, names))
}

// file applies --values FILE: maps nested or dotted.
func (ps *params) file(path string) {
	v, err := source.Document(path)
	if err != nil {
		ps.b.absorb(err)
		return
	}
	if v.Kind != tree.Map {
		ps.b.fail(v.Pos, "", "want a map of parameters, got %s", rules.Show(v))
		return
	}
	ps.values(v, "")
}

func (ps *params) values(v *tree.Value, prefix string) {
	for _, f := range v.Fields {
		name := f.Name
		if prefix != "" {
			name = prefix + "." + f.Name
		}
		d := ps.byName[name]
		switch {
		case d != nil:
			ps.give(d, f.Value, name)
		case f.Value.Kind == tree.Map && ps.inGroup(name) != "":
			ps.values(f.Value, name)
		default:
			ps.unknown(f.Pos, name)
		}
	}
}

// inGroup returns the first parameter of a group, or nothing where the name is none.
func (ps *params) inGroup(name string) string {
	for _, n := range ps.names() {
		if strings.HasPrefix(n, name+".") {
			return n
		}
	}
	return ""
}
