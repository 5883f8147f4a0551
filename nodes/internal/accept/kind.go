package accept

import (
	"context"
	"encoding/json"

	"dagrun.dev/nodes"
)

// A Kind is a kind of node whose work is a step: a node of it stands alone and names its text with
// from; in an accept list the text is the answer.
type Kind struct {
	name, schema string
	settings     func() Settings // none given yet
}

var _ nodes.Kind = Kind{}

// Settings are the settings of such a kind, decoded from the plan; they are the step. They embed Alone.
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
func NewKind(name, schema string, settings func() Settings) Kind {
	return Kind{name, schema, settings}
}

// Name returns the kind's name in specifications, which is also the step's in accept lists.
func (k Kind) Name() string { return k.name }

// Schema returns the CUE source of the kind's settings.
func (k Kind) Schema() string { return k.schema }

func (k Kind) parse(with json.RawMessage) (Settings, error) {
	s := k.settings()
	return s, Decode(with, s)
}

// Describe reads what the compiler must know of a node that stands alone.
func (k Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, tr, err := k.describe(with)
	if err != nil {
		return tr, err
	}
	tr.Effect = "pure"
	if from := s.Source(); from != nil {
		from.Describe(&tr, "from")
	} else {
		tr.Problemf("from", "missing: a node of this kind names its text, e.g. from: {artifact: NAME}")
	}
	return tr, nil
}

// DescribeStep reads what the compiler must know of a step of an accept list; paths of problems are
// within the step's settings. Effect and Paid are left empty.
func (k Kind) DescribeStep(with json.RawMessage) (nodes.Traits, error) {
	s, tr, err := k.describe(with)
	if err == nil && s.Source() != nil {
		tr.Problemf("from", "only for a node of this kind: here it is the answer")
	}
	return tr, err
}

func (k Kind) describe(with json.RawMessage) (s Settings, tr nodes.Traits, err error) {
	if s, err = k.parse(with); err == nil {
		s.Describe(&tr)
	}
	return s, tr, err
}

// Run carries out a node that stands alone.
func (k Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, err := k.parse(t.With)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return alone(t, s.Source(), s)
}

// Step returns settings as a step of an accept list.
func (k Kind) Step(with json.RawMessage) (Step, error) { return k.parse(with) }
