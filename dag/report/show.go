package report

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/printable"
)

// A NodeView is all that there is to know of one node of a run.
type NodeView struct {
	ID         string            `json:"id"`
	Kind       string            `json:"node_kind"`
	Title      string            `json:"title,omitempty"`
	Group      string            `json:"group,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Status     string            `json:"status"`
	Generation int               `json:"generation"` // how often it was to be done: from 2 on it was sent back
	Why        []string          `json:"why,omitempty"`
	Does       string            `json:"does,omitempty"`
	When       string            `json:"when,omitempty"`
	Needs      []NodeRef         `json:"needs,omitempty"`
	// With are its settings with the values that they read; as written, and WithNote why, where these are not known.
	With     json.RawMessage `json:"with,omitempty"`
	WithNote string          `json:"with_note,omitempty"`
	Inputs   []GivenFile     `json:"inputs,omitempty"`
	Reads    []GivenFile     `json:"reads,omitempty"`
	// Compensations are its undo actions that were begun, oldest first.
	Compensations []machine.CompensationView `json:"compensation_history,omitempty"`

	Attempts []Attempt                  `json:"attempts,omitempty"`
	Attempt  *Attempt                   `json:"shown_attempt,omitempty"` // that Files, Printed and Wrote are about
	Printed  []string                   `json:"printed,omitempty"`       // the last lines
	Output   []NodeFile                 `json:"output,omitempty"`        // files with all that it printed or was answered
	Files    []NodeFile                 `json:"files,omitempty"`         // its other files: prompts, pictures
	Wrote    []GivenFile                `json:"wrote,omitempty"`
	Values   map[string]json.RawMessage `json:"values,omitempty"`
	CostUSD  dag.USD                    `json:"cost_usd,omitzero"` // over all attempts and generations
	Usage    dag.Usage                  `json:"usage,omitzero"`
	Policies []string                   `json:"policies"`
}

// A NodeRef is a node that another needs.
type NodeRef struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// A GivenFile is an input file, artifact or accumulator by content.
type GivenFile struct {
	Name   string `json:"name"`
	Digest string `json:"sha256,omitempty"` // empty: nothing has been written under that name
	Size   int64  `json:"size,omitempty"`
	Node   string `json:"node,omitempty"` // that wrote it
	Path   string `json:"path,omitempty"`
}

// A Viewer knows of nodes what the state does not.
type Viewer struct {
	Does    func(kind string, with json.RawMessage) string                    // what settings do, on one line
	Resolve func(with json.RawMessage, of dag.Scope) (json.RawMessage, error) // fills in recorded values
	Hide    func(with json.RawMessage) json.RawMessage                        // takes credentials out
}

// printedLines is how many of the last lines of its output a view of a node shows.
const printedLines = 10

// NewNodeView reads all that there is to know of a node of the run whose directory dir names. attempt picks one of the
// last generation, 0 the last one.
func NewNodeView(r *run.Run, dir, id string, attempt int, now time.Time, by Viewer) (*NodeView, error) {
	st := r.State()
	n, ok := st.NodeByID(id)
	if !ok {
		return nil, fmt.Errorf("the run has no node %q", id)
	}
	v := &NodeView{ID: id, Kind: n.Node.Kind, Title: n.Node.Title, Group: n.Node.Group, Labels: n.Node.Labels,
		Status: n.Status.String(), Generation: n.Generation, When: n.Node.When, Values: n.Values,
		CostUSD: n.Cost, Usage: n.Usage, Policies: policies(r.Graph().Plan, n.Node)}
	if n.Stale {
		v.Status += " before the plan changed above it"
	}
	for _, need := range n.Node.Needs {
		ref := NodeRef{ID: need}
		if w, ok := st.NodeByID(need); ok {
			ref.Status = w.Status.String()
		}
		v.Needs = append(v.Needs, ref)
	}
	v.given(r, &n, by)
	t := newTrace(r, dir)
	var sent []string
	_, err := readEvents(dir, eventlog.Head{}, func(e *machine.Event) {
		if machine.NodeOf(e.Body) == id {
			t.event(e)
		}
		switch b := e.Body.(type) {
		case *machine.ArtifactWrittenBody:
			if b.Node == id && !b.Entry {
				v.Wrote = append(v.Wrote, GivenFile{Name: b.Name, Digest: b.Digest, Size: b.Size,
					Path: filepath.Join(dir, b.Path), Node: attemptKey(b.Generation, b.Attempt)})
			}
		case *machine.PublishedBody:
			for _, f := range b.Files {
				if b.Node == id && !f.Left && b.Settled == "" {
					v.Wrote = append(v.Wrote, GivenFile{Name: "published", Digest: f.Digest, Size: f.Size,
						Path: f.Path, Node: attemptKey(b.Generation, b.Attempt)})
				}
			}
		default:
			if why := sentBack(b, id); why != "" {
				sent = append(sent, why)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	v.Attempts = t.attempts
	for _, c := range r.State().Compensations() {
		if c.Node == v.ID {
			v.Compensations = append(v.Compensations, c)
		}
	}
	if err := v.pick(attempt); err != nil {
		return nil, err
	}
	v.output(r, dir)
	v.why(st, &n, sent, now)
	if n.Status == machine.Running && !r.Held() {
		v.Status = "interrupted"
		v.Why = append(v.Why, "no process carries the run on: dagrun resume")
		if v.Attempt != nil && v.Attempt.Ended.IsZero() {
			v.Attempt.Status = v.Status
		}
	}
	return v, nil
}

func attemptKey(generation, attempt int) string { return itoa(generation) + "." + itoa(attempt) }

func itoa(n int) string { return strconv.Itoa(n) }

// given fills in what the node is given: settings, input files, and what it reads.
func (v *NodeView) given(r *run.Run, n *machine.NodeView, by Viewer) {
	v.With = n.Node.With
	if n.Node.Dynamic {
		if with, err := by.Resolve(n.Node.With, r.State().ScopeOf(v.ID)); err == nil {
			v.With = with
		} else {
			v.WithNote = "as written: what they read is not known yet"
		}
	}
	v.Does = by.Does(n.Node.Kind, v.With)
	v.With = by.Hide(v.With)
	files := r.Graph().Plan.Files
	for _, path := range n.Node.Files {
		i := slices.IndexFunc(files, func(f dag.File) bool { return f.Path == path })
		if i >= 0 {
			v.Inputs = append(v.Inputs, GivenFile{Name: path, Digest: files[i].Digest, Size: files[i].Size})
		}
	}
	for _, name := range n.Node.Reads {
		none := true
		for _, found := range r.FindAll(v.ID, name) {
			for _, c := range found.Versions {
				v.Reads, none = append(v.Reads, GivenFile{Name: found.Name, Digest: c.Digest, Node: c.Node}), false
			}
		}
		if none {
			v.Reads = append(v.Reads, GivenFile{Name: name})
		}
	}
}

// pick chooses the attempt that is shown.
func (v *NodeView) pick(number int) error {
	var have []string
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if number == 0 && a.Attempt > 0 || number > 0 && a.Attempt == number {
			v.Attempt = a // the last one that fits
		}
		if n := itoa(a.Attempt); a.Attempt > 0 && !slices.Contains(have, n) {
			have = append(have, n)
		}
	}
	switch {
	case number == 0 || v.Attempt != nil:
		return nil
	case len(have) == 0:
		return fmt.Errorf("%s has not been attempted", v.ID)
	}
	return fmt.Errorf("%s has no attempt %d; it has %s", v.ID, number, strings.Join(have, ", "))
}

// output finds what the shown attempt printed, left and wrote.
func (v *NodeView) output(r *run.Run, dir string) {
	a := v.Attempt
	if a == nil {
		v.Wrote = nil
		return
	}
	if a.Ended.IsZero() { // what there is of it so far
		a.Files = present(nodeFolder(r, dir, v.ID, a.Generation), a.Started)
	}
	v.Output = outputsOf(a.Files)
	for _, f := range a.Files {
		if !slices.Contains(v.Output, f) && f.Name != "result.json" {
			v.Files = append(v.Files, f)
		}
	}
	key := attemptKey(a.Generation, a.Attempt)
	v.Wrote = slices.DeleteFunc(v.Wrote, func(f GivenFile) bool { return f.Node != key })
	for i := range v.Wrote {
		v.Wrote[i].Node = ""
	}
	for _, f := range v.Output {
		for _, line := range lastLines(tail(f.Path), printedLines) {
			v.Printed = append(v.Printed, printable.Text(line))
		}
	}
	if len(v.Printed) == 0 {
		v.Printed = lastLines(a.said, printedLines)
	}
	v.Printed = v.Printed[max(0, len(v.Printed)-printedLines):]
}

// sentBack says why an event has a node run again; empty for one that has not.
func sentBack(b machine.Body, id string) string {
	switch b := b.(type) {
	case *machine.RewoundBody:
		if slices.Contains(b.Nodes, id) {
			return b.Reason
		}
	case *machine.RevertedBody:
		if slices.Contains(b.Nodes, id) {
			return "the run went back to checkpoint " + b.Checkpoint
		}
	case *machine.PlanAdoptedBody:
		switch {
		case slices.Contains(b.Invalidated, id):
			return "its definition or what it is given changed (plan " + shortDigest(b.PlanDigest) + ")"
		case slices.Contains(b.Recheck, id):
			return "something above it changed (plan " + shortDigest(b.PlanDigest) + ")"
		case slices.Contains(b.Added, id):
			return "new in plan " + shortDigest(b.PlanDigest)
		}
	}
	return ""
}

// why says why the node ran, was reused, was skipped or waits.
func (v *NodeView) why(st *machine.State, n *machine.NodeView, sent []string, now time.Time) {
	add := func(format string, args ...any) { v.Why = append(v.Why, fmt.Sprintf(format, args...)) }
	if len(sent) > 0 {
		add("%s", sent[len(sent)-1])
	}
	last := Attempt{}
	if len(v.Attempts) > 0 {
		last = v.Attempts[len(v.Attempts)-1]
	}
	switch {
	case n.Status == machine.Skipped && last.Message != "":
		add("skipped: %s", last.Message)
	case n.Status == machine.Skipped && n.Node.When != "":
		add("skipped: its condition did not hold, or all that it needs was skipped")
	case n.Status == machine.Skipped:
		add("skipped: what it needs was skipped")
	case n.Status.Ended() && last.Reused:
		add("reused: what it would be given is what it was given")
	case n.Status.Ended() || n.Status == machine.Running:
		if len(sent) == 0 && len(n.Node.Needs) > 0 {
			add("all that it needs had ended")
		}
		if n.Node.When != "" {
			add("its condition held")
		}
	case n.Status == machine.Waiting && n.Blocked.By == "needs":
		var open []string
		for _, ref := range v.Needs {
			if w, ok := st.NodeByID(ref.ID); ok && !w.Status.Ended() {
				open = append(open, ref.ID+" ("+ref.Status+")")
			}
		}
		if len(open) == 0 {
			open = []string{n.Blocked.Name}
			if w, ok := st.NodeByID(n.Blocked.Name); ok {
				open[0] += " (" + w.Status.String() + ")"
			}
		}
		add("waits for %s", Some(open))
	case n.Blocked.By == "pause":
		add("the run is paused: %s", ReasonText(st.Run().Pause.Reason, st.Run().Pause.Node, st.Run().Pause.Message))
	case n.Blocked.By != "":
		add("%s", blockText(n.Blocked, Reason(last.Category, last.Message)))
		if n.Blocked.Until.After(now) {
			add("not before %s", Instant(n.Blocked.Until))
		}
	}
	for _, q := range st.Escalations() {
		if q.Node == v.ID {
			add("asks: %s [%s] (dagrun respond %s ANSWER)", q.Message, strings.Join(q.Options, ", "), q.ID)
		}
	}
}

// Undid are the undo actions as lines for people.
func (v *NodeView) Undid() (lines []string) {
	for _, c := range v.Compensations {
		lines = append(lines, undidText(c))
	}
	return lines
}

// Settings are the settings as lines for people.
func (v *NodeView) Settings() (lines []string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(v.With, &fields) != nil {
		return nil
	}
	return settingLines(fields, "")
}

// settingLines prints members one a line, texts of several lines indented below their name.
func settingLines(fields map[string]json.RawMessage, indent string) (lines []string) {
	for _, name := range sortedNames(fields) {
		raw := fields[name]
		var below map[string]json.RawMessage
		if json.Unmarshal(raw, &below) == nil && len(below) > 0 {
			lines = append(lines, indent+name+":")
			lines = append(lines, settingLines(below, indent+"  ")...)
			continue
		}
		text := strings.TrimRight(ValueText(raw), "\n")
		if !strings.Contains(text, "\n") {
			lines = append(lines, indent+name+": "+printable.Clip(text, 400))
			continue
		}
		lines = append(lines, indent+name+": |")
		for line := range strings.Lines(text) {
			lines = append(lines, indent+"  "+strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// Results are the values that the node recorded, for people.
func (v *NodeView) Results() (lines []string) {
	for _, name := range sortedNames(v.Values) {
		lines = append(lines, name+" = "+printable.Clip(shortText(v.Values[name]), 200))
	}
	return lines
}

// String is a file on one line, for people.
func (f GivenFile) String() string {
	if f.Digest == "" {
		return f.Name + "  nothing has been written under that name"
	}
	parts := Parts{f.Name, "sha256 " + shortDigest(f.Digest)}
	parts.Add(f.Size > 0, "%s", SizeText(f.Size))
	parts.Add(f.Node != "", "by %s", f.Node)
	parts.Add(f.Path != "", "%s", f.Path)
	return strings.Join(parts, "  ")
}

// String is a file on one line, for people.
func (f NodeFile) String() string { return f.Path + "  " + SizeText(f.Size) }

// String is a node with where it stands.
func (r NodeRef) String() string { return strings.TrimSpace(r.ID + " " + r.Status) }

// SizeText is a number of bytes for people.
func SizeText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
