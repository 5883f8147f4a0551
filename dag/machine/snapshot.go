package machine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// A snapshot is the facts of a state as they are. It is a cache: a version that has other facts cannot read it, and
// folds the log.
type snapshot struct {
	Schema      int                 `json:"schema_version"`
	Run         runFacts            `json:"run"`
	Observed    observations        `json:"observed"`
	Ledger      ledger              `json:"ledger"`
	Breakers    []breaker           `json:"breakers,omitempty"` // those of which something is known, by name
	Escalations []EscalationView    `json:"escalations,omitempty"`
	Errors      []ErrorView         `json:"errors,omitempty"`
	Notices     []Notice            `json:"notices,omitempty"`
	Extended    []*PlanExtendedBody `json:"extended,omitempty"`
	Retired     []retired           `json:"retired,omitempty"`  // nodes that left the plan
	Detached    []detached          `json:"detached,omitempty"` // items whose expansion is being made anew
	WorkItems   []nodeRecord        `json:"work_items"`         // but for the plain ones
	Plain       plainRecords        `json:"plain_work_items,omitzero"`
}

// A nodeRecord is the record of a node that is not as it was at the start.
type nodeRecord struct {
	ID     string `json:"id"`
	Record rec    `json:"record"`
}

// plainRecords are the records of nodes that completed at their first attempt and of which nothing else is known,
// which most are: a list for each field, in one order. It makes the snapshot of a large run a third as long, and as
// much faster to write and to read. Instants are milliseconds after the run was created.
type plainRecords struct {
	ID          []string `json:"id,omitempty"`
	Started     []int64  `json:"started,omitempty"`
	Finished    []int64  `json:"finished,omitempty"`
	EndSeq      []int64  `json:"seq,omitempty"`
	Fingerprint []string `json:"fingerprint,omitempty"`
}

// AppendSnapshot appends the facts of the state as canonical JSON (schemas/snapshot.schema.json). Two states
// folded from the same events give the same bytes, whatever was asked of them between. Everything
// else is derived from it. A finished node of which nothing is to be told takes about 100 bytes.
func (s *State) AppendSnapshot(dst []byte) ([]byte, error) {
	v := snapshot{Schema: Schema, Run: s.run, Observed: s.observed, Ledger: s.ledger, Escalations: s.questions,
		Errors: s.errors, Notices: s.notices, Extended: s.expansions, Retired: s.retired, Detached: s.detached}
	for k := range s.breakers {
		if b := &s.breakers[k]; b.known() {
			v.Breakers = append(v.Breakers, *b)
		}
	}
	slices.SortFunc(v.Breakers, func(a, b breaker) int { return strings.Compare(a.Name, b.Name) })
	v.Plain.makeRoom(s.recs)
	for i := range s.recs {
		switch r, id := s.recs[i].tidied(), s.graph.Node(int32(i)).ID; {
		case r.plain():
			v.Plain.add(id, &r, s.run.Created)
		case r != (rec{Gen: 1}):
			v.WorkItems = append(v.WorkItems, nodeRecord{id, r})
		}
	}
	return dag.AppendJSON(slices.Grow(dst, 512+64*len(v.Plain.ID)), &v)
}

// known reports whether anything was recorded of a breaker.
func (b breaker) known() bool {
	b.Name, b.probing = "", 0
	return !reflect.ValueOf(b).IsZero()
}

// RestoreSnapshot returns the state that AppendSnapshot wrote. g is the graph of the plan whose
// digest Run().PlanDigest is (without run-time expansions: the snapshot holds those).
func RestoreSnapshot(raw []byte, g *dag.Graph) (*State, error) {
	var v snapshot
	err := dag.DecodeJSON(raw, &v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the snapshot is of another version, or damaged: %w", err)
	case v.Schema != Schema:
		return nil, fmt.Errorf("the snapshot has schema version %d, and %d is what this version reads", v.Schema, Schema)
	}
	s := new(State)
	if err := s.restore(&v, g); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

func (s *State) restore(v *snapshot, g *dag.Graph) (err error) {
	for _, x := range v.Extended {
		if g, err = g.Extend(x.Node, x.Nodes); err != nil {
			return err
		}
	}
	s.run, s.observed, s.ledger, s.breakers, s.questions = v.Run, v.Observed, v.Ledger, v.Breakers, v.Escalations
	s.notices = v.Notices
	s.errors, s.expansions, s.retired, s.detached = v.Errors, v.Extended, v.Retired, v.Detached
	for k := range s.retired {
		s.indexRetired(s.retired[k].ID, k)
	}
	for k := range s.questions {
		s.indexQuestion(k)
	}
	s.graph, s.recs = g, newRecs(g.Len())
	for k := range v.WorkItems {
		i, err := s.find(v.WorkItems[k].ID)
		if err != nil {
			return err
		}
		s.recs[i] = v.WorkItems[k].Record
	}
	if err := v.Plain.fill(s); err != nil {
		return err
	}
	s.build(g)
	return nil
}

// plain reports whether a record, tidied, fits into plainRecords.
func (r *rec) plain() bool {
	return *r == rec{Gen: 1, Attempt: 1, Phase: ended, End: reuse.Completed,
		Started: r.Started, Finished: r.Finished, EndSeq: r.EndSeq, Fingerprint: r.Fingerprint}
}

// makeRoom makes the lists as long as they may become: grown by appending, those of a large run, and its text, would
// leave several times their size behind.
func (v *plainRecords) makeRoom(recs []rec) {
	n := 0
	for i := range recs {
		if recs[i].End == reuse.Completed {
			n++
		}
	}
	v.ID, v.Fingerprint = make([]string, 0, n), make([]string, 0, n)
	v.Started, v.Finished, v.EndSeq = make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n)
}

func (v *plainRecords) add(id string, r *rec, created int64) {
	v.ID, v.Fingerprint = append(v.ID, id), append(v.Fingerprint, r.Fingerprint)
	v.Started, v.Finished = append(v.Started, r.Started-created), append(v.Finished, r.Finished-created)
	v.EndSeq = append(v.EndSeq, r.EndSeq)
}

func (v *plainRecords) fill(s *State) error {
	n := len(v.ID)
	if len(v.Started) != n || len(v.Finished) != n || len(v.EndSeq) != n || len(v.Fingerprint) != n {
		return fmt.Errorf("the lists of the plain work items differ in length")
	}
	for k, id := range v.ID {
		i, err := s.find(id)
		if err != nil {
			return err
		}
		s.recs[i] = rec{Gen: 1, Attempt: 1, Phase: ended, End: reuse.Completed,
			Fingerprint: v.Fingerprint[k], EndSeq: v.EndSeq[k],
			Started: s.run.Created + v.Started[k], Finished: s.run.Created + v.Finished[k]}
	}
	return nil
}
