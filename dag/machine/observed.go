package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
)

// Observations are what nodes and host have reported: nothing that starts or stops a node, but what readers,
// conditions and reports ask for. They stand in the snapshot as they are. Versions of artifacts are not among them:
// the run's directory has an index of its own (package index).
type observations struct {
	State         string             `json:"run_state"` // of the run, by milestones
	Stable        string             `json:"stable_state,omitempty"`
	Sections      []SectionView      `json:"section_states"`
	Gates         []GateView         `json:"gates"`
	Issues        []IssueView        `json:"issues"`
	PRs           []PROpenedBody     `json:"pull_requests,omitempty"`
	Checkpoints   []CheckpointView   `json:"checkpoints,omitempty"`
	Reverts       []RevertView       `json:"reverts,omitempty"`
	Compensations []CompensationView `json:"compensations,omitempty"`
	// Calls are those of models that have begun and whose end is not recorded.
	Calls     []LLMCallStartedBody `json:"llm_calls,omitempty"`
	Published []PublishedView      `json:"published,omitempty"`
	Missed    int                  `json:"missed,omitempty"` // events of which nobody was told, see State.bound
}

// The declared states of a run and of a section before their first milestone.
const (
	stateCreated    = "CREATED"
	stateNotStarted = "NOT_STARTED"
)

// A SectionView is the declared state of a section.
type SectionView struct {
	Section string `json:"section"`
	State   string `json:"state"`
	Stable  bool   `json:"stable,omitempty"`
}

// A GateView is the last result of a gate.
type GateView struct {
	Node   string    `json:"node"`
	Gate   string    `json:"gate"`
	Status string    `json:"status"` // running | pass | fail | error
	Time   time.Time `json:"time"`
}

// An IssueView is an issue.
type IssueView struct {
	Node     string    `json:"node"`
	IssueID  string    `json:"issue_id"`
	Title    string    `json:"title,omitempty"`
	Severity string    `json:"severity,omitempty"`
	Status   string    `json:"status"` // OPEN | RESOLVED
	Opened   time.Time `json:"opened_at"`
	Resolved time.Time `json:"resolved_at,omitzero"`
}

// A CheckpointView is a checkpoint.
type CheckpointView struct {
	CheckpointBody `json:"checkpoint"`
	Generation     int       `json:"generation,omitempty"` // of the node that made it, 0 without
	Time           time.Time `json:"time"`
}

// A RevertView is a return to a checkpoint.
type RevertView struct {
	Checkpoint string    `json:"checkpoint"`
	Seq        int64     `json:"seq"`
	Time       time.Time `json:"time"`
}

// A CompensationView is an undo action that was begun.
type CompensationView struct {
	Node    string     `json:"node"`
	Stage   string     `json:"stage,omitempty"`
	Reason  string     `json:"reason,omitempty"`         // why it is undone
	Action  string     `json:"action,omitempty"`         // what is done
	Archive string     `json:"state_archived,omitempty"` // path of the checkpoint that has what there was before
	Started time.Time  `json:"started_at,omitzero"`
	Status  dag.Status `json:"status,omitempty"` // empty = it has not ended
	Failure string     `json:"failure,omitempty"`
	Time    time.Time  `json:"time,omitzero"` // of its end
	Seq     int64      `json:"seq,omitempty"` // of its end
	Told    bool       `json:"user_notified"` // of its end, by the plan's notify
}

// lastUndo is the undo action that was begun last.
func (o *observations) lastUndo() *CompensationView {
	if len(o.Compensations) == 0 {
		return &CompensationView{}
	}
	return &o.Compensations[len(o.Compensations)-1]
}

// over forgets calls that are not open any more: they or their attempts have ended.
func (o *observations) over(ended func(LLMCallStartedBody) bool) {
	o.Calls = slices.DeleteFunc(o.Calls, ended)
}

// put replaces the element that is the same thing as v, or adds v.
func put[T any](list []T, v T, same func(*T) bool) []T {
	if k := slices.IndexFunc(list, func(o T) bool { return same(&o) }); k >= 0 {
		list[k] = v
		return list
	}
	return append(list, v)
}

func (s *State) onInputsCloned(_ Event, _ *InputsClonedBody) error { return nil }

func (s *State) onArtifact(_ Event, b *ArtifactWrittenBody) error {
	if _, err := s.find(b.Node); b.Node != "" { // else of a user, or restored
		return err
	}
	return nil
}

func (s *State) onCallStarted(_ Event, b *LLMCallStartedBody) error {
	s.observed.Calls = append(s.observed.Calls, *b)
	if i, ok := s.graph.Index(b.Node); ok {
		s.recs[i].edit().Called = true
	}
	return nil
}

func (s *State) onCallFinished(_ Event, b *LLMCallFinishedBody) error { return s.callOver(b.CallID) }
func (s *State) onCallFailed(_ Event, b *LLMCallFailedBody) error     { return s.callOver(b.CallID) }

func (s *State) callOver(id string) error {
	s.observed.over(func(o LLMCallStartedBody) bool { return o.CallID == id })
	return nil
}

func (s *State) onGate(e Event, b *GateRunBody) error {
	if _, err := s.find(b.Node); err != nil {
		return err
	}
	v := GateView{Node: b.Node, Gate: b.Gate, Status: cmp.Or(b.Status, "running"), Time: e.Time}
	s.observed.Gates = put(s.observed.Gates, v, func(g *GateView) bool { return g.Node == b.Node && g.Gate == b.Gate })
	return nil
}

func (s *State) onIssue(e Event, b *IssueBody) error {
	v := IssueView{Node: b.Node, IssueID: b.IssueID, Title: b.Title, Severity: b.Severity, Status: "OPEN", Opened: e.Time}
	same := func(o *IssueView) bool { return o.IssueID == b.IssueID }
	if b.Resolved {
		k := slices.IndexFunc(s.observed.Issues, func(o IssueView) bool { return same(&o) })
		if k < 0 {
			return fmt.Errorf("issue %s was never opened", b.IssueID)
		}
		v = s.observed.Issues[k]
		v.Status, v.Resolved = "RESOLVED", e.Time
	}
	s.observed.Issues = put(s.observed.Issues, v, same)
	return nil
}

func (s *State) onPullRequest(_ Event, b *PROpenedBody) error {
	s.observed.PRs = put(s.observed.PRs, *b, func(o *PROpenedBody) bool { return o.URL == b.URL })
	return nil
}

func (s *State) onCheckpoint(e Event, b *CheckpointBody) error {
	if u := s.observed.lastUndo(); s.run.Compensating != "" && u.Archive == "" && b.Node == "" {
		u.Archive = b.Path // it is made before the action runs
	}
	v := CheckpointView{CheckpointBody: *b, Time: e.Time}
	if i, ok := s.graph.Index(b.Node); ok && s.recs[i].Phase == running {
		v.Generation = int(s.recs[i].Gen)
	}
	s.observed.Checkpoints = append(s.observed.Checkpoints, v)
	return nil
}

func (s *State) onDeclared(_ Event, b *RunStateChangedBody) error {
	s.observed.declare(dag.Declaration{State: b.New, Section: b.Section, Stable: b.Stable})
	return nil
}

func (o *observations) declare(d dag.Declaration) {
	if d.State == "" {
		return
	}
	if d.Section != "" {
		v := SectionView{d.Section, d.State, d.Stable}
		o.Sections = put(o.Sections, v, func(x *SectionView) bool { return x.Section == d.Section })
		return
	}
	o.State = d.State
	if d.Stable {
		o.Stable = d.State
	}
}

// reached declares what node i says beside its work, which has completed.
func (s *State) reached(i int32) {
	if d := s.graph.Node(i).Milestone; d != nil && s.recs[i].done() {
		s.observed.declare(*d)
	}
}

// declaring returns the nodes whose declarations stand as reached, in the order in which they were.
func (s *State) declaring() (reached []int32) {
	for i := range int32(len(s.recs)) {
		if s.graph.Node(i).Declares() && s.recs[i].done() {
			reached = append(reached, i)
		}
	}
	slices.SortStableFunc(reached, func(a, b int32) int { return cmp.Compare(s.recs[a].EndSeq, s.recs[b].EndSeq) })
	return reached
}

// BackToStable returns the facts by which a run that is resumed between two states goes back to the last stable one,
// and from there again to those that it had reached, whose work is done. None where it is in a stable one.
func (s *State) BackToStable() (bodies []Body) {
	state := s.observed.State
	to := func(next string, stable bool) {
		bodies = append(bodies, &RunStateChangedBody{Old: state, New: next, Stable: stable})
		state = next
	}
	if stable := cmp.Or(s.observed.Stable, stateCreated); stable != state {
		to(stable, true)
	} else {
		return nil
	}
	var since []string
	for _, i := range s.declaring() {
		switch d, _ := s.graph.Node(i).Declaration(); {
		case d.State == "" || d.Section != "":
		case d.Stable:
			since = nil
		default:
			since = append(since, d.State)
		}
	}
	for _, next := range since {
		to(next, false)
	}
	return bodies
}

// undeclared reports whether a change of plan takes back a declaration.
func (s *State) undeclared(g *dag.Graph, again map[string]bool) bool {
	return slices.ContainsFunc(s.declaring(), func(i int32) bool {
		id := s.graph.Node(i).ID
		_, stays := g.Index(id)
		return !stays || again[id]
	})
}

// redeclare has the declared states be those that stand as reached. Where what one of them declares
// was made up at run time, nothing changes: it is not known any more.
func (s *State) redeclare() {
	next := observations{State: stateCreated}
	for _, i := range s.declaring() {
		d, ok := s.graph.Node(i).Declaration()
		if !ok {
			return
		}
		next.declare(d)
	}
	s.observed.State, s.observed.Stable, s.observed.Sections = next.State, next.Stable, next.Sections
}

// Watch is asked before an event is applied. Where that may move declared states without saying so (a changed plan, the
// end of a node that declares one beside its work), what it returns gives the facts that say so, once the event is
// applied; they change nothing more.
func (s *State) Watch(e *Event) (moved func() []Body) {
	switch b := e.Body.(type) {
	case *PlanAdoptedBody:
	case *FinishedBody:
		if i, ok := s.graph.Index(b.Node); !ok || s.graph.Node(i).Milestone == nil {
			return nil
		}
	default:
		return nil
	}
	was := s.declared()
	return func() (bodies []Body) {
		now := s.declared()
		for _, v := range now {
			if old := stateOf(was, v.Section); old != v.State {
				bodies = append(bodies, &RunStateChangedBody{Section: v.Section, Old: old, New: v.State, Stable: v.Stable})
			}
		}
		for _, v := range was[1:] {
			if stateOf(now, v.Section) == stateNotStarted && v.State != stateNotStarted {
				b := &RunStateChangedBody{Section: v.Section, Old: v.State, New: stateNotStarted, Stable: true}
				bodies = append(bodies, b)
			}
		}
		return bodies
	}
}

// declared returns the declared states, that of the run first.
func (s *State) declared() []SectionView {
	run := SectionView{State: s.observed.State, Stable: s.observed.State == s.observed.Stable}
	return append([]SectionView{run}, s.observed.Sections...)
}

// Checkpoints, Gates, Issues, PullRequests, Sections and Reverts return what was recorded, in log order (of
// the first record of each).
func (s *State) Checkpoints() []CheckpointView { return s.observed.Checkpoints }
func (s *State) Gates() []GateView             { return s.observed.Gates }
func (s *State) Issues() []IssueView           { return s.observed.Issues }
func (s *State) PullRequests() []PROpenedBody  { return s.observed.PRs }
func (s *State) Sections() []SectionView       { return s.observed.Sections }
func (s *State) Reverts() []RevertView         { return s.observed.Reverts }

// Compensations returns the undo actions that were begun, in order.
func (s *State) Compensations() []CompensationView { return s.observed.Compensations }

// OpenCalls returns the calls of models that have begun and whose end is not recorded.
func (s *State) OpenCalls() []LLMCallStartedBody { return s.observed.Calls }

// DeclaredState returns the declared state of a section; of the run for an empty name. A section
// without one is NOT_STARTED.
func (s *State) DeclaredState(section string) string {
	return stateOf(s.declared(), section)
}

func stateOf(list []SectionView, section string) string {
	for _, v := range list {
		if v.Section == section {
			return v.State
		}
	}
	return stateNotStarted
}
