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
func (n *PlanNode) details() (out []string) {
	add := func(name string, list []string) {
		if len(list) > 0 {
			out = append(out, name+": "+strings.Join(list, ", "))
		}
	}
	why := n.reasons()
	if n.Begun != "" {
		why = append(slices.Clip(why), n.Begun)
	}
	add("why", why)
	add("leaves in place", n.Leaves)
	if n.Do == reuse.DoReuse || n.Do == reuse.DoRemoved || n.Do == reuse.DoLeft {
		return out
	}
	if n.Title != "" {
		out = append(out, n.Title)
	}
	needs := "needs"
	if n.AtLeast > 0 {
		needs = fmt.Sprintf("needs %d of", n.AtLeast)
	}
	if n.Again > 0 {
		needs = fmt.Sprintf("needs %d of (those that fail run again, %s at most)", n.AtLeast, Count(n.Again, "time"))
	}
	add(needs, n.Needs)
	if only := onlyWhen(n.When, n.RunsWith); only != "" {
		out = append(out, only)
	}
	if n.Items != "" {
		out = append(out, "one node for each of "+n.Items+n.Each.text())
	}
	add("inputs", n.Inputs)
	add("reads", n.Reads)
	add("writes", n.Writes)
	add("publishes", n.Publish)
	add("appends", n.Appends)
	if n.Does != "" {
		out = append(out, "does: "+n.Does)
	}
	out = append(out, n.Notes...)
	effect := "effect: " + string(n.Effect)
	switch n.Effect {
	case dag.Once:
		effect += " (" + n.cannot() + "after an interruption you are asked whether it took effect)"
	case dag.Probe:
		effect += " (after an interruption a probe finds out whether it took effect)"
	}
	if n.Reserve.USD > 0 {
		effect += "; reserves $" + n.Reserve.USD.String()
	}
	if n.Reserve.Tokens > 0 {
		effect += fmt.Sprintf("; reserves %d tokens", n.Reserve.Tokens)
	}
	out = append(out, effect)
	add("policies", n.Policies)
	if n.UndoneBy != "" {
		out = append(out, "undone by: "+n.UndoneBy)
	}
	if n.Undoes != "" {
		out = append(out, n.Undoes)
	}
	return out
}

// cannot says of a node that must not be repeated that nothing undoes it.
func (n *PlanNode) cannot() string {
	if n.UndoneBy != "" {
		return ""
	}
	return "cannot be undone; "
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
	var some []string
	if t.Maybe > 0 {
		some = append(some, fmt.Sprintf("%d on a condition", t.Maybe))
	}
	if t.IfNew > 0 {
		some = append(some, fmt.Sprintf("%d only if a result before them changes", t.IfNew))
	}
	if len(some) == 0 {
		return ""
	}
	return " (" + strings.Join(some, ", ") + ")"
}

// Cost says what is known of the cost, and how many nodes are in it at their reserve only, or not at all.
func (t *PlanTotals) Cost() string {
	var parts []string
	if t.USD[2] > 0 {
		low, high := t.USD[0].String(), t.USD[2].String()
		if low == high {
			parts = append(parts, "$"+low)
		} else {
			parts = append(parts, fmt.Sprintf("low $%s, expected $%s, high $%s", low, t.USD[1], high))
		}
	}
	if n := t.Unknown - t.Missing; n > 0 {
		parts = append(parts, Count(n, "node")+" of unknown cost, counted at what is reserved")
	}
	if t.Missing > 0 {
		parts = append(parts, Count(t.Missing, "node")+" of unknown cost, not counted")
	}
	return strings.Join(parts, "; ")
}

func budgetText(b dag.Budget, spent dag.USD) string {
	var parts []string
	add := func(given bool, format string, args ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
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
	s := fmt.Sprintf(": at most %d", x.Most)
	if x.Expect > 0 && x.Expect < x.Most {
		s = fmt.Sprintf(": some %d, at most %d", x.Expect, x.Most)
	}
	if x.Seconds[1] > 0 {
		s += ", each " + Duration(x.Seconds[1])
	}
	switch {
	case x.Unknown:
		s += ", each of a cost that is not known"
	case x.USD[2] > 0:
		s += fmt.Sprintf(", each $%s to $%s", x.USD[1], x.USD[2])
	}
	if x.Expect == 0 && (x.Seconds[1] > 0 || x.USD[2] > 0) {
		s += " (how many there are is not known, the sums count none; see `expect`)"
	}
	return s
}
