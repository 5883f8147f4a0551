package report

import (
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag/machine"
)

// Prompt is a question as it is put to a user who answers at once, by number or name; several lines.
func Prompt(q machine.EscalationOpenedBody) string {
	var b strings.Builder
	if err := write(&b, "prompt", q); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// refuses reports whether an answer to a question refuses.
func refuses(q machine.EscalationOpenedBody, answer string) bool {
	return slices.Contains(q.Refuses, answer)
}

// choices are the answers that a question takes, with what is to be known of each.
func choices(q machine.EscalationOpenedBody) []string {
	list := slices.Clone(q.Options)
	for i, x := range list {
		parts := Parts{Reason(x, q.Does[x])}
		parts.Add(x == q.Recommended, "(recommended)")
		parts.Add(q.Texts[x] != "", "(--text: %s)", q.Texts[x])
		parts.Add(refuses(q, x), "(refuses: %s fails then, and its onFail decides)", q.Node)
		list[i] = strings.Join(parts, "  ")
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
