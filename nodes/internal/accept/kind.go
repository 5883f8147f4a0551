package accept

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"dagrun.dev/nodes"
)

// Settings are those of a kind of node whose work is a step; they are the step, and embed Alone. A node of such a kind
// stands alone and names its text with from; in an accept list the text is the answer.
type Settings interface {
	Step
	// Describe adds what the compiler must know of the step to tr, From, Effect and Paid left out.
	Describe(tr *nodes.Traits)
	// Source returns what a node that stands alone reads, or nil.
	Source() *From
}

// Alone is the setting that only a node that stands alone has.
type Alone struct {
	From *From `json:"from"`
}

// Source returns the setting.
func (a *Alone) Source() *From { return a.From }

// NewKind returns a kind by its name, the CUE source of its settings, and what makes the settings of which none is
// given: the defaults.
func NewKind(name, schema string, settings func() Settings) nodes.Kind {
	return nodes.Kind{Name: name, Schema: schema, Parse: func(with json.RawMessage) (nodes.Settings, error) {
		s := settings()
		return alone{s}, Decode(with, s)
	}}
}

// Parser is the Parse of a kind whose settings are decoded into what fresh makes, which holds the defaults.
func Parser[S nodes.Settings](fresh func() S) func(json.RawMessage) (nodes.Settings, error) {
	return func(with json.RawMessage) (nodes.Settings, error) {
		s := fresh()
		return s, Decode(with, s)
	}
}

// ParseStep reads the settings of a step of an accept list; its kind is one of NewKind.
func ParseStep(k nodes.Kind, with json.RawMessage) (Settings, error) {
	s, err := k.Parse(with)
	if err != nil {
		return nil, err
	}
	return s.(alone).Settings, nil
}

// DescribeStep is what the compiler must know of a step of an accept list; paths of problems are within the step's
// settings. Effect and Paid are left empty.
func DescribeStep(s Settings) (tr nodes.Traits) {
	if s.Describe(&tr); s.Source() != nil {
		tr.Problemf("from", "only for a node of this kind: here it is the answer")
	}
	return tr
}

// alone is a step as a node of its own.
type alone struct{ Settings }

// Traits are what the compiler must know of the node.
func (a alone) Traits() (tr nodes.Traits) {
	a.Describe(&tr)
	tr.Effect = "pure"
	if from := a.Source(); from != nil {
		from.Describe(&tr, "from")
	} else {
		tr.Problemf("from", "missing: a node of this kind names its text, e.g. from: {artifact: NAME}")
	}
	return tr
}

// Run reads the text, applies the step, and stages what it took under Task.Out.
func (a alone) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.Source() == nil {
		return nil, nodes.Fail("config", "from: missing")
	}
	text, err := a.Source().Read(t)
	if err != nil {
		return nil, err
	}
	s := NewState(t, text)
	s.Again = nil // the same text would come again
	failure := Run([]Step{a}, s)
	res, err := s.Result(t.Out, failure == nil)
	if err != nil {
		return nil, err
	}
	return res, failure
}

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
