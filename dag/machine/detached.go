package machine

import "cmp"

// A detached item is the record of an item whose expansion is being made anew: its result is stale until the expansion
// brings the item back, or does not.
type detached struct {
	Item string `json:"item"`
	Of   string `json:"of"`   // foreach node
	Root string `json:"root"` // node of the plan that Of is, or comes from
	Rec  rec    `json:"record"`
}

func (s *State) detach(j int32) {
	x := detached{Item: s.graph.Node(j).ID, Rec: s.recs[j].tidied()}
	x.Rec.Phase = stale
	for of, ok := s.graph.Origin(j); ok; of, ok = s.graph.Origin(of) {
		x.Root = s.graph.Node(of).ID
		x.Of = cmp.Or(x.Of, x.Root)
	}
	s.detached = append(s.detached, x)
}

func (s *State) detachedIndex() map[string]int {
	known := make(map[string]int, len(s.detached))
	for k := range s.detached {
		known[s.detached[k].Item] = k
	}
	return known
}

// itemRec is the record of an item that an expansion brings. What it takes from a detached leaves an empty one,
// for dropDetached.
func (s *State) itemRec(id string, known map[string]int) rec {
	k, ok := known[id]
	if !ok {
		return s.newRec(id)
	}
	r := s.detached[k].Rec
	s.detached[k] = detached{}
	return r
}

func (s *State) detachedFrom(node string) (n int) {
	for k := range s.detached {
		if s.detached[k].Of == node {
			n++
		}
	}
	return n
}

// dropDetached forgets detached items; should their ids come back, they go on with the next generation.
func (s *State) dropDetached(drop func(*detached) bool) {
	keep := s.detached[:0]
	for k := range s.detached {
		switch x := s.detached[k]; {
		case x.Item == "": // its item has come back
		case drop(&x):
			s.retire(x.Item, x.Rec.Gen)
		default:
			keep = append(keep, x)
		}
	}
	s.detached = keep
}
