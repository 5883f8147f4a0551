package machine

import (
	"testing"
	"time"

	"dagrun.dev/dag"
)

// C-10, R-1: a node may go on after one category of failure and pause the run after another.
func TestOnFailByCategory(t *testing.T) {
	for category, want := range map[string]string{"validation_failed": "next", "transient": "pause"} {
		plan := &dag.Plan{Format: dag.Format, Name: "p", Nodes: []dag.Node{
			{ID: "a", Kind: "exec", Effect: "pure", OnFail: "continue", Retry: dag.Retry{Attempts: 1, On: []dag.CategoryPolicy{
				{Category: "transient", OnFail: "fail"},
			}}},
			{ID: "b", Kind: "exec", Effect: "pure", Needs: []string{"a"}},
		}, Categories: []dag.Category{
			{Name: "transient", Class: "transient", Then: "retry"},
			{Name: "validation_failed", Class: "soft", Then: "fail"},
		}}
		g, err := dag.NewGraph(plan)
		if err != nil {
			t.Fatal(err)
		}
		var s State
		now, seq := time.UnixMilli(1_000_000), int64(0)
		apply := func(e Event) {
			t.Helper()
			seq++
			e.Seq = seq
			if err := s.Apply(&e); err != nil {
				t.Fatal(err)
			}
		}
		created := New(now, &RunCreatedBody{RunID: "r", Name: "p", PlanDigest: plan.Digest(), Schema: 1, Seed: 1})
		created.Plan = g
		apply(created)
		apply(New(now, &StartedBody{Node: "a", Generation: 1, Attempt: 1}))
		apply(s.Settle("a", Outcome{Status: dag.StatusFailed, Category: category, Message: "no"}, now))

		got := "nothing"
		commands, _ := s.Decide(now, 1)
		for _, c := range commands {
			if _, ok := c.Body.(*RunPausedBody); ok {
				got = "pause"
			}
			if c.Op == Start && c.Node == "b" {
				got = "next"
			}
		}
		if got != want {
			t.Errorf("after %s: %s, want %s", category, got, want)
		}
	}
}

// A join whose needs were all skipped is skipped too; one of which too many failed fails.
func TestJoinOfSkippedNeeds(t *testing.T) {
	for end, want := range map[dag.Status]dag.Status{dag.StatusSkipped: dag.StatusSkipped, dag.StatusFailed: dag.StatusFailed} {
		plan := &dag.Plan{Format: dag.Format, Name: "p", Nodes: []dag.Node{
			{ID: "a", Kind: "exec", Effect: "pure", OnFail: "continue"},
			{ID: "b", Kind: "exec", Effect: "pure", OnFail: "continue"},
			{ID: "join", Kind: "join", Effect: "pure", Needs: []string{"a", "b"}, AtLeast: 1, When: "true"},
		}}
		g, err := dag.NewGraph(plan)
		if err != nil {
			t.Fatal(err)
		}
		var s State
		now := time.UnixMilli(1_000_000)
		created := New(now, &RunCreatedBody{RunID: "r", Name: "p", PlanDigest: plan.Digest(), Schema: 1, Seed: 1})
		created.Plan = g
		events := []Event{created}
		for _, id := range []string{"a", "b"} {
			b := &FinishedBody{Node: id, Generation: 1, Status: end, Final: true}
			if end == dag.StatusFailed {
				b.Category, b.Class = "needs", "hard"
			}
			events = append(events, New(now, b))
		}
		for i := range events {
			events[i].Seq = int64(i + 1)
			if err := s.Apply(&events[i]); err != nil {
				t.Fatal(err)
			}
		}
		got := dag.Status("nothing")
		commands, _ := s.Decide(now, 1)
		for _, c := range commands {
			if b, ok := c.Body.(*FinishedBody); ok && b.Node == "join" {
				got = b.Status
			}
		}
		if got != want {
			t.Errorf("needs %s: the join is %s, want %s", end, got, want)
		}
	}
}
