// Package attempt carries out one attempt of a node: a Job goes in, a Report comes out.
//
// It holds no run, no state and no loop. Whatever the attempt needs of the place that it is carried out in stands
// behind World, and whatever it needs to know stands in the Job, so that both may come from another process or
// machine. It decides nothing: what follows from a Report is the machine's to say, and its host records it.
//
// Where to read: worker.go has Do, task.go what a kind may see of a job (a trial), result.go what is taken of its
// result.
package attempt

import (
	"encoding/json"
	"fmt"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Format is the version of Job and Report as JSON. A worker that reads a newer one refuses it.
const Format = 1

// A Purpose is what an attempt is made for.
type Purpose string

const (
	Run    Purpose = ""       // the node's own work
	Undo   Purpose = "undo"   // the undo action of a node
	Probe  Purpose = "probe"  // whether a lost attempt took effect
	Rescue Purpose = "rescue" // how an attempt ended whose process died
)

// A Job is everything that an attempt is told. It is data, not to be changed by who carries it out.
type Job struct {
	Format     int             `json:"format"`
	Purpose    Purpose         `json:"purpose,omitempty"`
	Node       *dag.Node       `json:"node"`
	Kind       string          `json:"kind"` // of the node or of its undo action
	With       json.RawMessage `json:"with"` // settings, every ${...} resolved
	Generation int             `json:"generation"`
	Attempt    int             `json:"attempt"`

	Failures    int            `json:"failures,omitempty"`     // since the node was last given a fresh start
	AllFailures int            `json:"all_failures,omitempty"` // of the generation
	FailedWith  map[string]int `json:"failed_with,omitempty"`  // of Failures, by category
	Feedback    string         `json:"feedback,omitempty"`     // the last failure, where its category is told
	Reserve     dag.Amount     `json:"reserve,omitzero"`
	Seed        int64          `json:"seed,omitempty"`
	SpecDir     string         `json:"spec_dir,omitempty"` // absolute folder of the specification

	Files  []dag.File  `json:"files,omitempty"`  // input files that it may open, by digest
	Reads  []Reading   `json:"reads,omitempty"`  // what the node reads, as it was when the attempt began
	Prices []dag.Price `json:"prices,omitempty"` // of models
	Params []dag.Param `json:"params,omitempty"` // that expressions in the settings read
	// Fingerprint says what the attempt is given; empty when that is not known.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Calling says of a Rescue that the call of a model is recorded as begun and not as ended.
	Calling bool `json:"calling,omitempty"`
}

// A Reading is what stands under a name that an attempt reads.
type Reading struct {
	Name string `json:"name"`
	// Title, of an accumulator, is the heading of its text; empty for artifacts.
	Title string `json:"title,omitempty"`
	// Versions holds the one version of an artifact, none when no ancestor has written it; of an
	// accumulator the entries that the node sees, in plan order, capped.
	Versions []Content `json:"versions,omitempty"`
}

// A Content is a stored object and the node that wrote it.
type Content struct {
	Digest string `json:"sha256"`
	Node   string `json:"node,omitempty"`
}

// A Report is how an attempt ended. Everything in it is masked and may be recorded as it is.
type Report struct {
	Format  int             `json:"format"`
	Outcome machine.Outcome `json:"outcome"`
	// Artifacts and Entries are in the store, and not yet part of the run. Entries of an attempt that failed
	// count when no other follows.
	Artifacts []Object `json:"artifacts,omitempty"`
	Entries   []Object `json:"entries,omitempty"`
	// Salvaged is what counts of a failed attempt, where its category is among those of the node's salvage and no other
	// attempt follows; nil: nothing was looked for.
	Salvaged *Salvaged `json:"salvaged,omitempty"`
	// Kept are the files that were made in the node's folder, in the order of their making.
	Kept []machine.KeptFile `json:"kept,omitempty"`
	// Began is when the work began. A host that hands an attempt over to a queue records it where it is later.
	Began time.Time `json:"began,omitzero"`
	// Begun says that the attempt may have cost money, or had an effect.
	Begun bool `json:"begun,omitempty"`
	// Unclean says that something may still write into the attempt's folders.
	Unclean bool `json:"unclean,omitempty"`
}

// Salvaged is what is whole of what a failed attempt has left.
type Salvaged struct {
	Artifacts []Object                   `json:"artifacts,omitempty"` // in the store
	Values    map[string]json.RawMessage `json:"values,omitempty"`
	Left      []string                   `json:"left,omitempty"` // what is not there or not whole, and why
}

// An Object is a stored content and the name of the artifact or accumulator that it is for.
type Object struct {
	Name   string `json:"name"`
	Digest string `json:"sha256"`
	Size   int64  `json:"size"`
	Schema string `json:"schema,omitempty"` // name of the declared schema that an artifact was held to
}

// DecodeJob reads a Job as JSON; a newer one is an error.
func DecodeJob(raw []byte) (*Job, error) {
	j := new(Job)
	if err := json.Unmarshal(raw, j); err != nil {
		return nil, fmt.Errorf("attempt: job: %w", err)
	}
	if j.Format != Format || j.Node == nil {
		return nil, fmt.Errorf("attempt: the job has format %d, this program reads %d", j.Format, Format)
	}
	return j, nil
}

// DecodeReport reads a Report as JSON; a newer one is an error.
func DecodeReport(raw []byte) (*Report, error) {
	r := new(Report)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("attempt: report: %w", err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("attempt: the report has format %d, this program reads %d", r.Format, Format)
	}
	return r, nil
}

// CallID names the attempt's call of a model: one attempt is one call.
func (j *Job) CallID() string { return fmt.Sprintf("%s.%d.%d", j.Node.ID, j.Generation, j.Attempt) }

// defaultGrace is the time between the polite and the hard signal where the specification names none.
const defaultGrace = 5 * time.Second

func (j *Job) grace() time.Duration {
	if g := j.Node.Timeout.Grace.D(); g > 0 {
		return g
	}
	return defaultGrace
}

// timeout is the time limit of this attempt: from the third on it grows, because what was cut twice needs longer.
// 0 = none. It counts from when the work begins, not from when the attempt was handed over.
func (j *Job) timeout() time.Duration {
	d := j.Node.Timeout.Attempt.D()
	if g := j.Node.Timeout.Growth; g > 1 && j.Failures >= 2 {
		return time.Duration(float64(d) * g)
	}
	return d
}
