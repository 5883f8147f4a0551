package report

import (
	"fmt"
	"strings"

	"dagrun.dev/dag/machine"
)

// Counts says how many nodes of a run stand where. Status, summary and the end of a command all take
// their numbers from here.
type Counts struct {
	Nodes     int `json:"nodes"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"` // for good; those that the run allows are among them
	Allowed   int `json:"failed_allowed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled"`
	Open      int `json:"open"` // have not ended
}

// NewCounts counts the nodes of a run.
func NewCounts(st *machine.State) Counts {
	c := Counts{
		Nodes: st.Graph().Len(), Completed: st.Count(machine.Completed), Failed: st.Count(machine.Failed),
		Skipped: st.Count(machine.Skipped), Cancelled: st.Count(machine.Cancelled),
	}
	c.Open = c.Nodes - c.Completed - c.Failed - c.Skipped - c.Cancelled
	if c.Failed > 0 {
		for i := range int32(c.Nodes) {
			if st.StatusAt(i) == machine.Failed && st.NodeAt(i).Soft {
				c.Allowed++
			}
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
	var b strings.Builder
	fmt.Fprintf(&b, "%d completed", c.Completed)
	for _, x := range []struct {
		n    int
		what string
	}{{c.Failed, failed}, {c.Skipped, "skipped"}, {c.Cancelled, "cancelled"}, {c.Open, "not done"}} {
		if x.n > 0 {
			fmt.Fprintf(&b, ", %d %s", x.n, x.what)
		}
	}
	return b.String()
}
