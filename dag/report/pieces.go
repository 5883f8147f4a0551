package report

import (
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Pieces is what became of the work that could be under way when a run was paused by its user, or lost its process:
// what is complete, what was stopped half-way and what had not begun though nothing before it was missing.
type Pieces struct {
	Complete   int     `json:"complete"`
	Partial    []Piece `json:"partial,omitempty"`
	NotStarted []Piece `json:"not_started,omitempty"` // could start at once
}

// A Piece is one node of them.
type Piece struct {
	Node string `json:"node"`
	Kept string `json:"kept,omitempty"` // what there is of it and where
}

// String names the node of a piece that has not begun.
func (p Piece) String() string { return p.Node }

func newPieces(st *machine.State) *Pieces {
	p := &Pieces{Complete: st.Count(machine.Completed)}
	for i := range int32(st.Graph().Len()) {
		n := st.NodeAt(i)
		switch {
		case n.Status == machine.Completed || n.Status == machine.Skipped:
		case n.Last != nil && n.Last.Status == dag.StatusCancelled:
			_, kept, _ := strings.Cut(n.Last.Message, "PARTIAL, ")
			p.Partial = append(p.Partial, Piece{n.Node.ID, kept})
		case n.Status == machine.Ready && n.Attempt == 0:
			p.NotStarted = append(p.NotStarted, Piece{Node: n.Node.ID})
		}
	}
	return p
}
