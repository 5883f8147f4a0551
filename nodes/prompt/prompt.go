// Package prompt is the kind of node that makes a text out of a template and variables.
//
// It asks nobody: the agent kind assembles its own prompt with Assemble. Nothing that differs
// between two runs of the same plan (clock, run, attempt, cost) can enter a prompt.
package prompt

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"

	"dagrun.dev/nodes"
)

//go:embed schema.cue
var schema string

// Kind is the kind "prompt".
type Kind struct{}

// Name returns "prompt".
func (Kind) Name() string { return "prompt" }

// Schema returns the CUE source of #Prompt.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of the settings of a node of this kind.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) { panic("contract") }

// Run writes the assembled text as the artifact of to.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { panic("contract") }

// An Assembled is a prompt ready to be asked.
type Assembled struct {
	Text     string
	Chars    int64 // characters (not bytes) of Text
	Tokens   int64 // estimate: Chars / 4, rounded up
	Warnings []string
	Notes    []nodes.Note // a decision for each step of trimming
}

// Assemble fills in the template of a prompt block (#Prompt) for one attempt. It reads through
// t.File, t.Artifact and t.Entries, logs the estimate, and fails with category config (a
// placeholder without a value) or input_too_big (too long after all trimming).
func Assemble(t *nodes.Task, with json.RawMessage) (*Assembled, error) { panic("contract") }

// Describe reads what the compiler must know of a prompt block; paths of problems are within it.
// Traits.Prompt holds what is known of the size (without Model and MaxOutput).
func Describe(with json.RawMessage) (nodes.Traits, error) { panic("contract") }

// Check reads the template at plan time: placeholders without a variable are problems, variables
// that are never used are warnings. open reads an input file relative to the specification.
func Check(with json.RawMessage, open func(path string) (io.ReadCloser, error)) (problems []nodes.Problem, warnings []string) {
	panic("contract")
}
