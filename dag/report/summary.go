package report

import (
	"bufio"
	"fmt"
	"io"
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
	RunID   string            `json:"run_id"`
	Name    string            `json:"name"`
	Status  machine.RunStatus `json:"status"`
	Reason  string            `json:"reason,omitempty"`
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended"`
	Active  float64           `json:"active_seconds"`
	Counts
	Errors     Errors                       `json:"errors"`
	CostUSD    dag.USD                      `json:"cost_usd"`
	Usage      machine.Usage                `json:"usage"`
	Phases     []PhaseStatus                `json:"phases,omitempty"`
	Series     []Series                     `json:"series,omitempty"`
	Shares     []Share                      `json:"by_label,omitempty"`
	Retries    int                          `json:"retries"`
	Waits      int                          `json:"waits"`
	Waited     float64                      `json:"waited_seconds"` // for retries and for declared instants
	Breakers   []machine.BreakerChangedBody `json:"breaker_changes,omitempty"`
	Degraded   []string                     `json:"degraded,omitempty"`
	Warnings   []Warning                    `json:"warnings,omitempty"`
	Allowed    []NodeStatus                 `json:"allowed_failures,omitempty"`
	Checkpoint []string                     `json:"checkpoints,omitempty"`
	Artifacts  []string                     `json:"artifacts,omitempty"` // paths
	Left       []string                     `json:"left,omitempty"`      // paths of files that nodes wrote which are not in the run any more, or are skipped now
	Folders    []string                     `json:"folders,omitempty"`   // of nodes' files: prompts, answers, pictures
	Logs       string                       `json:"logs"`
	Log        []ErrorLog                   `json:"error_log,omitempty"`
}

// A Warning is a line that an attempt left.
type Warning struct {
	Node string `json:"node"`
	Text string `json:"text"`
}

// An ErrorLog is one error in the form of the run's own YAML log (L-6).
type ErrorLog struct {
	Timestamp  time.Time  `json:"timestamp"`
	RunID      string     `json:"workflow_id"`
	Type       string     `json:"error_type"`
	Severity   string     `json:"severity"` // info | warning | error | critical
	Message    string     `json:"message"`
	Context    Context    `json:"context"`
	Resolution Resolution `json:"resolution"`
}

// A Context says where an error happened.
type Context struct {
	Node    string `json:"node"`
	Group   string `json:"group,omitempty"`
	Attempt int    `json:"attempt"`
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
	if s.Errors.Recovered+s.Errors.Unrecovered > 0 || s.CostUSD > 0 || len(st.Breakers()) > 0 {
		var err error
		if h, err = ReadHistory(o); err != nil {
			return nil, err
		}
	}
	sum := &Summary{RunID: s.RunID, Name: s.Name, Status: s.Status, Reason: ReasonText(s.Reason, s.Node, s.Message),
		Started: s.Created, Ended: s.Updated, Active: s.Active, Counts: s.Counts, Errors: s.Errors, CostUSD: s.CostUSD, Usage: s.Usage,
		Phases: s.Phases, Series: s.Series, Shares: s.Shares, Retries: h.Retries, Waits: h.Waits, Waited: h.Waited.Seconds(), Breakers: h.Breakers,
		Degraded: s.Degraded, Warnings: warnings(st), Checkpoint: s.Checkpoint, Artifacts: s.Artifacts, Logs: filepath.Join(dir, run.Dir, run.LogsDir)}
	for _, f := range s.Failures {
		if f.Allowed {
			sum.Allowed = append(sum.Allowed, f)
		}
	}
	for _, p := range r.LeftPaths() {
		sum.Left = append(sum.Left, filepath.Join(dir, p))
	}
	sum.Folders = folders(st, o, dir)
	for i := range h.Errors {
		sum.Log = append(sum.Log, logOf(&h.Errors[i], st))
	}
	return sum, nil
}

// warnings returns what the last attempts of the nodes left to be said, in plan order. Those of attempts that
// were made again are in the logs.
func warnings(st *machine.State) (list []Warning) {
	for i := range int32(st.Graph().Len()) {
		v := st.NodeAt(i)
		if v.Last == nil {
			continue
		}
		for _, w := range v.Last.Warnings {
			list = append(list, Warning{v.Node.ID, w})
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
	l := ErrorLog{Timestamp: e.Time, RunID: st.Run().ID, Type: e.Category, Severity: "error", Message: e.Message, Context: Context{Node: e.Node, Attempt: e.Attempt}}
	allowed := false
	if v, ok := st.NodeByID(e.Node); ok {
		l.Context.Group = v.Node.Group
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
		l.Resolution = Resolution{"the run went on without it", true}
	case e.Class == dag.Fatal:
		l.Severity, l.Resolution = "critical", Resolution{"the run ended", false}
	default:
		l.Resolution = Resolution{"the run paused", false}
	}
	return l
}

// mostWarnings bounds the warnings that a summary shows.
const mostWarnings = 5

// WriteText prints what is worth saying beside the counts.
func (s *Summary) WriteText(w io.Writer) error {
	r := rows{bufio.NewWriter(w)}
	for _, p := range s.Phases {
		r.row("Phase", "%s %d/%d", p.Name, p.Ended, p.Nodes)
	}
	writeSeries(r, s.Series)
	if len(s.Shares) > 0 {
		r.row("Cost", "$%s", s.CostUSD)
		writeShares(r, s.Shares)
	}
	if s.Retries+s.Waits > 0 {
		waits := ""
		if s.Waits > 0 {
			waits = ", " + Count(s.Waits, "wait") + " for a given instant"
		}
		r.row("Retries", "%d%s; %s of waiting in all", s.Retries, waits, Duration(max(s.Waited, 0.01)))
	}
	for _, b := range s.Breakers {
		r.row("Breaker", "%s", BreakerText(&b, Instant))
	}
	for _, f := range s.Allowed {
		r.row("Failed", "%s, which the run allows: %s", f.ID, f.Why)
	}
	if s.Errors.Recovered+s.Errors.Unrecovered > 0 {
		r.row("Errors", "%s", s.Errors)
	}
	r.list("Degraded", s.Degraded)
	for i, g := range s.Warnings {
		if i == mostWarnings {
			r.row("Warning", "and %d more, see %s", len(s.Warnings)-i, s.Logs)
			break
		}
		r.row("Warning", "%s: %s", g.Node, g.Text)
	}
	r.list("Checkpoints", s.Checkpoint)
	r.paths("Artifacts", s.Artifacts, "")
	r.paths("Left", s.Left, ": no node that is in the run now has written it")
	r.list("Files", s.Folders)
	r.row("Logs", "%s", s.Logs)
	return r.out.Flush()
}
