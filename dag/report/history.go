package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A History is what the events of a run say that its state does not keep.
type History struct {
	Quality   []QualityEntry
	Errors    []ErrorEntry
	CostKinds []CostKind
	Attempts  map[string]int           // by node, over all generations
	Took      map[string]time.Duration // by node: its attempts that have ended

	Waits    int           // times that something waited for a declared instant
	Waited   time.Duration // between the failures and the next tries, pauses and all that is to come left out
	Retries  int
	Breakers []*machine.BreakerChangedBody // changes of state; failures that only count are left out
	// Checkpoints are how far and how good the run was at each checkpoint, by its id.
	Checkpoints map[string]CheckpointQuality

	open    map[string][]int     // errors of nodes that have not completed since
	started map[string]time.Time // attempts under way
	waiting map[string]time.Time // nodes that wait, since when
	last    time.Time            // time of the last event
	entries map[string]int       // appended so far, by accumulator
	making  map[string]string    // checkpoints by the nodes that make them: what ends with the node counts
	bad     int                  // validations that failed
}

// A CheckpointQuality is how far and how good a run was at a checkpoint.
type CheckpointQuality struct {
	Progress string         `json:"progress"` // in what the plan counts
	Failed   int            `json:"failed"`   // nodes
	CostUSD  dag.USD        `json:"cost_usd"`
	Shown    []Series       `json:"values,omitempty"`          // the last of each value that people follow
	Invalid  int            `json:"validation_failures"`       // so far
	Entries  map[string]int `json:"entries_written,omitempty"` // so far, by accumulator
}

// Text is the values that people follow, and failed validations, on one line.
func (q CheckpointQuality) Text() string {
	parts := trends(q.Shown)
	if q.Invalid > 0 {
		parts = append(parts, Count(q.Invalid, "validation")+" failed")
	}
	return strings.Join(parts, "; ")
}

func (h *History) checkpoint(id string, st *machine.State) {
	q := CheckpointQuality{
		Progress: Progress(st), Failed: st.Count(machine.Failed), CostUSD: st.Spent().USD, Invalid: h.bad,
		Entries: maps.Clone(h.entries),
	}
	for _, s := range seriesOf(st) {
		if last := len(s.Values) - 1; s.Of == "" {
			s.Nodes, s.Values, s.short = s.Nodes[last:], s.Values[last:], s.short[last:]
			q.Shown = append(q.Shown, s)
		}
	}
	h.Checkpoints[id] = q
}

// A QualityEntry is what a kind said of the quality of its work.
type QualityEntry struct {
	Seq    int64             `json:"seq"`
	Time   time.Time         `json:"ts"`
	Node   string            `json:"node"`
	Labels map[string]string `json:"labels,omitempty"`
	Type   string            `json:"type"`
	Fields json.RawMessage   `json:"fields,omitempty"`
}

// An ErrorEntry is a failed or lost attempt.
type ErrorEntry struct {
	Seq         int64      `json:"seq"`
	Time        time.Time  `json:"ts"`
	Node        string     `json:"node"`
	Generation  int        `json:"generation"`
	Attempt     int        `json:"attempt,omitempty"`
	Status      dag.Status `json:"status"`
	Category    string     `json:"category,omitempty"`
	Class       dag.Class  `json:"class,omitempty"`
	Message     string     `json:"message,omitempty"`
	Diagnostics string     `json:"diagnostics,omitempty"` // at most 2,000 characters
	Final       bool       `json:"final,omitempty"`
	Recovered   bool       `json:"recovered"`      // a later attempt completed
	Open        bool       `json:"open,omitempty"` // neither that, nor has the node failed for good
	At          int        `json:"recovered_at_attempt,omitempty"`
}

// A CostKind sums up costs by who vouches for them.
type CostKind struct {
	Kind     dag.CostKind `json:"kind"` // reported | priced | assumed
	Attempts int          `json:"attempts"`
	CostUSD  dag.USD      `json:"cost_usd"`
}

// ReadHistory reads the events of a run. It works beside a writer.
func ReadHistory(o run.Options) (*History, error) {
	h := newHistory()
	err := run.Walk(o, 0, h.event)
	h.pause(h.last)
	return h, err
}

func newHistory() *History {
	return &History{
		Attempts: map[string]int{}, Took: map[string]time.Duration{}, open: map[string][]int{},
		started: map[string]time.Time{}, waiting: map[string]time.Time{},
		Checkpoints: map[string]CheckpointQuality{}, entries: map[string]int{}, making: map[string]string{},
	}
}

func (h *History) event(e *machine.Event, st *machine.State) error {
	before := h.last
	h.last = e.Time
	switch b := e.Body.(type) {
	case *machine.RunPausedBody:
		h.pause(e.Time)
	case *machine.RunInterruptedBody:
		h.pause(before)
	case *machine.RunSuspendedBody:
		for _, since := range []map[string]time.Time{h.started, h.waiting} {
			for node := range since {
				since[node] = since[node].Add(time.Duration(b.IdleMS) * time.Millisecond)
			}
		}
	case *machine.RunResumedBody:
		for node := range h.waiting { // the pause was no wait
			h.waiting[node] = e.Time
		}
	case *machine.StartedBody:
		if b.Queued {
			break // it counts from when the work begins
		}
		h.waited(b.Node, e.Time)
		delete(h.waiting, b.Node)
		h.Attempts[b.Node]++
		h.started[b.Node] = e.Time
		if b.Attempt > 1 {
			h.Retries++
		}
	case *machine.FinishedBody:
		h.finished(e, b, st)
		if id, ok := h.making[b.Node]; ok {
			h.checkpoint(id, st)
			delete(h.making, b.Node)
		}
	case *machine.GateRunBody:
		if !b.Start {
			fields, err := json.Marshal(map[string]any{"gate": b.Gate, "result": b.Status})
			if err != nil {
				return err
			}
			h.quality(e, b.Node, "gate", fields, st)
		}
	case *machine.ArtifactWrittenBody:
		if b.Entry {
			h.entries[b.Name]++
		}
	case *machine.CheckpointBody:
		h.checkpoint(b.ID, st)
		h.making[b.Node] = b.ID
	case *machine.BreakerChangedBody:
		if !onlyCounts(b) {
			h.Breakers = append(h.Breakers, b)
		}
	}
	return nil
}

// pause counts what all nodes that wait have waited until an instant.
func (h *History) pause(now time.Time) {
	for node := range h.waiting { // a sum
		h.waited(node, now)
		h.waiting[node] = now
	}
}

func (h *History) waited(node string, until time.Time) {
	if since, ok := h.waiting[node]; ok && until.After(since) {
		h.Waited += until.Sub(since)
	}
}

func (h *History) finished(e *machine.Event, b *machine.FinishedBody, st *machine.State) {
	for _, n := range b.Notes {
		if n.Log == "quality" {
			h.quality(e, b.Node, n.Type, n.Fields, st)
		}
	}
	if v := Validation(b); v != "" && v != "pass" {
		h.bad++
	}
	if b.CostUSD != 0 || b.CostKind != "" {
		kind := cmp.Or(b.CostKind, "reported")
		c := entryOf(&h.CostKinds, func(c *CostKind) bool { return c.Kind == kind }, CostKind{Kind: kind})
		c.Attempts++
		c.CostUSD += b.CostUSD
	}
	if !b.WaitUntil.IsZero() && b.Status == dag.StatusFailed { // others of its account wait with it
		h.Waits++
	}
	if began, ok := h.started[b.Node]; ok && b.Status != dag.StatusLost { // nobody knows when a lost one ended
		h.Took[b.Node] += e.Time.Sub(began)
	}
	delete(h.started, b.Node)
	delete(h.waiting, b.Node)
	if b.Status == dag.StatusFailed && !(b.WaitUntil.IsZero() && b.RetryAt.IsZero()) {
		h.waiting[b.Node] = e.Time
	}
	switch b.Status {
	case dag.StatusFailed, dag.StatusLost:
		h.open[b.Node] = append(h.open[b.Node], len(h.Errors))
		h.Errors = append(h.Errors, ErrorEntry{Seq: e.Seq, Time: e.Time, Node: b.Node, Generation: b.Generation,
			Attempt: b.Attempt, Status: b.Status, Category: b.Category, Class: b.Class, Message: b.Message,
			Diagnostics: b.Diagnostics, Final: b.Final, Open: true})
	case dag.StatusCompleted:
		for _, i := range h.open[b.Node] {
			h.Errors[i].Recovered, h.Errors[i].At = true, b.Attempt
		}
	}
	if b.Status == dag.StatusCompleted || b.Final {
		for _, i := range h.open[b.Node] {
			h.Errors[i].Open = false
		}
	}
	if b.Status == dag.StatusCompleted {
		delete(h.open, b.Node)
	}
}

func (h *History) quality(e *machine.Event, node, typ string, fields json.RawMessage, st *machine.State) {
	q := QualityEntry{Seq: e.Seq, Time: e.Time, Node: node, Type: typ, Fields: fields}
	if v, ok := st.NodeByID(node); ok {
		q.Labels = v.Node.Labels
	}
	h.Quality = append(h.Quality, q)
}
