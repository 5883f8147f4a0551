package report

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
)

// An Attempt is one attempt of a node as its events tell it.
type Attempt struct {
	Node       string       `json:"node"`
	Generation int          `json:"generation"`
	Attempt    int          `json:"attempt"` // 0: the node was settled without one
	Status     string       `json:"status"`  // running | completed | failed | lost | rejected | skipped | cancelled
	Started    time.Time    `json:"started,omitzero"`
	Ended      time.Time    `json:"ended,omitzero"`
	Category   string       `json:"category,omitempty"` // of a failure
	Class      dag.Class    `json:"class,omitempty"`
	Message    string       `json:"message,omitempty"`
	Final      bool         `json:"final,omitempty"`  // no further attempt follows
	Reused     bool         `json:"reused,omitempty"` // an earlier end: what it reads did not change
	RetryAt    time.Time    `json:"retry_at,omitzero"`
	CostUSD    dag.USD      `json:"cost_usd,omitzero"`
	CostKind   dag.CostKind `json:"cost_kind,omitempty"`
	Usage      dag.Usage    `json:"usage,omitzero"`
	Model      string       `json:"model,omitempty"`
	Warnings   []string     `json:"warnings,omitempty"`
	Salvaged   []string     `json:"salvaged,omitempty"` // files and values that count though the node has failed
	Files      []NodeFile   `json:"files,omitempty"`    // what it left in its node's folder
	said       string       // the last that it printed, where it failed
}

// A NodeFile is a file in a node's folder.
type NodeFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"` // as seen from where the command runs
	Size   int64  `json:"size"`
	Digest string `json:"sha256,omitempty"`
}

// String is an attempt on one line, for people.
func (a Attempt) String() string {
	var parts Parts
	parts.Add(a.Generation > 1, "generation %d", a.Generation)
	parts.Add(a.Attempt > 0, "attempt %d", a.Attempt)
	parts.Add(true, "%s", a.Status)
	took, why := max(a.Ended.Sub(a.Started).Seconds(), 0.001), Reason(a.Category, a.Message)
	parts.Add(!a.Started.IsZero() && !a.Ended.IsZero(), "%s", Duration(took))
	parts.Add(a.CostUSD > 0, "$%s", a.CostUSD)
	parts.Add(a.Reused, "the result of before holds")
	parts.Add(why != "", "%s", why)
	line := strings.Join(parts, "  ")
	if a.Status == string(dag.StatusFailed) && a.Category != "" && a.Class != "" {
		line += " (" + string(a.Class) + ")"
	}
	return line
}

// A trace collects the attempts of nodes from events.
type trace struct {
	folder   func(node string, generation int) string // as seen from where the command runs
	attempts []Attempt
	open     map[string]int // attempts under way, by node
}

func newTrace(r *run.Run, dir string) *trace {
	return &trace{open: map[string]int{},
		folder: func(node string, generation int) string { return nodeFolder(r, dir, node, generation) }}
}

// event adds what an event says and returns the attempt that it ends, or nil.
func (t *trace) event(e *machine.Event) *Attempt {
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		if b.Queued {
			break
		}
		t.open[b.Node] = len(t.attempts)
		t.attempts = append(t.attempts, Attempt{Node: b.Node, Generation: b.Generation, Attempt: b.Attempt,
			Status: "running", Started: e.Time})
	case *machine.LLMCallStartedBody:
		if i, ok := t.open[b.Node]; ok {
			t.attempts[i].Model = b.Model
		}
	case *machine.FinishedBody:
		i, ok := t.open[b.Node]
		if !ok || b.Attempt == 0 {
			i = len(t.attempts)
			t.attempts = append(t.attempts, Attempt{Node: b.Node, Generation: b.Generation, Attempt: b.Attempt})
		}
		delete(t.open, b.Node)
		a := &t.attempts[i]
		a.Status, a.Ended, a.Category, a.Class, a.Message = string(b.Status), e.Time, b.Category, b.Class, b.Message
		a.Final, a.Reused, a.RetryAt, a.CostUSD, a.CostKind = b.Final, b.Reused, b.RetryAt, b.CostUSD, b.CostKind
		a.Usage, a.Warnings, a.Salvaged, a.said = b.Usage, b.Warnings, b.Salvaged, b.Diagnostics
		if !b.WaitUntil.IsZero() {
			a.RetryAt = b.WaitUntil
		}
		for _, k := range b.Kept {
			path := filepath.Join(t.folder(b.Node, b.Generation), k.Name)
			a.Files = append(a.Files, NodeFile{k.Name, path, k.Size, k.Digest})
		}
		return a
	}
	return nil
}

// readEvents calls visit with the events behind from and returns where they end.
func readEvents(dir string, from eventlog.Head, visit func(*machine.Event)) (eventlog.Head, error) {
	tree, err := disk.Open(filepath.Join(dir, run.Dir))
	if err != nil {
		return from, err
	}
	defer tree.Close()
	head, _, err := eventlog.Read(tree, "events.ndjson", from, func(e *machine.Event, _ *eventlog.Envelope) error {
		visit(e)
		return nil
	})
	return head, err
}

// present lists the files of an attempt under way: those of a folder that have changed since it began.
func present(folder string, since time.Time) (list []NodeFile) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && !fi.ModTime().Before(since) {
			list = append(list, NodeFile{Name: e.Name(), Path: filepath.Join(folder, e.Name()), Size: fi.Size()})
		}
	}
	return list
}

// outputsOf are the files with what an attempt printed: what a person reads of them.
func outputsOf(files []NodeFile) (list []NodeFile) {
	text := false
	for _, f := range files {
		text = text || strings.HasPrefix(f.Name, "raw-output")
	}
	for k := len(outputs) - 1; k >= 0; k-- { // results before errors, as they are mostly printed
		for _, f := range files {
			if stream(f.Name) == k && !(text && outputs[k] == "transcript") {
				list = append(list, f)
			}
		}
	}
	return list
}

// outputs are the names under which kinds keep what a program printed or a service answered, those first in which
// errors stand.
var outputs = []string{"stderr", "stdout", "raw-output", "transcript", "response"}

// stream is which of them a kept file is, also of an attempt that failed (stderr-FAILED-2.txt); -1 = none.
func stream(name string) int {
	stem, _, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "-FAILED-")
	return slices.Index(outputs, stem)
}

// LastWords are the last lines of what a failed attempt printed, and the path of the file with all of it, as seen from
// where dir names the run; none and empty where it printed nothing.
func LastWords(r *run.Run, dir string, b *machine.FinishedBody, most int) (lines []string, path string) {
	return lastLines(b.Diagnostics, most), outputOf(r, dir, b)
}

// outputOf is the path of the file in which an attempt's output stands, errors before results, as seen from where dir
// names the run; empty when it kept none.
func outputOf(r *run.Run, dir string, b *machine.FinishedBody) string {
	best := ""
	for _, k := range b.Kept {
		if stream(k.Name) >= 0 && (best == "" || stream(k.Name) < stream(best)) {
			best = k.Name
		}
	}
	if best == "" {
		return ""
	}
	return filepath.Join(nodeFolder(r, dir, b.Node, b.Generation), best)
}

// nodeFolder is the folder of a node's files as seen from where dir names the run.
func nodeFolder(r *run.Run, dir, node string, generation int) string {
	full := r.NodeDir(node, generation)
	if base, err := filepath.Abs(dir); err == nil {
		if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(dir, rel)
		}
	}
	return full
}

// lastLines are the last lines of a text that say something.
func lastLines(text string, most int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}

// tail is the end of a file; empty where it cannot be read.
func tail(path string) string {
	f, err := regular.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 16 << 10
	if fi, err := f.Stat(); err == nil && fi.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(data)
}
