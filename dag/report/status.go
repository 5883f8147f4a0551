package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A Status is how a run stands. Its JSON names are kept; fields are only added.
type Status struct {
	RunID      string                         `json:"run_id"`
	Name       string                         `json:"name"`
	Dir        string                         `json:"dir"`
	Status     string                         `json:"status"`            // running | paused | ending | completed | failed
	Stopped    bool                           `json:"stopped,omitempty"` // running by its events, but no process holds it
	Reason     string                         `json:"reason,omitempty"`
	Message    string                         `json:"message,omitempty"`
	State      string                         `json:"declared_state,omitempty"` // by milestones
	Phase      string                         `json:"phase,omitempty"`          // the first declared one that has not ended
	Created    time.Time                      `json:"created"`
	Updated    time.Time                      `json:"updated"`
	Active     float64                        `json:"active_seconds"`
	Resumes    int                            `json:"resumes"`
	Nodes      int                            `json:"nodes"`
	Completed  int                            `json:"completed"`
	Failed     int                            `json:"failed"`
	Skipped    int                            `json:"skipped"`
	ETA        *float64                       `json:"eta_seconds"` // null: too little is known, or nothing is to come
	CostUSD    dag.USD                        `json:"cost_usd"`
	Projected  *dag.USD                       `json:"projected_usd"` // of the whole run; null: unknown
	CapUSD     dag.USD                        `json:"cap_usd,omitempty"`
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
	Pieces     *Pieces                        `json:"pieces,omitempty"` // of a run that its user paused
	Errors     Errors                         `json:"errors"`
	Warnings   int                            `json:"warnings"`           // of nodes, see the logs
	Degraded   []string                       `json:"degraded,omitempty"` // nodes that said they did less than asked
	Breakers   []BreakerStatus                `json:"breakers,omitempty"`
	Checkpoint []string                       `json:"checkpoints,omitempty"`
	Questions  []machine.EscalationOpenedBody `json:"questions,omitempty"`
	Next       string                         `json:"next,omitempty"`
	NextSteps  []string                       `json:"next_commands,omitempty"` // ready to be typed
}

// Errors counts the failures that the state remembers.
type Errors struct {
	Recovered   int            `json:"recovered"` // a later attempt of the node completed
	Unrecovered int            `json:"unrecovered"`
	Categories  map[string]int `json:"categories,omitempty"`
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
	Status   string    `json:"status"`
	Attempt  int       `json:"attempt,omitempty"`
	Seconds  float64   `json:"seconds,omitempty"`
	CostUSD  dag.USD   `json:"cost_usd,omitempty"`
	Why      string    `json:"why,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Allowed  bool      `json:"allowed,omitempty"` // failed, and the run goes on
	finished time.Time
}

// A BreakerStatus is a breaker that is not simply closed, or holds nodes for a quota.
type BreakerStatus struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Until time.Time `json:"until,omitzero"`
	Hold  time.Time `json:"hold,omitzero"`
	Cause string    `json:"cause,omitempty"`
}

// OpenBreakers returns the breakers of a run that are not simply closed, or hold nodes for a quota.
func OpenBreakers(st *machine.State, now time.Time) (list []BreakerStatus) {
	for _, b := range st.Breakers() {
		if b.State != "closed" || b.Hold.After(now) {
			list = append(list, BreakerStatus{Name: b.Breaker, State: b.State, Until: b.Until, Hold: b.Hold, Cause: b.Cause})
		}
	}
	return list
}

// String says what the breaker does to nodes, for people.
func (b BreakerStatus) String() string {
	text := b.Name + " is " + b.State
	until := b.Until
	if b.State == "closed" {
		text, until = b.Name+" holds its nodes", b.Hold
	}
	if !until.IsZero() {
		text += " until " + until.Local().Format("2006-01-02 15:04:05")
	}
	return strings.TrimSuffix(text+": "+b.Cause, ": ")
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
		RunID: v.ID, Name: v.Name, Dir: dir, Status: string(v.Status), State: v.State, Created: v.Created, Updated: v.Updated,
		Active: v.Active.Seconds(), Resumes: v.Resumes, Nodes: g.Len(), CostUSD: l.Spent.USD, CapUSD: l.Budget.CapUSD,
		Reserved: l.Reserved.USD, Assumed: l.Assumed, Usage: l.Usage, Questions: st.Escalations(), Series: seriesOf(st),
	}
	switch v.Status {
	case machine.RunPause:
		s.Reason, s.Message = v.Pause.Reason, v.Pause.Message
	case machine.RunBroken:
		s.Message = v.Failed
	}
	for i := range int32(g.Len()) {
		s.add(st.NodeAt(i), now)
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
	s.Next, s.NextSteps = next(s)
	return s
}

// Unheld says that no process holds the run: what its events call running was cut off, or waits to be
// taken up after a revert.
func (s *Status) Unheld() {
	if s.Status != string(machine.RunRunning) && s.Status != string(machine.RunEnding) {
		return
	}
	s.Stopped = true
	if len(s.Questions) == 0 {
		s.Next, s.NextSteps = "go on with: dagrun resume", []string{"dagrun resume --output-dir " + s.Dir}
	}
}

func (s *Status) add(n machine.NodeView, now time.Time) {
	out := NodeStatus{ID: n.Node.ID, Kind: n.Node.Kind, Title: n.Node.Title, Attempt: n.Attempt, CostUSD: n.Cost, finished: n.Finished}
	if n.Last != nil {
		s.Warnings += len(n.Last.Warnings)
		if n.Last.Status != machine.StatusCompleted {
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
			s.Skipped++
		} else {
			s.Completed++
			out.Seconds = n.Finished.Sub(n.Started).Seconds()
		}
		if n.Attempt > 0 && !control(n.Node.Kind) {
			if s.Recent = append(s.Recent, out); len(s.Recent) > 100*recent {
				s.trim()
			}
		}
	case machine.Failed, machine.Cancelled, machine.Stopped:
		out.Status, out.Allowed = "failed", n.Soft
		s.Failed++
		s.Failures = append(s.Failures, out)
	default:
		if n.Blocked.By == "" || n.Blocked.By == "needs" || len(s.Waiting) >= waiting {
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
	case "pause":
		return "the run is paused"
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
			switch v.Status {
			case machine.Completed, machine.Skipped, machine.Failed, machine.Cancelled:
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
	s.Errors.Categories = map[string]int{}
	for _, e := range st.Errors() {
		s.Errors.Categories[e.Category]++
		if v, ok := st.NodeByID(e.Node); ok && v.Status == machine.Completed {
			s.Errors.Recovered++
		} else {
			s.Errors.Unrecovered++
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
	if s.Status == string(machine.RunDone) || s.Status == string(machine.RunBroken) {
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
	if eta, ok := p.ETA(st, now, jobs); ok {
		sec := eta.Seconds()
		s.ETA = &sec
	}
	if usd, ok := p.Projected(st, now); ok {
		s.Projected = &usd
	}
}

// next is what the user can do: in words, and commands to type.
func next(s *Status) (string, []string) {
	at := " --output-dir " + s.Dir
	resume := "dagrun resume" + at
	switch {
	case s.Status == string(machine.RunDone):
		return "", nil
	case len(s.Questions) > 0:
		q := s.Questions[0]
		answer := "ANSWER"
		if q.Recommended != "" {
			answer = q.Recommended
		}
		return "answer with: dagrun respond " + q.ID + " ANSWER", []string{fmt.Sprintf("dagrun respond %s %s%s", q.ID, answer, at), resume}
	case s.Status == string(machine.RunBroken):
		return "go on with: dagrun apply --again; begin anew with: dagrun apply --fresh", []string{"dagrun resume --again" + at, "dagrun apply --fresh" + at}
	case s.Reason == "budget":
		more := (s.CostUSD + s.Reserved) * 2
		if s.Projected != nil {
			more = max(more, *s.Projected)
		}
		return "raise the budget in the specification, then: dagrun apply; or dagrun resume --cap-usd N", []string{fmt.Sprintf("dagrun resume --cap-usd %s%s", more, at)}
	case s.Reason == "node-failed" || s.Reason == "repeated-failure":
		return "mend the cause, then: dagrun resume (or dagrun apply after a change of the specification)", []string{"dagrun report errors" + at, resume}
	case s.Reason == "disk":
		return "make room, then go on with: dagrun resume", []string{resume}
	case len(s.Running) > 0 && s.Status == string(machine.RunRunning):
		return "it is running, or was killed; in that case go on with: dagrun resume", []string{resume}
	}
	return "go on with: dagrun resume", []string{resume}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// valueText is a value as people write it.
func valueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
