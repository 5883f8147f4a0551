package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// WriteText prints the plan for people.
func (p *Plan) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	if err := views().ExecuteTemplate(out, "plan", p); err != nil {
		return err
	}
	all := make([]*PlanNode, len(p.Nodes))
	for i := range p.Nodes {
		all[i] = &p.Nodes[i]
	}
	p.writeNodes(out, all)
	if err := views().ExecuteTemplate(out, "plan-end", p); err != nil {
		return err
	}
	return out.Flush()
}

// writeNodes prints nodes whole; there may be many: no template.
func (p *Plan) writeNodes(out io.Writer, list []*PlanNode) {
	width := 4
	for _, n := range list {
		width = min(40, max(width, len(n.ID)))
	}
	for i, n := range list {
		line := fmt.Sprintf("%5d  %-8s %-*s  %-10s %-9s %s", i+1, n.Do, width, n.ID, n.Kind, Duration(n.Seconds[1]), n.cost())
		fmt.Fprintln(out, strings.TrimRight(line, " "))
		for _, d := range n.details() {
			fmt.Fprintf(out, "       %s\n", Plain(d))
		}
	}
}

// details are the lines under a node.
func (n *PlanNode) details() (out Parts) {
	add := func(name string, list []string) { out.Add(len(list) > 0, "%s: %s", name, strings.Join(list, ", ")) }
	why := n.reasons()
	if n.Begun != "" {
		why = append(slices.Clip(why), n.Begun)
	}
	add("why", why)
	add("leaves in place", n.Leaves)
	if n.Do == reuse.DoReuse || n.Do == reuse.DoRemoved || n.Do == reuse.DoLeft {
		return out
	}
	out.Add(n.Title != "", "%s", n.Title)
	needs := "needs"
	if n.AtLeast > 0 {
		needs = fmt.Sprintf("needs %d of", n.AtLeast)
	}
	if n.Again > 0 {
		needs = fmt.Sprintf("needs %d of (those that fail run again, %s at most)", n.AtLeast, Count(n.Again, "time"))
	}
	add(needs, n.Needs)
	only := onlyWhen(n.When, n.RunsWith)
	out.Add(only != "", "%s", only)
	out.Add(n.Items != "", "one node for each of %s%s", n.Items, n.Each.text())
	add("inputs", n.Inputs)
	add("reads", n.Reads)
	add("writes", n.Writes)
	add("publishes", n.Publish)
	add("appends", n.Appends)
	out.Add(n.Does != "", "does: %s", n.Does)
	out = append(out, n.Notes...)
	effect := Parts{"effect: " + string(n.Effect)}
	switch {
	case n.Effect == dag.Once && n.UndoneBy == "":
		effect[0] += " (cannot be undone; after an interruption you are asked whether it took effect)"
	case n.Effect == dag.Once:
		effect[0] += " (after an interruption you are asked whether it took effect)"
	case n.Effect == dag.Probe:
		effect[0] += " (after an interruption a probe finds out whether it took effect)"
	}
	effect.Add(n.Reserve.USD > 0, "reserves $%s", n.Reserve.USD)
	effect.Add(n.Reserve.Tokens > 0, "reserves %d tokens", n.Reserve.Tokens)
	out = append(out, strings.Join(effect, "; "))
	add("policies", n.Policies)
	out.Add(n.UndoneBy != "", "undone by: %s", n.UndoneBy)
	out.Add(n.Undoes != "", "%s", n.Undoes)
	return out
}

// reasons say why a node runs: what of it changed, if that is known more closely than by parts.
func (n *PlanNode) reasons() (list []string) {
	switch {
	case n.Maybe && len(n.Why) == 0:
		return []string{"only if what it reads has changed"}
	case n.Maybe && len(n.Changes) == 0:
		return []string{"only if the result of " + n.Why[0] + " changes"}
	case len(n.Changes) == 0:
		return n.Why
	}
	for _, c := range n.Changes {
		list = append(list, c.String())
	}
	if n.Maybe {
		list = append(list, "only if that changes how it ends")
	}
	return list
}

// cost prints a node's cost range; nothing for what is free.
func (n *PlanNode) cost() string {
	from := n.CostFrom
	if n.Unknown {
		from = "unknown"
	}
	switch {
	case n.USD[2] > 0:
		return usdRange(n.USD) + " (" + from + ")"
	case n.Unknown:
		return "cost unknown"
	}
	return ""
}

// Selected says which part is to run; empty where nothing is left out.
func (p *Plan) Selected() string {
	words := p.Part.String()
	for _, name := range p.Part.Rerun {
		words += " --rerun " + name
	}
	if words == "" {
		return ""
	}
	left := Count(p.Totals.Left, "node") + " left out"
	if p.Totals.Left == 0 {
		left = "no node left out"
	}
	return strings.TrimSpace(words) + "; " + left
}

// Present is how many nodes the plan has.
func (p *Plan) Present() int { return len(p.Nodes) - p.Totals.Removed }

// CachedPercent is Totals.Cached as people write it.
func (p *Plan) CachedPercent() float64 { return 100 * p.Totals.Cached }

// OverCap reports whether the run will have to pause.
func (p *Plan) OverCap() bool {
	return p.Budget.CapUSD > 0 && p.Totals.USD[1] > 0 && p.SpentUSD+p.Totals.USD[1] > p.Budget.CapUSD
}

// Open says how many of the nodes that run may be skipped.
func (t *PlanTotals) Open() string {
	var some Parts
	some.Add(t.Maybe > 0, "%d on a condition", t.Maybe)
	some.Add(t.IfNew > 0, "%d only if a result before them changes", t.IfNew)
	if len(some) == 0 {
		return ""
	}
	return " (" + strings.Join(some, ", ") + ")"
}

// Cost says what is known of the cost, and how many nodes are in it at their reserve only, or not at all.
func (t *PlanTotals) Cost() string {
	var parts Parts
	low, high, counted := t.USD[0].String(), t.USD[2].String(), t.Unknown-t.Missing
	parts.Add(t.USD[2] > 0 && low == high, "$%s", low)
	parts.Add(low != high, "low $%s, expected $%s, high $%s", low, t.USD[1], high)
	parts.Add(counted > 0, "%s of unknown cost, counted at what is reserved", Count(counted, "node"))
	parts.Add(t.Missing > 0, "%s of unknown cost, not counted", Count(t.Missing, "node"))
	return strings.Join(parts, "; ")
}

func budgetText(b dag.Budget, spent dag.USD) string {
	var parts Parts
	add := parts.Add
	add(b.CapUSD > 0, "cap $%s", b.CapUSD)
	add(b.WarnUSD > 0, "warning at $%s", b.WarnUSD)
	add(b.CapTokens > 0, "cap %d tokens", b.CapTokens)
	add(b.Failures > 0, "at most %d failed nodes", b.Failures)
	add(b.Wall > 0, "at most %s active", Duration(b.Wall.D().Seconds()))
	if len(parts) > 0 { // what was spent matters beside a limit
		add(spent > 0, "$%s spent", spent)
	}
	return strings.Join(parts, ", ")
}

// text says how many items there should be, and what one takes.
func (x *PlanItem) text() string {
	if x == nil {
		return ""
	}
	var parts Parts
	parts.Add(x.Expect > 0 && x.Expect < x.Most, "some %d", x.Expect)
	parts.Add(true, "at most %d", x.Most)
	parts.Add(x.Seconds[1] > 0, "each %s", Duration(x.Seconds[1]))
	parts.Add(x.Unknown, "each of a cost that is not known")
	parts.Add(!x.Unknown && x.USD[2] > 0, "each $%s to $%s", x.USD[1], x.USD[2])
	text := ": " + strings.Join(parts, ", ")
	if x.Expect == 0 && (x.Seconds[1] > 0 || x.USD[2] > 0) {
		text += " (how many there are is not known, the sums count none; see `expect`)"
	}
	return text
}

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
