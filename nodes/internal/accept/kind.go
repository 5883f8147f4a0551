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
	parse        func(with json.RawMessage) (*Settings, error)
}

var _ nodes.Kind = Kind{}

// Settings are the checked settings of such a kind.
type Settings struct {
	Step
	From   *From        // the text of a node that stands alone
	Traits nodes.Traits // what the compiler must know, From, Effect and Paid left out
}

// NewKind returns a kind by its name, the CUE source of its settings, and what reads them.
func NewKind(name, schema string, parse func(with json.RawMessage) (*Settings, error)) Kind {
	return Kind{name, schema, parse}
}

// Name returns the kind's name in specifications, which is also the step's in accept lists.
func (k Kind) Name() string { return k.name }

// Schema returns the CUE source of the kind's settings.
func (k Kind) Schema() string { return k.schema }

// Describe reads what the compiler must know of a node that stands alone.
func (k Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := k.parse(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	s.Traits.Effect = "pure"
	if s.From == nil {
		s.Traits.Problemf("from", "missing: a node of this kind names its text, e.g. from: {artifact: NAME}")
	} else {
		s.From.Describe(&s.Traits, "from")
	}
	return s.Traits, nil
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
	return alone(t, s.From, s.Step)
}

// Step returns settings as a step of an accept list.
func (k Kind) Step(with json.RawMessage) (Step, error) {
	s, err := k.parse(with)
	if err != nil {
		return nil, err
	}
	return s.Step, nil
}

// DescribeStep reads what the compiler must know of a step of an accept list; paths of problems are
// within the step's settings. Effect and Paid are left empty.
func (k Kind) DescribeStep(with json.RawMessage) (nodes.Traits, error) {
	s, err := k.parse(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	if s.From != nil {
		s.Traits.Problemf("from", "only for a node of this kind: here it is the answer")
	}
	return s.Traits, nil
}
