package accept

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/nodes"
)

// From names the text a node that stands alone works on: exactly one of its fields.
type From struct {
	Artifact string `json:"artifact,omitempty"`
	File     string `json:"file,omitempty"`
	Text     *Text  `json:"text,omitempty"`
}

// Describe adds what a node that stands alone reads, and its mistakes, to tr.
func (f *From) Describe(tr *nodes.Traits) {
	if f == nil {
		tr.Problems = append(tr.Problems, nodes.Problem{Path: "from", Text: "missing: a node of this kind names its text, e.g. from: {artifact: NAME}"})
		return
	}
	given := 0
	if f.Artifact != "" {
		given++
		tr.Reads = append(tr.Reads, f.Artifact)
	}
	if f.File != "" {
		given++
		tr.Files = append(tr.Files, f.File)
	}
	if f.Text != nil {
		given++
	}
	if given != 1 {
		tr.Problems = append(tr.Problems, nodes.Problem{Path: "from", Text: "want exactly one of artifact, file, text"})
	}
}

// forbid adds a mistake to tr when a step of an accept list names its text: it is the answer.
func (f *From) forbid(tr *nodes.Traits) {
	if f != nil {
		tr.Problems = append(tr.Problems, nodes.Problem{Path: "from", Text: "only for a node of this kind: here it is the answer"})
	}
}

// Read returns the text.
func (f *From) Read(t *nodes.Task) (string, error) {
	switch {
	case f == nil:
		return "", nodes.Fail("config", "from: missing")
	case f.Text != nil:
		return string(*f.Text), nil
	case f.File != "":
		return ReadText(t.File, "file", f.File)
	default:
		return ReadText(t.Artifact, "artifact", f.Artifact)
	}
}

// ReadText reads all of a file or an artifact. One that cannot be opened is category config; what
// says for messages which of them it is.
func ReadText(open func(name string) (io.ReadCloser, error), what, name string) (string, error) {
	r, err := open(name)
	if err != nil {
		return "", &nodes.Error{Category: "config", Message: what + " " + name, Err: err}
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", what, name, err)
	}
	return string(b), nil
}

// alone carries out one step as a node of its own: the text is read, the step applied,
// what it took is staged under Task.Out.
func alone(t *nodes.Task, from *From, step Step) (*nodes.Result, error) {
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
	res.Writes = make(map[string]string, len(s.Artifacts))
	for _, name := range slices.Sorted(maps.Keys(s.Artifacts)) {
		if err := stage(out, name, s.Artifacts[name]); err != nil {
			return nil, err
		}
		res.Writes[name] = name
	}
	return res, nil
}

// stage writes below out and nowhere else: a name is data of the specification.
func stage(out, name string, content []byte) error {
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := Put(root, name, bytes.NewReader(content)); err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	return nil
}

// Put writes a file of a folder, and the folders that lead to it. A name that leads out of the
// folder is an error.
func Put(root *os.Root, name string, from io.Reader) error {
	name = filepath.FromSlash(name)
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// Path joins parts of a settings path for a Problem: Path("markers", "x", "to") is "markers.x.to".
func Path(parts ...string) string { return strings.Join(parts, ".") }
