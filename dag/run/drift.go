package run

import (
	"fmt"
	"strings"

	"dagrun.dev/dag/machine"
)

// A Drift is a live artifact that is not as the run has recorded it, and what Open does about it.
type Drift struct {
	Name   string
	Gone   bool // nothing is there
	Edited bool // somebody changed it, and the changed file counts; otherwise the recorded version is put back

	Readers []string // of what was edited: nodes that have read the version before, and whose results stay
}

// Drift returns what Open would find to mend, in plan order. It works read-only and reads every
// live artifact. Beside a running attempt it may show what that one is writing.
func (r *Run) Drift() ([]Drift, error) {
	var list []Drift
	unsure := r.unsure()
	for _, t := range r.listArtifacts() {
		if t.Pending() {
			continue // as in mend
		}
		digest, fine, ours, err := r.look(t.Name)
		if err != nil {
			return nil, err
		}
		if !fine {
			d := Drift{Name: t.Name, Gone: digest == "", Edited: !ours && !unsure[t.Name]}
			if d.Edited {
				d.Readers = r.readersOf(t.Name)
			}
			list = append(list, d)
		}
	}
	return list, nil
}

// readersOf returns the completed nodes that read the live version of an artifact, in plan order: what a user does to
// the file later changes nothing about them.
func (r *Run) readersOf(name string) (list []string) {
	live, _ := r.index.Live(name)
	g := r.state.Graph()
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if !n.ReadsArtifact(name) || r.state.StatusAt(i) != machine.Completed {
			continue
		}
		if v, ok := r.index.Visible(g, n.ID, name); ok && v.Digest == live {
			list = append(list, n.ID)
		}
	}
	return list
}

// readersMost is how many readers a message names.
const readersMost = 5

// ReadersText says of nodes that they keep what they made of the version before an edit; empty for none.
func ReadersText(readers []string) string {
	if len(readers) == 0 {
		return ""
	}
	names := strings.Join(readers[:min(len(readers), readersMost)], ", ")
	if more := len(readers) - readersMost; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "; results made of the version before stay: " + names
}
