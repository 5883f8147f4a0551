package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// describeKind asks a kind for what it says of settings, also one that the host carries out itself.
func describeKind(kinds *nodes.Registry, kind string, with json.RawMessage) (nodes.Traits, error) {
	if k, ok := kinds.Kind(kind); ok {
		return k.Describe(with)
	}
	t := nodes.Traits{Effect: "pure"}
	describe, ok := map[string]func(*nodes.Traits, json.RawMessage) error{
		"route": describeRoute, "approval": describeApproval, "checkpoint": describeCheckpoint,
	}[kind]
	if !ok {
		return t, nil
	}
	return t, describe(&t, with)
}

// Notes are facts worth showing of each node of a graph: what Result.Notes holds, for a graph that
// was not compiled just now. A node whose kind is not there has none.
func Notes(g *dag.Graph, kinds *nodes.Registry) [][]string {
	out := make([][]string, g.Len())
	for i := range out {
		n := g.Node(int32(i))
		if t, err := describeKind(kinds, n.Kind, n.With); err == nil {
			out[i] = t.Notes
		}
	}
	return out
}

func problem(t *nodes.Traits, path, format string, args ...any) {
	t.Problems = append(t.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func describeRoute(t *nodes.Traits, with json.RawMessage) error {
	var w struct {
		Rules []struct {
			Name, When, Then string
			Require          []struct{ That string }
		}
		Else   string
		Values map[string]string
	}
	if err := json.Unmarshal(with, &w); err != nil {
		return err
	}
	t.Outputs = map[string]string{"decision": "string", "rule": "string", "reason": "string", "declined": "list"}
	for _, r := range w.Rules {
		note := "rule " + r.Name + " -> " + r.Then + " when " + r.When
		for _, x := range r.Require {
			note += ", and " + x.That
		}
		t.Notes = append(t.Notes, note)
	}
	t.Notes = append(t.Notes, "else -> "+w.Else)
	for _, name := range keys(w.Values) {
		if t.Outputs[name] != "" {
			problem(t, "values."+name, "a route records %q itself; take another name", name)
		}
	}
	return nil
}

func describeApproval(t *nodes.Traits, with json.RawMessage) error {
	var w struct {
		Options                     []string
		Recommended, Default, After *string
	}
	if err := json.Unmarshal(with, &w); err != nil {
		return err
	}
	t.Outputs = map[string]string{"answer": "string", "by": "string"}
	if len(w.Options) == 0 {
		problem(t, "options", "want at least one answer to choose, got none")
	}
	for i, x := range w.Options {
		if slices.Contains(w.Options[:i], x) {
			problem(t, tree.At("options", i), "%q is among the answers already", x)
		}
	}
	answer := func(field string, x *string) {
		if x != nil && !slices.Contains(w.Options, *x) {
			problem(t, field, "want one of %s, got %q%s", strings.Join(w.Options, ", "), *x, rules.DidYouMean(*x, w.Options))
		}
	}
	answer("recommended", w.Recommended)
	answer("default", w.Default)
	if w.After != nil && w.Default == nil {
		problem(t, "after", "a deadline needs the default that is taken when it passes")
	}
	return nil
}

func describeCheckpoint(t *nodes.Traits, _ json.RawMessage) error {
	t.Outputs = map[string]string{"id": "string", "path": "string"}
	return nil
}

// undoers are the kinds that do something themselves.
func (b *builder) undoers() []string {
	return slices.DeleteFunc(slices.Clone(b.s.Kinds), func(k string) bool { return !b.isKind(k) })
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
		u.With = unlessEmpty(b.canonical(expr.Escaped(with), path+".with")) // they are resolved when it starts
		t, _ := b.traits(with, u.Kind, raw, path+".with")
		n.Files = union(n.Files, b.inputs(with, t.Files, path+".with"))
		n.Secrets = union(n.Secrets, t.Secrets)
	}
	n.Undo = u
}
