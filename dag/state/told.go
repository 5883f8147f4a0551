package state

import (
	"encoding/json"
	"fmt"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Told is folded from events: what the document tells of them and neither the machine's state nor the index of
// artifacts keeps. It stands in the snapshot.
type Told struct {
	Nodes   map[string]*ToldNode `json:"nodes,omitempty"`
	Errors  []Error              `json:"errors,omitempty"`         // the last of them, oldest first
	Dropped int                  `json:"errors_dropped,omitempty"` // how many came before them
}

// A ToldNode is what is kept of a node's last attempt that left something.
type ToldNode struct {
	Generation int             `json:"generation"`
	Kept       []string        `json:"kept,omitempty"`    // files in its folder
	Checked    json.RawMessage `json:"checked,omitempty"` // what was found when its result was checked
}

// An Error is a failed or lost attempt, or a return to a checkpoint.
type Error struct {
	Timestamp   time.Time `json:"timestamp"`
	Context     string    `json:"context"` // node, or the checkpoint gone back to
	Generation  int       `json:"generation,omitempty"`
	Attempt     int       `json:"attempt,omitempty"`
	Category    string    `json:"category,omitempty"`
	Class       dag.Class `json:"class,omitempty"`
	Message     string    `json:"message,omitempty"`
	Recovered   bool      `json:"recovered"`
	RecoveredAt int       `json:"recoveredAtAttempt,omitempty"`
	Diagnostics string    `json:"diagnostics,omitempty"` // at most 2,000 characters
}

// mostErrors bounds the history of errors in the document; errors.jsonl has all of them.
const mostErrors = 200

// Apply folds an event.
func (t *Told) Apply(e *machine.Event) {
	switch b := e.Body.(type) {
	case *machine.FinishedBody:
		t.finished(e, b)
	case *machine.PlanAdoptedBody:
		for _, id := range b.Removed {
			delete(t.Nodes, id)
		}
	case *machine.RevertedBody:
		t.fail(Error{Timestamp: e.Time, Context: "revert-to-" + b.Checkpoint, Recovered: true,
			Message: fmt.Sprintf("the run was sent back to checkpoint %s", b.Checkpoint)})
	}
}

func (t *Told) finished(e *machine.Event, b *machine.FinishedBody) {
	n := ToldNode{Generation: b.Generation}
	for _, k := range b.Kept {
		n.Kept = append(n.Kept, k.Name)
	}
	for i := range b.Notes {
		if b.Notes[i].Log == "quality" && b.Notes[i].Type == "validation" {
			n.Checked = b.Notes[i].Fields
		}
	}
	if n.Kept != nil || n.Checked != nil {
		if t.Nodes == nil {
			t.Nodes = map[string]*ToldNode{}
		}
		t.Nodes[b.Node] = &n
	}
	switch b.Status {
	case dag.StatusFailed, dag.StatusLost:
		t.fail(Error{Timestamp: e.Time, Context: b.Node, Generation: b.Generation, Attempt: b.Attempt,
			Category: b.Category, Class: b.Class, Message: b.Message, Diagnostics: b.Diagnostics})
	case dag.StatusCompleted:
		for i := range t.Errors {
			if o := &t.Errors[i]; o.Context == b.Node && !o.Recovered {
				o.Recovered, o.RecoveredAt = true, b.Attempt
			}
		}
	}
}

func (t *Told) fail(e Error) {
	if len(t.Errors) == mostErrors {
		t.Errors = append(t.Errors[:0], t.Errors[1:]...)
		t.Dropped++
	}
	t.Errors = append(t.Errors, e)
}

// of returns what is kept of a generation of a node.
func (t *Told) of(node string, generation int) ToldNode {
	if n := t.Nodes[node]; n != nil && n.Generation == generation {
		return *n
	}
	return ToldNode{}
}

// passed reports whether the checks of a result let it pass.
func (n ToldNode) passed() bool {
	var checked struct {
		Result string `json:"result"`
	}
	return json.Unmarshal(n.Checked, &checked) == nil && checked.Result == "pass"
}
