package accept

import (
	"context"
	"encoding/json"

	"dagrun.dev/nodes"
)

// Settings are the checked settings of a kind whose work is a step.
type Settings struct {
	Step
	From   *From        // the text of a node that stands alone
	Traits nodes.Traits // what the compiler must know, From, Effect and Paid left out
}

// A Parser reads the settings of one kind, and is what such kinds have in common.
type Parser func(with json.RawMessage) (*Settings, error)

// New returns the settings as a step of an accept list.
func (p Parser) New(with json.RawMessage) (Step, error) {
	s, err := p(with)
	if err != nil {
		return nil, err
	}
	return s.Step, nil
}

// DescribeStep reads what the compiler must know of the settings as a step of an accept list; paths
// of problems are within the step's settings. Effect and Paid are left empty.
func (p Parser) DescribeStep(with json.RawMessage) (nodes.Traits, error) {
	s, err := p(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	s.From.forbid(&s.Traits)
	return s.Traits, nil
}

// Describe does the same for a node that stands alone; see nodes.Kind.
func (p Parser) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := p(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	s.Traits.Effect = "pure"
	s.From.Describe(&s.Traits)
	return s.Traits, nil
}

// Run carries out a node that stands alone: it works on the text that from names.
func (p Parser) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, err := p(t.With)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return alone(t, s.From, s.Step)
}
