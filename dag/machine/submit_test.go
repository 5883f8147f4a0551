package machine

import (
	"slices"
	"testing"

	"dagrun.dev/dag/reuse"
)

// What a plan that is handed over touches is what the run has and the plan changes; what it adds has nothing to wait for.
func TestSubmission(t *testing.T) {
	b := Submission(&reuse.Diff{PlanDigest: "q", Nodes: []reuse.NodeDiff{
		{ID: "changed", Do: reuse.DoChanged, Touched: true}, {ID: "kept", Do: reuse.DoReuse},
		{ID: "gone", Do: reuse.DoRemoved, Touched: true}, {ID: "left", Do: reuse.DoRemoved},
		{ID: "new", Do: reuse.DoAdded, Touched: true}, {ID: "below", Do: reuse.DoBlocked, Touched: true}}}, "apply")
	if !slices.Equal(b.Touched, []string{"changed", "below"}) || !slices.Equal(b.Removed, []string{"gone", "left"}) ||
		b.PlanDigest != "q" || b.By != "apply" {
		t.Errorf("%+v", b)
	}
}
