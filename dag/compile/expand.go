package compile

import (
	"fmt"
	"strings"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// maxNodes bounds what foreach blocks may make: a slip in an axis is told before it fills memory.
const maxNodes = 250_000

// expand makes the nodes of all foreach blocks. It reports whether all went well.
func (b *builder) expand(p *tree.Value) bool {
	all := p.Get("foreach")
	if all == nil {
		return true
	}
	before := len(b.mistakes)
	for i, v := range all.Items {
		x := &expansion{b: b, path: tree.At("foreach", i), vars: map[string]any{}, seen: map[string]bool{}}
		if x.compile(v) && x.fits() {
			x.axis(0)
		}
	}
	return len(b.mistakes) == before
}

// An expansion is one foreach block, compiled.
type expansion struct {
	b     *builder
	path  string
	axes  []*axis
	names []string // of vars
	progs []*expr.Program
	pos   []tree.Pos
	iff   *expr.Program
	ifPos tree.Pos
	id    *expr.Mold
	node  *expr.Mold
	place tree.Pos // of the template

	vars    map[string]any // bound now
	seen    map[string]bool
	tried   int // combinations so far
	stopped bool
}

// An axis is one dimension of an expansion.
type axis struct {
	name  string
	path  string
	pos   tree.Pos
	in    *expr.Mold
	key   *expr.Program // nil: the item's own
	fixed []map[string]any
}

func (x *expansion) fail(pos tree.Pos, path, format string, args ...any) {
	x.b.fail(pos, path, format, args...)
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
	if vars := v.Get("vars"); vars != nil {
		for _, f := range vars.Fields {
			here := tree.Join(x.path+".vars", f.Name)
			x.names = append(x.names, f.Name)
			x.pos = append(x.pos, f.Value.Pos)
			x.progs = append(x.progs, x.program(lang, f.Value, here, ""))
			if lang = x.bind(lang, f.Name, f.Pos, here); lang == nil {
				return false
			}
		}
	}
	if c := v.Get("if"); c != nil {
		x.iff, x.ifPos = x.program(lang, c, x.path+".if", "bool"), c.Pos
	}
	x.id = x.mold(lang, v.Get("id"), x.path+".id", false)
	n := v.Get("node")
	if _, ok := x.b.kindOf(n, x.path+".node"); ok {
		x.node, x.place = x.mold(lang, n, x.path+".node", true), n.Pos
	}
	return len(x.b.mistakes) == before
}

func (x *expansion) compileAxis(lang *expr.Lang, a *tree.Value, path string) *expr.Lang {
	ax := &axis{name: str(a.Get("as")), path: path, pos: a.Get("in").Pos}
	ax.in = x.mold(lang, a.Get("in"), path+".in", false)
	lang = x.bind(lang, ax.name, a.Get("as").Pos, path+".as")
	if lang == nil {
		return nil
	}
	if k := a.Get("key"); k != nil {
		ax.key = x.program(lang, k, path+".key", "")
	}
	x.axes = append(x.axes, ax)
	return lang
}

// bind makes a name known to what follows.
func (x *expansion) bind(lang *expr.Lang, name string, pos tree.Pos, path string) *expr.Lang {
	switch {
	case !isIdent(name):
		x.fail(pos, path, "want a name of letters, digits and '_', so that expressions can read it, got %q", name)
		return nil
	case name == "nodes" || name == "params" || name == "run":
		x.fail(pos, path, "%q has a meaning of its own in expressions; take another name", name)
		return nil
	case x.seen[name]:
		x.fail(pos, path, "%q is bound already", name)
		return nil
	}
	x.seen[name] = true
	lang, err := lang.With(name)
	if err != nil {
		x.fail(pos, path, "%v", err)
		return nil
	}
	return lang
}

func (x *expansion) program(lang *expr.Lang, v *tree.Value, path, want string) *expr.Program {
	if v.Kind != tree.String {
		x.fail(v.Pos, path, "want an expression in CEL, got %s", rules.Show(v))
		return nil
	}
	src := bare(v.Str)
	e, problems := lang.Parse(src)
	var p *expr.Program
	if len(problems) == 0 {
		p, problems = e.Check(expr.Decls{}, want)
	}
	for _, q := range problems {
		x.b.report(expr.Diagnose(v.Pos, path, src, q))
	}
	return p
}

func (x *expansion) mold(lang *expr.Lang, v *tree.Value, path string, late bool) *expr.Mold {
	m, mistakes := lang.NewMold(v, path, late, expr.Decls{})
	for _, d := range mistakes {
		x.b.report(d)
	}
	return m
}

// most is how many combinations a block may try; with an if, some of them make no node.
func (x *expansion) most() int {
	if x.iff != nil {
		return 4 * maxNodes
	}
	return maxNodes
}

// fits multiplies the axes that depend on no other, before anything is made.
func (x *expansion) fits() bool {
	n := 1
	for _, a := range x.axes {
		if !a.in.Fixed() {
			continue
		}
		items := x.items(a)
		if x.stopped {
			return false
		}
		if n *= max(len(items), 1); n > x.most() {
			x.fail(a.pos, a.path+".in", "the axes have more than %d combinations", x.most())
			return false
		}
	}
	return true
}

// axis goes through the items of axis i, and for each through the axes after it.
func (x *expansion) axis(i int) {
	if i == len(x.axes) {
		x.make()
		return
	}
	items := x.items(x.axes[i])
	for _, item := range items {
		x.vars[x.axes[i].name] = item
		x.axis(i + 1)
		if x.stopped {
			return
		}
	}
}

// items returns what an axis binds, once for all when it depends on no other axis.
func (x *expansion) items(a *axis) []map[string]any {
	if a.fixed != nil {
		return a.fixed
	}
	v, err := a.in.Cast(x.vars, nil, false)
	if err != nil {
		x.stop(a.pos, a.path+".in", err)
		return nil
	}
	items := x.keyed(a, v)
	if a.in.Fixed() {
		a.fixed = items
	}
	return items
}

// keyed gives the items of an axis their keys.
func (x *expansion) keyed(a *axis, v *tree.Value) []map[string]any {
	var values []*tree.Value
	var names []string
	switch v.Kind {
	case tree.List:
		values = v.Items
	case tree.Map:
		for _, f := range v.Fields {
			names, values = append(names, f.Name), append(values, f.Value)
		}
	case tree.Int:
		for i := range min(max(v.Int, 0), maxNodes+1) {
			values = append(values, &tree.Value{Kind: tree.Int, Int: i + 1, Pos: v.Pos})
		}
	}
	if v.Kind != tree.List && v.Kind != tree.Map && (v.Kind != tree.Int || v.Int < 0) {
		x.fail(v.Pos, a.path+".in", "want a list, a map or a number of rounds, got %s", rules.Show(v))
		x.stopped = true
		return nil
	}
	if len(values) > maxNodes {
		x.stop(v.Pos, a.path+".in", fmt.Errorf("want at most %d items", maxNodes))
		return nil
	}
	out := make([]map[string]any, len(values))
	seen := map[string]int{}
	for i, item := range values {
		native := expr.Native(item)
		switch {
		case a.key != nil:
			x.vars[a.name] = expr.Item(native, "", i, len(values))
			key, err := expr.Key(a.key, x.vars, nil, seen, i)
			if err != nil {
				x.stop(item.Pos, a.path+".key", err)
				return nil
			}
			out[i] = expr.Item(native, key, i, len(values))
		case names != nil:
			out[i] = expr.Item(native, names[i], i, len(values))
		default:
			out[i] = expr.Item(native, ownKey(item), i, len(values))
		}
	}
	return out
}

// ownKey is a text or number itself, or the field id of a map; else there is none.
func ownKey(v *tree.Value) string {
	if v.Kind == tree.Map {
		if v = v.Get("id"); v == nil {
			return ""
		}
	}
	s, err := expr.Text(v)
	if err != nil {
		return ""
	}
	return s
}

func (x *expansion) stop(pos tree.Pos, path string, err error) {
	x.stopped = true
	text := err.Error()
	if d, ok := err.(tree.Diagnostic); ok {
		pos, path, text = d.Pos, d.Path, d.Text
	}
	if strings.HasSuffix(text, "no such key: key") {
		text += "; the items have no key of their own: give the axis one with key: ..."
	}
	x.fail(pos, path, "%s%s", text, x.where())
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
		x.stop(x.place, x.path, fmt.Errorf("more than %d combinations", x.most()))
		return
	}
	for i, name := range x.names {
		v, err := x.progs[i].Val(x.vars, nil)
		if err == nil {
			err = expr.Bounded(v)
		}
		if err != nil {
			x.stop(x.pos[i], tree.Join(x.path+".vars", name), err)
			return
		}
		x.vars[name] = v
	}
	if x.iff != nil {
		v, err := x.iff.Eval(x.vars, nil)
		if err == nil && v.Kind != tree.Bool {
			err = fmt.Errorf("want true or false, got %s", rules.Show(v))
		}
		if err != nil {
			x.stop(x.ifPos, x.path+".if", err)
			return
		}
		if !v.Bool {
			return
		}
	}
	id, err := x.id.Cast(x.vars, nil, false)
	if err != nil {
		x.stop(x.place, x.path+".id", err)
		return
	}
	path := x.path
	if id.Kind == tree.String {
		path = tree.Join("nodes", id.Str)
	}
	if bad := x.b.s.Rule("ID").Check(id, path); len(bad) > 0 {
		x.stop(bad[0].Pos, x.path+".id", fmt.Errorf("%s", bad[0].Text))
		return
	}
	node, err := x.node.Cast(x.vars, nil, true)
	if err != nil {
		x.stop(x.place, path, err)
		return
	}
	if len(x.b.drafts) >= maxNodes {
		x.stop(x.place, x.path, fmt.Errorf("more than %d nodes", maxNodes))
		return
	}
	if ds := x.b.s.CheckNode(node, path); len(ds) > 0 {
		for _, d := range ds {
			x.b.report(d)
		}
		return
	}
	x.b.draft(id.Str, x.place, node, path)
}
