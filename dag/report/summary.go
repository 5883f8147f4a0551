package report

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A Summary is the account of a run at its end, or at a pause.
type Summary struct {
	Standing
	Reason  string    `json:"reason,omitempty"` // with node and message
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Work
	Retries  int                           `json:"retries"`
	Waits    int                           `json:"waits"`
	Waited   float64                       `json:"waited_seconds"` // for retries and for declared instants
	Breakers []*machine.BreakerChangedBody `json:"breaker_changes,omitempty"`
	Warnings []Warning                     `json:"warnings,omitempty"`
	Allowed  []NodeStatus                  `json:"allowed_failures,omitempty"`
	// Left are paths of files that nodes wrote which are not in the run any more, or are skipped now.
	Left    []string   `json:"left,omitempty"`
	Folders []string   `json:"folders,omitempty"` // of nodes' files: prompts, answers, pictures
	Logs    string     `json:"logs"`
	Log     []ErrorLog `json:"error_log,omitempty"`
}

// An ErrorLog is one error in the form of the run's own YAML log.
type ErrorLog struct {
	Timestamp  time.Time  `json:"timestamp"`
	RunID      string     `json:"workflow_id"`
	Stage      string     `json:"stage,omitempty"`
	Type       string     `json:"error_type"`
	Severity   string     `json:"severity"` // info | warning | error | critical
	Message    string     `json:"message"`
	Context    Context    `json:"context"`
	Resolution Resolution `json:"resolution"`
}

// A Context says where an error happened.
type Context struct {
	Node    string            `json:"node"`
	Group   string            `json:"group,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Attempt int               `json:"attempt"`
}

// A Resolution says what became of an error.
type Resolution struct {
	Action     string `json:"action_taken"`
	Successful bool   `json:"successful"`
}

// NewSummary sums up a run that is open. o are its options, s is how it stands. The events are read only
// where there is something in them that the state does not say.
func NewSummary(r *run.Run, o run.Options, s *Status) (*Summary, error) {
	st, dir := r.State(), s.Dir
	h := &History{}
	if s.Errors.Any() || s.CostUSD > 0 || len(st.Breakers()) > 0 {
		var err error
		if h, err = ReadHistory(o); err != nil {
			return nil, err
		}
	}
	sum := &Summary{
		Standing: s.Standing, Work: s.Work, Reason: ReasonText(s.Reason, s.Node, s.Message),
		Started: s.Created, Ended: s.Updated,
		Retries: h.Retries, Waits: h.Waits, Waited: h.Waited.Seconds(), Breakers: h.Breakers, Warnings: s.Told,
		Logs: filepath.Join(dir, run.Dir, run.LogsDir),
	}
	sum.Allowed = s.allowed()
	for _, p := range r.LeftPaths() {
		sum.Left = append(sum.Left, filepath.Join(dir, p))
	}
	sum.Folders = folders(st, o, dir)
	for i := range h.Errors {
		sum.Log = append(sum.Log, logOf(&h.Errors[i], st))
	}
	return sum, nil
}

// allowed returns the nodes that failed and did not hold the run.
func (s *Status) allowed() (list []NodeStatus) {
	for _, f := range s.Failures {
		if f.Allowed {
			list = append(list, f)
		}
	}
	return list
}

// folders returns the folders that hold the files of nodes, one for each first part of their paths.
func folders(st *machine.State, o run.Options, dir string) (list []string) {
	own, err := run.OpenOwn(o)
	if err != nil {
		return nil
	}
	defer own.Close()
	var seen []string
	for i := range int32(st.Graph().Len()) {
		top, _, _ := strings.Cut(path.Clean(st.Graph().Node(i).Dir), "/")
		if top == "." || slices.Contains(seen, top) {
			continue
		}
		seen = append(seen, top)
		if fi, err := own.Lstat(top); err == nil && fi.IsDir() {
			list = append(list, filepath.Join(dir, run.Dir, top))
		}
	}
	return list
}

func logOf(e *ErrorEntry, st *machine.State) ErrorLog {
	l := ErrorLog{
		Timestamp: e.Time, RunID: st.Run().ID, Type: e.Category, Severity: "error", Message: e.Message,
		Context: Context{Node: e.Node, Attempt: e.Attempt},
	}
	allowed := false
	if v, ok := st.NodeByID(e.Node); ok {
		l.Stage, l.Context.Group, l.Context.Labels = st.Graph().Plan.Stage(v.Node), v.Node.Group, v.Node.Labels
		allowed = v.Soft
	}
	if l.Type == "" {
		l.Type = string(e.Status)
	}
	switch {
	case e.Recovered:
		l.Severity, l.Resolution = "warning", Resolution{fmt.Sprintf("attempt %d completed", e.At), true}
	case !e.Final:
		l.Severity, l.Resolution = "warning", Resolution{"another attempt", false}
	case allowed:
		l.Resolution = Resolution{"the run continued without it", true}
	case e.Class == dag.Fatal:
		l.Severity, l.Resolution = "critical", Resolution{"the run ended", false}
	default:
		l.Resolution = Resolution{"the run paused", false}
	}
	return l
}

// An End is how a run stands when the command that carried it on ends.
type End struct {
	Standing
	Seconds   float64  `json:"seconds"` // of activity
	Questions []string `json:"questions,omitempty"`
	Exit      int      `json:"exit_status"`
	Nothing   bool     `json:"nothing_to_do,omitempty"` // the run was complete before
	Summary   *Summary `json:"summary,omitempty"`
	Artifacts []string `json:"-"` // paths of what the run made

	Allowed []NodeStatus `json:"-"` // nodes that failed and did not hold the run
	page    string
}

// NewEnd sums up a status with the exit status of the command. A nil sum says that there was nothing to do.
func NewEnd(s *Status, sum *Summary, exit int) *End {
	e := &End{
		Standing: s.Standing, Seconds: s.Active, Exit: exit,
		Nothing: sum == nil, Summary: sum, Artifacts: s.Artifacts, page: s.Page,
		Allowed: s.allowed(),
	}
	for _, q := range s.Questions {
		e.Questions = append(e.Questions, q.ID)
	}
	return e
}

// What is what became of the run.
func (e *End) What() string {
	switch e.Status {
	case machine.RunDone:
		return "Done"
	case machine.RunPause:
		if e.Reason == machine.PausePart {
			return "Partly done"
		}
		return "Paused"
	}
	return "Failed"
}

// Why is why the run paused or failed.
func (e *End) Why() string { return ReasonText(e.Standing.Reason, e.Node, e.Message) }

// Result is the page to open once the run is complete; empty where it made none.
func (e *End) Result() string {
	if e.Status != machine.RunDone {
		return ""
	}
	return e.page
}

// Form is the template of its text. The short one has one line, and more only of what somebody must look at.
func (e *End) Form(short bool) string {
	switch {
	case e.Nothing:
		return "nothing"
	case short:
		return "short"
	}
	return "end"
}
