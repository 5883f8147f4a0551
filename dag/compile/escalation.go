package compile

import (
	"encoding/json"
	"maps"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// asked checks what is done about questions against what the plan may ask: a type that nothing asks, and an answer that
// no question of the type takes, are mistakes.
func (b *builder) asked(g *dag.Graph) {
	takes, named := map[string][]string{}, map[string]bool{} // by type: its answers, and whether approvals have it
	add := func(typ string, answers []string) { takes[typ] = union(takes[typ], answers) }
	for kind, typ := range map[machine.Ask]string{machine.AskFailed: dag.AskFailure, machine.AskBreaker: dag.AskBreaker,
		machine.AskLost: dag.AskLost, machine.AskCompensation: dag.AskCompensation} {
		add(typ, machine.Answers(kind))
	}
	add(dag.AskApproval, nil)
	for _, c := range b.plan.Categories {
		if c.Asks != "" {
			add(c.Asks, machine.Answers(machine.AskFailed))
		}
	}
	for _, x := range b.plan.Breakers {
		if x.Asks != "" {
			add(x.Asks, machine.Answers(machine.AskBreaker))
		}
	}
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if n.Foreach != nil { // its items are meant
			var item struct {
				Kind string
				With json.RawMessage
			}
			_ = json.Unmarshal(n.Foreach.Template, &item) // a template has any form, and says no more then
			n = &dag.Node{Kind: item.Kind, With: item.With}
		}
		if !n.Role().Asks {
			continue
		}
		w := struct {
			Type    string
			Options []dag.Option
		}{Type: dag.AskApproval}
		_ = json.Unmarshal(n.With, &w) // it was checked
		named[w.Type] = true
		for _, o := range w.Options {
			add(w.Type, []string{o.Name})
		}
	}
	types := slices.Sorted(maps.Keys(takes))
	for _, f := range b.escalations.Map() {
		path := tree.Join("escalations", f.Name)
		answers, known := takes[f.Name]
		if !known {
			b.fail(f.Pos, path, "nothing asks questions of type %q%s", f.Name, rules.OrKnown(f.Name, types))
			continue
		}
		p := b.plan.Escalation(f.Name)
		check := func(at *tree.Value, path, answer string, among []string) {
			if at != nil && len(among) > 0 && !slices.Contains(among, answer) {
				b.fail(at.Pos, path, "questions of this type do not take %q%s", answer, rules.OrKnown(answer, among))
			}
		}
		var offered []string
		options := f.Value.Get("options")
		for i, o := range p.Options {
			check(options.Items[i], tree.At(tree.Join(path, "options"), i), o.Name, answers)
			offered = append(offered, o.Name)
		}
		if len(offered) > 0 && !named[f.Name] { // an approval offers what it says itself
			answers = offered
		}
		check(f.Value.Get("recommended"), path+".recommended", p.Recommended, answers)
		check(f.Value.Get("default"), path+".default", p.Default, answers)
		if at := f.Value.Get("after"); at != nil && p.Default == "" {
			b.fail(at.Pos, path+".after", "a deadline needs the default that is taken when it passes")
		}
	}
}
