package run

import (
	"fmt"
	"io"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
)

// Compare says node by node what adopting g would do. It changes nothing and works read-only.
func (r *Run) Compare(g *dag.Graph) *reuse.Diff { return reuse.Compare(r.state, g) }

// An OpenFile opens an input file that a plan declares, by its path.
type OpenFile func(path string) (io.ReadCloser, error)

// Adopt makes g the run's plan: plan and input files go to the object store, then PLAN_ADOPTED is
// recorded, durable. Nodes that Compare calls changed or blocked and that have run do so again with
// generation + 1; those that may not have to keep their results, stale. Attempts that a dead process left under way are
// recorded before, as Resume does. Adopting the plan that the run has does nothing, but takes back one that was
// submitted; a plan that drops a node of which nobody knows whether it took effect is refused.
func (r *Run) Adopt(now time.Time, g *dag.Graph, file OpenFile, rescue Rescue) (*reuse.Diff, error) {
	if r.readOnly {
		return nil, errReadOnly
	}
	if d := r.Compare(g); d.Same {
		return d, r.takeBack(now, d)
	}
	if _, err := r.lose(now, rescue); err != nil {
		return nil, err
	}
	d := r.Compare(g)
	if names := d.IDs(func(n *reuse.NodeDiff) bool { return n.Do == reuse.DoRemoved && n.Asks }); len(names) > 0 {
		return nil, fmt.Errorf("the new plan drops %s, whose last attempt was interrupted: whether it took effect "+
			"would be forgotten; resolve that under the plan that the run has (dagrun resume asks, dagrun respond "+
			"answers), then apply again", some(names))
	}
	if _, _, err := r.clone(g.Plan, file); err != nil {
		return nil, err
	}
	return d, r.adopt(now, g, d)
}

// takeBack records that a plan which waits to be adopted is not wanted any more; d compares the one in force.
func (r *Run) takeBack(now time.Time, d *reuse.Diff) error {
	if r.state.Submitted() == nil {
		return nil
	}
	return r.RecordDurable(now, machine.Submission(d, "apply"))
}

func (r *Run) adopt(now time.Time, g *dag.Graph, d *reuse.Diff) error {
	event := machine.New(now, machine.Adoption(d, r.state.PlanDigest()))
	event.Plan = r.weighed(g)
	m, err := r.record([]machine.Event{event})
	if err != nil {
		return err
	}
	return r.log.Wait(m.Seq)
}

// Selects returns the fact that sel says which part of the plan is to run, as a list; none where it says nothing new.
func (r *Run) Selects(sel *machine.PartSelectedBody) []machine.Body {
	v := r.state.Run()
	known := sel.SavedPlan == "" || slices.Contains(v.SavedPlans, sel.SavedPlan)
	if known && len(sel.Rerun) == 0 && sel.Part.Equal(&v.Part) {
		return nil
	}
	b := *sel
	if known {
		b.SavedPlan = ""
	}
	return []machine.Body{&b}
}

// CompareOwn compares the run with the plan that it has.
func (r *Run) CompareOwn() (*reuse.Diff, error) {
	g, err := r.loadPlan(r.state.PlanDigest())
	if err != nil {
		return nil, err
	}
	return r.Compare(g), nil
}

// Submit hands g to a run that is being carried on, attempts under way or not: plan and input files go to the object
// store, then PART_SELECTED, where sel says something new, and PLAN_SUBMITTED are recorded, durable. The machine asks
// for AdoptSubmitted when nothing that g touches is under way any more, in this process or, should it die, in the next
// one. The plan in force takes back what was submitted before.
func (r *Run) Submit(now time.Time, sel *machine.PartSelectedBody, g *dag.Graph, file OpenFile) (*reuse.Diff, error) {
	d := r.Compare(g)
	if !d.Same {
		if _, _, err := r.clone(g.Plan, file); err != nil {
			return nil, err
		}
	}
	bodies := r.Selects(sel)
	if !d.Same || r.state.Submitted() != nil {
		bodies = append(bodies, machine.Submission(d, sel.By))
	}
	if len(bodies) == 0 {
		return d, nil
	}
	return d, r.RecordDurable(now, bodies...)
}

// AdoptSubmitted carries out machine.Adopt: the submitted plan is compared with the state as it is now and takes the
// place of the one in force.
func (r *Run) AdoptSubmitted(now time.Time) error {
	g, err := r.SubmittedPlan()
	if err != nil {
		return err
	}
	d := r.Compare(g)
	running := func(n *reuse.NodeDiff) bool {
		v, _ := r.state.NodeByID(n.ID)
		return n.Touched && v.Status == machine.Running
	}
	if len(d.IDs(running)) > 0 { // the comparison before did not see that it touches them
		return r.RecordDurable(now, machine.Submission(d, r.state.Submitted().By))
	}
	return r.adopt(now, g, d)
}

// SubmittedPlan returns the plan that waits to be adopted; nil = none does.
func (r *Run) SubmittedPlan() (*dag.Graph, error) {
	if s := r.state.Submitted(); s != nil {
		return r.loadPlan(s.PlanDigest)
	}
	return nil, nil
}
