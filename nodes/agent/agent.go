// Package agent is the kind of node that puts a question to a language model and accepts its
// answer. It does not retry, wait or count money: it says what it saw.
package agent

import (
	"context"
	_ "embed"
	"encoding/json"

	"dagrun.dev/nodes"
)

//go:embed schema.cue
var schema string

// Kind is the kind "agent".
type Kind struct{}

// Name returns "agent".
func (Kind) Name() string { return "agent" }

// Schema returns the CUE source of #Agent.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of checked settings.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) { panic("contract") }

// Run puts the question once.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { panic("contract") }
