package report

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// WriteDOT writes a plan as a graph in the DOT language: one box for each node, a cluster for
// each group, dashed edges into nodes that run on a condition only, with the condition as their tooltip.
// The same plan gives the same bytes.
func WriteDOT(w io.Writer, g *dag.Graph) error { return writeDOT(w, g, nil) }

// WriteRunDOT is WriteDOT of a run as it stands, with each node in the colour of its status.
func WriteRunDOT(w io.Writer, st *machine.State) error {
	return writeDOT(w, st.Graph(), func(i int32) string { return colour(st.NodeAt(i)) })
}

// colour is what a node is filled with; empty = nothing has happened yet.
func colour(v machine.NodeView) string {
	switch v.Status {
	case machine.Completed:
		return "palegreen"
	case machine.Running:
		return "lightblue"
	case machine.Failed, machine.Cancelled, machine.Stopped, machine.Undoing:
		if v.Soft {
			return "moccasin"
		}
		return "lightcoral"
	case machine.Skipped:
		return "gray90"
	case machine.Retrying, machine.Holding, machine.Asking, machine.Blocked:
		return "khaki"
	}
	return ""
}

func writeDOT(w io.Writer, g *dag.Graph, fill func(int32) string) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "digraph %s {\n", quote(g.Plan.Name))
	if g.Plan.Title != "" {
		fmt.Fprintf(out, "  label=%s;\n  labelloc=t;\n", quote(g.Plan.Title))
	}
	fmt.Fprint(out, "  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=10];\n  edge [arrowsize=0.7];\n")
	d := drawing{out, g, fill}
	d.group(groups(g), "  ")
	for i := range int32(g.Len()) {
		n := g.Node(i)
		style := ""
		switch {
		case n.When != "":
			style = " [style=dashed, tooltip=" + quote("when "+n.When) + "]"
		case n.Always:
			style = " [style=dashed, tooltip=\"always\"]"
		}
		for _, need := range g.Needs(i) {
			fmt.Fprintf(out, "  %s -> %s%s;\n", quote(g.Node(need).ID), quote(n.ID), style)
		}
	}
	fmt.Fprint(out, "}\n")
	return out.Flush()
}

// A drawing writes one graph.
type drawing struct {
	w    io.Writer
	g    *dag.Graph
	fill func(int32) string // nil = no colours
}

// A group is a cluster: its own nodes in plan order and the groups inside it.
type group struct {
	path  string
	nodes []int32
	inner map[string]*group
}

// groups arranges the nodes of a plan by group; groups nest by "/".
func groups(g *dag.Graph) *group {
	top := &group{inner: map[string]*group{}}
	for i := range int32(g.Len()) {
		at := top
		if path := g.Node(i).Group; path != "" {
			for _, part := range strings.Split(path, "/") {
				next := at.inner[part]
				if next == nil {
					next = &group{path: strings.TrimPrefix(at.path+"/"+part, "/"), inner: map[string]*group{}}
					at.inner[part] = next
				}
				at = next
			}
		}
		at.nodes = append(at.nodes, i)
	}
	return top
}

func (d drawing) group(at *group, indent string) {
	for _, i := range at.nodes {
		d.node(i, indent)
	}
	names := make([]string, 0, len(at.inner))
	for name := range at.inner {
		names = append(names, name)
	}
	sort.Strings(names) // for equal bytes
	for _, name := range names {
		in := at.inner[name]
		fmt.Fprintf(d.w, "%ssubgraph %s {\n%s  label=%s;\n%s  style=rounded;\n%s  color=gray60;\n",
			indent, quote("cluster_"+in.path), indent, quote(name), indent, indent)
		d.group(in, indent+"  ")
		fmt.Fprintf(d.w, "%s}\n", indent)
	}
}

// shapes of kinds that are not work but control; a diamond decides.
var shapes = map[string]string{"route": "diamond", "approval": "octagon", "checkpoint": "cylinder", "milestone": "cds", "join": "point"}

func (d drawing) node(i int32, indent string) {
	n := d.g.Node(i)
	label := n.ID
	if at := strings.LastIndexByte(label, '/'); n.Group != "" && at >= 0 {
		label = label[at+1:]
	}
	if n.Title != "" {
		label += "\n" + n.Title
	}
	label += "\n" + n.Kind
	attrs := []string{"label=" + quote(label)}
	if s := shapes[n.Kind]; s != "" {
		attrs = append(attrs, "shape="+s)
	}
	style := "rounded"
	if n.When != "" {
		style += ",dashed"
		attrs = append(attrs, "tooltip="+quote("when "+n.When))
	}
	if n.Foreach != nil {
		style += ",bold"
		attrs = append(attrs, "peripheries=2")
	}
	if d.fill != nil {
		if c := d.fill(i); c != "" {
			style += ",filled"
			attrs = append(attrs, "fillcolor="+quote(c))
		}
	}
	if style != "rounded" {
		attrs = append(attrs, "style="+quote(style))
	}
	fmt.Fprintf(d.w, "%s%s [%s];\n", indent, quote(n.ID), strings.Join(attrs, ", "))
}

var dotEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// quote returns s as a quoted identifier of DOT; lines stay apart, control characters show.
func quote(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = dotEscape.Replace(Plain(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
