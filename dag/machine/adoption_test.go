package machine

import (
	"reflect"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// What an adopted plan does to the nodes of a run is what its comparison says.
func TestAdoption(t *testing.T) {
	got := Adoption(&reuse.Diff{PlanDigest: "new", Nodes: []reuse.NodeDiff{
		{ID: "kept", Do: reuse.DoReuse}, {ID: "kept too", Do: reuse.DoReuse},
		{ID: "changed", Do: reuse.DoChanged, Again: true}, {ID: "not begun", Do: reuse.DoChanged},
		{ID: "in doubt", Do: reuse.DoBlocked, Again: true, Stale: true},
		{ID: "gone", Do: reuse.DoRemoved, Again: true}, {ID: "back some day", Do: reuse.DoRemoved, Again: true, Stale: true},
		{ID: "new", Do: reuse.DoAdded}}}, "old")
	want := &PlanAdoptedBody{PlanDigest: "new", Previous: "old", Reused: 2, Invalidated: []string{"changed"},
		Recheck: []string{"in doubt", "back some day"}, Removed: []string{"gone", "back some day"}, Added: []string{"new"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// How long nodes are expected to take stays known when an expansion is dropped.
func TestWeightsSurviveARewind(t *testing.T) {
	g := mustGraph(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k"}, {ID: "f", Kind: "join", Foreach: &dag.Foreach{Most: 9}}}})
	x := &story{t: t, s: new(State)}
	x.with(&RunCreatedBody{RunID: "r", Schema: Schema}, g.Reweigh(func(int32) (float64, bool) { return 77, true }))
	x.apply(&PlanExtendedBody{Node: "f", Generation: 1, Nodes: []dag.Node{{ID: "f/x", Kind: "k"}}},
		&RewoundBody{To: "f", Nodes: []string{"f", "f/x"}})
	if got := x.s.Graph().Weight(0); x.s.Graph().Len() != 2 || got != 77 {
		t.Errorf("%d nodes, the first of weight %v", x.s.Graph().Len(), got)
	}
}
