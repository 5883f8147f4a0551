package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
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
	var err error
	switch role := roleOf(kind); {
	case role.Decides:
		err = describeRoute(&t, with)
	case role.Asks:
		err = describeApproval(&t, with)
	case role.Saves:
		t.Outputs = map[string]string{"id": "string", "path": "string"}
	}
	return t, err
}

func roleOf(kind string) dag.Role { return (&dag.Node{Kind: kind}).Role() }

// Notes are facts worth showing of each node of a graph: what Result.Notes holds without the details, for a graph that
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
		Else      string
		Decisions []string
		Values    map[string]string
	}
	if err := json.Unmarshal(with, &w); err != nil {
		return err
	}
	t.Outputs = map[string]string{"decision": "string", "rule": "string", "reason": "string", "declined": "list"}
	t.Words = map[string][]string{"decision": w.Decisions}
	decides := func(at, name string) {
		if len(w.Decisions) > 0 && !slices.Contains(w.Decisions, name) && !strings.Contains(name, "${") {
			problem(t, at, "want one of decisions: %s, got %q%s", strings.Join(w.Decisions, ", "), name,
				rules.DidYouMean(name, w.Decisions))
		}
	}
	decides("else", w.Else)
	for i, r := range w.Rules {
		decides(tree.At("rules", i)+".then", r.Then)
		note := "rule " + r.Name + " -> " + r.Then + " when " + r.When
		for _, x := range r.Require {
			note += ", and " + x.That
		}
		t.Notes = append(t.Notes, note)
	}
	t.Notes = append(t.Notes, "else -> "+w.Else)
	for _, name := range slices.Sorted(maps.Keys(w.Values)) {
		if t.Outputs[name] != "" {
			problem(t, "values."+name, "a route records %q itself; take another name", name)
		}
	}
	return nil
}

func describeApproval(t *nodes.Traits, with json.RawMessage) error {
	var w struct {
		Message                     string
		Options                     []dag.Option
		Refuses                     *[]string
		Recommended, Default, After *string
	}
	if err := json.Unmarshal(with, &w); err != nil {
		return err
	}
	t.Outputs = map[string]string{"answer": "string", "by": "string"}
	if len(w.Options) == 0 {
		problem(t, "options", "want at least one answer to choose, got none")
	}
	var options []string
	for i, o := range w.Options {
		if slices.Contains(options, o.Name) {
			problem(t, tree.At("options", i), "%q is among the answers already", o.Name)
		}
		options = append(options, o.Name)
		if o.Text != "" {
			t.Outputs["text"] = "string?"
		}
	}
	t.Words = map[string][]string{"answer": options}
	answer := func(field string, x *string) {
		if x != nil && !slices.Contains(options, *x) {
			problem(t, field, "want one of %s, got %q%s", strings.Join(options, ", "), *x, rules.DidYouMean(*x, options))
		}
	}
	answer("recommended", w.Recommended)
	answer("default", w.Default)
	refuses := dag.Refusing(options, w.Refuses)
	for i, x := range refuses {
		if w.Refuses != nil {
			answer(tree.At("refuses", i), &x)
		}
	}
	accepts := slices.DeleteFunc(slices.Clone(options), func(x string) bool { return slices.Contains(refuses, x) })
	if len(options) > 0 && len(accepts) == 0 {
		problem(t, "refuses", "every answer refuses: want one that does not")
	}
	note := "asks: " + strconv.Quote(w.Message) + "; accepts: " + strings.Join(accepts, ", ")
	if len(refuses) > 0 {
		note += "; refuses: " + strings.Join(refuses, ", ") + " (the node fails then, and its onFail decides)"
	} else {
		note += "; none of them refuses"
	}
	if w.Default != nil && w.After != nil {
		note += fmt.Sprintf("; without an answer within %s: %s", *w.After, *w.Default)
		if slices.Contains(refuses, *w.Default) {
			note += ", which refuses"
		}
	}
	t.Notes = append(t.Notes, note)
	if w.After != nil && w.Default == nil {
		problem(t, "after", "a deadline needs the default that is taken when it passes")
	}
	return nil
}

// undoers are the kinds that do something themselves.
func (b *builder) undoers() []string {
	return slices.DeleteFunc(slices.Clone(b.s.Kinds), func(k string) bool { return !b.isKind(k) })
}

// undo reads what undoes a node's work, and what its failure undoes. full is the node with the pipeline's defaults.
func (b *builder) undo(d *draft, full *tree.Value) {
	n, v := d.node, d.tree.Get("compensate")
	if v != nil && n.Always {
		b.fail(v.Pos, d.path+".compensate", "clean-up (always) is not undone: it runs when a run ends, after what is undone")
		return
	}
	if v != nil {
		n.Undo = b.action(d, v, d.path+".compensate")
	}
	if n.OnFail != dag.FailCompensate {
		return
	}
	n.Back = &dag.Back{All: true, Then: dag.ThenStop}
	if d.triggerPos = posOf(d.tree.Get("onFail")); full.Get("onFail").Kind != tree.Map {
		return
	}
	how, path := full.Get("onFail").Get("compensate"), d.path+".onFail.compensate"
	b.into(how, path, n.Back, "then", "times", "on")
	b.checkNames("category", how.Get("on"), path+".on")
	back, times := how.Get("back"), how.Get("times")
	n.Back.To, n.Back.All = strs(back), back == nil
	switch {
	case n.Back.Then != dag.ThenAgain && times != nil:
		b.fail(times.Pos, path+".times", "times says how often it runs again at most, "+
			"and then is %s; want then: again, or no times", n.Back.Then)
	case n.Back.Then == dag.ThenAgain && times == nil:
		n.Back.Times = 1
	}
	if own := how.Get("own"); own != nil {
		n.Back.Own = b.action(d, own, path+".own")
	} else if back != nil && len(back.Items) == 0 {
		b.fail(back.Pos, path+".back", "an empty back undoes nothing, and there is no own action: nothing would be done")
	}
}

// movedFields are fields of an undo action that have become part of the trigger.
var movedFields = []string{"on", "rewind", "most"}

// action reads an undo action; nil where it has mistakes.
func (b *builder) action(d *draft, v *tree.Value, path string) *dag.Undo {
	for _, name := range movedFields {
		if x := v.Get(name); x != nil {
			b.fail(x.Pos, tree.Join(path, name), "not a setting of an undo action any more: an action undoes the node that "+
				"it stands at. What the failure of a node undoes, and how far back, stands in its onFail: "+
				"{compensate: {back: [ID], own: {kind: ..., with: ...}, then: again, times: 1, on: [CATEGORY]}}")
			return nil
		}
	}
	u := &dag.Undo{}
	b.into(v, path, u, "kind", "effect", "timeout")
	if k := v.Get("kind"); k != nil && !b.isKind(u.Kind) {
		b.fail(k.Pos, path+".kind", "a %s cannot undo anything; want one of %s", u.Kind, strings.Join(b.undoers(), ", "))
		return nil
	}
	with := v.Get("with")
	if with == nil {
		return u
	}
	path += ".with"
	with, u.Dynamic = b.settings(v, with, path)
	raw, t := b.traitsOf(u.Kind, with, path, u.Dynamic, u.Dynamic)
	if raw == nil {
		return nil
	}
	u.With = unlessEmpty(raw)
	if u.Dynamic {
		d.actions = append(d.actions, reading{path: path, rule: b.s.Settings(u.Kind), tree: with})
	}
	if u.Effect == "" && !dag.Effect(t.Effect).Repeatable() {
		u.Effect = dag.Once
	}
	d.node.Files = union(d.node.Files, b.inputs(with, t.Files, path))
	d.node.Secrets = union(d.node.Secrets, t.Secrets)
	return u
}

// undone checks what failures undo against the whole graph: that there is something, and that it comes before.
func (b *builder) undone(g *dag.Graph) {
	for _, d := range b.drafts {
		at, _ := g.Index(d.id)
		n := g.Node(at)
		if n.Back == nil || d.triggerPos == (tree.Pos{}) { // or it stands in the defaults, for those whom it fits
			continue
		}
		before, path := g.Above(at), d.path+".onFail"
		some := n.Back.Own != nil || n.Back.Then == dag.ThenAgain && len(n.Back.To) > 0
		for j, is := range before {
			some = some || is && g.Node(int32(j)).Undoable()
		}
		for _, id := range n.Back.To {
			if j, ok := g.Index(id); ok && !before[j] {
				b.fail(d.triggerPos, path+".compensate.back",
					"%q is not before this node: only what is can be undone when it fails", id)
			}
		}
		if some {
			continue
		}
		hint := "give those that have to be undone a compensate: {kind: ..., with: ...}"
		if n.Undo != nil {
			hint = "the compensate of this node undoes it when a node behind it fails; what is to be done when it " +
				"fails itself is onFail: {compensate: {own: {kind: ..., with: ...}}}"
		}
		b.fail(d.triggerPos, path, "no node before this one has an undo action, so nothing would be undone; %s", hint)
	}
}
