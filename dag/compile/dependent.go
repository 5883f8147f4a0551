package compile

import (
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// unknowns are what mistakes leave unknown: a value in error yields no further errors. It is taken out of the tree,
// and what depends on it is not looked at. So every mistake is reported once, and all that do not follow from others
// are reported at once.
type unknowns struct {
	any    bool                // something is: there will be no plan
	taken  []string            // paths of the values that were taken out
	fields map[string][]string // of nodes, by id: those that were taken out
	nodes  map[string]bool     // nodes of which nothing is known but the id
	blocks map[int]bool        // foreach blocks with mistakes
	params []string            // parameters without a value: the first part of the name; "" = any of them
	names  map[string]bool     // breakers, pools, accumulators, categories: which there are
	ids    bool                // which nodes there are
	money  bool                // what things cost
}

// declares is what each of these sections declares the names of. Names of categories are in a table too.
var declares = map[string]string{"breakers": "breaker", "pools": "pool", "accumulators": "accumulator"}

// section notes that a field of the pipeline has mistakes.
func (u *unknowns) section(name string) {
	u.any = true
	one := declares[name]
	if name == "categories" {
		one = "category"
	}
	u.name(one)
	switch name {
	case "nodes", "foreach":
		u.ids = true
	case "params":
		u.param("")
	case "defaults", "prices", "priceList", "budget":
		u.money = true
	}
}

// name notes that it is not known which breakers, pools, ... there are.
func (u *unknowns) name(what string) {
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[what] = true
}

// node notes that a node has mistakes.
func (u *unknowns) node(id string) {
	if u.nodes == nil {
		u.nodes = map[string]bool{}
	}
	u.any, u.nodes[id] = true, true
}

// param notes that a parameter has no value.
func (u *unknowns) param(name string) {
	first, _, _ := strings.Cut(name, ".")
	u.any, u.params = true, append(u.params, first)
}

// reads says whether an expression in v may read a parameter without a value.
func (u *unknowns) reads(v *tree.Value) bool {
	return len(u.params) > 0 && v != nil && v.Any(func(x *tree.Value) bool {
		named := func(p string) bool { return strings.Contains(x.Str, p) }
		return strings.Contains(x.Str, "params") && slices.ContainsFunc(u.params, named)
	})
}

// affects says whether a node depends on something unknown and is not to be looked at.
func (u *unknowns) affects(d *draft) bool { return u.nodes[d.id] || u.reads(d.tree) }

// settings says whether the settings of a node are unknown.
func (u *unknowns) settings(d *draft) bool { return slices.Contains(u.fields[d.id], "with") }

// independent returns the mistakes that those reported already do not explain.
func (b *builder) independent(reported tree.Diagnostics) tree.Diagnostics {
	known := pathsOf(reported)
	at := map[tree.Pos]bool{}
	for _, d := range reported {
		at[d.Pos] = true
	}
	for _, path := range b.unknown.taken {
		known[path] = true
	}
	return slices.DeleteFunc(b.mistakes, func(d tree.Diagnostic) bool { return at[d.Pos] || known.cover(d.Path) })
}

// without takes the values with mistakes out of a pipeline: a field of a node, a row or field of another section, a
// section where no part of it can be named.
func (b *builder) without(p *tree.Value, wrong []string) {
	if len(wrong) == 0 {
		return
	}
	u := &b.unknown
	u.any = true
	u.blocks, u.fields = map[int]bool{}, map[string][]string{}
	nodes := map[string]tree.Field{} // by path
	for _, f := range p.Get("nodes").Map() {
		nodes[tree.Join("nodes", f.Name)] = f
	}
	for section, one := range declares { // names are known whatever is wrong with what they name
		for _, f := range p.Get(section).Map() {
			b.known[one] = append(b.known[one], f.Name)
		}
	}
	for _, path := range wrong {
		section, rest, _ := strings.Cut(path, ".")
		name, index, isItem := strings.Cut(section, "[")
		switch k, err := strconv.Atoi(strings.TrimSuffix(index, "]")); {
		case section == "nodes" && b.withoutField(path, nodes):
		case isItem && name == "foreach" && err == nil:
			u.blocks[k], u.ids = true, true
		case isItem || rest == "" || section == "params" || section == "nodes":
			b.withoutPart(p, name, "")
		default:
			b.withoutPart(p, name, firstStep(rest))
		}
	}
}

// firstStep is the first name of a path.
func firstStep(path string) string {
	first := path[:len(path)-len(strings.TrimLeftFunc(path, func(r rune) bool { return !isStep(r) }))]
	return strings.Trim(first, `"`)
}

// withoutPart takes a row or field out of a section, or the section.
func (b *builder) withoutPart(p *tree.Value, section, part string) {
	b.unknown.section(section)
	v := p.Get(section)
	if v != nil && v.Kind == tree.Map {
		delete(b.unknown.names, declares[section])
	}
	if v == nil || v.Get(part) == nil {
		b.take(p, section, section)
		return
	}
	b.take(v, part, tree.Join(section, part))
}

// take takes a field out of a map.
func (b *builder) take(from *tree.Value, name, path string) {
	from.Fields = slices.DeleteFunc(from.Fields, func(f tree.Field) bool { return f.Name == name })
	b.unknown.taken = append(b.unknown.taken, path)
}

// withoutField takes the field that a path leads to out of its node. It is false where there is no such node.
func (b *builder) withoutField(path string, nodes map[string]tree.Field) bool {
	for end := len(path); end > len("nodes."); end = strings.LastIndexAny(path[:end], ".[") {
		f, ok := nodes[path[:end]]
		if !ok {
			continue
		}
		id, node, field := f.Name, f.Value, firstStep(strings.TrimPrefix(path[end:], "."))
		if field == "" || field == "kind" || node.Kind != tree.Map {
			b.unknown.node(id)
			return true
		}
		b.take(node, field, tree.Join(path[:end], field))
		b.unknown.fields[id] = append(b.unknown.fields[id], field)
		if node.Get("compensate") == nil { // it may be what was taken out, or was meant
			b.unknown.taken = append(b.unknown.taken, path[:end]+".onFail")
		}
		return true
	}
	return false
}

// partialGraph looks for what is wrong between the nodes that are known whole, and for cycles between all of them.
func (b *builder) partialGraph() {
	deps := b.dependents()
	order, n := inOrder(deps)
	if n < len(deps) { // the graph says which, and nothing else
		_, err := dag.NewGraph(b.plan)
		b.graphMistakes(err)
	}
	known := make([]bool, len(deps)) // whole, and all above it
	for _, i := range order[:n] {
		known[i] = !b.drafts[i].bad && !b.drafts[i].loose
	}
	for _, i := range order[:n] {
		for _, j := range deps[i] {
			known[j] = known[j] && known[i]
		}
	}
	part := *b.plan
	part.Nodes = nil
	for i, ok := range known {
		if ok {
			part.Nodes = append(part.Nodes, b.plan.Nodes[i])
		}
	}
	_, err := dag.NewGraph(&part)
	b.graphMistakes(err)
}
