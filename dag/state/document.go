// Package state makes state.json: what a run has come to, in one document for people and their programs. Its members
// are those of every run, and those that the pipeline declares for itself (dag.StateDoc): facts, records by labels, and
// sums of cost.
//
// It is a projection: the same events give the same bytes, and nothing is read from it again.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Version is that of the document. It is raised when the same events give another one.
const Version = 2

// A Document is state.json. What is not known is left out. Paths are relative to the output directory; times are UTC.
type Document struct {
	Head
	facts object // that are declared
	Body
	records object // that are declared
	Tail
}

// A Head says which run it is and how it stands.
type Head struct {
	Version   int               `json:"schemaVersion"`
	RunID     string            `json:"runId"`
	Name      string            `json:"name"`                 // of the pipeline
	Plan      string            `json:"configHash"`           // sha256 of the plan in force
	Events    int64             `json:"events"`               // of the log, that are in here
	Started   time.Time         `json:"startedAt"`            // when the run was created
	Saved     time.Time         `json:"lastSavedAt"`          // time of the last event in here
	Completed time.Time         `json:"completedAt,omitzero"` // end of the run
	Active    int64             `json:"activeMs"`             // pauses do not count
	Status    machine.RunStatus `json:"status"`               // running | paused | ending | completed | failed
	RunState  string            `json:"runState"`             // declared by milestones, else STATUS
	// Phase is paused, complete or failed, else the name of the declared phase that is under way, else running.
	Phase    string            `json:"currentPhase"`
	Reason   string            `json:"phaseReason,omitempty"` // of a pause: its word; of a failure: its message
	Message  string            `json:"phaseMessage,omitempty"`
	Stable   string            `json:"stableState,omitempty"` // last stable one of the declared states
	Sections map[string]string `json:"sectionStates,omitempty"`
	Progress Progress          `json:"progress"`
	Phases   []Phase           `json:"phases,omitempty"`
}

// A Body is what the run does, has and costs.
type Body struct {
	InFlight     []Flight      `json:"inFlight,omitempty"`
	Questions    []Question    `json:"questions,omitempty"` // open ones
	ArtifactPath string        `json:"currentArtifactPath,omitempty"`
	ArtifactHash string        `json:"currentArtifactHash,omitempty"`
	Backups      []string      `json:"artifactBackups,omitempty"` // of that artifact, oldest first
	Artifacts    []Artifact    `json:"artifacts,omitempty"`       // all live ones, by path
	Accumulators []Accumulator `json:"accumulators,omitempty"`
	Checkpoints  []Checkpoint  `json:"checkpoints,omitempty"` // oldest first
	Cost         Cost          `json:"cost"`
}

// A Tail is what became of each node.
type Tail struct {
	Nodes         map[string]*Record `json:"nodes,omitempty"` // by id: those that began or ended
	Errors        []Error            `json:"errorHistory,omitempty"`
	ErrorsDropped int                `json:"errorsDropped,omitempty"` // older ones; errors.jsonl has them
}

// Progress counts nodes.
type Progress struct {
	Nodes     int `json:"nodes"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled,omitempty"`
	Undone    int `json:"undone,omitempty"`
	Open      int `json:"open"`
}

// A Phase is how far a declared phase is.
type Phase struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Ended int    `json:"ended"`
}

// A Flight is an attempt under way.
type Flight struct {
	Node    string            `json:"node"`
	Attempt int               `json:"attempt"`
	Started time.Time         `json:"startedAt"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// A Question waits for an answer.
type Question struct {
	ID       string    `json:"id"`
	Node     string    `json:"node,omitempty"`
	Message  string    `json:"message"`
	Options  []string  `json:"options"`
	Default  string    `json:"default,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// An Artifact is a live file, or a folder.
type Artifact struct {
	Path     string `json:"path"`
	Hash     string `json:"hash"`
	Size     int64  `json:"size"`
	Node     string `json:"node,omitempty"` // that wrote it
	Versions int    `json:"versions"`
}

// An Accumulator is a file that grows by entries.
type Accumulator struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Entries int    `json:"entries"` // in the file
}

// A Checkpoint is a checkpoint. What an earlier version of the program did not record is left out.
type Checkpoint struct {
	ID           string                     `json:"id"`
	Node         string                     `json:"node,omitempty"`
	Created      time.Time                  `json:"createdAt"`
	Events       int64                      `json:"events"` // of the log, that it includes
	Dir          string                     `json:"checkpointDir"`
	ArtifactHash string                     `json:"artifactHash,omitempty"`
	StateHash    string                     `json:"stateHash,omitempty"` // sha256 of the snapshot in it
	Cost         *dag.USD                   `json:"costAtCheckpoint,omitempty"`
	Quality      map[string]json.RawMessage `json:"qualitySnapshot,omitempty"` // the facts, and validationFailureCount
}

// Cost is what the run has cost and may cost.
type Cost struct {
	Totals
	shares object // by the labels that are declared
	Limits
}

// Totals are those of the whole run, nodes that have left the plan included.
type Totals struct {
	Input      int64   `json:"totalInputTokens"`
	Output     int64   `json:"totalOutputTokens"`
	CacheRead  int64   `json:"totalCacheReadTokens"`
	CacheWrite int64   `json:"totalCacheWriteTokens"`
	Total      dag.USD `json:"totalEstimatedCostUsd"`
	Assumed    dag.USD `json:"assumedCostUsd,omitzero"`  // part of the total that nobody has confirmed
	Reserved   dag.USD `json:"reservedCostUsd,omitzero"` // by attempts under way
	Removed    dag.USD `json:"removedCostUsd,omitzero"`  // part of the total, of nodes that have left the plan
}

// Limits are those of the budget.
type Limits struct {
	Warning dag.USD `json:"budgetWarningThresholdUsd,omitzero"`
	Cap     dag.USD `json:"budgetHardCapUsd,omitzero"`
	Warned  bool    `json:"warningThresholdHit"`
	Capped  bool    `json:"hardCapHit"` // the run is paused because the next start could pass a cap
}

// A Share is what the nodes of one value of a label have cost.
type Share struct {
	Input  int64   `json:"inputTokens"`
	Output int64   `json:"outputTokens"`
	Cost   dag.USD `json:"costUsd"`
	Nodes  int     `json:"nodeCount"` // that cost anything
}

// An object has its members in order. Where a name comes twice the first one counts.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(m.name)
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

// MarshalJSON implements json.Marshaler.
func (c Cost) MarshalJSON() ([]byte, error) { return join(c.Totals, c.shares, c.Limits) }

// join returns one object with the members of several.
func join(parts ...any) ([]byte, error) {
	b := []byte{'{'}
	for _, p := range parts {
		raw, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		if raw = raw[1 : len(raw)-1]; len(raw) > 0 && len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return append(b, '}'), nil
}

// Encode returns the document as it is on disk: a line for each member and for each element of a member.
func (d *Document) Encode() ([]byte, error) {
	if h := &d.Head; h.Version == 0 || h.RunID == "" || h.Plan == "" || h.Events == 0 || h.Started.IsZero() {
		return nil, errors.New("state.json: it does not say of which run, plan and event it is")
	}
	tail := d.Tail
	tail.Nodes = nil
	before, err := join(d.Head, d.facts, d.Body, d.records)
	if err != nil {
		return nil, err
	}
	after, err := join(tail)
	if err != nil {
		return nil, err
	}
	nodes, size := encodeNodes(d.Nodes)
	b := append(make([]byte, 0, len(before)+len(after)+size), bytes.TrimSuffix(lines(before), closing)...)
	if len(d.Nodes) > 0 {
		b = append(newLine(append(b, ','), 1), `"nodes": {`...)
		for i, part := range nodes {
			if part.err != nil {
				return nil, part.err
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, part.text...)
		}
		b = append(newLine(b, 1), '}')
	}
	if rest := bytes.TrimPrefix(lines(after), []byte("{")); len(rest) > len(closing) {
		return append(append(append(b, ','), rest...), '\n'), nil
	}
	return append(append(b, closing...), '\n'), nil
}

// A part is the text of some nodes, in order.
type part struct {
	text []byte
	err  error
}

// encodeNodes returns the text of the nodes, of which there may be a hundred thousand, and how long it is: the last
// thing that a large run waits for, so each processor makes a part of it.
func encodeNodes(nodes map[string]*Record) (parts []part, size int) {
	const fewest, long = 1000, 200 // nodes of a part, bytes of a node
	ids := slices.Sorted(maps.Keys(nodes))
	parts = make([]part, min(runtime.GOMAXPROCS(0), (len(ids)+fewest-1)/fewest))
	var made sync.WaitGroup
	for k := range parts {
		p, from, to := &parts[k], len(ids)*k/len(parts), len(ids)*(k+1)/len(parts)
		made.Go(func() {
			p.text = make([]byte, 0, (to-from)*long)
			for i := from; i < to && p.err == nil; i++ {
				p.add(ids[i], nodes[ids[i]])
			}
		})
	}
	made.Wait()
	for _, p := range parts {
		size += len(p.text) + 1
	}
	return parts, size
}

func (p *part) add(id string, r *Record) {
	if len(p.text) > 0 {
		p.text = append(p.text, ',')
	}
	key, _ := json.Marshal(id) // a string
	record, err := json.Marshal(r)
	if err != nil {
		p.err = fmt.Errorf("%s: %w", id, err)
		return
	}
	p.text = append(append(append(newLine(p.text, 2), key...), ": "...), record...)
}

var closing = []byte("\n}")

// lines breaks the lines of compact JSON down to its second level.
func lines(raw []byte) []byte {
	const deepest = 2
	out := make([]byte, 0, len(raw)+len(raw)/16)
	depth, quoted := 0, false
	for i, c := range raw {
		switch {
		case quoted:
			quoted = c != '"' || escaped(raw[:i])
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth <= deepest && raw[i+1] != c+2 { // the bracket that closes it
				out = newLine(append(out, c), depth)
				continue
			}
		case c == '}' || c == ']':
			if depth--; depth < deepest && raw[i-1] != c-2 {
				out = newLine(out, depth)
			}
		case c == ',' && depth <= deepest:
			out = newLine(append(out, c), depth)
			continue
		case c == ':' && depth <= deepest:
			out = append(out, c, ' ')
			continue
		}
		out = append(out, c)
	}
	return out
}

func newLine(b []byte, depth int) []byte { return append(append(b, '\n'), "    "[:2*depth]...) }

// escaped reports whether what follows is escaped by a backslash.
func escaped(before []byte) bool {
	return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1
}

// DocumentFields, CostFields and RecordFields are the names that a pipeline cannot declare in the document, in its
// costs and in a record: they are taken.
func DocumentFields() map[string]bool { return fieldsOf(Head{}, Body{}, Tail{}) }
func CostFields() map[string]bool     { return fieldsOf(Totals{}, Limits{}) }
func RecordFields() map[string]bool   { return fieldsOf(Record{}, leavings{}) }

func fieldsOf(parts ...any) map[string]bool {
	names := map[string]bool{}
	for _, p := range parts {
		for f := range reflect.TypeOf(p).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names[name] = true
		}
	}
	return names
}
