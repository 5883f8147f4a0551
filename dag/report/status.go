package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A Standing is how a run stands, in short: Status, Summary and the end of a command begin with it.
type Standing struct {
	RunID   string            `json:"run_id"`
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	Status  machine.RunStatus `json:"status"`           // running | paused | ending | completed | failed
	Reason  machine.Pause     `json:"reason,omitempty"` // of a pause
	Part    string            `json:"part,omitempty"`   // that is to run, as the command line names it; empty: all nodes
	Node    string            `json:"node,omitempty"`   // that the reason is about
	Message string            `json:"message,omitempty"`
	Counts
	CostUSD dag.USD `json:"cost_usd"`
	Assumed dag.USD `json:"assumed_usd,omitempty"` // part of the cost that nobody has confirmed
	Pieces  *Pieces `json:"pieces,omitempty"`      // of a run that its user paused
	// Cleanup are the clean-up nodes (always) of a paused run that have not ended, Undo the completed nodes that have an
	// undo action, the first to be undone first: what `dagrun cancel`, with --undo, runs. Ending is why a paused run
	// comes to its end, clean-up included, when it is resumed.
	Cleanup   []string `json:"pending_cleanup,omitempty"`
	Ending    string   `json:"ending,omitempty"`
	Undo      []string `json:"undoable,omitempty"`
	Next      string   `json:"next,omitempty"` // what the user can do, see remedies
	NextSteps []string `json:"next_commands,omitempty"`
	Active    float64  `json:"active_seconds"`
}

// Work is what a run has done so far, which Status and Summary both tell.
type Work struct {
	Usage      machine.Usage `json:"usage"`
	Shares     []Share       `json:"by_label,omitempty"`
	Series     []Series      `json:"series,omitempty"`
	Phases     []PhaseStatus `json:"phases,omitempty"`
	Errors     Errors        `json:"errors"`
	Degraded   []string      `json:"degraded,omitempty"` // nodes that reported doing less than asked
	Checkpoint []string      `json:"checkpoints,omitempty"`
	Artifacts  []string      `json:"artifacts,omitempty"` // paths
	Published  []string      `json:"published,omitempty"` // paths beside the specification
	Page       string        `json:"page,omitempty"`      // the one of them in HTML that was written last
}

// A Status is how a run stands. Its JSON names are kept; fields are only added.
type Status struct {
	Standing
	Stopped   bool      `json:"stopped,omitempty"`        // running by its events, but no process holds it
	Reverted  string    `json:"reverted_to,omitempty"`    // checkpoint that it was sent back to, and not resumed since
	State     string    `json:"declared_state,omitempty"` // by milestones; empty: the plan has none
	Tick      int64     `json:"tick,omitempty"`           // of work that never ends: its number, idle ones aside
	NextTick  time.Time `json:"next_tick,omitzero"`       // when an idle one is followed by the next at the latest
	Phase     string    `json:"phase,omitempty"`          // the first declared one that has not ended
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Resumes   int       `json:"resumes"`
	ETA       *float64  `json:"eta_seconds"`   // null: too little is known, or nothing is to come
	Projected *dag.USD  `json:"projected_usd"` // of the whole run; null: unknown
	CapUSD    dag.USD   `json:"cap_usd,omitempty"`
	Tokens    int64     `json:"tokens"` // that count for the budget
	CapTokens int64     `json:"cap_tokens,omitempty"`
	Wall      float64   `json:"wall_seconds,omitempty"` // most that the run may be active
	Reserved  dag.USD   `json:"reserved_usd,omitempty"`
	Work
	Left      []string                       `json:"left_out,omitempty"` // nodes that have not ended, not of the part
	NewPlan   *NewPlan                       `json:"new_plan,omitempty"` // that waits to be adopted
	Questions []machine.EscalationOpenedBody `json:"questions,omitempty"`
	Running   []NodeStatus                   `json:"running,omitempty"`
	Waiting   []NodeStatus                   `json:"waiting,omitempty"` // could start and does not
	Recent    []NodeStatus                   `json:"recent,omitempty"`  // the last that ended, newest last
	Failures  []NodeStatus                   `json:"failures,omitempty"`
	Cut       []NodeStatus                   `json:"cancelled_nodes,omitempty"`
	Undone    []NodeStatus                   `json:"undone_nodes,omitempty"`
	// Undid are the undo actions that were begun, oldest first.
	Undid    []machine.CompensationView `json:"compensation_history,omitempty"`
	Warnings int                        `json:"warnings"`                // of nodes
	Told     []Warning                  `json:"warning_texts,omitempty"` // those, of the last attempts, in plan order
	Untold   int                        `json:"untold,omitempty"`        // events that somebody waits to be told of
	Missed   int                        `json:"missed,omitempty"`        // events that nobody is told of any more
	Breakers []BreakerStatus            `json:"breakers,omitempty"`
	// Drifted are live files that are not as recorded, and what becomes of them.
	Drifted []string `json:"drifted_artifacts,omitempty"`
	now     time.Time
	// How many answers of the nodes were checked, and passed: of the last attempt of each.
	checked, passed int
}

// A NewPlan is a plan that was handed to the run and waits to be adopted.
type NewPlan struct {
	Digest   string   `json:"plan_digest"`
	WaitsFor []string `json:"waits_for,omitempty"` // nodes whose attempts are not stopped for it
}

// A NodeStatus is one node in a list of a status.
type NodeStatus struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Title    string    `json:"title,omitempty"`
	Short    string    `json:"short,omitempty"` // what people call it
	Status   string    `json:"status"`          // running | interrupted | waiting, or how it ended: dag.Status
	Attempt  int       `json:"attempt,omitempty"`
	Seconds  float64   `json:"seconds,omitempty"`
	CostUSD  dag.USD   `json:"cost_usd,omitempty"`
	Why      string    `json:"why,omitempty"`
	Checks   string    `json:"validation,omitempty"` // of its answer: pass | fail
	Shown    string    `json:"shown,omitempty"`      // values that people follow
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
	v, l := st.Run(), st.Ledger()
	s := &Status{
		Standing: Standing{RunID: v.ID, Name: v.Name, Dir: dir, Status: v.Status, Active: v.Active.Seconds(),
			Counts: NewCounts(st), CostUSD: l.Spent.USD, Assumed: l.Assumed},
		Questions: st.Escalations(), Undid: st.Compensations(),
		Created: v.Created, Updated: v.Updated, Resumes: v.Resumes, Reserved: l.Reserved.USD, Tokens: l.Spent.Tokens,
		CapUSD: l.Budget.CapUSD, CapTokens: l.Budget.CapTokens, Wall: l.Budget.Wall.D().Seconds(),
		now: now, Work: Work{Usage: l.Usage, Shares: Shares(st), Series: seriesOf(st), Errors: errorsOf(st)},
	}
	s.Untold, s.Missed = len(st.Notices()), st.Missed()
	if list := st.Reverts(); len(list) > 0 && list[len(list)-1].Time.Equal(v.Updated) {
		s.Reverted = list[len(list)-1].Checkpoint
	}
	if t := st.Graph().Plan.Ticks; t != nil {
		if s.Tick = 1; v.Previous != nil {
			s.Tick += v.Previous.Ticks
		}
		if t.Every > 0 && v.Status == machine.RunDone && v.State == t.Idle {
			s.NextTick = v.Updated.Add(t.Every.D())
		}
	}
	if left := st.LeftOut(); len(left) > 0 {
		s.Part, s.Left = v.Part.String(), left
	}
	if next := st.Submitted(); next != nil {
		s.NewPlan = &NewPlan{next.PlanDigest, st.Holdup()}
	}
	switch v.Status {
	case machine.RunPause:
		s.Reason, s.Node, s.Message = v.Pause.Reason, v.Pause.Node, v.Pause.Message
		if s.Reason == machine.PauseUser {
			s.Pieces = newPieces(st)
		}
		s.Ending = v.Failed
		s.Cleanup, s.Undo = st.Pending()
	case machine.RunBroken:
		s.Message, s.Questions, s.NewPlan = v.Failed, nil, nil // these wait for a run that goes on
	}
	if s.Reason == machine.PauseEscalation && len(s.Questions) == 0 {
		s.Message = "its questions are answered"
	}
	for i := range int32(st.Graph().Len()) {
		n := st.NodeAt(i)
		if n.Node.Declares() {
			s.State = v.State
		}
		s.add(n, now)
	}
	s.trim()
	if s.Phases = phasesOf(st); len(s.Phases) > 0 {
		if k := slices.IndexFunc(s.Phases, func(p PhaseStatus) bool { return p.Ended < p.Nodes }); k >= 0 {
			s.Phase = s.Phases[k].Name
		}
	}
	if !s.Status.Ended() {
		if eta, usd, ok := Forecast(st, now, jobsSeen(st, s.Active)); ok {
			sec := eta.Seconds()
			s.ETA, s.Projected = &sec, &usd
		}
	}
	s.Breakers = OpenBreakers(st, now)
	for _, c := range r.Checkpoints() {
		s.Checkpoint = append(s.Checkpoint, c.ID)
	}
	for _, p := range r.LivePaths() {
		s.Artifacts = append(s.Artifacts, filepath.Join(dir, p))
	}
	for _, v := range st.Published() {
		if v.Counted != "" {
			s.Published = append(s.Published, v.Path)
		}
	}
	s.page(st)
	s.remedy(st)
	return s
}

// page finds the page that the run made: the live artifact in HTML whose node ended last.
func (s *Status) page(st *machine.State) {
	var last time.Time
	for i := range int32(st.Graph().Len()) {
		if st.StatusAt(i) != machine.Completed || len(st.Graph().Node(i).Writes) == 0 {
			continue
		}
		for _, name := range st.Graph().Node(i).Writes {
			path := filepath.Join(s.Dir, filepath.FromSlash(name))
			live := strings.HasSuffix(name, ".html") && slices.Contains(s.Artifacts, path)
			if strings.HasSuffix(name, "/") { // a folder
				path = filepath.Join(path, "index.html")
				_, err := os.Stat(path)
				live = err == nil
			}
			if v := st.NodeAt(i); live && !v.Finished.Before(last) {
				s.Page, last = path, v.Finished
			}
		}
	}
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
		return d.Name + " was changed outside the run: nodes that run after the next start use the changed file; " +
			"the version before is kept" + run.ReadersText(d.Readers)
	case d.Gone:
		return d.Name + " is missing: the next start restores the recorded version"
	}
	return d.Name + " is not the recorded version: the next start restores that"
}

// Unheld says that no process holds the run: what its events call running was interrupted, by a kill or by a second
// interrupt, or waits to be taken up after a revert.
func (s *Status) Unheld(r *run.Run) {
	s.interrupted(r)
	if s.Status != machine.RunRunning && s.Status != machine.RunEnding {
		return
	}
	s.Stopped = true
	s.NextSteps = nil
	s.remedy(r.State())
}

// interrupted reports what became of the nodes that ran in a process that is gone.
func (s *Status) interrupted(r *run.Run) {
	if len(s.Running) == 0 {
		return
	}
	s.Pieces = newPieces(r.State())
	for i := range s.Running {
		n := &s.Running[i]
		n.Status, n.Seconds = "interrupted", max(0, s.Updated.Sub(n.started).Seconds())
		kept := "interrupted; it left nothing"
		v, _ := r.State().NodeByID(n.ID)
		dir := r.NodeDir(n.ID, v.Generation)
		if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
			if rel, err := filepath.Rel(s.Dir, dir); err == nil {
				dir = rel
			}
			kept = "interrupted; its partial work is in " + dir
		}
		s.Pieces.Partial = append(s.Pieces.Partial, Piece{n.ID, kept})
	}
}

// add puts a node into the list in which it is shown.
func (s *Status) add(n machine.NodeView, now time.Time) {
	out := NodeStatus{ID: n.Node.ID, Kind: n.Node.Kind, Title: n.Node.Title, Short: n.Node.Short,
		Status: n.Status.String(), Attempt: n.Attempt, CostUSD: n.Cost, started: n.Started, finished: n.Finished}
	if n.Last != nil {
		for _, w := range n.Last.Warnings {
			s.Told = append(s.Told, Warning{n.Node.ID, w})
		}
		s.Warnings = len(s.Told)
		if out.Checks = Validation(n.Last); out.Checks != "" {
			s.checked++
		}
		if out.Checks == "pass" {
			s.passed++
		}
		if n.Last.Status != dag.StatusCompleted {
			out.Why = Reason(n.Last.Category, n.Last.Message)
		}
	}
	var degraded bool
	if json.Unmarshal(n.Values["degraded"], &degraded) == nil && degraded {
		s.Degraded = append(s.Degraded, n.Node.ID)
	}
	switch n.Status {
	case machine.Running:
		out.Seconds, out.Why = now.Sub(n.Started).Seconds(), ""
		s.Running = append(s.Running, out)
	case machine.Completed, machine.Skipped:
		out.Shown = ShownText(Shown(n.Node, n.Values))
		if n.Status == machine.Completed {
			out.Seconds = n.Finished.Sub(n.Started).Seconds()
		}
		if n.Attempt > 0 && !IsControl(n.Node.Kind) {
			if s.Recent = append(s.Recent, out); len(s.Recent) > 100*recent {
				s.trim()
			}
		}
	case machine.Failed:
		out.Allowed = n.Soft
		s.Failures = append(s.Failures, out)
	case machine.Cancelled:
		s.Cut = append(s.Cut, out)
	case machine.Undone:
		out.Why = ""
		s.Undone = append(s.Undone, out)
	default:
		if by := n.Blocked.By; by == "" || by == "needs" || by == "pause" || by == "selection" || len(s.Waiting) >= waiting {
			return // of a pause the status says why
		}
		out.Status, out.Why = "waiting", blockText(n.Blocked, out.Why)
		if n.Blocked.Until.After(now) {
			out.Until = n.Blocked.Until
		}
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
		return "retries after " + why
	case "plan":
		return "waits for the new plan"
	case "wait":
		return "waits after " + why
	case "person":
		return "waits for the user: " + why
	case "budget":
		return "does not fit into the budget"
	}
	return "blocked by " + strings.TrimSpace(b.By+" "+b.Name)
}

// String is a node on one line.
func (n NodeStatus) String() string {
	parts := Parts{n.ID + " (" + n.Kind + ")"}
	if n.Short != "" {
		parts[0] = n.Short + " (" + n.ID + ")"
	}
	parts.Add(n.Seconds > 0, "%s", Duration(n.Seconds))
	parts.Add(n.Attempt > 1, "attempt %d", n.Attempt)
	parts.Add(n.CostUSD > 0, "$%s", n.CostUSD)
	parts.Add(n.Checks != "", "%s", strings.ToUpper(n.Checks))
	parts.Add(n.Allowed, "allowed")
	parts.Add(n.Shown != "", "%s", n.Shown)
	parts.Add(n.Why != "", "%s", n.Why)
	line := strings.Join(parts, "  ")
	if !n.Until.IsZero() {
		line += "; not before " + Instant(n.Until)
	}
	return line
}

// Headline is the status of the run with its reason.
func (s *Status) Headline() string {
	status := strings.ToUpper(string(s.Status))
	switch {
	case s.Stopped && s.Reverted != "":
		return "REVERTED to " + s.Reverted + ": no process runs it"
	case s.Stopped:
		return "STOPPED: no process runs it"
	case s.Reason == machine.PausePart:
		return "PARTLY DONE: " + s.Message
	case s.Reason != "":
		return status + " " + ReasonInBrackets(s.Reason, s.Node, s.Message)
	}
	return Reason(status, s.Message)
}

// Ago is how long ago the last event was; empty when it was just now.
func (s *Status) Ago() string {
	if ago := s.now.Sub(s.Updated); ago >= time.Minute {
		return " (" + Duration(ago.Seconds()) + " ago)"
	}
	return ""
}

// Progress is how far the run is, in what its plan counts.
func (s *Status) Progress() string {
	phase := PhaseStatus{Done: s.Ended(), Of: s.Nodes}
	text := progress(s.Phases, func(p PhaseStatus) string { return fmt.Sprintf("%s (%d%%)", p, percent(p.Done, p.Of)) })
	if text == "" {
		text = fmt.Sprintf("%d/%d nodes (%d%%)", phase.Done, phase.Of, percent(phase.Done, phase.Of))
	} else if k := slices.IndexFunc(s.Phases, func(p PhaseStatus) bool { return p.Name == s.Phase }); k >= 0 {
		phase = s.Phases[k]
	}
	return bar(phase.Done, phase.Of) + " " + text
}

// Cost is the cost of the run beside its budget.
func (s *Status) Cost() string {
	cost := Parts{"$" + s.CostUSD.String()}
	if s.CapUSD > 0 {
		cost[0] += fmt.Sprintf(" / $%s (%d%%)  %s", s.CapUSD, 100*s.CostUSD/s.CapUSD, bar(s.CostUSD, s.CapUSD))
	}
	cost.Add(s.Reserved > 0, "$%s reserved", s.Reserved)
	cost.Add(s.Assumed > 0, "$%s of it assumed", s.Assumed)
	cost.Add(s.Projected != nil && *s.Projected > s.CostUSD, "about $%s in the end", s.Projected)
	return strings.Join(cost, ", ")
}

// AnswersPassed says how many answers have passed their checks; empty when none was checked.
func (s *Status) AnswersPassed() string {
	if s.checked == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d answers passed", s.passed, s.checked)
}

// Remaining is the time to come; empty when nothing is.
func (s *Status) Remaining() string {
	switch {
	case s.Open == 0 || s.Status == machine.RunBroken:
		return ""
	case s.ETA == nil:
		return "not known yet"
	}
	return "about " + Duration(max(*s.ETA, 0.01))
}

// Pieces is what became of the work that could be under way when a run was paused by its user, or lost its process:
// what is complete, what was stopped half-way and what had not begun though nothing before it was missing.
type Pieces struct {
	Complete   int     `json:"complete"`
	Partial    []Piece `json:"partial,omitempty"`
	NotStarted []Piece `json:"not_started,omitempty"` // could start at once
}

// A Piece is one node of them.
type Piece struct {
	Node string `json:"node"`
	Kept string `json:"kept,omitempty"` // what there is of it and where
}

// String names the node of a piece that has not begun.
func (p Piece) String() string { return p.Node }

func newPieces(st *machine.State) *Pieces {
	p := &Pieces{Complete: st.Count(machine.Completed)}
	for i := range int32(st.Graph().Len()) {
		n := st.NodeAt(i)
		switch {
		case n.Status == machine.Completed || n.Status == machine.Skipped:
		case n.Last != nil && n.Last.Status == dag.StatusCancelled:
			_, kept, _ := strings.Cut(n.Last.Message, "PARTIAL, ")
			p.Partial = append(p.Partial, Piece{n.Node.ID, kept})
		case n.Status == machine.Ready && n.Attempt == 0:
			p.NotStarted = append(p.NotStarted, Piece{Node: n.Node.ID})
		}
	}
	return p
}
