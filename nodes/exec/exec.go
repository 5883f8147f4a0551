// Package exec is the kind of node that runs one local command. It does not interpret what the
// command prints.
package exec

import (
	"context"
	_ "embed"
	"encoding/json"

	"dagrun.dev/nodes"
)

//go:embed schema.cue
var schema string

// Kind is the kind "exec".
type Kind struct{}

// Name returns "exec".
func (Kind) Name() string { return "exec" }

// Schema returns the CUE source of #Exec.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of checked settings.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) { panic("contract") }

// Run runs the command once.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { panic("contract") }
