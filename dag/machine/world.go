package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
)

// world indexes what nodes and host have reported: nothing that starts or stops a node, but what
// readers, conditions and reports ask for. Artifacts and entries are not here: see dag/artifact/index.
type world struct {
	inputs        *InputsClonedBody
	state, stable string // of the run, by milestones
	sections      []SectionView
	gates         []GateView
	issues        []IssueView
	prs           []PROpenedBody
	checkpoints   []CheckpointView
	reverts       []RevertView
	compensations []CompensationView
	calls         CallsView
}

func (w *world) apply(s *State, e *Event) error {
	switch b := e.Body.(type) {
	case *InputsClonedBody:
		w.inputs = b
	case *ArtifactWrittenBody: // which version counts for whom is dag/artifact/index's to say
		if b.Node != "" {
			_, err := s.find(b.Node)
			return err
		}
	case *RunStateChangedBody:
		w.changed(b)
	case *GateRunBody:
		return w.gate(s, e, b)
	case *IssueBody:
		return w.issue(s, e, b)
	case *PROpenedBody:
		w.prs = append(w.prs, *b)
	case *CheckpointBody:
		w.checkpoints = append(w.checkpoints, CheckpointView{CheckpointBody: *b, Seq: s.run.seq + 1, Time: e.Time})
	case *LLMCallStartedBody, *LLMCallFinishedBody, *LLMCallFailedBody:
		w.calls.apply(b)
	default:
		return fmt.Errorf("unknown event: a newer version wrote it")
	}
	return nil
}

func (w *world) changed(b *RunStateChangedBody) {
	if b.Section == "" {
		w.state = b.New
		if b.Stable {
			w.stable = b.New
		}
		return
	}
	for k := range w.sections {
		if w.sections[k].Section == b.Section {
			w.sections[k].State, w.sections[k].Stable = b.New, b.Stable
			return
		}
	}
	w.sections = append(w.sections, SectionView{b.Section, b.New, b.Stable})
}

// undeclared reports whether a change of plan takes back a milestone that has been reached.
func (s *State) undeclared(g *dag.Graph, again map[string]bool) bool {
	for i := range s.recs {
		n := s.graph.Node(int32(i))
		if n.Kind != "milestone" || !s.recs[i].done() {
			continue
		}
		if _, stays := g.Index(n.ID); !stays || again[n.ID] {
			return true
		}
	}
	return false
}

// redeclare has the declared states be those of the milestones that stand as reached. Where what one of them declares
// was made up at run time, nothing changes: it is not known any more.
func (s *State) redeclare() {
	var reached []int32
	for i := range int32(len(s.recs)) {
		if n := s.graph.Node(i); n.Kind == "milestone" && s.recs[i].done() {
			if n.Dynamic {
				return
			}
			reached = append(reached, i)
		}
	}
	slices.SortStableFunc(reached, func(a, b int32) int { return cmp.Compare(s.recs[a].endSeq, s.recs[b].endSeq) })
	w := &s.world
	w.state, w.stable, w.sections = "CREATED", "", nil
	for _, i := range reached {
		with := struct {
			State   string `json:"state"`
			Section string `json:"section"`
			Stable  bool   `json:"stable"`
		}{Stable: true}
		if json.Unmarshal(s.graph.Node(i).With, &with) == nil {
			w.changed(&RunStateChangedBody{Section: with.Section, New: with.State, Stable: with.Stable})
		}
	}
}

func (w *world) gate(s *State, e *Event, b *GateRunBody) error {
	if _, err := s.find(b.Node); err != nil {
		return err
	}
	v := GateView{Node: b.Node, Gate: b.Gate, Status: cmp.Or(b.Status, "running"), Time: e.Time}
	for k := range w.gates {
		if g := &w.gates[k]; g.Node == b.Node && g.Gate == b.Gate {
			*g = v
			return nil
		}
	}
	w.gates = append(w.gates, v)
	return nil
}

func (w *world) issue(s *State, e *Event, b *IssueBody) error {
	for k := range w.issues {
		v := &w.issues[k]
		if v.IssueID != b.IssueID {
			continue
		}
		if !b.Resolved {
			*v = IssueView{Node: b.Node, IssueID: b.IssueID, Title: b.Title, Severity: b.Severity, Status: "OPEN", Opened: e.Time}
		} else {
			v.Status, v.Resolved = "RESOLVED", e.Time
		}
		return nil
	}
	if b.Resolved {
		return fmt.Errorf("issue %s was never opened", b.IssueID)
	}
	w.issues = append(w.issues, IssueView{Node: b.Node, IssueID: b.IssueID, Title: b.Title, Severity: b.Severity, Status: "OPEN", Opened: e.Time})
	return nil
}

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
	CheckpointBody
	Seq  int64
	Time time.Time
}

// A RevertView is a return to a checkpoint.
type RevertView struct {
	Checkpoint string    `json:"checkpoint"`
	Seq        int64     `json:"seq"`
	Time       time.Time `json:"time"`
}

// A CompensationView is an undo action that has ended.
type CompensationView struct {
	Node   string     `json:"node"`
	Reason string     `json:"reason,omitempty"`
	Status dag.Status `json:"status"`
	Time   time.Time  `json:"time"`
}

// CallsView counts calls of models.
type CallsView struct {
	Started  int64                `json:"started"`
	Finished int64                `json:"finished"`
	Failed   int64                `json:"failed"`
	Open     []LLMCallStartedBody `json:"open,omitempty"` // begun, end not recorded
}

func (c *CallsView) apply(b Body) {
	switch b := b.(type) {
	case *LLMCallStartedBody:
		c.Started++
		c.Open = append(c.Open, *b)
	case *LLMCallFinishedBody:
		c.Finished++
		c.over(func(o LLMCallStartedBody) bool { return o.CallID == b.CallID })
	case *LLMCallFailedBody:
		c.Failed++
		c.over(func(o LLMCallStartedBody) bool { return o.CallID == b.CallID })
	}
}

// over forgets calls that are not open any more: they or their attempts have ended.
func (c *CallsView) over(ended func(LLMCallStartedBody) bool) {
	if len(c.Open) > 0 {
		c.Open = slices.DeleteFunc(c.Open, ended)
	}
}

// Checkpoints, Reverts, Compensations, Gates, Issues, PullRequests, Sections and Calls return
// what was recorded, in log order (of the first record of each).
func (s *State) Checkpoints() []CheckpointView     { return s.world.checkpoints }
func (s *State) Reverts() []RevertView             { return s.world.reverts }
func (s *State) Compensations() []CompensationView { return s.world.compensations }
func (s *State) Gates() []GateView                 { return s.world.gates }
func (s *State) Issues() []IssueView               { return s.world.issues }
func (s *State) PullRequests() []PROpenedBody      { return s.world.prs }
func (s *State) Sections() []SectionView           { return s.world.sections }
func (s *State) Calls() CallsView                  { return s.world.calls }

// DeclaredState returns the declared state of a section; of the run for an empty name. A section
// without one is NOT_STARTED.
func (s *State) DeclaredState(section string) string {
	if section == "" {
		return s.world.state
	}
	for _, v := range s.world.sections {
		if v.Section == section {
			return v.State
		}
	}
	return "NOT_STARTED"
}
