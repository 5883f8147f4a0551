package machine

import (
	"fmt"
	"slices"

	"dagrun.dev/dag"
)

// build derives everything that is not a fact. recs are those of the nodes of g.
func (s *State) build(g *dag.Graph) {
	n := g.Len()
	s.graph = g
	s.status, s.settled = make([]Status, n), make([]settlement, n)
	s.tallies, s.class, s.heapAt = make([]tally, n), make([]int32, n), make([]int32, n)
	s.counts, s.lists = [Undone + 1]int32{Waiting: int32(n)}, [Undone + 1][]int32{}
	s.classes, s.pools, s.always, s.timers, s.overdue = nil, nil, nil, nil, nil
	s.open, s.passed, s.ending = int32(n), 0, s.run.Ending
	s.undoing, s.blocked = none, nil
	s.effects.Reset()
	s.holdBack()
	s.left = s.run.Part.LeftOut(g)
	s.ledger.reserved = dag.Amount{}
	for _, p := range g.Plan.Pools {
		s.pools = append(s.pools, pool{name: p.Name, size: int32(p.Size), wait: p.Wait.D().Milliseconds()})
	}
	s.indexBreakers()
	for i := range int32(n) {
		s.prepare(i)
		s.tallies[i].open = int32(len(g.Needs(i)))
	}
	for i := range int32(n) { // settled nodes first: the others need whole tallies
		if s.recs[i].Phase == ended {
			s.touch(i)
		}
	}
	for i := range int32(n) {
		if s.recs[i].Phase != ended {
			s.touch(i)
		}
	}
	s.findUndo()
}

// prepare sets what is derived of a node without looking at others.
func (s *State) prepare(i int32) {
	n := s.graph.Node(i)
	s.class[i] = s.classOf(n)
	if n.Always {
		s.always = append(s.always, i)
	}
	r := &s.recs[i]
	r.due = false
	if r.Phase == running {
		if r.Detail != nil {
			s.ledger.reserve(s.holds(i), 1)
		}
		s.occupy(i, 1)
	}
	s.watchRetry(i)
	s.watchDeadline(i)
}

// extend takes over a graph that has more nodes at its end than the present one. The status of these, and of what needs
// them now, follows when the node that they come from has ended: all of them depend on it.
func (s *State) extend(g *dag.Graph) {
	first := int32(s.graph.Len())
	s.graph = g
	n := g.Len()
	known := s.detachedIndex()
	for int32(len(s.recs)) < int32(n) {
		s.recs = append(s.recs, s.itemRec(g.Node(int32(len(s.recs))).ID, known))
		s.status = append(s.status, Waiting)
		s.settled = append(s.settled, unsettled)
		s.tallies = append(s.tallies, tally{})
		s.class, s.heapAt = append(s.class, none), append(s.heapAt, none)
		s.counts[Waiting]++
		s.open++
	}
	s.left = s.run.Part.LeftOut(g)
	s.effects.Grow(n)
	for i := first; i < int32(n); i++ {
		s.tallies[i].open = int32(len(g.Needs(i)))
		for _, j := range g.Needs(i) {
			s.tallies[i].add(s.settled[j], 1)
		}
		for _, d := range g.Dependents(i) {
			if d < first {
				s.tallies[d].open++
			}
		}
		s.prepare(i)
	}
}

// sendBack starts a new generation of nodes. Expansions of foreach nodes among them are dropped
// with their items.
// The results of recheck become stale.
func (s *State) sendBack(ids, recheck []string) error {
	list, err := s.findAll(ids)
	if err != nil {
		return err
	}
	old, err := s.findAll(recheck)
	if err != nil {
		return err
	}
	olds := make(map[string]bool, len(old))
	for k, i := range old {
		if olds[recheck[k]] = true; s.recs[i].Phase != ended && s.recs[i].Phase != stale {
			return fmt.Errorf("node %s has not ended", recheck[k])
		}
	}
	drop := false
	again := make(map[string]bool, len(list))
	for k, i := range list {
		drop = drop || s.recs[i].Expanded
		again[ids[k]] = true
	}
	if drop {
		g, err := s.plainGraph()
		if err != nil {
			return err
		}
		if g, err = s.expanded(g, again); err != nil {
			return err
		}
		s.regraph(g, change{again: again, recheck: olds})
		return nil
	}
	for _, i := range old {
		s.recs[i].Phase = stale
		s.touch(i)
	}
	for _, i := range list {
		if s.recs[i].Phase == ended {
			s.effects.Reset()
		}
		s.recs[i].reset()
		s.touch(i)
	}
	return nil
}

// plainGraph returns the graph of the plan without expansions.
func (s *State) plainGraph() (*dag.Graph, error) {
	plan := *s.graph.Plan
	plan.Nodes = plan.Nodes[:s.graph.Base():s.graph.Base()]
	g, err := dag.NewGraph(&plan)
	if err != nil {
		return nil, err
	}
	old := s.graph
	return g.Reweigh(func(i int32) (float64, bool) { return old.Weight(i), true }), nil
}

// A change of plan says what becomes of the records, by id.
type change struct {
	again   map[string]bool // start a new generation
	recheck map[string]bool // have ended, and that may not hold any more
}

// stays reports whether an expansion is one of another plan too: its foreach node keeps its record.
func (x *PlanExtendedBody) stays(g *dag.Graph, again map[string]bool) bool {
	i, ok := g.Index(x.Node)
	return ok && !again[x.Node] && g.Node(i).Foreach != nil
}

// expanded returns the graph of another plan with the expansions that stay.
func (s *State) expanded(g *dag.Graph, again map[string]bool) (*dag.Graph, error) {
	for _, x := range s.expansions {
		if !x.stays(g, again) {
			continue
		}
		var err error
		if g, err = g.Extend(x.Node, x.Nodes); err != nil {
			return nil, fmt.Errorf("earlier expansion: %w", err)
		}
	}
	return g, nil
}

// regraph moves the records to the expanded graph of another plan, by id. Of expansions that do not stay, items to be
// rechecked are put aside.
func (s *State) regraph(g *dag.Graph, ch change) {
	old, again := s.graph, ch.again
	for j := range s.recs {
		id := old.Node(int32(j)).ID
		gen := s.recs[j].Gen
		if !s.recs[j].begun() { // the log has nothing of this one
			gen--
		}
		switch _, stays := g.Index(id); {
		case stays || gen == 0:
		case ch.recheck[id]:
			s.detach(int32(j))
		default:
			s.retire(id, gen)
		}
	}
	s.dropDetached(func(x *detached) bool {
		_, taken := g.Index(x.Item)
		root, ok := g.Index(x.Root)
		return taken || !ok || g.Node(root).Foreach == nil
	})
	recs := make([]rec, g.Len())
	for i := range recs {
		j, ok := old.Index(g.Node(int32(i)).ID)
		if !ok {
			recs[i] = s.newRec(g.Node(int32(i)).ID)
			continue
		}
		recs[i] = s.recs[j]
		if id := g.Node(int32(i)).ID; again[id] {
			recs[i].reset()
		} else if ch.recheck[id] {
			recs[i].Phase = stale
		}
		if g.Node(int32(i)).Foreach == nil {
			recs[i].Expanded, recs[i].Items = false, 0
		}
	}
	s.expansions = slices.DeleteFunc(s.expansions, func(x *PlanExtendedBody) bool { return !x.stays(g, again) })
	s.recs = recs
	s.build(g)
}

// leaves reports whether a node will not be in the graph of another plan: it is not in that plan, or is an item of an
// expansion that is made anew.
func (s *State) leaves(i int32, g *dag.Graph, again map[string]bool) bool {
	for item := false; ; item = true {
		id := s.graph.Node(i).ID
		of, more := s.graph.Origin(i)
		if !more {
			j, ok := g.Index(id)
			return !ok || item && (again[id] || g.Node(j).Foreach == nil)
		}
		if item && again[id] {
			return true
		}
		i = of
	}
}

// A retired node has left the plan. Should it come back, it goes on with the next generation, so
// that node, generation and attempt name one attempt in the whole log.
type retired struct {
	ID  string `json:"id"`
	Gen int32  `json:"generation"`
}

func (s *State) retire(id string, gen int32) {
	if k, ok := s.retiredAt[id]; ok {
		s.retired[k].Gen = max(s.retired[k].Gen, gen)
		return
	}
	s.indexRetired(id, len(s.retired))
	s.retired = append(s.retired, retired{id, gen})
}

func (s *State) indexRetired(id string, k int) {
	if s.retiredAt == nil {
		s.retiredAt = map[string]int{}
	}
	s.retiredAt[id] = k
}

// newRec is the record of a node that has come into the plan.
func (s *State) newRec(id string) rec {
	r := rec{Gen: 1}
	if k, ok := s.retiredAt[id]; ok {
		r.Gen = s.retired[k].Gen + 1
	}
	return r
}
