package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/examples"
	"dagrun.dev/internal/crashmatrix"
	"dagrun.dev/internal/manual"
	"dagrun.dev/nodes/agent"
	"dagrun.dev/nodes/agent/capability"
)

// Whatever a command prints with --json is one object whose first member, kind, names what it is.

// envelopes are the kinds of objects: the value that becomes one, and what it holds, as help prints it. A value that
// names its kind itself, by a first member of that name, needs no row.
var envelopes = []struct {
	kind  string
	of    any
	holds string
}{
	{"plan", &report.Plan{}, "plan: what would happen to each node, and the totals; also what -o saves"},
	{"graph", &dag.Plan{}, "graph: the compiled plan itself"},
	{"vetted", &vetted{}, "vet: warnings of a specification without mistakes"},
	{"end", &report.End{}, "apply, watch, resume, cancel: how the run stands when the command, or a tick, ends"},
	{"handover", handover{}, "apply: what the running process does with the plan it was handed"},
	{"result", result{}, "cancel, respond: what was done"},
	{"status", &report.Status{}, "status: how the run stands"},
	{"node", &report.NodeView{}, "show: what is known of one node"},
	{"output", nodeOutput{}, "logs: one line that a node printed"},
	{"runs", runList{}, "runs: the runs that this machine knows of"},
	{"pruned", pruned{}, "runs prune: what of old runs is removed, and what stays"},
	{"questions", questions{}, "escalations: the open questions"},
	{"cost", &report.Costs{}, "report cost"},
	{"quality", &report.Quality{}, "report quality"},
	{"budget", &report.Budget{}, "report budget"},
	{"errors", failures{}, "report errors: every failed attempt"},
	{"event", event{}, "log: one event, as it is on disk behind the kind"},
	{"checkpoints", checkpoints{}, "checkpoints: the list, oldest first"},
	{"revert", reverted{}, "revert: what is restored and what runs again"},
	{"checks", checks{}, "verify: each check and whether it passed"},
	{"replay", replayed{}, "replay: what the events say, and whether the snapshot says so too"},
	{"selftest", &crashmatrix.Report{}, "selftest: each killed run"},
	{"providers", providersInfo{}, "providers: what is installed, and what each can do"},
	{"explained", manual.Entry{}, "explain: what there is to say of a name"},
	{"templates", templateList{}, "init --list: pipelines to begin with"},
	{"written", written{}, "init: the files that were written"},
	{"version", versionInfo{}, "version"},
	{"error", failure{}, "any: what ended the command"},
}

// The lists of commands are members of an object, so that there is room for more beside them.
type (
	vetted struct {
		Mistakes []mistake `json:"mistakes"` // none: with some the command answers with the error
		Warnings []mistake `json:"warnings"`
		Name     string    `json:"-"` // of the pipeline
		Nodes    int       `json:"-"`
	}
	questions struct {
		Questions []machine.EscalationOpenedBody `json:"questions"`
	}
	failures struct {
		Errors []report.ErrorEntry `json:"errors"`
	}
	checkpoints struct {
		Checkpoints []checkpoint `json:"checkpoints"`
	}
	checks struct {
		Checks []run.Check `json:"checks"`
		Wrong  int         `json:"wrong"` // of them
	}
	replayed struct {
		RunID   string            `json:"run_id"`
		Events  int64             `json:"events"`
		Status  machine.RunStatus `json:"status"`
		Equal   bool              `json:"snapshot_equal"`
		Renewed bool              `json:"snapshot_renewed"`
		Logs    bool              `json:"logs_renewed"`
	}
	templateList struct {
		Templates []examples.Template `json:"templates"`
	}
	written struct {
		Written []string `json:"written"`
		First   []string `json:"-"` // those of the first pipeline
		Library int      `json:"-"` // how many of the built-in library
		Dir     string   `json:"-"`
	}
	result struct {
		Result string `json:"result"`
	}
	event      struct{} // report.WriteLog prints them
	nodeOutput struct{} // report.PrintedLine names itself
	runList    struct {
		Runs []runLine `json:"runs"`
	}
	failure struct {
		Error    string    `json:"error"`
		Exit     int       `json:"exit_status"`
		Mistakes []mistake `json:"mistakes,omitempty"`
	}
)

// Pending reports whether the next start renews something.
func (c checks) Pending() bool {
	return slices.ContainsFunc(c.Checks, func(k run.Check) bool { return k.Pending })
}

// A mistake is a diagnostic as JSON has it.
type mistake struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

// A checkpoint is a line of the list: its manifest and what became of it.
type checkpoint struct {
	run.CheckpointInfo
	Quality report.CheckpointQuality `json:"quality"`
	Path    string                   `json:"path"` // relative to the output directory
	Valid   bool                     `json:"valid"`
	Problem string                   `json:"problem,omitempty"`
}

// A reverted is what reverting does, or with Only would do.
type reverted struct {
	*run.Preview
	Only bool `json:"-"`
}

// A handover says what became of a plan that was handed to the process which carries the run on.
type handover struct {
	Dir        string `json:"dir"`
	PID        int    `json:"process"`
	PlanDigest string `json:"plan_digest"`
	executor.Taken
}

// A providersInfo is what providers prints.
type providersInfo struct {
	Installed    []agent.Installation `json:"installed"`
	Capabilities []capability.Row     `json:"capabilities"`
	Tools        map[string][]string  `json:"tools"`
}

// A versionInfo is what version prints.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Plan    int    `json:"plan_format"`
	Events  int    `json:"event_format"`
}

// A runLine is a run in a list of them.
type runLine struct {
	Dir     string            `json:"dir"`
	Name    string            `json:"name"`
	RunID   string            `json:"run_id,omitempty"`
	Status  machine.RunStatus `json:"status,omitempty"`
	Stopped bool              `json:"stopped,omitempty"` // running by its events, and no process carries it on
	Created time.Time         `json:"created,omitzero"`
	Updated time.Time         `json:"updated,omitzero"`
	CostUSD dag.USD           `json:"cost_usd"`
	Ended   int               `json:"ended"` // of its nodes
	Nodes   int               `json:"nodes"`
	Problem string            `json:"problem,omitempty"` // why it cannot be read
}

// pruned is what prune found, and has removed or not.
type pruned struct {
	Before  time.Time   `json:"before"`
	Removed bool        `json:"removed"` // rather than only found
	Count   int         `json:"count"`
	Bytes   int64       `json:"bytes"`
	Found   []prunedRun `json:"found"`
}

// A prunedRun is something in an output directory.
type prunedRun struct {
	Dir string `json:"dir"`
	run.Old
}

// printJSON prints v as an indented object that begins with its kind.
func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// writeJSON prints v as an object that begins with its kind: on one line, or indented.
func writeJSON(w io.Writer, v any, indent string) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if kind := kindOf(v); kind != "" {
		members := bytes.TrimPrefix(data, []byte("{"))
		if data = []byte(`{"kind":"` + kind + `"`); len(members) > 1 {
			data = append(data, ',')
		}
		data = append(data, members...)
	} else if !bytes.HasPrefix(data, []byte(`{"kind":"`)) {
		return fmt.Errorf("a value of type %T has no kind", v)
	}
	var out bytes.Buffer
	if indent != "" {
		if err := json.Indent(&out, data, "", indent); err != nil {
			return err
		}
		data = out.Bytes()
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// kindOf names what a value is; empty for one that does so itself.
func kindOf(v any) string {
	for _, e := range envelopes {
		if bare(e.of) == bare(v) {
			return e.kind
		}
	}
	return ""
}

// bare is the type of a value, or of what it points to.
func bare(v any) reflect.Type { return reflect.Indirect(reflect.ValueOf(v)).Type() }

var jsonHelp = func() string {
	var b strings.Builder
	b.WriteString(`With --json stdout holds one JSON object (log, logs and status --watch: one on each line) whose member
kind says what it is; progress and warnings go to stderr. Names are snake_case and only ever added to; inside of
plans and budgets stand the names of the specification.`)
	for _, e := range envelopes {
		fmt.Fprintf(&b, "\n  %-12s %s", e.kind, e.holds)
	}
	return b.String()
}()
