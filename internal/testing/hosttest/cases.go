package hosttest

import (
	"encoding/json"
	"time"

	"dagrun.dev/dag"
)

func do(steps string) map[string]string { return map[string]string{"do": steps} }

func ask() dag.Node {
	return dag.Node{ID: "ask", Kind: "approval", With: json.RawMessage(`{"message":"go?","options":["yes","no"]}`),
		Outputs: map[string]string{"answer": "string", "by": "string"}}
}

// minute is the retry that waits for one.
var minute = dag.Retry{Attempts: 3, Base: dag.Duration(time.Minute), Factor: 1}

// cases are the suite. A story has one order where the plan and the instants leave only one.
var cases = []struct {
	name  string
	plan  func() *dag.Plan
	acts  []Act
	stays bool
	story string
	saw   map[string]string
}{
	{
		name: "start in the order of needs",
		plan: func() *dag.Plan {
			return &dag.Plan{Nodes: []dag.Node{{ID: "a", Labels: do("ok:1m")}, {ID: "b", Needs: []string{"a"}}}}
		},
		story: "start a.1, completed a.1, start b.1, completed b.1, completed",
	},
	{
		name: "try again after the delay",
		plan: func() *dag.Plan {
			return &dag.Plan{Nodes: []dag.Node{{ID: "a", Labels: do("fail fail ok"), Retry: minute}}}
		},
		story: "start a.1, failed a.1, start a.2, failed a.2, start a.3, completed a.3, completed",
	},
	{
		name:  "lose what a process leaves under way",
		plan:  func() *dag.Plan { return &dag.Plan{Nodes: []dag.Node{{ID: "a", Labels: do("ok:1h")}}} },
		acts:  []Act{{At: time.Minute, Do: Kill}},
		story: "start a.1, died, lost a.1, resumed, start a.2, completed a.2, completed",
	},
	{
		name: "cancel what runs, and clean up",
		plan: func() *dag.Plan {
			return &dag.Plan{Nodes: []dag.Node{{ID: "a", Labels: do("ok:1h")},
				{ID: "clean", Needs: []string{"a"}, Always: true}}}
		},
		acts:  []Act{{At: time.Minute, Do: Cancel}},
		story: "start a.1, paused cancel, cancelled a.1, start clean.1, completed clean.1, failed",
	},
	{
		name: "let what runs end after an interrupt, and go on later",
		plan: func() *dag.Plan {
			return &dag.Plan{Nodes: []dag.Node{{ID: "a", Labels: do("ok:1h")}, {ID: "b", Needs: []string{"a"}}}}
		},
		acts:  []Act{{At: time.Minute, Do: Interrupt}, {At: 2 * time.Hour, Do: Resume}},
		story: "start a.1, paused user, completed a.1, resumed, start b.1, completed b.1, completed",
	},
	{
		name:  "wait for an answer",
		plan:  func() *dag.Plan { return &dag.Plan{Nodes: []dag.Node{ask(), {ID: "b", Needs: []string{"ask"}}}} },
		acts:  []Act{{At: time.Hour, Do: Answer, To: "yes"}},
		stays: true,
		story: "asked ask, answered yes, completed ask.0, start b.1, completed b.1, completed",
	},
	{
		name:  "pause for an answer where the host does not stay",
		plan:  func() *dag.Plan { return &dag.Plan{Nodes: []dag.Node{ask()}} },
		story: "asked ask, paused escalation",
	},
	{
		name: "count for a breaker, and let one probe through",
		plan: func() *dag.Plan {
			api := dag.Breaker{Name: "api", Failures: 2, OpenFor: dag.Duration(time.Minute), Probes: 1, WhenOpen: "wait"}
			return &dag.Plan{Breakers: []dag.Breaker{api}, Nodes: []dag.Node{
				{ID: "a", Breaker: "api", OnFail: "continue", Labels: do("fail")},
				{ID: "b", Breaker: "api", OnFail: "continue", Labels: do("fail"), Needs: []string{"a"}},
				{ID: "c", Breaker: "api", Needs: []string{"b"}},
			}}
		},
		story: "start a.1, failed a.1, breaker closed, start b.1, failed b.1, breaker open, breaker half-open, " +
			"start c.1, completed c.1, breaker closed, completed",
	},
	{
		name: "never reserve more than the cap",
		plan: func() *dag.Plan {
			paid := func(id string, needs ...string) dag.Node {
				return dag.Node{ID: id, Needs: needs, Paid: true, Reserve: dag.Amount{USD: 1e6}, Labels: do("ok:1m")}
			}
			return &dag.Plan{Budget: dag.Budget{CapUSD: 2_500_000}, Nodes: []dag.Node{paid("a"), paid("b", "a"), paid("c", "b")}}
		},
		story: "start a.1, completed a.1, start b.1, completed b.1, paused budget",
	},
	{
		// The entries of ancestors in plan order: c ends before b, and d reads b's first. e is nobody's ancestor.
		name: "give readers what their ancestors left, in plan order",
		plan: func() *dag.Plan {
			return &dag.Plan{Accumulators: []dag.Accumulator{{Name: "notes", Path: "notes.md"}}, Nodes: []dag.Node{
				{ID: "a", Writes: []string{"page"}, Appends: []string{"notes"}},
				{ID: "b", Needs: []string{"a"}, Appends: []string{"notes"}, Labels: do("ok:9m")},
				{ID: "c", Needs: []string{"a"}, Appends: []string{"notes"}, Labels: do("ok:2m")},
				{ID: "d", Needs: []string{"b", "c"}, Reads: []string{"page", "notes"}},
			}}
		},
		story: "start a.1, completed a.1, start b.1, start c.1, completed c.1, completed b.1, " +
			"start d.1, completed d.1, completed",
		saw: map[string]string{"d.1": "page=a.1 [a.1 b.1 c.1] 0"},
	},
	{
		name: "hand on what attempts leave for the next, also past a kill",
		plan: func() *dag.Plan {
			return &dag.Plan{Nodes: []dag.Node{{ID: "a", Labels: do("fail ok:1h ok"), Retry: minute},
				{ID: "b", Needs: []string{"a"}}}}
		},
		acts: []Act{{At: 10 * time.Minute, Do: Kill}},
		story: "start a.1, failed a.1, start a.2, died, lost a.2, resumed, start a.3, completed a.3, " +
			"start b.1, completed b.1, completed",
		saw: map[string]string{"a.1": "[] 0", "a.2": "[] 1", "a.3": "[] 2", "b.1": "[] 0"},
	},
}
