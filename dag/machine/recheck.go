package machine

import (
	"cmp"
	"fmt"
	"math"

	"dagrun.dev/dag"
)

// After a change of plan, nodes below a changed one keep what they have done, in doubt, until their
// needs have ended again. Then the host looks whether what they would read is what they did read. If it
// is, nothing runs, and nothing below them has a reason to; if not, they begin a new generation.

// ReasonChanged is the reason of REWOUND for nodes whose results do not hold any more.
const ReasonChanged = "what they read has changed since"

// Holds is the fact that the result of a node in doubt is proved to hold.
func (s *State) Holds(node string) *FinishedBody {
	i, ok := s.graph.Index(node)
	if !ok {
		panic("machine: Holds of a node that is not in the plan: " + node)
	}
	b := &FinishedBody{Node: node, Generation: int(s.recs[i].gen), Status: dag.StatusCompleted, Final: true, Reused: true}
	switch s.recs[i].end {
	case endFailed:
		b.Status = dag.StatusFailed
	case endSkipped:
		b.Status = dag.StatusSkipped
	}
	return b
}

// Changed is the fact that results in doubt are not proved to hold: the nodes run again.
func Changed(nodes ...string) *RewoundBody {
	return &RewoundBody{To: nodes[0], Nodes: nodes, Reason: ReasonChanged}
}

// recheck asks whether results in doubt hold, where nothing that the machine knows speaks against it.
func (d *decision) recheck(list []int32) {
	s := d.s
	var changed []string
	for _, i := range list {
		switch n := s.graph.Node(i); {
		case s.skippedAsBefore(i, n):
			d.recordOf(i, s.Holds(n.ID))
		case !n.Always && unwanted(n, &s.tallies[i]) != wanted, s.recs[i].end == endSkipped && n.When == "", !s.undisturbed(i, n):
			changed = append(changed, n.ID)
		default:
			d.command(Recheck, i)
		}
	}
	if len(changed) > 0 {
		d.record(Changed(changed...))
	}
}

// skippedAsBefore reports whether a node was skipped because of its needs and is to be so again.
func (s *State) skippedAsBefore(i int32, n *dag.Node) bool {
	r := &s.recs[i]
	if r.end != endSkipped || n.Always || r.more == nil || r.more.last == nil {
		return false
	}
	switch unwanted(n, &s.tallies[i]) {
	case byUpstream:
		return r.more.last.Category == CategoryUpstream
	case byNeeds:
		return r.more.last.Category == "" && n.When == ""
	}
	return false
}

func (s *State) onReused(i int32, b *FinishedBody) error {
	r := &s.recs[i]
	switch {
	case r.phase != doubted:
		return fmt.Errorf("the result of node %s is not in doubt", b.Node)
	case int(r.gen) != b.Generation:
		return fmt.Errorf("node %s is in generation %d, not %d", b.Node, r.gen, b.Generation)
	case b.Status != s.Holds(b.Node).Status:
		return fmt.Errorf("node %s had not ended as %s", b.Node, b.Status)
	}
	r.phase = ended
	s.touch(i)
	s.findUndo()
	return nil
}

// done reports whether a node's work stands as completed, in doubt or not.
func (r *rec) done() bool { return (r.phase == ended || r.phase == doubted) && r.end == endCompleted }

// noise is the last event at or above a node that ended an attempt of a loud one (dag.Node.Loud), or
// made another expansion of a foreach. Where something has not ended it is the end of time: nothing is proved below it yet.
type noise struct {
	known bool
	above int64 // without the expansion that the node itself made, which is none to its items
	seq   int64
}

// undisturbed reports whether nothing that could have changed the result of node i unseen has run
// above it since the result was made.
func (s *State) undisturbed(i int32, n *dag.Node) bool {
	if s.recs[i].end == endSkipped {
		return !n.Always // whether its condition holds is asked in any case
	}
	switch n.Proof() {
	case dag.ByReads:
		return true
	case dag.ByQuiet:
		for _, j := range s.graph.Needs(i) {
			if s.heard(i, s.noiseAt(j), j) > s.recs[i].endSeq {
				return false
			}
		}
		return true
	}
	return false
}

// noiseAt walks up from a node; every node and edge is looked at about twice, as long as no settled
// node is sent back.
func (s *State) noiseAt(i int32) noise {
	if s.noise == nil {
		s.noise = make([]noise, s.graph.Len())
	}
	todo := []int32{i}
	for len(todo) > 0 {
		k, depth := todo[len(todo)-1], len(todo)
		for _, j := range s.graph.Needs(k) {
			if !s.noise[k].known && !s.noise[j].known {
				todo = append(todo, j)
			}
		}
		if len(todo) == depth {
			todo = todo[:depth-1]
			s.noise[k] = s.listen(k)
		}
	}
	return s.noise[i]
}

// heard is the noise of need j to node i.
func (s *State) heard(i int32, x noise, j int32) int64 {
	if of, ok := s.graph.Origin(i); ok && of == j {
		return x.above
	}
	return x.seq
}

// listen is the noise at a node; that of its needs is known.
func (s *State) listen(k int32) noise {
	if s.settled[k] == unsettled {
		return noise{true, math.MaxInt64, math.MaxInt64}
	}
	x := noise{known: true}
	for _, j := range s.graph.Needs(k) {
		x.above = max(x.above, s.heard(k, s.noise[j], j))
	}
	r := &s.recs[k]
	stopped := r.end == endSkipped && r.gen > 1 // it may have run before
	if s.graph.Node(k).Loud() && (r.attempt > 0 || stopped) {
		x.above = max(x.above, r.endSeq)
	}
	x.seq = x.above
	if r.more != nil && r.more.reshaped || stopped && s.graph.Node(k).Foreach != nil { // its items ran, or did not
		x.seq = max(x.seq, r.endSeq)
	}
	return x
}

// A spare is the record of an item of an expansion that is being made anew: its result is in doubt
// until the expansion brings the item back, or does not.
type spare struct {
	Item string
	Of   string // foreach node
	Root string // node of the plan that Of is, or comes from
	rec  rec
}

func (s *State) putAside(j int32) {
	x := spare{Item: s.graph.Node(j).ID, rec: s.recs[j]}
	x.rec.phase = doubted
	for of, ok := s.graph.Origin(j); ok; of, ok = s.graph.Origin(of) {
		x.Root = s.graph.Node(of).ID
		x.Of = cmp.Or(x.Of, x.Root)
	}
	s.spares = append(s.spares, x)
}

func (s *State) spareIndex() map[string]int {
	known := make(map[string]int, len(s.spares))
	for k := range s.spares {
		known[s.spares[k].Item] = k
	}
	return known
}

// itemRec is the record of an item that an expansion brings. What it takes from a spare leaves an
// empty one, for dropSpares.
func (s *State) itemRec(id string, known map[string]int) rec {
	k, ok := known[id]
	if !ok {
		return s.newRec(id)
	}
	r := s.spares[k].rec
	s.spares[k] = spare{}
	return r
}

func (s *State) sparesOf(node string) (n int) {
	for k := range s.spares {
		if s.spares[k].Of == node {
			n++
		}
	}
	return n
}

// dropSpares forgets spares; should their ids come back, they go on with the next generation.
func (s *State) dropSpares(drop func(*spare) bool) {
	keep := s.spares[:0]
	for k := range s.spares {
		switch x := s.spares[k]; {
		case x.Item == "": // its item has come back
		case drop(&x):
			s.retire(x.Item, x.rec.gen)
		default:
			keep = append(keep, x)
		}
	}
	s.spares = keep
}
