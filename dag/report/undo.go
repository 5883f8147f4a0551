package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

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

// refuses reports whether an answer to a question refuses.
func refuses(q machine.EscalationOpenedBody, answer string) bool {
	return slices.Contains(q.Refuses, answer)
}

// choices are the answers that a question takes, with what is to be known of each.
func choices(q machine.EscalationOpenedBody) []string {
	list := slices.Clone(q.Options)
	for i, x := range list {
		list[i] = Reason(x, q.Does[x])
		if x == q.Recommended {
			list[i] += "  (recommended)"
		}
		if text := q.Texts[x]; text != "" {
			list[i] += "  (--text: " + text + ")"
		}
		if refuses(q, x) {
			list[i] += "  (refuses: " + q.Node + " fails then, and its onFail decides)"
		}
	}
	return list
}

// numbered puts numbers before lines, from 1.
func numbered(lines []string) []string {
	list := slices.Clone(lines)
	for i, x := range list {
		list[i] = fmt.Sprintf("%d  %s", i+1, x)
	}
	return list
}

// Options are the answers that a question takes, those marked that refuse.
func Options(q *machine.EscalationOpenedBody) string {
	list := slices.Clone(q.Options)
	for i, x := range list {
		if refuses(*q, x) {
			list[i] += " (refuses)"
		}
	}
	return strings.Join(list, ", ")
}

// undidText says what became of an undo action.
func undidText(c machine.CompensationView) string {
	parts := Parts{Reason(cmp.Or(string(c.Status), "under way"), c.Failure)}
	parts.Add(c.Action != "", "by %s", c.Action)
	parts.Add(c.Reason != "", "because %s", c.Reason)
	parts.Add(c.Archive != "", "before it: %s", c.Archive)
	parts.Add(c.Told, "the user was told")
	return strings.Join(parts, "; ")
}
