// Package prompt is the kind of node that makes a text out of a template and variables.
//
// It asks nobody: the agent kind assembles its own prompt with Assemble. Nothing that differs
// between two runs of the same plan (clock, run, attempt, cost) can enter a prompt.
package prompt

import (
	"context"
	_ "embed"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

//go:embed schema.cue
var schema string

// Kind is the kind "prompt".
var Kind = nodes.Kind{Name: "prompt", Schema: schema, Parse: accept.Parser(func() *Settings { return &Settings{} })}

var _ nodes.FileChecker = &Settings{}

// Run writes the assembled text as the artifact of to.
func (s *Settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	p, err := s.Assemble(t)
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
