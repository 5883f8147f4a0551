package report

import (
	"cmp"
	"fmt"
	"strings"

	"dagrun.dev/dag/machine"
)

// Counts says how many nodes of a run stand where. Status, summary and the end of a command all take their numbers
// from here.
type Counts struct {
	Nodes     int `json:"nodes"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"` // for good; those that the run allows are among them
	Allowed   int `json:"failed_allowed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled"`
	Undone    int `json:"undone,omitempty"` // had completed, and were undone
	Open      int `json:"open"`             // have not ended
}

// Errors counts the failures that the state remembers.
type Errors struct {
	Recovered   int            `json:"recovered"` // a later attempt of the node completed
	Unrecovered int            `json:"unrecovered"`
	Settled     int            `json:"settled,omitempty"`                // nodes skipped, answered for or gone
	Categories  map[string]int `json:"categories,omitempty"`             // of all
	Open        map[string]int `json:"unrecovered_categories,omitempty"` // of the unrecovered
}

func errorsOf(st *machine.State) Errors {
	s := Errors{Categories: map[string]int{}, Open: map[string]int{}}
	for _, e := range st.Errors() {
		s.Categories[e.Category]++
		switch v, ok := st.NodeByID(e.Node); {
		case ok && v.Status == machine.Completed:
			s.Recovered++
		case !ok || v.Status == machine.Skipped || answered(st, &e):
			s.Settled++
		default:
			s.Unrecovered++
			s.Open[e.Category]++
		}
	}
	return s
}

// answered reports whether somebody was asked about a failure and had the run go on without its node.
func answered(st *machine.State, e *machine.ErrorView) bool {
	id := fmt.Sprintf("%s/%s/%d", machine.AskFailed, e.Node, e.Generation)
	q, ok := st.Escalation(id)
	for k := 2; ok; k++ {
		if q.Answer != nil && (q.Answer.Answer == machine.AnswerContinue || q.Answer.Answer == machine.AnswerSkip) {
			return true
		}
		q, ok = st.Escalation(fmt.Sprintf("%s.%d", id, k))
	}
	return false
}

// NewCounts counts the nodes of a run.
func NewCounts(st *machine.State) Counts {
	c := Counts{
		Nodes: st.Graph().Len(), Completed: st.Count(machine.Completed), Failed: st.Count(machine.Failed),
		Skipped: st.Count(machine.Skipped), Cancelled: st.Count(machine.Cancelled),
		Undone: st.Count(machine.Undone),
	}
	c.Open = c.Nodes - c.Completed - c.Failed - c.Skipped - c.Cancelled - c.Undone
	for i := int32(0); c.Failed > 0 && i < int32(c.Nodes); i++ {
		if st.StatusAt(i) == machine.Failed && st.NodeAt(i).Soft {
			c.Allowed++
		}
	}
	return c
}

// String lists what is not zero, the completed ones always.
func (c Counts) String() string {
	failed := "failed"
	switch {
	case c.Allowed == c.Failed:
		failed += " (allowed)"
	case c.Allowed > 0:
		failed += fmt.Sprintf(" (%d allowed)", c.Allowed)
	}
	parts := Parts{fmt.Sprintf("%d completed", c.Completed)}
	parts.Add(c.Failed > 0, "%d %s", c.Failed, failed)
	parts.Add(c.Skipped > 0, "%d skipped", c.Skipped)
	parts.Add(c.Cancelled > 0, "%d cancelled", c.Cancelled)
	parts.Add(c.Undone > 0, "%d undone", c.Undone)
	parts.Add(c.Open > 0, "%d not done", c.Open)
	return strings.Join(parts, ", ")
}

// Ended is how many nodes are done: those that failed for good are not, and what was undone is not.
func (c Counts) Ended() int { return c.Nodes - c.Open - c.Undone - (c.Failed - c.Allowed) }

// Any reports whether there were errors.
func (e Errors) Any() bool { return e.Recovered+e.Unrecovered+e.Settled > 0 }

// String says how many errors there were, by category those that are not recovered.
func (e Errors) String() string {
	unrecovered := fmt.Sprintf("%d unrecovered", e.Unrecovered)
	var open []string
	for _, k := range sortedNames(e.Open) {
		open = append(open, fmt.Sprintf("%s %d", cmp.Or(k, "lost"), e.Open[k]))
	}
	if len(open) > 0 {
		unrecovered += " (" + strings.Join(open, ", ") + ")"
	}
	parts := Parts{fmt.Sprintf("%d recovered", e.Recovered), unrecovered}
	parts.Add(e.Settled > 0, "%d of nodes that are skipped or gone", e.Settled)
	parts.Add(e.Recovered+e.Unrecovered+e.Settled == machine.ErrorsKept, "of the last %d", machine.ErrorsKept)
	return strings.Join(parts, ", ")
}
