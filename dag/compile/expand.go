package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// Bounds of what foreach blocks may make: a mistake in an axis is reported before it fills memory.
const (
	maxNodes = 250_000
	maxSteps = 8 * maxNodes // items of all axes that a block goes through
	mostBad  = 1000         // combinations with mistakes
)

// expand makes the nodes of all foreach blocks. Where one has mistakes, it is not known which nodes there are.
func (b *builder) expand(p *tree.Value) {
	for i, v := range p.Get("foreach").List() {
		x := &expansion{b: b, path: tree.At("foreach", i), vars: map[string]any{}, seen: map[string]bool{}}
		if !b.unknown.blocks[i] && !b.unknown.reads(v) && x.compile(v) && x.fits() {
			x.axis(0)
		} else {
			x.stopped = true
		}
		b.unknown.ids = b.unknown.ids || x.stopped || x.lost
	}
}

// An expansion is one foreach block, compiled.
type expansion struct {
	b    *builder
	path string
	axes []*axis
	lets []binding
	iff  *binding
	id   *expr.Template
	node *expr.Template // nil: the template has mistakes
	at   tree.Pos       // of the template

	vars    map[string]any // bound now
	seen    map[string]bool
	steps   int  // items so far, of all axes
	tried   int  // combinations so far
	bad     int  // combinations with mistakes
	lost    bool // a node whose id is not known
	stopped bool
}

// A binding is an expression of a block, with the variable that takes its value.
type binding struct {
	name, path string
	pos        tree.Pos
	prog       *expr.Program
}

// compile types everything of a block once; what it evaluates later cannot be wrong in form.
func (x *expansion) compile(v *tree.Value) bool {
	before := len(x.b.mistakes)
	lang := x.b.lang
	for i, a := range v.Get("axes").Items {
		lang = x.compileAxis(lang, a, tree.At(x.path+".axes", i))
		if lang == nil {
			return false
		}
	}
	for _, f := range v.Get("vars").Map() {
		let := x.binding(lang, f.Name, f.Value, tree.Join(x.path+".vars", f.Name), "")
		x.lets = append(x.lets, *let)
		variable := lang.With
		lang = x.bind(func(name string) (*expr.Lang, error) { return variable(name) }, f.Name, f.Pos, let.path)
		if lang == nil {
			return false
		}
	}
	if c := v.Get("if"); c != nil {
		x.iff = x.binding(lang, "", c, x.path+".if", "bool")
	}
	x.id = x.b.template(lang, v.Get("id"), x.path+".id", false)
	ok := len(x.b.mistakes) == before
	node := x.b.scripts(v.Get("node"), x.path+".node", slices.Sorted(maps.Keys(x.seen))...)
	x.shown(v.Get("id"), node)
	x.template(lang, node)
	return ok
}

// template compiles the node. What is wrong with it whatever the item is reported once; no node is made of it
// then, but which there would be is known.
func (x *expansion) template(lang *expr.Lang, n *tree.Value) {
	before := len(x.b.mistakes)
	path := x.path + ".node"
	x.at = n.Pos
	if _, ok := x.b.kindOf(n, path); ok {
		x.b.ok(x.b.s.CheckNode(n, path))
	}
	if m := x.b.template(lang, n, path, true); len(x.b.mistakes) == before {
		x.node = m
	}
}

// bind makes a name known to what follows, by a method of the language of what is before.
func (x *expansion) bind(with func(string) (*expr.Lang, error), name string, pos tree.Pos, path string) *expr.Lang {
	if x.seen[name] {
		x.b.fail(pos, path, "%q is bound already", name)
		return nil
	}
	x.seen[name] = true
	lang, err := with(name)
	if err != nil {
		x.b.fail(pos, path, "%v", err)
		return nil
	}
	return lang
}

func (x *expansion) binding(lang *expr.Lang, name string, v *tree.Value, path, want string) *binding {
	out := &binding{name: name, path: path, pos: v.Pos}
	if v.Kind != tree.String {
		x.b.fail(v.Pos, path, "want an expression in CEL, got %s", rules.Show(v))
		return out
	}
	src := bare(v.Str)
	e, problems := lang.Parse(src)
	if len(problems) == 0 {
		out.prog, problems = e.Check(expr.Decls{}, want)
	}
	x.b.problems(v.Pos, path, src, problems)
	return out
}

// most is how many combinations a block may try; with an if, some of them make no node.
func (x *expansion) most() int {
	if x.iff != nil {
		return 4 * maxNodes
	}
	return maxNodes
}

// stop ends the block with a mistake.
func (x *expansion) stop(pos tree.Pos, path string, err error) {
	x.stopped = true
	text := err.Error()
	if d, ok := err.(tree.Diagnostic); ok {
		pos, path, text = d.Pos, d.Path, d.Text
	}
	if _, key, ok := strings.Cut(text, "no such key: "); ok && key == "key" {
		text += "; the items have no key of their own: give the axis one with key: ..."
	} else if ok {
		text += x.itemHas(text, key)
	}
	x.b.fail(pos, path, "%s%s", text, x.where())
}

// itemHas lists what the value of an item has where text reads another key of it.
func (x *expansion) itemHas(text, key string) string {
	for _, a := range x.axes {
		item, _ := x.vars[a.name].(map[string]any)
		value, _ := item["value"].(map[string]any)
		if name := a.name + ".value"; value != nil && strings.Contains(text, name+"."+key) {
			return fmt.Sprintf("; %s has %s", name, strings.Join(slices.Sorted(maps.Keys(value)), ", "))
		}
	}
	return ""
}

// countBad counts a combination with mistakes, and ends the block when there are too many of them.
func (x *expansion) countBad() {
	if x.bad++; x.bad == mostBad {
		x.stopped = true
		x.b.fail(x.at, x.path, "%d combinations have mistakes; the others are not looked at", mostBad)
	}
}

// where names the combination at hand.
func (x *expansion) where() string {
	s := ""
	for _, a := range x.axes {
		if item, ok := x.vars[a.name].(map[string]any); ok {
			s += fmt.Sprintf(", %s %v", a.name, item["n"])
		}
	}
	if s == "" {
		return ""
	}
	return " (at" + s[1:] + ")"
}

// make drafts the node of the combination at hand.
func (x *expansion) make() {
	if x.tried++; x.tried > x.most() {
		x.stop(x.at, x.path, fmt.Errorf("more than %d combinations", x.most()))
		return
	}
	if !x.bindVars() || !x.wanted() {
		return
	}
	id, ok := x.nodeID()
	if !ok {
		return
	}
	if len(x.b.drafts) >= maxNodes {
		x.stop(x.at, x.path, fmt.Errorf("more than %d nodes", maxNodes))
		return
	}
	path := tree.Join("nodes", id)
	if x.node == nil {
		x.draft(id, path, nil)
		return
	}
	node, err := x.node.Fill(x.vars, nil, true)
	if err != nil {
		x.stop(x.at, path, err)
		return
	}
	x.draft(id, path, node)
}

// draft checks a node and enters it.
func (x *expansion) draft(id, path string, node *tree.Value) {
	before := len(x.b.mistakes)
	if node != nil {
		x.b.ok(x.b.s.CheckNode(node, path))
	}
	if node == nil || len(x.b.mistakes) > before {
		x.b.unknown.node(id)
		node = &tree.Value{Kind: tree.Map, Pos: x.at}
	}
	other := x.b.byID[fold(id)]
	switch {
	case other != nil && other.pos == x.at && other.id == id:
		x.b.fail(x.id.Value.Pos, path, "node %q is there already: the id must differ for each item%s", id, x.where())
	default:
		x.b.draft(id, x.at, node, path)
	}
	if len(x.b.mistakes) > before {
		x.countBad()
	}
}

// bindVars computes the variables. It reports whether that went well.
func (x *expansion) bindVars() bool {
	for _, let := range x.lets {
		v, err := let.prog.Val(x.vars, nil)
		if err == nil {
			err = expr.Bounded(v)
		}
		if err != nil {
			x.stop(let.pos, let.path, err)
			return false
		}
		x.vars[let.name] = v
	}
	return true
}

// wanted says whether the condition of the block holds.
func (x *expansion) wanted() bool {
	if x.iff == nil {
		return true
	}
	v, err := x.iff.prog.Eval(x.vars, nil)
	if err == nil && v.Kind != tree.Bool {
		err = fmt.Errorf("want true or false, got %s", rules.Show(v))
	}
	if err != nil {
		x.stop(x.iff.pos, x.iff.path, err)
		return false
	}
	return v.Bool
}

// nodeID computes the id. One that is none spoils its combination only.
func (x *expansion) nodeID() (string, bool) {
	id, err := x.id.Fill(x.vars, nil, false)
	if err != nil {
		x.stop(x.id.Value.Pos, x.id.Path, err)
		return "", false
	}
	if bad := x.b.s.Rule("ID").Check(id, ""); len(bad) > 0 {
		x.b.fail(bad[0].Pos, x.id.Path, "%s; slug(text) makes such a name of any text%s", bad[0].Text, x.where())
		x.lost = true
		x.countBad()
		return "", false
	}
	return id.Str, true
}

// shown warns of numbers that are written otherwise than they will stand in the texts of the template.
func (x *expansion) shown(in ...*tree.Value) {
	embedded := map[string]bool{}
	for _, v := range in {
		inTexts(v, func(_ *tree.Value, src string) { embedded[src] = true })
	}
	for _, a := range x.axes {
		a.shown = embedded[a.name+".value"]
	}
}

// inTexts calls found for every ${...} that stands in a text beside something else.
func inTexts(v *tree.Value, found func(text *tree.Value, src string)) {
	v.Any(func(x *tree.Value) bool {
		pieces, err := expr.Split(x.Str)
		for _, p := range pieces {
			if err == nil && len(pieces) > 1 && p.Source != "" {
				found(x, p.Source)
			}
		}
		return false
	})
}

// respelled says how a number will be written, where that is not how it stands in the specification.
func respelled(v *tree.Value) (string, bool) {
	number := v.Kind == tree.Int || v.Kind == tree.Float
	return string(v.AppendJSON(nil)), number && v.Str != ""
}
