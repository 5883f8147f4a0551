package accept

import (
	"bytes"

	"fmt"
	"io"
	"maps"

	"slices"
	"strings"

	"dagrun.dev/nodes"
)

// From names a text that a node works on: exactly one of its fields.
type From struct {
	Artifact string `json:"artifact,omitempty"`
	File     string `json:"file,omitempty"`
	Text     *Text  `json:"text,omitempty"`
}

// Describe adds what is read, and mistakes, to tr. at is the path of this setting.
func (f *From) Describe(tr *nodes.Traits, at string) {
	tr.OneOf(at, "artifact, file, text", f.Artifact != "", f.File != "", f.Text != nil)
	tr.Read(f.Artifact)
	tr.File(f.File)
}

// Open returns what is read. One that cannot be opened is category config.
func (f *From) Open(t *nodes.Task) (io.ReadCloser, error) {
	if f.Text != nil {
		return io.NopCloser(strings.NewReader(string(*f.Text))), nil
	}
	return open(f.place(t))
}

// Read returns all of what Open returns.
func (f *From) Read(t *nodes.Task) (string, error) {
	if f.Text != nil {
		return string(*f.Text), nil
	}
	return ReadText(f.place(t))
}

// place says where a file or an artifact is found, as ReadText wants it.
func (f *From) place(t *nodes.Task) (from opener, what, name string) {
	if f.File != "" {
		return t.File, "file", f.File
	}
	return t.Artifact, "artifact", f.Artifact
}

// An opener is nodes.Task.File or nodes.Task.Artifact.
type opener = func(name string) (io.ReadCloser, error)

// ReadText reads all of a file or an artifact. One that cannot be opened is category config; what
// says for messages which of them it is.
func ReadText(from opener, what, name string) (string, error) {
	r, err := open(from, what, name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", what, name, err)
	}
	return string(b), nil
}

func open(from opener, what, name string) (io.ReadCloser, error) {
	r, err := from(name)
	if err != nil {
		return nil, &nodes.Error{Category: "config", Message: what + " " + name, Err: err}
	}
	return r, nil
}

// alone carries out one step as a node of its own: the text is read, the step applied,
// what it took is staged under Task.Out.
func alone(t *nodes.Task, from *From, step Step) (*nodes.Result, error) {
	if from == nil {
		return nil, nodes.Fail("config", "from: missing")
	}
	text, err := from.Read(t)
	if err != nil {
		return nil, err
	}
	s := NewState(t, text)
	s.Again = nil // the same text would come again
	failure := Run([]Step{step}, s)
	res, err := s.Result(t.Out, failure == nil)
	if err != nil {
		return nil, err
	}
	return res, failure
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
