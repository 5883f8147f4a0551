package report

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A Status is how a run stands. Its JSON names are kept; fields are only added.
type Status struct {
	RunID   string            `json:"run_id"`
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	Status  machine.RunStatus `json:"status"`            // running | paused | ending | completed | failed
	Stopped bool              `json:"stopped,omitempty"` // running by its events, but no process holds it
	Reason  machine.Pause     `json:"reason,omitempty"`  // of a pause
	Node    string            `json:"node,omitempty"`    // that the reason is about
	Message string            `json:"message,omitempty"`
	State   string            `json:"declared_state,omitempty"` // by milestones; empty: the plan has none
	Phase   string            `json:"phase,omitempty"`          // the first declared one that has not ended
	Created time.Time         `json:"created"`
	Updated time.Time         `json:"updated"`
	Active  float64           `json:"active_seconds"`
	Resumes int               `json:"resumes"`
	Counts
	ETA        *float64                       `json:"eta_seconds"` // null: too little is known, or nothing is to come
	CostUSD    dag.USD                        `json:"cost_usd"`
	Projected  *dag.USD                       `json:"projected_usd"` // of the whole run; null: unknown
	CapUSD     dag.USD                        `json:"cap_usd,omitempty"`
	Tokens     int64                          `json:"tokens"` // that count for the budget
	CapTokens  int64                          `json:"cap_tokens,omitempty"`
	Wall       float64                        `json:"wall_seconds,omitempty"` // most that the run may be active
	Reserved   dag.USD                        `json:"reserved_usd,omitempty"`
	Assumed    dag.USD                        `json:"assumed_usd,omitempty"` // part of the cost that nobody has confirmed
	Usage      machine.Usage                  `json:"usage"`
	Shares     []Share                        `json:"by_label,omitempty"`
	Series     []Series                       `json:"series,omitempty"`
	Phases     []PhaseStatus                  `json:"phases,omitempty"`
	Running    []NodeStatus                   `json:"running,omitempty"`
	Waiting    []NodeStatus                   `json:"waiting,omitempty"` // could start and does not
	Recent     []NodeStatus                   `json:"recent,omitempty"`  // the last that ended, newest last
	Failures   []NodeStatus                   `json:"failures,omitempty"`
	Cut        []NodeStatus                   `json:"cancelled_nodes,omitempty"`
	Pieces     *Pieces                        `json:"pieces,omitempty"` // of a run that its user paused
	Errors     Errors                         `json:"errors"`
	Warnings   int                            `json:"warnings"`           // of nodes, see the logs
	Degraded   []string                       `json:"degraded,omitempty"` // nodes that said they did less than asked
	Breakers   []BreakerStatus                `json:"breakers,omitempty"`
	Checkpoint []string                       `json:"checkpoints,omitempty"`
	Questions  []machine.EscalationOpenedBody `json:"questions,omitempty"`
	Drifted    []string                       `json:"drifted_artifacts,omitempty"` // live files that are not as recorded, and what becomes of them
	Artifacts  []string                       `json:"artifacts,omitempty"`         // paths
	Next       string                         `json:"next,omitempty"`
	NextSteps  []string                       `json:"next_commands,omitempty"` // ready to be typed
}

// Errors counts the failures that the state remembers.
type Errors struct {
	Recovered   int            `json:"recovered"` // a later attempt of the node completed
	Unrecovered int            `json:"unrecovered"`
	Categories  map[string]int `json:"categories,omitempty"`             // of all
	Open        map[string]int `json:"unrecovered_categories,omitempty"` // of the unrecovered
}

// A PhaseStatus is how far a declared phase is.
type PhaseStatus struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Ended int    `json:"ended"`
}

// A NodeStatus is one node in a list of a status.
type NodeStatus struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Title    string    `json:"title,omitempty"`
	Status   string    `json:"status"` // running | cut off | waiting | completed | skipped | cancelled | failed
	Attempt  int       `json:"attempt,omitempty"`
	Seconds  float64   `json:"seconds,omitempty"`
	CostUSD  dag.USD   `json:"cost_usd,omitempty"`
	Why      string    `json:"why,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Allowed  bool      `json:"allowed,omitempty"` // failed, and the run goes on
	started  time.Time
	finished time.Time
}

// recent is how many of the last ended nodes a status shows, waiting how many that wait.
const (
	recent  = 3
	waiting = 10
)

// NewStatus reads how a run stands at an instant.
func NewStatus(r *run.Run, dir string, now time.Time) *Status {
	st := r.State()
	v, l, g := st.Run(), st.Ledger(), st.Graph()
	s := &Status{
		RunID: v.ID, Name: v.Name, Dir: dir, Status: v.Status, Created: v.Created, Updated: v.Updated,
		Active: v.Active.Seconds(), Resumes: v.Resumes, Counts: NewCounts(st), CostUSD: l.Spent.USD, CapUSD: l.Budget.CapUSD,
		Reserved: l.Reserved.USD, Assumed: l.Assumed, Usage: l.Usage, Tokens: l.Spent.Tokens, CapTokens: l.Budget.CapTokens, Wall: l.Budget.Wall.D().Seconds(), Questions: st.Escalations(), Series: seriesOf(st),
	}
	switch v.Status {
	case machine.RunPause:
		s.Reason, s.Node, s.Message = v.Pause.Reason, v.Pause.Node, v.Pause.Message
	case machine.RunBroken:
		s.Message, s.Questions = v.Failed, nil
	}
	if s.Reason == machine.PauseEscalation && len(s.Questions) == 0 {
		s.Message = "what it waited for has been answered"
	}
	for i := range int32(g.Len()) {
		n := st.NodeAt(i)
		if n.Node.Kind == "milestone" {
			s.State = v.State
		}
		s.add(n, now)
	}
	s.trim()
	s.phases(st)
	s.Pieces = NewPieces(st)
	s.errors(st)
	s.estimate(st, now)
	s.Breakers = OpenBreakers(st, now)
	if list, err := r.Checkpoints(); err == nil {
		for _, c := range list {
			s.Checkpoint = append(s.Checkpoint, c.ID)
		}
	}
	for _, p := range r.LivePaths() {
		s.Artifacts = append(s.Artifacts, filepath.Join(dir, p))
	}
	s.Next, s.NextSteps = s.next(st)
	return s
}

// Drift says which live files the next start will find changed or gone.
func (s *Status) Drift(list []run.Drift) {
	for _, d := range list {
		s.Drifted = append(s.Drifted, DriftText(d))
	}
}

// DriftText says what is wrong with a live file and what becomes of it.
func DriftText(d run.Drift) string {
	switch {
	case d.Edited:
		return d.Name + " was changed outside of the run: nodes that run from the next start on use the changed file, and the version before is kept" + run.ReadersText(d.Readers)
	case d.Gone:
		return d.Name + " is gone: the next start puts the recorded version back"
	}
	return d.Name + " is not the recorded version: the next start puts that back"
}

// Unheld says that no process holds the run: what its events call running was cut off, by a kill or by a
// second interrupt, or waits to be taken up after a revert.
func (s *Status) Unheld(r *run.Run) {
	s.cutOff(r)
	if s.Status != machine.RunRunning && s.Status != machine.RunEnding {
		return
	}
	s.Stopped = true
	if len(s.Questions) == 0 {
		s.Next, s.NextSteps = "go on where it stopped", []string{"dagrun resume --output-dir " + s.Dir}
	}
}

func (s *Status) add(n machine.NodeView, now time.Time) {
	out := NodeStatus{ID: n.Node.ID, Kind: n.Node.Kind, Title: n.Node.Title, Attempt: n.Attempt, CostUSD: n.Cost, started: n.Started, finished: n.Finished}
	if n.Last != nil {
		s.Warnings += len(n.Last.Warnings)
		if n.Last.Status != dag.StatusCompleted {
			out.Why = strings.TrimPrefix(n.Last.Category+": "+n.Last.Message, ": ")
		}
	}
	var degraded bool
	if json.Unmarshal(n.Values["degraded"], &degraded) == nil && degraded {
		s.Degraded = append(s.Degraded, n.Node.ID)
	}
	switch n.Status {
	case machine.Running:
		out.Status, out.Seconds, out.Why = "running", now.Sub(n.Started).Seconds(), ""
		s.Running = append(s.Running, out)
	case machine.Completed, machine.Skipped:
		out.Status = "completed"
		if n.Status == machine.Skipped {
			out.Status = "skipped"
		} else {
			out.Seconds = n.Finished.Sub(n.Started).Seconds()
		}
		if n.Attempt > 0 && !IsControl(n.Node.Kind) {
			if s.Recent = append(s.Recent, out); len(s.Recent) > 100*recent {
				s.trim()
			}
		}
	case machine.Failed:
		out.Status, out.Allowed = "failed", n.Soft
		s.Failures = append(s.Failures, out)
	case machine.Cancelled:
		out.Status = "cancelled"
		s.Cut = append(s.Cut, out)
	default:
		switch n.Blocked.By {
		case "", "needs", "pause": // of a pause the status says why
			return
		}
		if len(s.Waiting) >= waiting {
			return
		}
		out.Status, out.Until, out.Why = "waiting", n.Blocked.Until, blockText(n.Blocked, out.Why)
		s.Waiting = append(s.Waiting, out)
	}
}

// trim keeps of what has ended the last few.
func (s *Status) trim() {
	slices.SortStableFunc(s.Recent, func(a, b NodeStatus) int { return a.finished.Compare(b.finished) })
	s.Recent = s.Recent[max(0, len(s.Recent)-recent):]
}

// blockText says why a node that could start does not.
func blockText(b machine.Block, why string) string {
	switch b.By {
	case "retry":
		return "tries again after " + why
	case "wait":
		return "waits after " + why
	case "person":
		return "waits for a person: " + why
	case "budget":
		return "the budget has no room for it"
	}
	return "blocked by " + strings.TrimSpace(b.By+" "+b.Name)
}

// phases counts the nodes of each declared phase.
func (s *Status) phases(st *machine.State) {
	g := st.Graph()
	for _, p := range g.Plan.Phases {
		ps := PhaseStatus{Name: p.Name}
		for i := range int32(g.Len()) {
			v := st.NodeAt(i)
			if v.Node.Group != p.Group && !strings.HasPrefix(v.Node.Group, p.Group+"/") {
				continue
			}
			ps.Nodes++
			if v.Status.Ended() {
				ps.Ended++
			}
		}
		if s.Phase == "" && ps.Ended < ps.Nodes {
			s.Phase = ps.Name
		}
		s.Phases = append(s.Phases, ps)
	}
}

func (s *Status) errors(st *machine.State) {
	s.Errors.Categories, s.Errors.Open = map[string]int{}, map[string]int{}
	for _, e := range st.Errors() {
		s.Errors.Categories[e.Category]++
		if v, ok := st.NodeByID(e.Node); ok && v.Status == machine.Completed {
			s.Errors.Recovered++
		} else {
			s.Errors.Unrecovered++
			s.Errors.Open[e.Category]++
		}
	}
}

// estimate fills in time and cost to come. How many attempts run at once is taken from the time
// that what has ended took beside the time of activity.
func (s *Status) estimate(st *machine.State, now time.Time) {
	var p Progress
	p.Start(st)
	for _, n := range s.Running {
		p.started[n.ID] = now.Add(-time.Duration(n.Seconds * float64(time.Second)))
	}
	s.Shares = p.Shares(st)
	if s.Status == machine.RunDone || s.Status == machine.RunBroken {
		return
	}
	worked := 0.0
	for i := range int32(st.Graph().Len()) {
		if v := st.NodeAt(i); v.Status == machine.Completed {
			worked += v.Finished.Sub(v.Started).Seconds()
		}
	}
	jobs := max(1, len(s.Running))
	if s.Active > 0 {
		jobs = max(jobs, int(worked/s.Active+0.5))
	}
	if eta, usd, ok := p.Forecast(st, now, jobs); ok {
		sec := eta.Seconds()
		s.ETA, s.Projected = &sec, &usd
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ValueText is a value as people write it.
func ValueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
