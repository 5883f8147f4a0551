package report

import (
	"fmt"
	"strings"

	"dagrun.dev/dag"
)

// A group is a cluster of a drawing: its own nodes in plan order and the groups inside it, in the
// order of their first nodes.
type group struct {
	path, name string
	nodes      []int32
	inner      []*group
	byName     map[string]*group
}

// groups arranges the nodes of a plan by group; groups nest by "/".
func groups(g *dag.Graph) *group {
	top := &group{}
	for i := range int32(g.Len()) {
		at := top
		if path := g.Node(i).Group; path != "" {
			for _, part := range strings.Split(path, "/") {
				at = at.within(part)
			}
		}
		at.nodes = append(at.nodes, i)
	}
	return top
}

func (at *group) within(name string) *group {
	in := at.byName[name]
	if in == nil {
		in = &group{path: strings.TrimPrefix(at.path+"/"+name, "/"), name: name}
		if at.byName == nil {
			at.byName = map[string]*group{}
		}
		at.byName[name] = in
		at.inner = append(at.inner, in)
	}
	return in
}

func (d *drawing) group(at *group, indent string) {
	for _, i := range at.nodes {
		d.node(i, indent)
	}
	for _, in := range at.inner {
		fmt.Fprintf(d.w, "%ssubgraph %s {\n%s  label=%s;\n%s  style=rounded;\n%s  color=gray60;\n",
			indent, quote("cluster_"+in.path), indent, quote(in.name), indent, indent)
		d.group(in, indent+"  ")
		fmt.Fprintf(d.w, "%s}\n", indent)
	}
}

// foldAbove is how many nodes a path may have before a drawing is folded: further than that nobody
// scrolls.
const foldAbove = 30

// folded reports whether each group begins at the left edge again instead of behind the one before
// it, as lines of a text do: for long chains of groups that hold more than a node or two.
func folded(g *dag.Graph, top *group) bool {
	depth, longest := make([]int32, g.Len()), int32(0)
	for changed := true; changed; { // once, but for expansions, whose nodes stand behind what needs them
		changed = false
		for i := range int32(g.Len()) {
			for _, j := range g.Needs(i) {
				if depth[j] >= depth[i] {
					depth[i], changed = depth[j]+1, true
				}
			}
			longest = max(longest, depth[i]+1)
		}
	}
	inner := top.count() - 1
	return longest > foldAbove && inner > 1 && g.Len()-len(top.nodes) >= 3*inner
}

// count is the number of groups that hold nodes, this one included.
func (at *group) count() int {
	n := 1
	for _, in := range at.inner {
		if len(in.nodes) == 0 {
			n--
		}
		n += in.count()
	}
	return n
}
