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
	fmt.Fprintf(out, "Plan: %s%s, %s, digest %s\n", p.Name, Plain(Titled(p.Title)), Count(len(p.Nodes)-p.Totals.Removed, "node"), shortDigest(p.Digest))
	switch {
	case p.Run.ID == "":
		fmt.Fprintf(out, "Run:  none yet in %s\n", p.Run.Dir)
	default:
		fmt.Fprintf(out, "Run:  %s in %s, event %d\n", p.Run.ID, p.Run.Dir, p.Run.Seq)
	}
	for i, v := range p.Params {
		head := "Set:  "
		if i > 0 {
			head = "      "
		}
		fmt.Fprintf(out, "%s%s = %s\n", head, Plain(v.Name), Plain(string(v.Value)))
	}
	width := 4
	for i := range p.Nodes {
		width = min(40, max(width, len(p.Nodes[i].ID)))
	}
	fmt.Fprintln(out)
	for i := range p.Nodes {
		p.writeNode(out, i, width)
	}
	for i, l := range p.Limits {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "Changed: %s\n", Plain(l))
	}
	for _, b := range p.Breakers {
		fmt.Fprintf(out, "\nBreaker: %s\n", b)
	}
	for i, l := range p.Warnings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "Warning: %s\n", Plain(l))
	}
	p.writeTotals(out)
	return out.Flush()
}

func (p *Plan) writeNode(out io.Writer, i, width int) {
	n := &p.Nodes[i]
	line := fmt.Sprintf("%5d  %-8s %-*s  %-10s %-9s %s", i+1, n.Do, width, n.ID, n.Kind, Duration(n.Seconds[1]), n.cost())
	fmt.Fprintln(out, strings.TrimRight(line, " "))
	for _, d := range n.details() {
		fmt.Fprintf(out, "       %s\n", Plain(d))
	}
}

// details are the lines under a node.
func (n *PlanNode) details() []string {
	var out []string
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
	add("leaves where they are", n.Leaves)
	if n.Do == reuse.DoReuse || n.Do == reuse.DoRemoved {
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
		out = append(out, "one node for each of "+n.Items)
	}
	add("reads", n.Reads)
	add("writes", n.Writes)
	add("appends", n.Appends)
	out = append(out, n.Notes...)
	effect := "effect: " + string(n.Effect)
	switch n.Effect {
	case dag.Once:
		effect += " (cannot be undone; an unknown outcome is asked about)"
	case dag.Probe:
		effect += " (an unknown outcome is probed)"
	}
	if n.Reserve.USD > 0 {
		effect += "; reserves $" + n.Reserve.USD.String()
	}
	if n.Reserve.Tokens > 0 {
		effect += fmt.Sprintf("; reserves %d tokens", n.Reserve.Tokens)
	}
	return append(out, effect)
}

// reasons say why a node runs: what of it changed, if that is known more closely than by parts.
func (n *PlanNode) reasons() []string {
	switch {
	case n.Maybe && len(n.Why) == 0:
		return []string{"only if what it reads has changed"}
	case n.Maybe && len(n.Changes) == 0:
		return []string{"only if the result of " + n.Why[0] + " changes"}
	case len(n.Changes) == 0:
		return n.Why
	}
	var list []string
	for _, c := range n.Changes {
		list = append(list, c.String())
	}
	if n.Maybe {
		list = append(list, "only if it would end otherwise so")
	}
	return list
}

// cost prints a node's cost range; nothing for what is free.
func (n *PlanNode) cost() string {
	if n.USD[2] == 0 && !n.Unknown {
		return ""
	}
	switch {
	case n.Unknown && n.USD[2] == 0:
		return "cost unknown"
	case n.Unknown:
		return usdRange(n.USD) + " (unknown)"
	}
	return usdRange(n.USD) + " (" + n.CostFrom + ")"
}

func (p *Plan) writeTotals(out io.Writer) {
	t := &p.Totals
	fmt.Fprintf(out, "\n%d to run", t.Run)
	var some []string
	if t.Maybe > 0 {
		some = append(some, fmt.Sprintf("%d on a condition", t.Maybe))
	}
	if t.IfNew > 0 {
		some = append(some, fmt.Sprintf("%d only if a result before them changes", t.IfNew))
	}
	if len(some) > 0 {
		fmt.Fprintf(out, " (%s)", strings.Join(some, ", "))
	}
	fmt.Fprintf(out, ", %d reused, %d removed\n", t.Reuse, t.Removed)
	if t.Seconds[1] > 0 {
		fmt.Fprintf(out, "Time:   %s of work, %s at best in parallel\n", Duration(t.Seconds[1]), Duration(t.Longest))
	}
	if t.USD[2] > 0 || t.Unknown > 0 {
		fmt.Fprintf(out, "Cost:   %s\n", t.cost())
	}
	if t.Cached > 0 {
		fmt.Fprintf(out, "Cache:  about %.0f %% of what is known of the prompts should be read from a cache: another one began so within five minutes\n", 100*t.Cached)
	}
	if b := p.Budget; b.CapUSD > 0 || b.WarnUSD > 0 || b.CapTokens > 0 || b.Wall > 0 {
		fmt.Fprintf(out, "Budget: %s\n", budgetText(b, p.SpentUSD))
	}
	if b := p.Budget; b.CapUSD > 0 && t.USD[1] > 0 && p.SpentUSD+t.USD[1] > b.CapUSD {
		fmt.Fprintf(out, "The expected cost passes the cap: the run will pause before the call that could.\n")
	}
}

// cost says what is known of the cost, and how many nodes are in it at their reserve only, or not at all.
func (t *PlanTotals) cost() string {
	var parts []string
	if t.USD[2] > 0 {
		parts = append(parts, usdTotal(t.USD))
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
	add(b.Wall > 0, "at most %s active", Duration(b.Wall.D().Seconds()))
	add(spent > 0, "$%s spent", spent)
	return strings.Join(parts, ", ")
}

// shortDigest is as much of a digest as people compare.
func shortDigest(d string) string { return d[:min(12, len(d))] }

// Titled is a title in brackets, behind a name.
func Titled(title string) string {
	if title == "" {
		return ""
	}
	return " (" + title + ")"
}

// Count prints a number of things: 1 node, 2 nodes.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func usdRange(r [3]dag.USD) string {
	low, high := r[0].String(), r[2].String()
	if low == high { // as printed
		return "$" + low
	}
	return "$" + low + " to $" + high
}

func usdTotal(r [3]dag.USD) string {
	if low, high := r[0].String(), r[2].String(); low == high {
		return "$" + low
	}
	return fmt.Sprintf("low $%s, expected $%s, high $%s", r[0].String(), r[1].String(), r[2].String())
}

// Duration prints seconds as people say them: 0.25s, 7.5s, 3m05s, 2h10m. Nothing for an unknown
// time.
func Duration(sec float64) string {
	switch {
	case sec <= 0:
		return ""
	case sec < 0.005:
		return "<0.01s"
	case sec < 1:
		return fmt.Sprintf("%.2fs", sec)
	case sec < 59.95:
		return fmt.Sprintf("%.1fs", sec)
	case sec < 3599.5:
		s := int(sec + 0.5)
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	m := int(sec/60 + 0.5)
	return fmt.Sprintf("%dh%02dm", m/60, m%60)
}
