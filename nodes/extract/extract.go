// Package extract is the kind of node that takes documents, notes and sections out of an answer.
//
// It does not judge whether they are good: see nodes/validate. It is also a step of an agent's
// accept list.
package extract

import (
	"context"
	_ "embed"
	"encoding/json"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

//go:embed schema.cue
var schema string

// Kind is the kind "extract".
type Kind struct{}

// Name returns "extract".
func (Kind) Name() string { return "extract" }

// Schema returns the CUE source of #Extract.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of the settings of a node of this kind.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) { panic("contract") }

// Run works on the text that from names.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { panic("contract") }

// New returns the settings as a step of an accept list.
func New(with json.RawMessage) (accept.Step, error) { panic("contract") }

// Describe reads what the compiler must know of the settings as a step of an accept list; paths of
// problems are within the step's settings. Effect and Paid are left empty.
func Describe(with json.RawMessage) (nodes.Traits, error) { panic("contract") }
