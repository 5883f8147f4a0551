package compile

import (
	"slices"
	"strings"

	"dagrun.dev/dag/state"
	"dagrun.dev/internal/tree"
)

// state checks what a pipeline declares for its state.json: names that come twice, and labels, outputs, accumulators
// and artifacts that nothing in the plan has. Where nodes are made at run time their labels are not known.
func (b *builder) state(p *tree.Value) {
	v := p.Get("state")
	if v == nil || b.unknown.any {
		return
	}
	open := false
	for _, d := range b.drafts {
		n := d.node
		open = open || n.Foreach != nil
		for name := range n.Labels { // sorted below
			b.known["label"] = append(b.known["label"], name)
		}
		for name := range n.Outputs { // sorted below
			b.known["output"] = append(b.known["output"], name)
		}
		b.known["artifact"] = append(b.known["artifact"], n.Writes...)
	}
	for _, what := range []string{"label", "output", "artifact"} {
		slices.Sort(b.known[what])
		b.known[what] = slices.Compact(b.known[what])
		if open {
			b.unknown.name(what)
		}
	}
	b.checkNames("artifact", v.Get("artifact"), "state.artifact")
	fields := map[string]bool{} // of a record, as labels name them
	for _, f := range v.Get("labels").Map() {
		b.checkNames("label", &tree.Value{Kind: tree.String, Str: f.Name, Pos: f.Pos}, tree.Join("state.labels", f.Name))
		fields[f.Value.Text()] = true
	}
	document, costs := state.DocumentFields(), state.CostFields()
	b.facts(v.Get("facts"), "state.facts", document)
	for i, r := range v.Get("records").List() {
		at := tree.At("state.records", i)
		b.named(r, at, document)
		own := state.RecordFields()
		for name := range fields { // a set
			own[name] = true
		}
		b.facts(r.Get("fields"), at+".fields", own)
	}
	for i, r := range v.Get("costs").List() {
		b.named(r, tree.At("state.costs", i), costs)
	}
}

// named takes the name of a field, which nothing else in the same place may have, and checks its label.
func (b *builder) named(v *tree.Value, path string, taken map[string]bool) {
	name := v.Get("name")
	if taken[name.Text()] {
		b.fail(name.Pos, path+".name", "there is a field %q already; take another name", name.Text())
	}
	taken[name.Text()] = true
	b.checkNames("label", v.Get("by"), path+".by")
}

// sources are where the value of a field may come from, and what it names there.
var sources = []struct{ name, what string }{
	{"value", ""}, {"last", "label"}, {"current", "label"}, {"output", "output"}, {"entries", "accumulator"},
	{"has", "accumulator"}, {"path", "accumulator"}, {"files", ""}, {"field", ""}, {"one", ""}, {"all", ""},
}

func (b *builder) facts(list *tree.Value, path string, taken map[string]bool) {
	for i, f := range list.List() {
		at := tree.At(path, i)
		b.named(f, at, taken)
		b.checkNames("label", f.Get("of").Get("label"), at+".of.label")
		var names []string
		given := 0
		for _, s := range sources {
			names = append(names, s.name)
			if f.Get(s.name) != nil {
				given++
			}
			if s.what != "" {
				b.checkNames(s.what, f.Get(s.name), at+"."+s.name)
			}
		}
		if given != 1 {
			b.fail(f.Pos, at, "it has %d of %s; want one", given, strings.Join(names, ", "))
		}
	}
}
