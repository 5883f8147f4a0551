package compile

import (
	"maps"
	"reflect"
	"slices"
	"sort"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// resolvePipeline fills parameters into everything but nodes and foreach blocks, and checks again what that changed.
// A section with a mistake is left out of what follows.
func (b *builder) resolvePipeline(p *tree.Value) *tree.Value {
	out := &tree.Value{Kind: tree.Map, Pos: p.Pos}
	for _, f := range p.Fields {
		if f.Name != "params" && f.Name != "nodes" && f.Name != "foreach" && expr.HasTemplate(f.Value) {
			before, unknown := len(b.mistakes), b.unknown.reads(f.Value)
			if !unknown {
				f.Value = b.fill(f.Value, f.Name)
			}
			if rule := b.s.Rule("Pipeline").Field(f.Name); rule != nil && !unknown && len(b.mistakes) == before {
				ds, _ := rule.Rule.CheckTemplates(f.Value, f.Name)
				b.ok(ds)
			}
			if unknown || len(b.mistakes) > before {
				b.unknown.section(f.Name)
				continue
			}
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

// fill fills parameters into a value. Where that fails it says so and returns v as it was.
func (b *builder) fill(v *tree.Value, path string) *tree.Value {
	m := b.template(b.lang, v, path, false)
	if m == nil {
		return v
	}
	out, err := m.Fill(nil, nil, false)
	if err != nil {
		b.absorb(err)
		return v
	}
	return out
}

// pipeline reads everything of a pipeline that is not a node.
func (b *builder) pipeline(p *tree.Value) {
	b.plan.Name = p.Get("name").Text()
	if n := len(b.plan.Name); n > longestPart {
		b.fail(p.Get("name").Pos, "name",
			"the name has %d characters; want at most %d, because it names a folder", n, longestPart)
	}
	b.into(p, "", b.plan, "title", "seed", "budget", "phases", "state", "whenFailed", "ticks")
	if b.plan.WhenFailed == dag.FailedPauses {
		b.plan.WhenFailed = ""
	}
	b.defaults = p.Get("defaults")
	b.checkDefaults()
	b.plan.Categories = rows[dag.Category](b, "categories", sortedMap(replaced(p.Get("categories"), b.s.Categories)))
	b.plan.Prices = rows[dag.Price](b, "prices", sortedMap(replaced(p.Get("prices"), b.s.Prices)))
	b.plan.Breakers = rows[dag.Breaker](b, "breakers", sortedMap(p.Get("breakers")))
	b.plan.Accumulators = rows[dag.Accumulator](b, "accumulators", sortedMap(p.Get("accumulators")))
	b.escalations = p.Get("escalations")
	b.plan.Escalations = rows[dag.Escalation](b, "escalations", sortedMap(b.escalations))
	pools := sortedMap(p.Get("pools"))
	b.plan.Pools = rows[dag.Pool](b, "pools", pools)
	for k, f := range pools {
		if f.Value.Kind == tree.Int { // its size alone
			b.plan.Pools[k].Size = int(f.Value.Int)
		}
	}
	b.know(b.plan)
	b.budget(p.Get("budget"))
	for _, f := range p.Get("breakers").Map() {
		b.checkNames("category", f.Value.Get("counts"), tree.Join("breakers", f.Name)+".counts")
	}
	b.accumulators(p.Get("accumulators"))
	b.notify(p.Get("notify"))
}

// know notes which names a plan declares, and which categories mean something else than usual.
func (b *builder) know(p *dag.Plan) {
	usual := map[string]dag.Category{}
	for _, c := range rows[dag.Category](b, "categories", b.s.Categories.Map()) {
		usual[c.Name] = c
	}
	b.ownRows = map[string]bool{}
	for _, c := range p.Categories {
		b.ownRows[c.Name] = !reflect.DeepEqual(c, usual[c.Name])
	}
	for _, x := range p.Breakers {
		b.known["breaker"] = append(b.known["breaker"], x.Name)
	}
	for _, x := range p.Pools {
		b.known["pool"] = append(b.known["pool"], x.Name)
	}
	for _, x := range p.Accumulators {
		b.known["accumulator"] = append(b.known["accumulator"], x.Name)
	}
	for _, x := range p.Categories {
		b.known["category"] = append(b.known["category"], x.Name)
	}
	for what, names := range b.known { // in any order
		slices.Sort(names)
		b.known[what] = slices.Compact(names)
	}
}

func (b *builder) checkDefaults() {
	for _, f := range b.defaults.Map() {
		if f.Name != "*" && !slices.Contains(b.s.Kinds, f.Name) {
			b.fail(f.Pos, tree.Join("defaults", f.Name),
				"no kind %q; want \"*\" or a kind of node%s", f.Name, rules.DidYouMean(f.Name, b.s.Kinds))
		}
	}
}

// warnAt is the share of a cap at which a run warns when the spec does not say.
const warnAt = 0.8

func (b *builder) budget(v *tree.Value) {
	u := &b.plan.Budget
	if w := v.Get("warnUSD"); w == nil {
		u.WarnUSD, _ = dag.Dollars(u.CapUSD.Float() * warnAt)
	} else if u.CapUSD > 0 && u.WarnUSD > u.CapUSD {
		b.fail(w.Pos, "budget.warnUSD", "the warning at $%s comes after the cap of $%s", u.WarnUSD, u.CapUSD)
	}
	if w := v.Get("warnTokens"); w == nil {
		u.WarnTok = int64(float64(u.CapTokens) * warnAt)
	} else if u.CapTokens > 0 && u.WarnTok > u.CapTokens {
		b.fail(w.Pos, "budget.warnTokens", "the warning at %d tokens comes after the cap of %d", u.WarnTok, u.CapTokens)
	}
}

// accumulators gives each its live file, which no other has.
func (b *builder) accumulators(v *tree.Value) {
	byPath := map[string]string{}
	for i := range b.plan.Accumulators {
		a := &b.plan.Accumulators[i]
		here, at := tree.Join("accumulators", a.Name), v.Get(a.Name).Get("path")
		if a.Path == "" {
			a.Path, at = a.Name+".md", v.Get(a.Name)
		} else {
			b.localPath(at, here+".path")
		}
		b.notOwn(a.Path, at.Pos, here+".path")
		if other, dup := byPath[fold(a.Path)]; dup {
			b.fail(at.Pos, here, "its live file %s is that of accumulator %q too", a.Path, other)
		}
		byPath[fold(a.Path)] = a.Name
	}
}

// checkNames refuses names that are not declared: breakers, pools, accumulators, categories.
// v is one text or a list of them.
func (b *builder) checkNames(what string, v *tree.Value, path string) {
	if v == nil {
		return
	}
	if v.Kind == tree.List {
		for i, x := range v.Items {
			b.checkNames(what, x, tree.At(path, i))
		}
		return
	}
	names := b.known[what]
	if i := sort.SearchStrings(names, v.Str); i < len(names) && names[i] == v.Str || b.unknown.names[what] {
		return
	}
	if len(names) == 0 {
		b.fail(v.Pos, path, "no %s %q; the pipeline declares none", what, v.Str)
		return
	}
	b.fail(v.Pos, path, "no %s %q%s", what, v.Str, rules.OrKnown(v.Str, names))
}

// phases warns of phases that no node belongs to, and of labels in them that none of theirs has.
func (b *builder) phases(p *tree.Value) {
	for i := range b.plan.Phases {
		ph := &b.plan.Phases[i]
		of, at := p.Get("phases").Items[i], tree.At("phases", i)
		labels, groups, found := map[string]bool{}, b.late, false
		for _, g := range b.late {
			found = found || ph.Has(&dag.Node{Group: g})
		}
		late := found // its items have labels that nobody knows yet
		for _, d := range b.drafts {
			groups = append(groups, d.node.Group)
			if !ph.Has(d.node) {
				continue
			}
			found, late = true, late || d.node.Foreach != nil
			for name := range d.node.Labels { // into a set
				labels[name] = true
			}
		}
		if !found {
			b.warn(of.Get("group").Pos, at+".group", "no node is in group %q%s", ph.Group, rules.DidYouMean(ph.Group, groups))
			continue
		}
		for _, f := range of.Fields {
			c := map[string]*dag.Counted{"counts": ph.Counts, "parts": ph.Parts, "steps": ph.Steps}[f.Name]
			if c != nil && !labels[c.Label] && !late {
				b.warn(f.Value.Get("label").Pos, at+"."+f.Name+".label", "no node of group %q has a label %q%s",
					ph.Group, c.Label, rules.DidYouMean(c.Label, slices.Sorted(maps.Keys(labels))))
			}
		}
	}
}
