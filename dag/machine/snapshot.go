package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
)

// AppendSnapshot appends the state as canonical JSON (schemas/snapshot.schema.json). Two states
// folded from the same events give the same bytes, whatever was asked of them between. Everything
// else is derived from it. A finished node of which nothing is to be told takes about 100 bytes.
func (s *State) AppendSnapshot(dst []byte) ([]byte, error) {
	return dag.AppendJSON(dst, s.snapshot())
}

// RestoreSnapshot returns the state that AppendSnapshot wrote. g is the graph of the plan whose
// digest Run().PlanDigest is (without run-time expansions: the snapshot holds those).
func RestoreSnapshot(raw []byte, g *dag.Graph) (*State, error) {
	var v snapshot
	if err := dag.DecodeJSON(raw, &v); err != nil {
		if errors.Is(err, dag.ErrUnknownField) {
			err = fmt.Errorf("%w: a newer version wrote it", err)
		}
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	s := new(State)
	if err := s.restore(&v, g); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// A snapshot is the facts of a state. Names are those of document 001 where it has them.
type snapshot struct {
	Schema     int       `json:"schema_version"`
	RunID      string    `json:"run_id"`
	Name       string    `json:"name"`
	PlanDigest string    `json:"plan_digest"`
	Seed       int64     `json:"seed"`
	Seq        int64     `json:"seq"`
	Created    time.Time `json:"created_at"`
	Updated    time.Time `json:"updated_at"`

	RunState string            `json:"run_state"`
	Stable   string            `json:"stable_state,omitempty"`
	Status   RunStatus         `json:"status"`
	Pause    RunPausedBody     `json:"pause"`
	Failed   string            `json:"failed,omitempty"`
	Ending   string            `json:"ending,omitempty"`
	Active   int64             `json:"active_ms"`
	From     time.Time         `json:"active_from,omitzero"`
	Resumes  int               `json:"resumes,omitempty"`
	Undos    int               `json:"compensations_done,omitempty"`
	UndoNode string            `json:"compensating,omitempty"`
	Inputs   *InputsClonedBody `json:"inputs,omitempty"`

	Ledger        ledgerSnap          `json:"ledger"`
	Breakers      []breakerSnap       `json:"breakers,omitempty"`
	Escalations   []questionSnap      `json:"escalations,omitempty"`
	Checkpoints   []checkpointSnap    `json:"checkpoints,omitempty"`
	Reverts       []RevertView        `json:"reverts,omitempty"`
	Compensations []CompensationView  `json:"compensations,omitempty"`
	Calls         CallsView           `json:"llm_calls"`
	PRs           []PROpenedBody      `json:"pull_requests,omitempty"`
	Errors        []ErrorView         `json:"errors,omitempty"`
	Extended      []*PlanExtendedBody `json:"extended,omitempty"`
	Retired       []retired           `json:"retired,omitempty"` // nodes that left the plan
	Spares        []spareSnap         `json:"spares,omitempty"`  // items whose expansion is being made anew

	WorkItems []nodeSnap    `json:"work_items"`
	Plain     plainSnap     `json:"plain_work_items,omitzero"`
	Issues    []IssueView   `json:"issues"`
	Sections  []SectionView `json:"section_states"`
	Gates     []GateView    `json:"gates"`

	// Artifacts is what earlier versions kept here a second time. It is read past, so that their
	// checkpoints can be gone back to.
	Artifacts json.RawMessage `json:"artifacts,omitempty"`
}

type ledgerSnap struct {
	Budget  dag.Budget  `json:"budget,omitzero"`
	Spent   dag.Amount  `json:"spent,omitzero"`
	Usage   Usage       `json:"usage,omitzero"`
	Assumed dag.USD     `json:"assumed_usd,omitzero"`
	WarnUSD bool        `json:"warned_usd,omitempty"`
	WarnTok bool        `json:"warned_tokens,omitempty"`
	Grown   []grown     `json:"grown_reserves,omitempty"`
	Labels  []LabelCost `json:"labels,omitempty"`
}

type breakerSnap struct {
	Change   BreakerChangedBody `json:"change"`
	Changed  time.Time          `json:"changed_at,omitzero"`
	Since    time.Time          `json:"state_since,omitzero"`
	Pending  []BreakerOutcome   `json:"to_count,omitempty"`
	Epoch    int32              `json:"epoch,omitempty"`
	Openings int32              `json:"openings,omitempty"`
	Hold     time.Time          `json:"hold_until,omitzero"`
	Opened   time.Time          `json:"opened_at,omitzero"` // of an account: when it answered again
	Started  time.Time          `json:"last_start,omitzero"`
	Question string             `json:"escalation,omitempty"`
	Answer   string             `json:"answer,omitempty"`
}

type questionSnap struct {
	Question  EscalationOpenedBody    `json:"question"`
	Opened    time.Time               `json:"opened_at"`
	Answer    *EscalationAnsweredBody `json:"answer,omitempty"`
	Answered  time.Time               `json:"answered_at,omitzero"`
	Withdrawn bool                    `json:"withdrawn,omitempty"`
}

type checkpointSnap struct {
	Checkpoint CheckpointBody `json:"checkpoint"`
	Seq        int64          `json:"seq"`
	Time       time.Time      `json:"time"`
}

// A spareSnap is a spare.
type spareSnap struct {
	Of   string   `json:"of"`
	Root string   `json:"root"`
	Item nodeSnap `json:"item"`
}

// A nodeSnap is the record of a node that is not as it was at the start. Instants are
// milliseconds after created_at.
type nodeSnap struct {
	ID      string    `json:"id"`
	Status  string    `json:"status,omitempty"`     // absent: completed
	Gen     int32     `json:"generation,omitempty"` // absent: 1
	Attempt *int32    `json:"attempt,omitempty"`    // absent: 1
	Cond    bool      `json:"condition,omitempty"`
	Items   *int32    `json:"items,omitempty"` // of an expanded foreach
	Start   *int64    `json:"start,omitempty"`
	End     *int64    `json:"end,omitempty"`
	EndSeq  int64     `json:"seq,omitempty"`
	Print   string    `json:"fp,omitempty"` // fingerprint
	More    *moreSnap `json:"more,omitempty"`
}

// A plainSnap holds the records of nodes that completed at their first attempt and of which nothing else
// is to be told, which most are: a list for each field of nodeSnap, in one order.
type plainSnap struct {
	ID     []string `json:"id,omitempty"`
	Start  []int64  `json:"start,omitempty"`
	End    []int64  `json:"end,omitempty"`
	EndSeq []int64  `json:"seq,omitempty"`
	Print  []string `json:"fp,omitempty"`
}

type moreSnap struct {
	First      time.Time     `json:"first,omitzero"`
	Since      time.Time     `json:"since,omitzero"`
	Last       *FinishedBody `json:"last,omitempty"`
	Failures   []catCount    `json:"failures,omitempty"`
	Before     int32         `json:"failures_before,omitempty"`
	Lost       int32         `json:"lost,omitempty"`
	Waits      int32         `json:"waits,omitempty"`
	Rounds     int32         `json:"rounds,omitempty"`
	Rewinds    int32         `json:"rewinds,omitempty"`
	Reshaped   bool          `json:"reshaped,omitempty"`
	Agains     int32         `json:"agains,omitempty"`
	RetryAt    time.Time     `json:"retry_at,omitzero"`
	Hold       bool          `json:"hold,omitempty"`
	Stopped    bool          `json:"stopped,omitempty"`
	Unresolved bool          `json:"unresolved,omitempty"`
	Undone     bool          `json:"undone,omitempty"`
	UndoTries  int32         `json:"undo_tries,omitempty"`
	UndoAt     time.Time     `json:"undo_at,omitzero"`
	Verdict    string        `json:"verdict,omitempty"`
	Question   string        `json:"escalation,omitempty"`
	Reserved   dag.Amount    `json:"reserved,omitzero"`
	Assumed    dag.Amount    `json:"assumed,omitzero"`
	Cost       dag.USD       `json:"cost_usd,omitzero"`
	Usage      Usage         `json:"usage,omitzero"`
	Probe      int32         `json:"probe,omitempty"`
	Trial      int32         `json:"account_probe,omitempty"`
}

func (s *State) snapshot() *snapshot {
	r, w := &s.run, &s.world
	v := &snapshot{Schema: Schema, RunID: r.id, Name: r.name, PlanDigest: r.planDigest, Seed: r.seed, Seq: r.seq,
		Created: at(r.created), Updated: at(r.updated), RunState: w.state, Stable: w.stable, Status: r.status, Pause: r.pause,
		Failed: r.failed, Ending: r.ending, Active: r.active, From: at(r.activeFrom), Resumes: r.resumes, Undos: r.undos,
		Inputs: w.inputs, Reverts: w.reverts, Compensations: w.compensations, Calls: w.calls, PRs: w.prs,
		Errors: s.errors, Extended: s.expansions, Retired: s.retired, Issues: w.issues, Sections: w.sections, Gates: w.gates}
	if s.graph != nil && s.undoNode >= 0 {
		v.UndoNode = s.graph.Node(s.undoNode).ID
	}
	l := &s.ledger
	v.Ledger = ledgerSnap{l.budget, l.spent, l.usage, l.assumed, l.warned.USD != 0, l.warned.Tokens != 0, l.grown, l.labels}
	for k := range s.breakers {
		if b := &s.breakers[k]; b.changed != 0 || b.hold != 0 || len(b.pending) > 0 {
			v.Breakers = append(v.Breakers, b.snap())
		}
	}
	slices.SortFunc(v.Breakers, func(a, b breakerSnap) int { return strings.Compare(a.Change.Breaker, b.Change.Breaker) })
	for k := range s.questions {
		q := &s.questions[k]
		v.Escalations = append(v.Escalations, questionSnap{q.body, at(q.opened), q.answer, at(q.answered), q.withdrawn})
	}
	for _, c := range w.checkpoints {
		v.Checkpoints = append(v.Checkpoints, checkpointSnap{c.CheckpointBody, c.Seq, c.Time})
	}
	v.WorkItems, v.Plain = s.rows()
	offset := s.offsets(2 * len(s.detached))
	for k := range s.detached {
		x := &s.detached[k]
		v.Spares = append(v.Spares, spareSnap{x.Of, x.Root, x.rec.row(x.Item, offset)})
	}
	return v
}

// rows returns the records of all nodes to which something has happened.
func (s *State) rows() (rows []nodeSnap, plain plainSnap) {
	n, simple := 0, 0
	for i := range s.recs {
		switch r := &s.recs[i]; {
		case r.plain():
			simple++
		case r.touched():
			n++
		}
	}
	rows = make([]nodeSnap, 0, n)
	plain.grow(simple)
	offset := s.offsets(2 * n)
	for i := range s.recs {
		switch r, id := &s.recs[i], s.graph.Node(int32(i)).ID; {
		case r.plain():
			plain.add(id, r, s.run.created)
		case r.touched():
			rows = append(rows, r.row(id, offset))
		}
	}
	return rows, plain
}

func (v *plainSnap) grow(n int) {
	v.ID, v.Print = slices.Grow(v.ID, n), slices.Grow(v.Print, n)
	v.Start, v.End, v.EndSeq = slices.Grow(v.Start, n), slices.Grow(v.End, n), slices.Grow(v.EndSeq, n)
}

func (v *plainSnap) add(id string, r *rec, created int64) {
	v.ID, v.Print = append(v.ID, id), append(v.Print, r.fingerprint)
	v.Start, v.End, v.EndSeq = append(v.Start, r.started-created), append(v.End, r.finished-created), append(v.EndSeq, r.endSeq)
}

// plain reports whether a record fits into plainSnap.
func (r *rec) plain() bool {
	return r.phase == ended && r.end == endCompleted && r.gen == 1 && r.attempt == 1 && r.items == notExpanded && !r.cond &&
		r.started != 0 && r.finished != 0 && r.more.empty()
}

// offsets returns a function that gives instants as milliseconds after created_at; it has room for n.
func (s *State) offsets(n int) func(at int64) *int64 {
	list := make([]int64, 0, n)
	return func(at int64) *int64 {
		if at == 0 {
			return nil
		}
		list = append(list, at-s.run.created)
		return &list[len(list)-1]
	}
}

func (r *rec) row(id string, offset func(int64) *int64) nodeSnap {
	row := nodeSnap{ID: id, Status: phaseWord(r), Cond: r.cond,
		Start: offset(r.started), End: offset(r.finished), EndSeq: r.endSeq, Print: r.fingerprint, More: r.more.snap()}
	if r.gen != 1 {
		row.Gen = r.gen
	}
	if r.attempt != 1 {
		row.Attempt = &r.attempt
	}
	if r.items != notExpanded {
		row.Items = &r.items
	}
	return row
}

func (r *rec) touched() bool {
	return r.begun() || r.gen != 1 || r.finished != 0 || !r.more.empty()
}

var endWords = [...]string{endCompleted: "", endFailed: "failed", endSkipped: "skipped", endCancelled: "cancelled", endRejected: "rejected"}

// phaseWord is the status of a record: completed is "".
func phaseWord(r *rec) string {
	switch r.phase {
	case idle:
		return "pending"
	case running:
		return "in_progress"
	case stale:
		return strings.TrimSuffix(inDoubt+" "+endWords[r.end], " ")
	}
	return endWords[r.end]
}

// inDoubt is the status of a stale record, before that of its end.
const inDoubt = "doubted"

func setPhase(r *rec, word string) error {
	switch word {
	case "pending":
		return nil
	case "in_progress":
		r.phase = running
		return nil
	}
	in := ended
	if rest, ok := strings.CutPrefix(word, inDoubt); ok {
		in, word = stale, strings.TrimPrefix(rest, " ")
	}
	for k, w := range endWords {
		if w == word {
			r.phase, r.end = in, end(k)
			return nil
		}
	}
	return fmt.Errorf("unknown status %q", word)
}

// empty reports whether nothing is to be told.
func (m *more) empty() bool { return m == nil || reflect.ValueOf(m).Elem().IsZero() }

func (m *more) snap() *moreSnap {
	if m.empty() {
		return nil
	}
	return &moreSnap{at(m.first), at(m.since), m.last, m.failures, m.before, m.lost, m.waits, m.rounds, m.rewinds, m.reshaped, m.agains, at(m.retryAt), m.hold,
		m.stopped, m.unresolved, m.undone, m.undoTries, at(m.undoAt), m.verdict, m.question, m.reserved, m.assumed, m.cost, m.usage, m.probe[0], m.probe[1]}
}

func (v *moreSnap) more() *more {
	if v == nil {
		return nil
	}
	return &more{ms(v.First), ms(v.Since), v.Last, v.Failures, v.Before, v.Lost, v.Waits, v.Rounds, v.Rewinds, v.Reshaped, v.Agains, ms(v.RetryAt), v.Hold,
		v.Stopped, v.Unresolved, v.Undone, v.UndoTries, ms(v.UndoAt), v.Verdict, v.Question, v.Reserved, v.Assumed, v.Cost, v.Usage, [2]int32{v.Probe, v.Trial}}
}
