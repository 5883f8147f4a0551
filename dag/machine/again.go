package machine

import (
	"fmt"
	"slices"
	"strings"
)

// A join whose needs have ended and too few of which have succeeded may send those that are missing
// back, as often as its plan says (Node.Again). When it has failed for good and the run is
// resumed, it may once more: what it waits for is all that could make it succeed.
//
// Each time counts for ever, also when the join itself is sent back, so this comes to an end.

// missing returns, in index order, the nodes because of which too few needs of join i succeeded:
// needs that failed and, where a need failed or was skipped because of others, those above it.
func (s *State) missing(i int32) []int32 {
	var list []int32
	seen := map[int32]bool{}
	todo := []int32{i}
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range s.graph.Needs(k) {
			if seen[j] || s.settled[j] == succeeded || s.settled[j] == replaced || s.settled[j] == unsettled {
				continue
			}
			seen[j] = true
			switch category := s.recs[j].category(); {
			case category == CategoryNeeds, category == CategoryUpstream:
				todo = append(todo, j)
			case s.settled[j] != skipped, category == CategoryBreaker:
				list = append(list, j)
			}
		}
	}
	slices.Sort(list)
	return list
}

// again is what a join sends back because it is missing, nil = nothing, or nothing more. What has begun below goes back
// too; while some of it is running, the join waits.
func (s *State) again(i int32) (b *RewoundBody, waits bool) {
	n, m, missing := s.graph.Node(i), s.recs[i].detail(), s.missing(i)
	if int(m.Requeues) >= n.Again+int(m.Rounds) || len(missing) == 0 {
		return nil, false
	}
	below := s.below(missing, i)
	b = s.rewound(below, nil, s.shortage(i))
	b.To, b.For = s.graph.Node(missing[0]).ID, n.ID
	return b, slices.ContainsFunc(below, func(k int32) bool { return s.recs[k].Phase == running })
}

// CleanedUp returns, of a run that has failed, the clean-up nodes (always) that ended before something they need had
// (what was cancelled goes on), and what has run below them: when the run is resumed all the same, it is to be
// cleaned up after it anew.
func (s *State) CleanedUp() (ids []string) {
	var early []int32
	for i := range int32(len(s.recs)) {
		waits := func(j int32) bool { return s.settled[j] == unsettled || s.status[j] == Cancelled }
		if s.graph.Node(i).Always && s.recs[i].Phase == ended && slices.ContainsFunc(s.graph.Needs(i), waits) {
			early = append(early, i)
		}
	}
	for _, i := range s.below(early, none) {
		if s.recs[i].begun() {
			ids = append(ids, s.graph.Node(i).ID)
		}
	}
	return ids
}

// below returns, in index order, nodes and all that depend on them, without one.
func (s *State) below(list []int32, without int32) []int32 {
	return indexes(s.graph.Redone(list, without))
}

// shortage says how many needs of a join succeeded, and which nodes are missing.
func (s *State) shortage(i int32) string {
	n, t := s.graph.Node(i), &s.tallies[i]
	text := fmt.Sprintf("%d of %d needs of %s succeeded, %d wanted; missing: %s", t.ok, t.counted, n.ID, n.AtLeast,
		s.some(s.missing(i)))
	return strings.TrimSuffix(text, "; missing: ")
}
