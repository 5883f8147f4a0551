// Package accept carries one answer through an ordered list of steps: each takes something out of
// it, checks it or keeps it.
//
// It does not know the steps; kinds of node such as extract and validate are steps and may also
// stand alone as nodes (see NewKind). It publishes nothing: what was taken is staged under
// Task.Out and handed back in a Result.
package accept

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/nodes"
)

// A Step reads the state and adds to it. A returned error is a *nodes.Error and says that the
// answer is not accepted; what the step added before stays. Steps are stateless values: Apply may
// run concurrently for different states.
type Step interface {
	Apply(s *State) error
}

// A State is what the steps of one answer have in common. It belongs to one goroutine.
type State struct {
	Answer    string            // as received
	Artifacts map[string][]byte // taken so far, by artifact name
	Schemas   map[string]string // names of the schemas that artifacts were held to, by artifact
	Texts     map[string]string // notes and sections taken so far; present and empty is an empty one
	Values    map[string]any
	Entries   []nodes.Entry
	Warnings  []string
	Notes     []nodes.LogLine
	Markers   []Marker // of notes, as steps so far have declared them: such regions belong to nobody else

	// Again reports whether a failure of a category would be followed by another answer. Nil: never.
	Again func(category string) bool
	// Artifact opens the version of an artifact from before the attempt: os.ErrNotExist
	// when there is none. Nil: there never is one.
	Artifact func(name string) (io.ReadCloser, error)
	// Earlier returns the entries of an accumulator from before the attempt. Nil: none.
	Earlier func(accumulator string) ([]nodes.Entry, error)
}

// A Marker is a pair of texts that notes of a name stand between.
type Marker struct{ Name, Start, End string }

// NewState returns the state of an attempt's answer. A nil t is allowed in tests.
func NewState(t *nodes.Task, answer string) *State {
	s := &State{
		Answer:    answer,
		Artifacts: map[string][]byte{},
		Schemas:   map[string]string{},
		Texts:     map[string]string{},
		Values:    map[string]any{},
	}
	if t != nil {
		s.Artifact, s.Earlier, s.Again = t.Artifact, t.Entries, t.Again
	}
	return s
}

// Warn adds a warning.
func (s *State) Warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// Note adds a record to a log, decision or quality.
func (s *State) Note(log, typ string, fields map[string]any) {
	s.Notes = append(s.Notes, nodes.LogLine{Log: log, Type: typ, Fields: fields})
}

// Subject returns what a name in the settings stands for: "" and "answer" are the answer, others
// an artifact, notes or a section taken by an earlier step.
func (s *State) Subject(name string) (string, bool) {
	if name == "" || name == "answer" {
		return s.Answer, true
	}
	if b, ok := s.Artifacts[name]; ok {
		return string(b), true
	}
	text, ok := s.Texts[name]
	return text, ok
}

// Previous returns an artifact as it was before the attempt; ok is false when there was none or
// the node does not read it.
func (s *State) Previous(name string) (content []byte, ok bool, err error) {
	if s.Artifact == nil {
		return nil, false, nil
	}
	r, err := s.Artifact(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	content, err = io.ReadAll(r)
	return content, err == nil, err
}

// Run applies all steps in order. A failed step does not stop the others: notes are taken
// though the document was unusable. The first failure is returned, the texts of later ones are
// added to its diagnostics.
func Run(steps []Step, s *State) error {
	var first *nodes.Error
	for _, step := range steps {
		err := step.Apply(s)
		if err == nil {
			continue
		}
		e := nodes.Failure("unknown", fmt.Errorf("accept: %w", err))
		if first == nil {
			copied := *e
			first = &copied
			continue
		}
		first.Diagnostics = strings.TrimLeft(first.Diagnostics+"\nalso: "+e.Error(), "\n")
	}
	if first == nil {
		return nil
	}
	return first
}

// Result stages the artifacts under out and returns everything the steps made. When keep is false,
// because a step failed, no artifact is staged.
func (s *State) Result(out string, keep bool) (*nodes.Result, error) {
	res := &nodes.Result{Values: s.Values, Entries: s.Entries, Warnings: s.Warnings, Notes: s.Notes}
	if !keep {
		return res, nil
	}
	res.Writes, res.Schemas = make(map[string]string, len(s.Artifacts)), s.Schemas
	for _, name := range slices.Sorted(maps.Keys(s.Artifacts)) {
		if err := nodes.PutIn(out, name, bytes.NewReader(s.Artifacts[name])); err != nil {
			return nil, fmt.Errorf("stage %s: %w", name, err)
		}
		res.Writes[name] = name
	}
	return res, nil
}
