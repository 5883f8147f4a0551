package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// screen is how many lines of nodes a plan has that is printed whole, and most of a plan that is not.
const (
	screen     = 60
	mostGroups = 25
)

// WriteShort prints the plan for people so that it fits a screen: a small one whole, of others what runs for certain,
// node by node where there are few, and the rest by groups.
func (p *Plan) WriteShort(w io.Writer) error {
	var certain, perhaps, reused []*PlanNode
	whole, most := 0, 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		lines := 1 + len(n.details())
		whole += lines
		switch {
		case n.Do == reuse.DoReuse:
			reused = append(reused, n)
		case n.Maybe:
			perhaps = append(perhaps, n)
		default:
			certain = append(certain, n)
			most += lines
		}
	}
	if whole <= screen {
		return p.WriteText(w)
	}
	out := bufio.NewWriter(w)
	if err := views().ExecuteTemplate(out, "plan", p); err != nil {
		return err
	}
	if most <= screen {
		p.writeNodes(out, certain)
	} else {
		writeGroups(out, "run", certain)
	}
	writeGroups(out, "perhaps", perhaps)
	writeGroups(out, "reuse", reused)
	fmt.Fprintln(out, "\nEvery node, with what it needs, reads and writes: dagrun plan --long")
	if err := views().ExecuteTemplate(out, "plan-end", p); err != nil {
		return err
	}
	return out.Flush()
}

// A planGroup sums up nodes of a plan.
type planGroup struct {
	name    string
	nodes   int
	kinds   []kindCount // in order of their first nodes
	usd     [3]dag.USD
	seconds float64
}

type kindCount struct {
	kind  string
	nodes int
}

// writeGroups prints a line for each group of nodes.
func writeGroups(out io.Writer, what string, list []*PlanNode) {
	if len(list) == 0 {
		return
	}
	groups := groupsOf(list, 2)
	if len(groups) > mostGroups {
		groups = groupsOf(list, 1)
	}
	if what == "reuse" { // nothing happens to these
		groups = groupsOf(list, 0)
	}
	named, others, width := groups[:min(len(groups), mostGroups)], 0, 4
	for _, g := range named {
		width = min(40, max(width, len(g.name)))
	}
	for _, g := range named {
		var kinds Parts
		for _, k := range g.kinds {
			kinds.Add(true, "%d %s", k.nodes, k.kind)
		}
		line := Parts{fmt.Sprintf("%5d  %-8s %-*s", g.nodes, what, width, g.name), strings.Join(kinds, ", ")}
		line.Add(g.seconds > 0 && what != "reuse", "%s", Duration(g.seconds))
		line.Add(g.usd[2] > 0 && what != "reuse", "%s", usdRange(g.usd))
		fmt.Fprintln(out, Plain(strings.TrimRight(strings.Join(line, "  "), " ")))
	}
	for _, g := range groups[len(named):] {
		others += g.nodes
	}
	if others > 0 {
		fmt.Fprintf(out, "%5d  %-8s in %s more\n", others, what, Count(len(groups)-len(named), "group"))
	}
}

// groupsOf sums nodes up by the first parts of their groups, or of their ids where they have none; depth 0 makes one
// group of all.
func groupsOf(list []*PlanNode, depth int) (groups []*planGroup) {
	at := map[string]*planGroup{}
	for _, n := range list {
		name := n.Group
		if name == "" {
			name, _, _ = strings.Cut(n.ID, "/")
			if name == n.ID {
				name = "(no group)"
			}
		}
		parts := strings.SplitN(name, "/", depth+1)
		if name = strings.Join(parts[:min(depth, len(parts))], "/"); depth == 0 {
			name = "(all)"
		}
		g := at[name]
		if g == nil {
			g = &planGroup{name: name}
			at[name] = g
			groups = append(groups, g)
		}
		kind := cmp.Or(n.Kind, n.Do) // without a kind: gone from the plan
		entryOf(&g.kinds, func(k *kindCount) bool { return k.kind == kind }, kindCount{kind: kind}).nodes++
		g.nodes++
		g.seconds += n.Seconds[1]
		for k := range g.usd {
			g.usd[k] += n.USD[k]
		}
	}
	return groups
}
