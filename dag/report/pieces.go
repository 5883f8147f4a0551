package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// Pieces is what became of the work that could be under way when a run was paused by its user, or lost its
// process: what is complete, what was stopped half-way and what had not begun though nothing before it
// was missing (L-5).
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

// NewPieces returns the pieces of a run that its user has paused, nil for any other.
func NewPieces(st *machine.State) *Pieces {
	if v := st.Run(); v.Status != machine.RunPause || v.Pause.Reason != "user" {
		return nil
	}
	return allPieces(st)
}

func allPieces(st *machine.State) *Pieces {
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

// cutOff tells the pieces of a run whose process is gone: what ran is partial.
func (s *Status) cutOff(r *run.Run) {
	if len(s.Running) == 0 {
		return
	}
	s.Pieces = allPieces(r.State())
	for i := range s.Running {
		n := &s.Running[i]
		n.Status, n.Seconds = "cut off", max(0, s.Updated.Sub(n.started).Seconds())
		kept := "interrupted; it left nothing"
		v, _ := r.State().NodeByID(n.ID)
		dir := r.NodeDir(n.ID, v.Generation)
		if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
			if rel, err := filepath.Rel(s.Dir, dir); err == nil {
				dir = rel
			}
			kept = "interrupted; what it left is in " + dir
		}
		s.Pieces.Partial = append(s.Pieces.Partial, Piece{n.ID, kept})
	}
}

// WriteText prints the pieces for people; nothing when there are none.
func (p *Pieces) WriteText(w io.Writer) error {
	if p == nil {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %s\n", "COMPLETE", Count(p.Complete, "node"))
	for _, x := range p.Partial {
		fmt.Fprintf(&b, "%-12s %s: %s\n", "PARTIAL", x.Node, Plain(x.Kept))
	}
	const most = 10
	names := make([]string, 0, most)
	for _, x := range p.NotStarted[:min(most, len(p.NotStarted))] {
		names = append(names, x.Node)
	}
	if more := len(p.NotStarted) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "%-12s %s\n", "NOT_STARTED", strings.Join(names, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
