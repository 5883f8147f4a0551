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
	"dagrun.dev/nodes/internal/accept"
)

//go:embed schema.cue
var schema string

// Kind is the kind "prompt".
type Kind struct{}

var _ nodes.FileChecker = Kind{}

// Name returns "prompt".
func (Kind) Name() string { return "prompt" }

// Schema returns the CUE source of #Prompt.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of the settings of a node of this kind.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := decode(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	tr := s.traits()
	tr.Effect = "pure"
	tr.Outputs = map[string]string{"chars": "int", "tokens": "int"}
	tr.Prompt = nil
	if s.To == "" {
		tr.Problemf("to", "missing: a node of this kind names the artifact it writes")
	}
	tr.Write("to", s.To)
	return tr, nil
}

// CheckFiles holds the template against the declared variables.
func (Kind) CheckFiles(
	with json.RawMessage, open func(path string) (io.ReadCloser, error),
) ([]nodes.Problem, []string) {
	return Check(with, open)
}

// Run writes the assembled text as the artifact of to.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, err := decode(t.With)
	if err != nil {
		return nil, err
	}
	p, err := assemble(t, s)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	st := accept.NewState(t, "")
	st.Artifacts[s.To] = []byte(p.Text)
	st.Values["chars"], st.Values["tokens"] = p.Chars, p.Tokens
	st.Warnings, st.Notes = p.Warnings, p.Notes
	return st.Result(t.Out, true)
}
