package run

import "slices"

// A Drift is a live artifact that is not as the run has recorded it, and what Open does about it.
type Drift struct {
	Name   string
	Gone   bool // nothing is there
	Edited bool // somebody changed it, and the changed file counts; otherwise the recorded version is put back
}

// Drift returns what Open would find to mend, in order of first appearance. It works read-only and reads every
// live artifact. Beside a running attempt it may show what that one is writing.
func (r *Run) Drift() ([]Drift, error) {
	var list []Drift
	unsure := r.unsure()
	for _, t := range r.index.artifacts() {
		if slices.ContainsFunc(t.Versions, func(v version) bool { return v.Standing == open }) {
			continue // as in mend
		}
		digest, fine, ours, err := r.look(t.Name)
		if err != nil {
			return nil, err
		}
		if !fine {
			list = append(list, Drift{Name: t.Name, Gone: digest == "", Edited: !ours && !unsure[t.Name]})
		}
	}
	return list, nil
}
