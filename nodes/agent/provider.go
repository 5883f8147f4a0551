package agent

import (
	"context"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
)

// A provider puts one question to a model, once. It neither retries nor waits: attempts
// belong to the machine.
type provider interface {
	// address says where the question goes: a URL, or cli:<name> where a program does not say.
	address() string
	// ask puts the question. The reply holds everything that was seen, also of a failure
	// (reply.Failure). An error means that nothing was asked: the program did not start, or
	// ctx was over before. Files are kept through question.task.
	ask(ctx context.Context, q *question) (*reply, error)
	// recall reads the reply of an earlier ask whose process died from question.task.Spool, by the same reader. One
	// that is not Ended and in no Doubt holds nothing but what had been used. Nil says that nothing had begun.
	recall(q *question) (*reply, error)
}

// providerOf returns the provider that the settings name. What it cannot do is a mistake here too, where the plan did
// not know the provider yet.
func providerOf(s *settings) (provider, error) {
	if list := s.unable(); len(list) > 0 {
		return nil, nodes.Permanent(nodes.Fail("config", list[0].Path+": "+list[0].Text))
	}
	switch s.Provider {
	case "sim", "claude":
		return cli{name: "claude", format: &transcript.Claude, start: startClaude}, nil
	case "codex":
		return cli{name: "codex", format: &transcript.Codex, start: startCodex}, nil
	case "gemini":
		return cli{name: "gemini", format: &transcript.Gemini, start: startGemini}, nil
	case "command":
		return cli{name: "command", format: s.Command.format(), patterns: s.Command.Errors, start: startCommand}, nil
	case "anthropic":
		return anthropic, nil
	case "openai":
		return openai(s.API), nil
	}
	return nil, nodes.Permanent(nodes.Fail("config", "provider "+s.Provider+" is not built in"))
}
