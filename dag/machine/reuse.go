package machine

import (
	"fmt"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// What an edit leaves valid is decided in dag/reuse. Here its verdicts are folded: PLAN_ADOPTED makes results stale
// or begins new generations, and of a stale result whose node's needs have ended again either
// WORK_ITEM_FINISHED{reused} or REWOUND follows.

// ReasonChanged is the reason of REWOUND for nodes whose results are not valid any more.
const ReasonChanged = "what they read has changed since"

// Adoption is the fact that a compared plan takes the place of the one in force, whose digest is previous.
func Adoption(d *reuse.Diff, previous string) *PlanAdoptedBody {
	do := func(do string) []string { return d.IDs(func(n *reuse.NodeDiff) bool { return n.Do == do }) }
	return &PlanAdoptedBody{
		PlanDigest:  d.PlanDigest,
		Previous:    previous,
		Reused:      d.Count(reuse.DoReuse),
		Invalidated: d.IDs(func(n *reuse.NodeDiff) bool { return n.Again && !n.Stale && n.Do != reuse.DoRemoved }),
		Recheck:     d.IDs(func(n *reuse.NodeDiff) bool { return n.Stale }),
		Removed:     do(reuse.DoRemoved),
		Added:       do(reuse.DoAdded),
	}
}

// StillValid is the fact that the stale result of a node is proved to be valid.
func (s *State) StillValid(node string) *FinishedBody {
	i, ok := s.graph.Index(node)
	if !ok {
		panic("machine: StillValid of a node that is not in the plan: " + node)
	}
	b := &FinishedBody{Node: node, Generation: int(s.recs[i].Gen), Status: dag.StatusCompleted, Final: true, Reused: true}
	switch s.recs[i].End {
	case reuse.Failed:
		b.Status = dag.StatusFailed
	case reuse.Skipped:
		b.Status = dag.StatusSkipped
	}
	return b
}

// Invalidate is the fact that stale results are not proved to be valid: the nodes run again.
func Invalidate(nodes ...string) *RewoundBody {
	return &RewoundBody{To: nodes[0], Nodes: nodes, Reason: ReasonChanged}
}

// Judged answers Recheck: the fact that a verdict about a stale result is; nil while there is none.
func (s *State) Judged(node string, v reuse.Verdict) Body {
	switch v {
	case reuse.Unknown:
		return nil
	case reuse.StillValid:
		return s.StillValid(node)
	}
	return Invalidate(node)
}

// recheck asks whether stale results are valid, where nothing that the machine knows speaks against it.
func (d *decision) recheck(list []int32) {
	s := d.s
	var invalid []string
	for _, i := range list {
		switch s.judge(i) {
		case reuse.Unknown:
			d.command(Recheck, i)
		case reuse.StillValid:
			d.recordOf(i, s.StillValid(s.graph.Node(i).ID))
		default:
			invalid = append(invalid, s.graph.Node(i).ID)
		}
	}
	if len(invalid) > 0 {
		d.record(Invalidate(invalid...))
	}
}

func (s *State) judge(i int32) reuse.Verdict {
	n, r := s.graph.Node(i), s.Record(i)
	category, unstarted := "", true
	switch unwanted(n, &s.tallies[i]) {
	case wanted:
		unstarted = false
	case byUpstream:
		category = CategoryUpstream
	case byCount:
		category = CategoryNeeds
	}
	return reuse.ByNeeds(n, &r, unstarted, category, s.effects.Quiet(s, i))
}

func (s *State) onReused(i int32, b *FinishedBody) error {
	r := &s.recs[i]
	switch {
	case r.Phase != stale:
		return fmt.Errorf("the result of node %s is not stale", b.Node)
	case int(r.Gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.Gen, b.Generation)
	case b.Status != s.StillValid(b.Node).Status:
		return fmt.Errorf("node %s had not ended as %s", b.Node, b.Status)
	}
	r.Phase = ended
	s.touch(i)
	return nil
}

// done reports whether a node's work stands as completed, stale or not.
func (r *rec) done() bool { return (r.Phase == ended || r.Phase == stale) && r.End == reuse.Completed }

// State is what package reuse asks about a run.
var _ reuse.Run = (*State)(nil)

// PlanDigest is the digest of the plan in force.
func (s *State) PlanDigest() string { return s.run.PlanDigest }

// Record returns what a node's result depends on.
func (s *State) Record(i int32) reuse.Record {
	r, st := &s.recs[i], s.status[i]
	v := reuse.Record{Ended: st.Ended() && st != Undone, Settled: s.settled[i].counts(), Stale: r.Phase == stale,
		Fingerprint: r.Fingerprint, End: r.End, Attempts: int(r.Attempt), Generation: int(r.Gen), EndSeq: r.EndSeq}
	v.Begun = r.begun() || st == Asking // also where its condition was found true: it may be another one now
	m := r.detail()
	v.Unresolved, v.Reshaped, v.Category = m.Unresolved, m.Reshaped, r.category()
	v.Begun = v.Begun || m.Question != ""
	return v
}

// ResultAt returns what a node left to those that need it, artifacts and entries apart. It is the
// cheap part of NodeAt.
func (s *State) ResultAt(i int32) reuse.Left {
	r := &s.recs[i]
	l := reuse.Left{Status: s.status[i].word(), Fingerprint: r.Fingerprint}
	if last := r.detail().Last; last != nil && r.Phase == ended {
		l.Values = last.Values
	}
	return l
}

// Failure reports whether the node at an index has ended without success by its policies: it failed, its result stale
// by now or not, or its breaker kept it from starting. The categories are those of the failures that led to it.
func (s *State) Failure(i int32) (categories []string, failed bool) {
	r := &s.recs[i]
	last := r.category()
	failed = r.End == reuse.Failed || r.End == reuse.Rejected || r.End == reuse.Skipped && last == CategoryBreaker
	if !failed || r.Phase != ended && r.Phase != stale {
		return nil, false
	}
	for _, c := range append(slices.Clip(r.detail().Failures), catCount{Category: last}) {
		if c.Category != "" {
			categories = append(categories, c.Category)
		}
	}
	slices.Sort(categories)
	return slices.Compact(categories), true
}
