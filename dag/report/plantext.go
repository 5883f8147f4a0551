package report

import (
	"bufio"
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
