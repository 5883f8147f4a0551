package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/printable"
)

// WriteDOT writes a plan as a graph in the DOT language: one box for each node, a cluster for
// each group, dashed boxes and edges for what runs on a condition only. An edge out of a route says
// which decisions lead along it. Conditions and notes (per node, see Notes of package compile; nil =
// none) are tooltips; parameters stand in a legend. The same plan gives the same bytes.
func WriteDOT(w io.Writer, g *dag.Graph, notes [][]string) error { return writeDOT(w, g, notes, nil) }

// WriteRunDOT is WriteDOT of a run as it stands, with each node in the colour of its status.
func WriteRunDOT(w io.Writer, st *machine.State, notes [][]string) error {
	return writeDOT(w, st.Graph(), notes, func(i int32) string { return colour(st.NodeAt(i)) })
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
	case machine.Skipped, machine.Undone:
		return "gray90"
	case machine.Retrying, machine.Holding, machine.Asking, machine.Blocked:
		return "khaki"
	}
	return ""
}

func writeDOT(w io.Writer, g *dag.Graph, notes [][]string, fill func(int32) string) error {
	out := bufio.NewWriter(w)
	d := drawing{w: out, g: g, notes: notes, fill: fill, cond: newConditions(g)}
	fmt.Fprintf(out, "digraph %s {\n  label=%s;\n  labelloc=t;\n", quote(g.Plan.Name), quote(d.heading()))
	fmt.Fprint(out, `  rankdir=LR;
  fontname="sans-serif";
  node [shape=box, style=rounded, fontname="sans-serif", fontsize=10];
  edge [arrowsize=0.7, fontname="sans-serif", fontsize=9];
`)
	top := groups(g)
	fold := folded(g, top)
	if fold { // inside one cluster the lines between others keep between them
		fmt.Fprint(out, "  subgraph \"cluster:\" {\n  label=\"\";\n  color=transparent;\n")
	}
	d.group(top, "  ")
	if fold {
		fmt.Fprint(out, "  }\n")
	}
	d.edges(fold)
	d.legend() // last: so it comes to stand above
	fmt.Fprint(out, "}\n")
	return out.Flush()
}

// A drawing writes one graph.
type drawing struct {
	w     io.Writer
	g     *dag.Graph
	notes [][]string
	fill  func(int32) string // nil = no colours
	cond  *conditions
}

func (d *drawing) heading() string {
	p, maybe := d.g.Plan, 0
	for i := range int32(d.g.Len()) {
		if d.cond.conditional(i) {
			maybe++
		}
	}
	parts := []string{Count(d.g.Len(), "node")}
	if maybe > 0 {
		parts[0] += fmt.Sprintf(" (%d on a condition)", maybe)
	}
	if limits := budgetText(p.Budget, 0); limits != "" {
		parts = append(parts, limits)
	}
	return cmp.Or(p.Title, p.Name) + "\n" + strings.Join(append(parts, "plan "+shortDigest(p.Digest())), ", ")
}

// legend lists the parameters and says what lines, shapes and colours mean, of those that occur. Ids
// of nodes hold no colon.
func (d *drawing) legend() {
	var params, key Parts
	for _, v := range d.g.Plan.Params {
		params.Add(true, "%s = %s", v.Name, v.Value)
	}
	say := func(occurs bool, line string) { key.Add(occurs && !slices.Contains(key, line), "%s", line) }
	for i := range int32(d.g.Len()) {
		n := d.g.Node(i)
		say(d.cond.conditional(i), "dashed: only on a condition; point at it")
		say(n.Role().Decides, "diamond: decides; its lines name the decisions that lead along them")
		say(n.Foreach != nil, "double frame: one node for each item of a list")
		if d.fill != nil {
			say(colours[d.fill(i)] != "", colours[d.fill(i)])
		}
	}
	for _, note := range []struct {
		name, title string
		lines       []string
	}{{":parameters", "Parameters", params}, {":key", "Key", key}} {
		if len(note.lines) > 0 {
			label := quoteLeft(append([]string{note.title}, note.lines...))
			fmt.Fprintf(d.w, "  %s [shape=note, style=solid, label=%s];\n", quote(note.name), label)
		}
	}
}

// colours say what the colours of a run mean.
var colours = map[string]string{
	"palegreen":  "green: completed",
	"lightblue":  "blue: running",
	"lightcoral": "red: failed",
	"moccasin":   "orange: failed, which the run allows",
	"gray90":     "grey: skipped",
	"khaki":      "yellow: waits",
}

// edges writes the edges; those between groups leave ranks alone where the drawing is folded.
func (d *drawing) edges(fold bool) {
	decisions := map[int32][]string{}
	for i := range int32(d.g.Len()) {
		n := d.g.Node(i)
		if n.Role().Decides {
			decisions[i] = decisionsOf(n)
		}
		var common []string
		switch {
		case d.cond.conditional(i):
			common = []string{"style=dashed", "tooltip=" + quote(onlyWhen(n.When, d.cond.inherited(i)))}
		case n.Always:
			common = []string{"style=dashed", "tooltip=\"always\""}
		}
		for _, need := range d.g.Needs(i) {
			attrs := common[:len(common):len(common)]
			if label := leading(decisions[need], d.g.Node(need).ID, n.When); label != "" {
				attrs = append(attrs, "label="+quote(label))
			}
			if fold && d.g.Node(need).Group != n.Group {
				attrs = append(attrs, "constraint=false")
			}
			list := ""
			if len(attrs) > 0 {
				list = " [" + strings.Join(attrs, ", ") + "]"
			}
			fmt.Fprintf(d.w, "  %s -> %s%s;\n", quote(d.g.Node(need).ID), quote(n.ID), list)
		}
	}
}

// decisionsOf are the decisions of a route, in the order of its rules.
func decisionsOf(n *dag.Node) []string {
	var with struct {
		Rules []struct{ Then string }
		Else  string
	}
	if json.Unmarshal(n.With, &with) != nil {
		return nil
	}
	var list Parts
	for _, r := range append(with.Rules, struct{ Then string }{with.Else}) {
		list.Add(r.Then != "" && !slices.Contains(list, r.Then), "%s", r.Then)
	}
	return list
}

// leading are the decisions of a route that a condition over it asks for.
func leading(decisions []string, route, when string) string {
	if len(decisions) == 0 || !strings.Contains(when, route) {
		return ""
	}
	var list Parts
	for _, x := range decisions {
		list.Add(strings.Contains(when, "'"+x+"'") || strings.Contains(when, `"`+x+`"`), "%s", x)
	}
	return strings.Join(list, ", ")
}

// shapes of kinds that are not work but control; a diamond decides.
var shapes = map[string]string{
	"route": "diamond", "approval": "octagon", "checkpoint": "cylinder", "milestone": "cds", "join": "point",
}

// noteMost is how long a node's first note may be to stand in its box.
const noteMost = 44

func (d *drawing) node(i int32, indent string) {
	n := d.g.Node(i)
	label, kind := Parts{n.ID}, Parts{n.Kind}
	if at := strings.LastIndexByte(n.ID, '/'); n.Group != "" {
		label[0] = n.ID[at+1:]
	}
	label.Add(n.Title != "", "%s", n.Title)
	kind.Add(n.AtLeast > 0, "after %d of %d", n.AtLeast, len(d.g.Needs(i)))
	label.Add(true, "%s", strings.Join(kind, ", "))
	var tip Parts
	only := onlyWhen(n.When, d.cond.inherited(i))
	tip.Add(only != "", "%s", only)
	tip.Add(n.Again > 0, "needs that fail run again, %s at most", Count(n.Again, "time"))
	if int(i) < len(d.notes) && len(d.notes[i]) > 0 {
		first := d.notes[i][0]
		label.Add(len(first) <= noteMost, "%s", first)
		tip = append(tip, d.notes[i]...)
	}
	attrs := []string{"label=" + quote(strings.Join(label, "\n"))}
	if s := shapes[n.Kind]; s != "" {
		attrs = append(attrs, "shape="+s)
	}
	if len(tip) > 0 {
		attrs = append(attrs, "tooltip="+quote(wrapped(tip)))
	}
	fmt.Fprintf(d.w, "%s%s [%s];\n", indent, quote(n.ID), strings.Join(d.style(i, attrs), ", "))
}

// tipWidth is how many characters a line of a tooltip may have.
const tipWidth = 100

// wrapped breaks long lines of a tooltip between words.
func wrapped(lines []string) string {
	var out []string
	for _, line := range lines {
		out = append(out, printable.Wrap(line, tipWidth, 4)...)
	}
	return strings.Join(out, "\n")
}

// style adds lines and colours.
func (d *drawing) style(i int32, attrs []string) []string {
	style, own := Parts{"rounded"}, Parts(attrs)
	style.Add(d.cond.conditional(i), "dashed")
	items, fill := d.g.Node(i).Foreach != nil, ""
	if d.fill != nil {
		fill = d.fill(i)
	}
	style.Add(items, "bold")
	own.Add(items, "peripheries=2")
	style.Add(fill != "", "filled")
	own.Add(fill != "", "fillcolor=%s", quote(fill))
	own.Add(len(style) > 1, "style=%s", quote(strings.Join(style, ",")))
	return own
}

var dotEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// quote returns s as a quoted identifier of DOT; lines stay apart, control characters show.
func quote(s string) string { return quoteLines(strings.Split(s, "\n"), `\n`) }

// quoteLeft is quote with lines that begin at the left.
func quoteLeft(lines []string) string { return quoteLines(append(lines, ""), `\l`) }

func quoteLines(lines []string, end string) string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = dotEscape.Replace(Plain(line))
	}
	return `"` + strings.Join(out, end) + `"`
}

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
