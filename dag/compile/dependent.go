package compile

import (
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// unknowns are what mistakes leave unknown. What depends on them is not looked at: its errors would be dependent ones. So every
// mistake is reported once, and all that do not follow from others are reported at once.
type unknowns struct {
	any    bool            // something is: there will be no plan
	nodes  map[string]bool // nodes with mistakes, by id
	blocks map[int]bool    // foreach blocks with mistakes
	params []string        // parameters without a value: the first part of the name; "" = any of them
	names  map[string]bool // breakers, pools, accumulators, categories: which there are
	ids    bool            // which nodes there are
	money  bool            // what things cost
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
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[one] = true
	switch name {
	case "nodes", "foreach":
		u.ids = true
	case "params":
		u.param("")
	case "defaults", "prices", "priceList", "budget":
		u.money = true
	}
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
	switch {
	case len(u.params) == 0 || v == nil:
		return false
	case v.Kind == tree.String:
		return strings.Contains(v.Str, "params") && slices.ContainsFunc(u.params, func(p string) bool { return strings.Contains(v.Str, p) })
	}
	return slices.ContainsFunc(v.Items, u.reads) || slices.ContainsFunc(v.Fields, func(f tree.Field) bool { return u.reads(f.Value) })
}

// affects says whether a node depends on something unknown and is not to be looked at.
func (u *unknowns) affects(d *draft) bool { return u.nodes[d.id] || u.reads(d.tree) }

// independent returns the mistakes that those reported already do not explain.
func (b *builder) independent(reported tree.Diagnostics) tree.Diagnostics {
	at := map[tree.Pos]bool{}
	for _, d := range reported {
		at[d.Pos] = true
	}
	return slices.DeleteFunc(b.mistakes, func(d tree.Diagnostic) bool { return at[d.Pos] || covered(d.Path, reported) })
}

// without returns a pipeline without the sections that have mistakes, and notes which nodes and blocks have some.
func (b *builder) without(p *tree.Value, reported tree.Diagnostics) *tree.Value {
	if len(reported) == 0 {
		return p
	}
	u := &b.unknown
	u.any, u.blocks = true, map[int]bool{}
	ids := map[string]string{} // by path
	for _, f := range fieldsOf(p.Get("nodes")) {
		ids[tree.Join("nodes", f.Name)] = f.Name
	}
	gone := map[string]bool{}
	for _, d := range reported {
		section, _, _ := strings.Cut(d.Path, ".")
		name, index, isBlock := strings.Cut(section, "[")
		switch k, err := strconv.Atoi(strings.TrimSuffix(index, "]")); {
		case section == "nodes" && u.refuse(d.Path, ids):
		case isBlock && name == "foreach" && err == nil:
			u.blocks[k], u.ids = true, true
		default:
			gone[name] = true
			u.section(name)
		}
	}
	out := *p
	out.Fields = nil
	for _, f := range p.Fields {
		if gone[f.Name] {
			b.declared(f)
		} else {
			out.Fields = append(out.Fields, f)
		}
	}
	return &out
}

// declared takes the names from a section with mistakes: those it declares all the same.
func (b *builder) declared(section tree.Field) {
	one, ok := declares[section.Name]
	if !ok || section.Value.Kind != tree.Map {
		return
	}
	for _, f := range sortedMap(section.Value) {
		b.known[one] = append(b.known[one], f.Name)
	}
	delete(b.unknown.names, one)
}

// refuse notes the node that a path lies in. It is false where that is none.
func (u *unknowns) refuse(path string, ids map[string]string) bool {
	for end := len(path); end > len("nodes."); end = strings.LastIndexAny(path[:end], ".[") {
		if id, ok := ids[path[:end]]; ok {
			u.node(id)
			return true
		}
	}
	return false
}

// partialGraph looks for what is wrong between the nodes that are known whole, and for cycles between all of them.
func (b *builder) partialGraph() {
	deps := b.dependents()
	order := inOrder(deps)
	if len(order) < len(deps) { // the graph says which, and nothing else
		_, err := dag.NewGraph(b.plan)
		b.graphMistakes(err)
	}
	known := make([]bool, len(deps)) // whole, and all above it
	for _, i := range order {
		known[i] = !b.drafts[i].bad && !b.drafts[i].loose
	}
	for _, i := range order {
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
