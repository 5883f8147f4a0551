package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// policies are what holds for a node, as resolved: effect, retries, limits, gates.
func policies(p *dag.Plan, n *dag.Node) (list []string) {
	list = append(list, "effect: "+string(n.Effect))
	if !IsControl(n.Kind) {
		list = append(list, failures(p, n)...)
	}
	return append(list, limits(n, true)...)
}

// planPolicies are those of a node that is to run, in short: the effect and what it reserves stand apart.
func planPolicies(p *dag.Plan, n *dag.Node) []string {
	if IsControl(n.Kind) {
		return limits(n, false)
	}
	rest := p.PolicyFor(n, "").Retry
	text := retryText(rest)
	var once []string
	for i := range p.Categories {
		pol := p.PolicyFor(n, p.Categories[i].Name)
		if pol.Then == dag.Try && pol.Retry.Attempts == 1 && rest.Attempts > 1 {
			once = append(once, p.Categories[i].Name)
		}
	}
	if len(once) > 0 {
		text += " (not after " + strings.Join(once, ", ") + ")"
	}
	for _, on := range n.Retry.On { // what the node says of a category, where it is something else
		pol := p.PolicyFor(n, on.Category)
		if own := retryText(pol.Retry); pol.Then == dag.Try && pol.Retry.Attempts > 1 && own != retryText(rest) {
			text += "; after " + on.Category + " " + own
		}
	}
	return append([]string{text}, limits(n, false)...)
}

// limits are the time limits, gates and consequences that a node names; reserves, with what it reserves.
func limits(n *dag.Node, reserves bool) (list Parts) {
	add, t := list.Add, n.Timeout
	add(t.Attempt > 0, "an attempt may take %s", Duration(t.Attempt.D().Seconds()))
	add(t.Total > 0, "all attempts and waits may take %s", Duration(t.Total.D().Seconds()))
	add(t.Silence > 0, "may be silent for %s", Duration(t.Silence.D().Seconds()))
	add(n.OnFail != "" && n.OnFail != dag.OnFail("fail"), "when it fails: %s", n.OnFail)
	if s := n.Salvage; s != nil {
		what := strings.Join(slices.Concat(s.Files, s.Outputs), ", ")
		add(true, "keeps %s after %s", what, strings.Join(s.Categories(), ", "))
	}
	add(n.Undo != nil, "can be undone")
	add(n.Breaker != "", "breaker: %s", n.Breaker)
	add(n.Pool != "", "pool: %s", n.Pool)
	add(n.Priority != 0, "priority: %d", n.Priority)
	add(reserves && n.Reserve.USD > 0, "reserves $%s", n.Reserve.USD)
	add(reserves && n.Reserve.Tokens > 0, "reserves %d tokens", n.Reserve.Tokens)
	add(n.Always, "runs whatever happens (always)")
	return list
}

// failures say what follows a failure of a node, by category: those with the same consequence together, and no word of
// what holds for all others.
func failures(p *dag.Plan, n *dag.Node) (list []string) {
	what := func(category string) string {
		pol := p.PolicyFor(n, category)
		text := map[dag.Action]string{"wait": "waits for the service", "stop": "asks the user", "fail": "fails"}[pol.Then]
		if pol.Then == dag.Try {
			text = retryText(pol.Retry)
		}
		if pol.OnFail != n.OnFail {
			text += ", then " + string(pol.OnFail)
		}
		return text
	}
	rest := what("")
	list = append(list, "a failure: "+rest)
	by := map[string][]string{}
	for i := range p.Categories {
		if text := what(p.Categories[i].Name); text != rest {
			by[text] = append(by[text], p.Categories[i].Name)
		}
	}
	for _, text := range sortedNames(by) {
		list = append(list, "of category "+strings.Join(by[text], ", ")+": "+text)
	}
	return list
}

// retryText says how often and after what time something is tried again.
func retryText(r dag.Retry) string {
	if r.Attempts <= 1 {
		return "1 attempt, no retry"
	}
	text := fmt.Sprintf("at most %d attempts", r.Attempts)
	switch {
	case len(r.Delays) > 0:
		parts := make([]string, len(r.Delays))
		for i, d := range r.Delays {
			parts[i] = Duration(d.D().Seconds())
		}
		text += ", after " + strings.Join(parts, ", ")
	case r.Base > 0:
		text += ", after " + Duration(r.Base.D().Seconds())
		if r.Factor > 1 {
			text += fmt.Sprintf(" times %g", r.Factor)
		}
		if r.Cap > 0 {
			text += ", at most " + Duration(r.Cap.D().Seconds())
		}
	}
	return text
}

// undoesText says what a failure of a node undoes and what follows; empty where it undoes nothing.
func undoesText(g *dag.Graph, i int32) string {
	n := g.Node(i)
	b := n.Trigger()
	only := ""
	if n.OnFail != dag.FailCompensate {
		b.On = nil
		for k := range n.Retry.On {
			if on := &n.Retry.On[k]; on.OnFail == dag.FailCompensate {
				b.On = append(b.On, on.Category)
			}
		}
		if len(b.On) == 0 {
			return ""
		}
	}
	if len(b.On) > 0 {
		only = " with " + strings.Join(b.On, " or ")
	}
	var steps []string
	if b.Own != nil {
		steps = append(steps, b.Own.InShort()+" runs")
	}
	var list []string
	for j, in := range slices.Backward(g.UndoReach(i)) {
		switch m := g.Node(int32(j)); {
		case in && m.Undo != nil:
			list = append(list, m.ID)
		case in && m.Undoable():
			list = append(list, "the nodes of "+m.ID)
		}
	}
	if len(list) > 0 {
		steps = append(steps, "of "+Some(list)+" what has completed is undone, the last to complete first")
	}
	switch b.Then {
	case dag.ThenAgain:
		then := "it runs again"
		if len(list)+len(b.To) > 0 {
			then = "what was undone and what depends on it runs again"
			if len(b.To) > 0 {
				then = "the run goes back to " + strings.Join(b.To, ", ")
			}
		}
		steps = append(steps, then+", "+Count(b.Times, "time")+" at most; after that it is undone and the run has failed")
	case dag.ThenContinue:
		steps = append(steps, "the run goes on without it, with a warning")
	default:
		steps = append(steps, "the run has failed")
	}
	return "when it fails" + only + ": " + strings.Join(steps, "; then ")
}

// undoLines say of a whole plan what is undone when, and what a failure does.
func undoLines(g *dag.Graph) (lines []string) {
	for i := range int32(g.Len()) {
		if text := undoesText(g, i); text != "" {
			lines = append(lines, g.Node(i).ID+": "+text)
		}
	}
	if more := len(lines) - undoMost; more > 0 {
		lines = append(lines[:undoMost], fmt.Sprintf("and of %s more", Count(more, "node")))
	}
	return lines
}

// undoMost is how many failures the end of a plan speaks of.
const undoMost = 5

// undidText says what became of an undo action.
func undidText(c machine.CompensationView) string {
	parts := Parts{Reason(cmp.Or(string(c.Status), "under way"), c.Failure)}
	parts.Add(c.Action != "", "by %s", c.Action)
	parts.Add(c.Reason != "", "because %s", c.Reason)
	parts.Add(c.Archive != "", "before it: %s", c.Archive)
	parts.Add(c.Told, "the user was told")
	return strings.Join(parts, "; ")
}
