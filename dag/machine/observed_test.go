package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

// A story applies payloads one after the other, a second apart.
type story struct {
	t *testing.T
	s *State
	n int
}

func tell(t *testing.T, p *dag.Plan) *story {
	x := &story{t: t, s: new(State)}
	x.with(&RunCreatedBody{RunID: "r", Name: "n", PlanDigest: "d", Schema: Schema}, mustGraph(t, p))
	return x
}

func (x *story) with(b Body, g *dag.Graph) {
	x.t.Helper()
	x.n++
	e := New(epoch.Add(time.Duration(x.n)*time.Second), b)
	e.Plan = g
	if err := x.s.Apply(&e); err != nil {
		x.t.Fatal(err)
	}
}

func (x *story) apply(bodies ...Body) {
	x.t.Helper()
	for _, b := range bodies {
		x.with(b, nil)
	}
}

// ran applies a whole successful attempt, with facts in between.
func (x *story) ran(node string, facts ...Body) {
	x.t.Helper()
	v, _ := x.s.NodeByID(node)
	x.apply(&StartedBody{Node: node, Generation: v.Generation, Attempt: v.Attempt + 1})
	x.apply(facts...)
	x.apply(&FinishedBody{Node: node, Generation: v.Generation, Attempt: v.Attempt + 1, Status: dag.StatusCompleted, Final: true})
}

func (x *story) restored() *State {
	x.t.Helper()
	raw, err := x.s.AppendSnapshot(nil)
	if err != nil {
		x.t.Fatal(err)
	}
	g, err := x.s.plainGraph()
	if err != nil {
		x.t.Fatal(err)
	}
	s, err := RestoreSnapshot(raw, g)
	if err != nil {
		x.t.Fatal(err)
	}
	if again, err := s.AppendSnapshot(nil); err != nil || !bytes.Equal(raw, again) {
		x.t.Fatalf("restoring loses something: %v\n%s\n%s", err, raw, again)
	}
	return s
}

func raw(name, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{name: json.RawMessage(value)}
}

// V-1, V-2: what nodes and host report is indexed, and survives a snapshot.
func TestObservations(t *testing.T) {
	x := tell(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k"}, {ID: "b", Kind: "k"}}})
	if x.s.DeclaredState("") != "CREATED" || x.s.DeclaredState("intro") != "NOT_STARTED" {
		t.Error("states before the first milestone")
	}
	x.apply(&InputsClonedBody{Files: 2, Bytes: 3},
		&RunStateChangedBody{Old: "CREATED", New: "PLAN_READY", Stable: true},
		&RunStateChangedBody{Old: "PLAN_READY", New: "DRAFTING"},
		&RunStateChangedBody{Section: "intro", Old: "NOT_STARTED", New: "OUTLINED"},
		&RunStateChangedBody{Section: "intro", Old: "OUTLINED", New: "DRAFTED", Stable: true},
		&GateRunBody{Node: "a", Gate: "dpr", Start: true}, &GateRunBody{Node: "a", Gate: "dpr", Status: "fail"},
		&IssueBody{Node: "a", IssueID: "i1", Title: "t"}, &IssueBody{Node: "a", IssueID: "i2"}, &IssueBody{Node: "b", IssueID: "i1", Resolved: true},
		&PROpenedBody{Node: "a", URL: "u"},
		&CheckpointBody{ID: "cp", Path: "p", Manifest: "m", Head: 3},
		&RevertedBody{Checkpoint: "cp"},
		&StartedBody{Node: "a", Generation: 1, Attempt: 1}, &StartedBody{Node: "b", Generation: 1, Attempt: 1},
		&LLMCallStartedBody{CallID: "a.1.1", Node: "a"}, &LLMCallFailedBody{CallID: "a.1.1", Node: "a"},
		&LLMCallStartedBody{CallID: "a.1.1b", Node: "a"}, &LLMCallFinishedBody{CallID: "a.1.1b", Node: "a"},
		&LLMCallStartedBody{CallID: "a.1.1c", Node: "a"}, &LLMCallStartedBody{CallID: "b.1.1", Node: "b"},
		&FinishedBody{Node: "a", Generation: 1, Attempt: 1, Status: dag.StatusLost, Category: "lost"})
	for _, s := range []*State{x.s, x.restored()} {
		run, calls := s.Run(), s.OpenCalls()
		got := fmt.Sprint(run.State, run.Stable, s.DeclaredState("intro"), len(s.Sections()), s.Gates()[0].Status, len(s.Gates()),
			s.Issues()[0].Status, s.Issues()[1].Status, s.PullRequests()[0].URL, s.Checkpoints()[0].ID, s.Reverts()[0].Checkpoint,
			len(calls), calls[0].CallID, s.Errors()[0].Node)
		if want := "DRAFTINGPLAN_READYDRAFTED1fail1RESOLVEDOPENucpcp1b.1.1a"; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// S-6: after a change of plan the declared states are those of the milestones that are reached.
func TestMilestoneThatLeavesThePlan(t *testing.T) {
	stone := func(id, with string) dag.Node {
		return dag.Node{ID: id, Kind: "milestone", Effect: "pure", With: []byte(with)}
	}
	first, ready, page := stone("first", `{"state":"DRAFT"}`), stone("ready", `{"state":"READY"}`), stone("page", `{"state":"FINE","section":"page"}`)
	x := tell(t, &dag.Plan{Nodes: []dag.Node{first, ready, page}})
	x.ran("first", &RunStateChangedBody{New: "DRAFT", Stable: true})
	x.ran("page", &RunStateChangedBody{Section: "page", New: "FINE", Stable: true})
	x.ran("ready", &RunStateChangedBody{New: "READY", Stable: true})
	x.with(&PlanAdoptedBody{PlanDigest: "e", Removed: []string{"ready"}}, mustGraph(t, &dag.Plan{Nodes: []dag.Node{first, page}}))
	if r := x.s.Run(); r.State != "DRAFT" || r.Stable != "DRAFT" || x.s.DeclaredState("page") != "FINE" {
		t.Errorf("%s, stable %s, page %s", r.State, r.Stable, x.s.DeclaredState("page"))
	}
	x.with(&PlanAdoptedBody{PlanDigest: "f", Removed: []string{"first", "page"}}, mustGraph(t, &dag.Plan{Nodes: []dag.Node{stone("none", `{"state":"X"}`)}}))
	if r := x.s.Run(); r.State != "CREATED" || r.Stable != "" || x.s.DeclaredState("page") != "NOT_STARTED" {
		t.Errorf("%s, stable %s, page %s", r.State, r.Stable, x.s.DeclaredState("page"))
	}
}

// V-1, V-2: what moves a declared state without a fact of its own is followed by one, and folds to the same without it;
// a run that is resumed on its way goes back to the last stable state.
func TestDeclaredBesideWork(t *testing.T) {
	declares := func(id, state, section string, stable bool, needs ...string) dag.Node {
		return dag.Node{ID: id, Kind: "k", Needs: needs, Milestone: &dag.Declaration{State: state, Section: section, Stable: stable}}
	}
	on := dag.Node{ID: "on", Kind: "milestone", Needs: []string{"plan"}, With: []byte(`{"state":"DRAFTING","stable":false}`)}
	draft := declares("draft", "DRAFTED", "intro", true, "on")
	x := tell(t, &dag.Plan{Nodes: []dag.Node{declares("plan", "READY", "", true), on, draft, {ID: "more", Kind: "k"}, declares("end", "KEPT", "outro", false)}})
	watched := func(b Body, g *dag.Graph) string {
		e := New(epoch.Add(time.Hour), b)
		e.Plan = g
		moved := x.s.Watch(&e)
		x.with(b, g)
		if moved == nil {
			return ""
		}
		text, err := json.Marshal(moved())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	end := func(node string, status dag.Status) string {
		v, _ := x.s.NodeByID(node)
		x.apply(&StartedBody{Node: node, Generation: v.Generation, Attempt: v.Attempt + 1})
		return watched(&FinishedBody{Node: node, Generation: v.Generation, Attempt: v.Attempt + 1, Status: status,
			Final: status == dag.StatusCompleted, RetryAt: epoch}, nil)
	}
	if got := end("plan", dag.StatusFailed) + end("plan", dag.StatusCompleted); got != `null[{"old_state":"CREATED","new_state":"READY","stable":true}]` {
		t.Error(got)
	}
	x.ran("on", &RunStateChangedBody{Old: "READY", New: "DRAFTING"})
	if got := end("draft", dag.StatusCompleted); got != `[{"section":"intro","old_state":"NOT_STARTED","new_state":"DRAFTED","stable":true}]` {
		t.Error(got)
	}
	back := x.s.BackToStable()
	if got, _ := json.Marshal(back); string(got) != `[{"old_state":"DRAFTING","new_state":"READY","stable":true},{"old_state":"READY","new_state":"DRAFTING","stable":false}]` {
		t.Errorf("%s", got)
	}
	x.apply(back[0]) // as when the process died before it could say more
	if got, _ := json.Marshal(x.s.BackToStable()); string(got) != "null" {
		t.Errorf("%s", got)
	}
	x.apply(back[1])
	x.ran("end")
	if got := watched(&FinishedBody{Node: "more", Generation: 1, Status: dag.StatusSkipped, Final: true}, nil); got != "" {
		t.Errorf("a node that declares nothing is watched: %s", got)
	}
	g := mustGraph(t, &dag.Plan{Nodes: []dag.Node{declares("plan", "READY", "", true), declares("end", "KEPT", "outro", false)}})
	if got := watched(&PlanAdoptedBody{PlanDigest: "e", Removed: []string{"on", "draft", "more"}}, g); got !=
		`[{"old_state":"DRAFTING","new_state":"READY","stable":true},{"section":"intro","old_state":"DRAFTED","new_state":"NOT_STARTED","stable":true}]` {
		t.Error(got)
	}
	if r := x.restored().Run(); r.State != "READY" || r.Stable != "READY" {
		t.Errorf("%+v", r)
	}
}

// How a run ends is a fact that conditions of clean-up nodes may ask for.
func TestEnding(t *testing.T) {
	for want, b := range map[string]Body{"": &InputsClonedBody{}, "cancelled": &RunPausedBody{Reason: PauseCancel}, "failed": &RunPausedBody{Reason: PauseFailure}} {
		x := tell(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k"}}})
		x.apply(b)
		if got := x.s.ScopeOf("a").Run()["ending"]; got != want {
			t.Errorf("%v, want %q", got, want)
		}
	}
}

// §13.8: what a loss could make expensive is durable before anybody acts on it; the rest waits.
func TestUrgent(t *testing.T) {
	s := tell(t, &dag.Plan{Name: "p", Nodes: []dag.Node{
		{ID: "free", Kind: "k", Effect: "pure"}, {ID: "once", Kind: "k", Effect: "once"}, {ID: "paid", Kind: "k", Effect: "pure", Paid: true},
		{ID: "reserved", Kind: "k", Effect: "pure", Reserve: dag.Amount{USD: 1}},
	}}).s
	for _, c := range []struct {
		body   Body
		urgent bool
	}{
		{&StartedBody{Node: "free"}, false}, {&FinishedBody{Node: "free"}, false},
		{&StartedBody{Node: "free", Reserve: dag.Amount{Tokens: 1}}, true},
		{&FinishedBody{Node: "free", CostUSD: 1}, true}, {&FinishedBody{Node: "free", Usage: Usage{Output: 1}}, true},
		{&StartedBody{Node: "once"}, true}, {&FinishedBody{Node: "once"}, true},
		{&StartedBody{Node: "paid"}, true}, {&FinishedBody{Node: "paid"}, true}, {&StartedBody{Node: "reserved"}, true},
	} {
		e := New(epoch, c.body)
		if got := s.Urgent(&e); got != c.urgent {
			t.Errorf("%s %+v: urgent: %v", e.Type, c.body, got)
		}
	}
	var later []Type
	for _, d := range events {
		if e := New(epoch, d.empty()); !s.Urgent(&e) {
			later = append(later, d.typ)
		}
	}
	if got, want := fmt.Sprint(later), "[INPUTS_CLONED PLAN_EXTENDED WORK_ITEM_QUEUED WORK_ITEM_STARTED WORK_ITEM_FINISHED "+
		"LLM_CALL_FINISHED LLM_CALL_FAILED ARTIFACT_WRITTEN GATE_RUN_STARTED GATE_RUN_FINISHED ISSUE_OPENED ISSUE_RESOLVED "+
		"RUN_STATE_CHANGED PR_OPENED BREAKER_CHANGED NOTIFIED BUDGET_WARNED RUN_INTERRUPTED RUN_SUSPENDED]"; got != want {
		t.Errorf("may be lost without costing anything:\n%s, want\n%s", got, want)
	}
}

// What says that it took effect is of the attempt that is under way, and of no other.
func TestTookEffect(t *testing.T) {
	x := tell(t, &dag.Plan{Name: "p", Nodes: []dag.Node{{ID: "a", Kind: "k", Effect: "once"}}})
	said := func(generation, attempt int) error {
		e := New(epoch.Add(time.Minute), &TookEffectBody{Node: "a", Generation: generation, Attempt: attempt, How: "exit status 0"})
		return x.s.Apply(&e)
	}
	if said(1, 1) == nil {
		t.Error("an attempt that has not begun took effect")
	}
	x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: 1})
	if said(1, 2) == nil || said(2, 1) == nil {
		t.Error("an attempt that is not under way took effect")
	}
	if err := said(1, 1); err != nil {
		t.Error(err)
	}
}
