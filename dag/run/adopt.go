package run

import (
	"fmt"
	"io"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
)

// Compare says node by node what adopting g would do. It changes nothing and works read-only.
func (r *Run) Compare(g *dag.Graph) *reuse.Diff { return reuse.Compare(r.state, g) }

// Adopt makes g the run's plan: plan and input files go to the object store, then PLAN_ADOPTED is
// recorded, durable. Nodes that Compare calls changed or blocked and that have run do so again with
// generation + 1; those that may not have to keep their results, stale. Attempts that a dead process left under way are
// recorded before, as Resume does. Adopting the plan that the run has does nothing; one that drops a node of which nobody knows whether it took effect is refused.
func (r *Run) Adopt(now time.Time, g *dag.Graph, file func(path string) (io.ReadCloser, error), rescue Rescue) (*reuse.Diff, error) {
	if r.readOnly {
		return nil, errReadOnly
	}
	d := r.Compare(g)
	if d.Same {
		return d, nil
	}
	if _, err := r.lose(now, rescue); err != nil {
		return nil, err
	}
	d = r.Compare(g)
	if names := d.IDs(func(n *reuse.NodeDiff) bool { return n.Do == reuse.DoRemoved && n.Asks }); len(names) > 0 {
		return nil, fmt.Errorf("the new plan drops %s, whose last attempt was interrupted: whether it took effect would be forgotten; "+
			"resolve that under the plan that the run has (dagrun resume asks, dagrun respond answers), then apply again", some(names))
	}
	if _, _, err := r.clone(g.Plan, file); err != nil {
		return nil, err
	}
	event := machine.New(now, machine.Adoption(d, r.state.PlanDigest()))
	event.Plan = r.weighed(g)
	m, err := r.record([]machine.Event{event})
	if err != nil {
		return nil, err
	}
	return d, r.log.Wait(m.Seq)
}
