package compile

import (
	"encoding/json"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// controlTraits describes the nodes that the host carries out itself.
func (b *builder) controlTraits(d *draft, kind string) nodes.Traits {
	t := nodes.Traits{Effect: "pure"}
	switch kind {
	case "route":
		t.Outputs = map[string]string{"decision": "string", "rule": "string", "reason": "string"}
		t.Notes = routeNotes(d.with.AppendJSON(nil))
		for _, f := range fieldsOf(d.with.Get("values")) {
			if t.Outputs[f.Name] != "" {
				b.fail(f.Pos, tree.Join(d.path+".with.values", f.Name), "a route records %q itself; take another name", f.Name)
			}
		}
	case "approval":
		t.Outputs = map[string]string{"answer": "string", "by": "string"}
		b.options(d)
		b.checkAnswer(d, "recommended")
		b.checkAnswer(d, "default")
		if after := d.with.Get("after"); after != nil && d.with.Get("default") == nil {
			b.fail(after.Pos, d.path+".with.after", "a deadline needs the default that is taken when it passes")
		}
	case "checkpoint":
		t.Outputs = map[string]string{"id": "string", "path": "string"}
		b.checkNames("accumulator", d.with.Get("accumulators"), d.path+".with.accumulators")
	}
	return t
}

// Notes are facts worth showing of each node of a graph: what Result.Notes holds, for a graph that
// was not compiled just now. A node whose kind is not there has none.
func Notes(g *dag.Graph, kinds *nodes.Registry) [][]string {
	out := make([][]string, g.Len())
	for i := range out {
		n := g.Node(int32(i))
		if n.Kind == "route" {
			out[i] = routeNotes(n.With)
		} else if k, ok := kinds.Kind(n.Kind); ok {
			if t, err := k.Describe(n.With); err == nil {
				out[i] = t.Notes
			}
		}
	}
	return out
}

// routeNotes are a route's rules in order.
func routeNotes(with json.RawMessage) []string {
	var w struct {
		Rules []struct{ Name, When, Then string }
		Else  string
	}
	if json.Unmarshal(with, &w) != nil {
		return nil
	}
	var out []string
	for _, r := range w.Rules {
		out = append(out, "rule "+r.Name+" -> "+r.Then+" when "+r.When)
	}
	return append(out, "else -> "+w.Else)
}

// undoers are the kinds that do something themselves.
func (b *builder) undoers() []string {
	return slices.DeleteFunc(slices.Clone(b.s.Kinds), func(k string) bool { return !b.isKind(k) })
}

// options refuses a question without answers, and duplicate answers.
func (b *builder) options(d *draft) {
	v := d.with.Get("options")
	if v == nil {
		return
	}
	if len(v.Items) == 0 {
		b.fail(v.Pos, d.path+".with.options", "want at least one answer to choose, got none")
	}
	seen := map[string]bool{}
	for i, x := range v.Items {
		if seen[x.Str] {
			b.fail(x.Pos, tree.At(d.path+".with.options", i), "%q is among the answers already", x.Str)
		}
		seen[x.Str] = true
	}
}

func (b *builder) checkAnswer(d *draft, field string) {
	v := d.with.Get(field)
	if v == nil {
		return
	}
	if options := strs(d.with.Get("options")); !slices.Contains(options, v.Str) {
		b.fail(v.Pos, d.path+".with."+field, "want one of %s, got %q%s", strings.Join(options, ", "), v.Str, rules.DidYouMean(v.Str, options))
	}
}

// undo reads a compensation.
func (b *builder) undo(d *draft, v *tree.Value) {
	n, path := d.node, d.path+".compensate"
	if v == nil {
		if n.OnFail == dag.FailCompensate {
			pos := d.pos
			if f := d.tree.Get("onFail"); f != nil {
				pos = f.Pos
			}
			b.fail(pos, d.path+".onFail", "onFail is compensate, and there is no compensate block that says how")
		}
		return
	}
	with := v.Get("with")
	u := &dag.Undo{Most: 1}
	b.into(v, path, u, "on", "kind", "rewind", "most")
	b.checkNames("category", v.Get("on"), path+".on")
	if k := v.Get("kind"); k != nil && !b.isKind(u.Kind) {
		b.fail(k.Pos, path+".kind", "a %s cannot undo anything; want one of %s", u.Kind, strings.Join(b.undoers(), ", "))
		return
	}
	if with != nil {
		var late bool
		if with, late = b.settings(v, with, path+".with"); late {
			b.fail(with.Pos, path+".with", "the settings of a compensation may not depend on recorded values")
			return
		}
		if !b.ok(b.s.CheckSettings(u.Kind, with, path+".with", false)) {
			return
		}
		raw := b.canonical(with, path+".with")
		u.With = unlessEmpty(raw)
		c := &draft{id: d.id, path: path, tree: v, pos: v.Pos, with: with, node: &dag.Node{Kind: u.Kind}}
		t, _ := b.traits(c, u.Kind, raw, path+".with")
		n.Files = union(n.Files, b.inputs(c, t.Files, path+".with"))
		n.Secrets = union(n.Secrets, t.Secrets)
	}
	n.Undo = u
}
