package compile

import (
	"encoding/json"
	"strings"

	"dagrun.dev/dag"
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
	case "approval":
		t.Outputs = map[string]string{"answer": "string", "by": "string"}
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

func (b *builder) checkAnswer(d *draft, field string) {
	v := d.with.Get(field)
	if v == nil {
		return
	}
	if options := strs(d.with.Get("options")); !contains(options, v.Str) {
		b.fail(v.Pos, d.path+".with."+field, "want one of %s, got %q%s", strings.Join(options, ", "), v.Str, near(v.Str, options))
	}
}

// undo reads a compensation.
func (b *builder) undo(d *draft, v *tree.Value) {
	n, path := d.node, d.path+".compensate"
	if v == nil {
		if n.OnFail == "compensate" {
			b.fail(d.pos, d.path, "onFail is compensate, and there is no compensate block that says how")
		}
		return
	}
	with := v.Get("with")
	u := &dag.Undo{On: strs(v.Get("on")), Kind: str(v.Get("kind")), Rewind: str(v.Get("rewind")), Most: max(1, num(v.Get("most")))}
	b.checkNames("category", v.Get("on"), path+".on")
	if with != nil {
		var late bool
		if with, late = b.settings(v, with, path+".with"); late {
			b.fail(with.Pos, path+".with", "the settings of a compensation may not depend on recorded values")
			return
		}
		mistakes := b.s.CheckWith(u.Kind, with, path+".with", false)
		for _, x := range mistakes {
			b.report(x)
		}
		if len(mistakes) > 0 {
			return
		}
		raw, err := dag.AppendCanonical(nil, with.AppendJSON(nil))
		if err != nil {
			b.fail(with.Pos, path+".with", "%v", err)
			return
		}
		if string(raw) != "{}" {
			u.With = raw
		}
		c := &draft{id: d.id, path: path, tree: v, pos: v.Pos, with: with, node: &dag.Node{Kind: u.Kind}}
		t, _ := b.traits(c, u.Kind, raw, path+".with")
		n.Files = union(n.Files, b.inputs(c, t.Files, path+".with"))
		n.Secrets = union(n.Secrets, t.Secrets)
	}
	n.Undo = u
}
