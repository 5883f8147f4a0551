package report

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A Status is how a run stands.
type Status struct {
	RunID     string                         `json:"run_id"`
	Name      string                         `json:"name"`
	Dir       string                         `json:"dir"`
	Status    string                         `json:"status"`
	Reason    string                         `json:"reason,omitempty"`
	Message   string                         `json:"message,omitempty"`
	State     string                         `json:"declared_state,omitempty"`
	Created   time.Time                      `json:"created"`
	Updated   time.Time                      `json:"updated"`
	Active    float64                        `json:"active_seconds"`
	Resumes   int                            `json:"resumes"`
	Nodes     int                            `json:"nodes"`
	Completed int                            `json:"completed"`
	Failed    int                            `json:"failed"`
	Skipped   int                            `json:"skipped"`
	CostUSD   dag.USD                        `json:"cost_usd"`
	CapUSD    dag.USD                        `json:"cap_usd,omitempty"`
	Phases    []PhaseStatus                  `json:"phases,omitempty"`
	Running   []NodeStatus                   `json:"running,omitempty"`
	Waiting   []NodeStatus                   `json:"waiting,omitempty"` // could start and does not
	Recent    []NodeStatus                   `json:"recent,omitempty"`  // the last that ended, newest last
	Failures  []NodeStatus                   `json:"failures,omitempty"`
	Breakers  []BreakerStatus                `json:"breakers,omitempty"`
	Questions []machine.EscalationOpenedBody `json:"questions,omitempty"`
	Next      string                         `json:"next,omitempty"`
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
	Status   string    `json:"status"`
	Attempt  int       `json:"attempt,omitempty"`
	Seconds  float64   `json:"seconds,omitempty"`
	CostUSD  dag.USD   `json:"cost_usd,omitempty"`
	Why      string    `json:"why,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	finished time.Time
}

// A BreakerStatus is a breaker that is not simply closed.
type BreakerStatus struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Until time.Time `json:"until,omitzero"`
	Cause string    `json:"cause,omitempty"`
}

// recent is how many of the last ended nodes a status shows, waiting how many that wait.
const (
	recent  = 3
	waiting = 10
)

// NewStatus reads how a run stands at an instant.
func NewStatus(r *run.Run, dir string, now time.Time) *Status {
	st := r.State()
	v := st.Run()
	g := st.Graph()
	s := &Status{
		RunID: v.ID, Name: v.Name, Dir: dir, Status: string(v.Status), State: v.State, Created: v.Created, Updated: v.Updated,
		Active: v.Active.Seconds(), Resumes: v.Resumes, Nodes: g.Len(), CostUSD: st.Ledger().Spent.USD, CapUSD: st.Ledger().Budget.CapUSD, Questions: st.Escalations(),
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
	sort.SliceStable(s.Recent, func(i, j int) bool { return s.Recent[i].finished.Before(s.Recent[j].finished) })
	s.Recent = s.Recent[max(0, len(s.Recent)-recent):]
	s.Phases = phases(st)
	for _, b := range g.Plan.Breakers {
		if last, _, ok := st.BreakerRecord(b.Name); ok && last.State != "closed" {
			s.Breakers = append(s.Breakers, BreakerStatus{Name: b.Name, State: last.State, Until: last.Until, Cause: last.Cause})
		}
	}
	s.Next = next(s)
	return s
}

func (s *Status) add(n machine.NodeView, now time.Time) {
	out := NodeStatus{ID: n.Node.ID, Kind: n.Node.Kind, Attempt: n.Attempt, CostUSD: n.Cost, finished: n.Finished}
	if n.Last != nil && n.Last.Status != machine.StatusCompleted {
		out.Why = strings.TrimPrefix(n.Last.Category+": "+n.Last.Message, ": ")
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
		if n.Attempt > 0 {
			s.Recent = append(s.Recent, out)
		}
	case machine.Failed, machine.Cancelled, machine.Stopped:
		out.Status = "failed"
		s.Failed++
		s.Failures = append(s.Failures, out)
	default:
		if n.Blocked.By == "" || n.Blocked.By == "needs" || len(s.Waiting) >= waiting {
			return
		}
		out.Status = "waiting"
		out.Until = n.Blocked.Until
		out.Why = strings.TrimSpace(n.Blocked.By + " " + n.Blocked.Name)
		s.Waiting = append(s.Waiting, out)
	}
}

// phases counts the nodes of each declared phase.
func phases(st *machine.State) []PhaseStatus {
	g := st.Graph()
	out := make([]PhaseStatus, 0, len(g.Plan.Phases))
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
		out = append(out, ps)
	}
	return out
}

// next is what the user can do.
func next(s *Status) string {
	switch {
	case s.Status == string(machine.RunDone):
		return ""
	case len(s.Questions) > 0:
		return "answer with: dagrun respond " + s.Questions[0].ID + " ANSWER"
	case s.Status == string(machine.RunBroken):
		return "go on with: dagrun apply --again; begin anew with: dagrun apply --fresh"
	case s.Reason == "budget":
		return "raise the budget in the specification, then: dagrun apply; or dagrun resume --cap-usd N"
	case s.Reason == "node-failed" || s.Reason == "repeated-failure":
		return "mend the cause, then: dagrun resume (or dagrun apply after a change of the specification)"
	case len(s.Running) > 0 && s.Status == string(machine.RunRunning):
		return "it is running, or was killed; in that case go on with: dagrun resume"
	}
	return "go on with: dagrun resume"
}

// WriteText prints the status for people.
func (s *Status) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-10s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	row("Pipeline", "%s", s.Name)
	row("Run", "%s in %s", s.RunID, s.Dir)
	status := strings.ToUpper(s.Status)
	if s.Reason != "" {
		status += " (" + s.Reason + ")"
	}
	if s.Message != "" {
		status += ": " + s.Message
	}
	row("Status", "%s", status)
	row("Started", "%s", s.Created.Local().Format("2006-01-02 15:04:05 MST"))
	row("Last", "%s; active for %s", s.Updated.Local().Format("2006-01-02 15:04:05 MST"), Duration(max(s.Active, 0.01)))
	ended := s.Completed + s.Skipped
	row("Progress", "%d/%d nodes (%d%%), %d skipped, %d failed", ended, s.Nodes, 100*ended/max(1, s.Nodes), s.Skipped, s.Failed)
	for _, p := range s.Phases {
		row("Phase", "%s %d/%d", p.Name, p.Ended, p.Nodes)
	}
	cost := "$" + s.CostUSD.String()
	if s.CapUSD > 0 {
		cost += fmt.Sprintf(" / $%s (%d%%)", s.CapUSD, 100*s.CostUSD/s.CapUSD)
	}
	row("Cost", "%s", cost)
	list(out, "Running", s.Running)
	list(out, "Waiting", s.Waiting)
	list(out, "Last ended", s.Recent)
	list(out, "Failed", s.Failures)
	for _, b := range s.Breakers {
		row("Breaker", "%s is %s%s: %s", b.Name, b.State, untilText(b.Until), b.Cause)
	}
	for _, q := range s.Questions {
		row("Question", "%s: %s [%s]", q.ID, q.Message, strings.Join(q.Options, ", "))
	}
	if s.Next != "" {
		row("Next", "%s", s.Next)
	}
	return out.Flush()
}

func list(out io.Writer, title string, nodes []NodeStatus) {
	if len(nodes) == 0 {
		return
	}
	fmt.Fprintf(out, "%s:\n", title)
	for _, n := range nodes {
		line := fmt.Sprintf("  %s (%s)", n.ID, n.Kind)
		if n.Seconds > 0 {
			line += "  " + Duration(n.Seconds)
		}
		if n.CostUSD > 0 {
			line += "  $" + n.CostUSD.String()
		}
		if n.Why != "" {
			line += "  " + n.Why
		}
		fmt.Fprintln(out, line+untilText(n.Until))
	}
}

func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.Local().Format("15:04:05")
}
