package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/glob"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// describe checks the settings and merges what the kind says of them. Where that is nothing, the
// traits are zero.
func (b *builder) describe(d *draft) (t nodes.Traits) {
	path := d.path + ".with"
	if d.with == nil {
		d.with = &tree.Value{Kind: tree.Map, Pos: d.pos}
	}
	late := d.node.Dynamic || d.node.Role().Decides
	raw, t := b.traitsOf(d.node.Kind, d.with, path, late, d.node.Dynamic)
	if raw == nil {
		return nodes.Traits{}
	}
	d.node.With = unlessEmpty(raw)
	b.declare(d, &t)
	d.node.Files = b.inputs(d.with, t.Files, path)
	b.checkFiles(d, &t, raw, path)
	b.undeclared(d, &t)
	b.otherValues(d)
	return t
}

// traitsOf checks settings and asks their kind what it says of them. It returns how the plan holds them, or nil where
// something is wrong. Of dynamic ones, which recorded values will complete, the kind is shown a sample.
func (b *builder) traitsOf(
	kind string, with *tree.Value, path string, late, dynamic bool,
) (raw json.RawMessage, t nodes.Traits) {
	if b.ok(b.s.CheckSettings(kind, with, path, late)) {
		raw = b.canonical(with, path)
	}
	if raw == nil {
		return nil, t
	}
	shown, ok := raw, false
	if dynamic {
		shown = sample(b.s.Settings(kind), with).AppendJSON(nil)
	}
	if t, ok = b.traits(with, kind, shown, path); !ok {
		return nil, t
	}
	return raw, t
}

// declare lays what a kind says of the settings beside what the node itself declares.
func (b *builder) declare(d *draft, t *nodes.Traits) {
	n := d.node
	maps.DeleteFunc(t.Words, func(_ string, words []string) bool { // one that is yet to be filled in may be any text
		return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, "${") })
	})
	d.words = t.Words
	d.notes = slices.Concat(t.Notes, t.Details)
	n.Ambient = t.Ambient && n.Effect != dag.Pure // who says that a command is pure says that it is not
	if n.Effect == "" {
		n.Effect = dag.Effect(t.Effect)
	}
	if n.Effect == dag.Probe && !t.Probes {
		pos := d.pos
		if v := d.tree.Get("effect"); v != nil {
			pos = v.Pos
		}
		b.fail(pos, d.path+".effect", "want a node whose settings name a probe; with these, kind %s has none", n.Kind)
	}
	n.Reads, n.Writes, n.Appends = union(n.Reads, t.Reads), union(n.Writes, t.Writes), union(n.Appends, t.Appends)
	b.unused(d, t)
	n.Secrets = union(n.Secrets, t.Secrets)
	b.steady(d, t)
	n.Paid, n.Account = t.Paid, t.Account
	for _, name := range slices.Sorted(maps.Keys(t.Outputs)) {
		typ := t.Outputs[name]
		if own := n.Outputs[name]; own != "" && own != typ {
			b.fail(d.tree.Get("outputs").Get(name).Pos, d.path+".outputs."+name,
				"kind %s records %q as %s, not %s", n.Kind, name, typ, own)
		}
		output(n, name, typ)
	}
	if p := t.Prompt; p != nil {
		n.Call = &dag.Call{
			Provider: p.Provider, Model: p.Model,
			Chars: p.Chars, Files: p.Files, Reads: p.Reads, MaxOutput: p.MaxOutput,
		}
	}
}

// unused warns of secrets that a node declares and that none of its settings hands over. What undoes it may.
func (b *builder) unused(d *draft, t *nodes.Traits) {
	undo := d.tree.Get("compensate") != nil || d.tree.Get("onFail").Get("compensate") != nil
	for i, v := range d.tree.Get("secrets").List() {
		if slices.Contains(t.Secrets, v.Str) || undo {
			continue
		}
		text := fmt.Sprintf("no setting of the node uses the secret %q, so that it reaches nothing", v.Str)
		if r := b.s.Settings(d.node.Kind); r.Field("secrets") != nil {
			text += fmt.Sprintf("; with.secrets: {NAME: %s} hands it over as NAME", v.Str)
		}
		b.warn(v.Pos, tree.At(d.path+".secrets", i), "%s", text)
	}
}

// sample is what a kind is shown of settings that recorded values will complete: where an expression stands for a
// number, a list and so on, a value that the rules allow stands for it.
func sample(r *rules.Rule, v *tree.Value) *tree.Value {
	if v.Kind == tree.String {
		text := &tree.Value{Kind: tree.String, Str: "text"}
		if r == nil || !strings.Contains(v.Str, "${") || r.Valid(text) || r.Types.Has(tree.String) {
			return v
		}
		for _, try := range samples {
			if r.Valid(try) {
				return try
			}
		}
	}
	return v.Edited(func(label string, x *tree.Value) *tree.Value { return sample(r.Below(label), x) })
}

var samples = []*tree.Value{
	{Kind: tree.Int, Int: 1}, {Kind: tree.Bool}, {Kind: tree.Int}, {Kind: tree.Int, Int: 100}, {Kind: tree.Int, Int: 1000},
	{Kind: tree.Float, Float: 0.5}, {Kind: tree.List}, {Kind: tree.Map},
}

// traits asks a kind, and gives the problems it finds their places.
func (b *builder) traits(settings *tree.Value, kind string, with json.RawMessage, path string) (nodes.Traits, bool) {
	t, err := describeKind(b.s.Registry, kind, with)
	if err != nil {
		b.fail(settings.Pos, path, "%v", err)
		return t, false
	}
	for _, p := range t.Problems {
		b.problem(settings, path, p)
	}
	for _, c := range t.Categories {
		v := *at(settings, c.Path) // its place; a step of a list may have no value of its own
		v.Kind, v.Str = tree.String, c.Name
		b.checkNames("category", &v, path+"."+c.Path)
	}
	if len(t.Problems) == 0 && t.Formulas != nil {
		t.Problems = b.formulas(settings, path, t.Formulas)
	}
	if roleOf(kind).Saves {
		b.checkNames("accumulator", settings.Get("accumulators"), path+".accumulators")
	}
	return t, len(t.Problems) == 0
}

// formulas types the expressions in settings that their kind evaluates itself.
func (b *builder) formulas(settings *tree.Value, path string, x *nodes.Formulas) []nodes.Problem {
	_, problems := b.lang.Formulas(x)
	for _, p := range problems {
		v := at(settings, p.Path)
		b.problems(v.Pos, path+"."+p.Path, v.Str, []string{p.Text})
	}
	return problems
}

// problem gives a problem of settings its place: that of the value at its path, or of the
// nearest one around it.
func (b *builder) problem(with *tree.Value, path string, p nodes.Problem) {
	where := path
	if p.Path != "" {
		where += "." + p.Path
	}
	b.fail(at(with, p.Path).Pos, where, "%s", p.Text)
}

func isStep(r rune) bool { return r == '.' || r == '[' || r == ']' }

// references checks what a node, or the template of one, names by its declared name, and the paths that it names.
// What the item of a template will fill in is left out.
func (b *builder) references(v *tree.Value, path string, later func(*tree.Value) bool) {
	check := func(what, field string, x *tree.Value) {
		if x != nil && !later(x) {
			b.checkNames(what, x, path+"."+field)
		}
	}
	check("breaker", "breaker", v.Get("breaker"))
	check("pool", "pool", v.Get("pool"))
	check("accumulator", "appends", v.Get("appends"))
	for _, f := range sortedMap(v.Get("retry").Get("on")) {
		check("category", tree.Join("retry.on", f.Name), &tree.Value{Kind: tree.String, Str: f.Name, Pos: f.Pos})
	}
	for _, field := range []string{"reads", "writes"} {
		for i, x := range v.Get(field).List() {
			here := tree.At(tree.Join(path, field), i)
			switch x := readPath(x); {
			case later(x) || !b.localPath(x, here):
			case field == "reads":
				if err := glob.Check(x.Str); glob.Is(x.Str) && err != nil {
					b.fail(x.Pos, here, "%s: %v", x.Str, err)
				}
			case strings.ContainsAny(x.Str, "*?"):
				b.fail(x.Pos, here, "want the name of a file, or of a folder (%q), got the pattern %q: patterns are for reads",
					strings.TrimRight(glob.Literal(x.Str), "/")+"/", x.Str)
			}
		}
	}
}

// touched checks the artifacts and accumulators that settings name, and what the node writes.
func (b *builder) touched(d *draft, t *nodes.Traits) {
	for _, name := range t.Appends {
		v, path := whereIs(name, d.with, d.path+".with")
		b.checkNames("accumulator", v, path)
	}
	for _, name := range slices.Concat(t.Reads, t.Writes) {
		v, path := whereIs(name, d.with, d.path+".with")
		if b.localPath(v, path) && (dag.IsPattern(name) || dag.IsFolder(name)) {
			d.single = append(d.single, reader{name, v.Pos, path})
		}
	}
	for _, name := range t.Writes {
		if v, path := whereIs(name, d.with, d.path+".with"); dag.IsFolder(name) {
			b.fail(v.Pos, path, "want the name of a file, got that of a folder, %q", name)
		}
	}
	for _, w := range d.node.Writes {
		if slices.Contains(b.known["accumulator"], w) {
			b.fail(d.pos, d.path, "writes %q, which is an accumulator: append to it", w)
		}
		if first, _, _ := strings.Cut(w, "/"); strings.EqualFold(first, ownFolder) {
			b.fail(d.pos, d.path, "writes %q: %s is the run's own folder", w, ownFolder)
		}
	}
}

// ownFolder is where a run keeps its own files within the output folder.
const ownFolder = "_orchestrator"
