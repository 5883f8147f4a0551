package agent

import (
	"context"
	"encoding/json"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// A provider puts one question to a model, once. It neither retries nor waits: attempts
// belong to the machine.
type provider interface {
	// address says where the question goes: a URL, or cli:<name> where a program does not tell.
	address() string
	// ask puts the question. The reply holds everything that was seen, also of a failure
	// (reply.Failure). An error means that nothing was asked: the program did not start, or
	// ctx was over before. Files are kept through question.task.
	ask(ctx context.Context, q *question) (*reply, error)
	// recall reads the reply of an earlier ask whose process died from question.task.Spool. Nil
	// says that what is there does not prove how the provider ended.
	recall(q *question) (*reply, error)
}

// providerOf returns the provider that the settings name. What it cannot do is a mistake here too, where the plan did
// not know the provider yet.
func providerOf(s *settings) (provider, error) {
	if list := s.unable(); len(list) > 0 {
		return nil, nodes.Permanent(nodes.Fail("config", list[0][0]+": "+list[0][1]))
	}
	switch s.Provider {
	case "sim", "claude":
		return claude{}, nil
	case "codex":
		return codex{}, nil
	case "gemini":
		return gemini{}, nil
	case "command":
		return command{}, nil
	case "anthropic":
		return anthropic, nil
	case "openai":
		return openai, nil
	}
	return nil, nodes.Permanent(nodes.Fail("config", "provider "+s.Provider+" is not built in"))
}

// A question is what is asked.
type question struct {
	task   *nodes.Task
	set    *settings
	prompt string
	// borders are the offsets in prompt at which a new block begins.
	borders []int
	fixed   int // blocks in front that hold nothing that a run wrote
	system  string
	// folder is the agent's private working folder, with the given files in it.
	folder string
	// session is what the agent works in that outlives the attempt; nil = nothing does.
	session *session
	now     func() time.Time
}

// withSystem puts the system text before the prompt, for programs that have no place for it.
func withSystem(q *question) string {
	if q.system == "" {
		return q.prompt
	}
	return q.system + "\n\n---\n\n" + q.prompt
}

// evidence returns a case about a failure of this question, with the runner's clock.
func (q *question) evidence() evidence.Case {
	return evidence.Case{From: tables[q.set.Provider], Now: q.now(), Zone: time.Local, Tries: q.task.Attempt}
}

// tables are what the APIs are known to say of their failures. A program's stands with its format.
var tables = map[string]*evidence.Table{"anthropic": evidence.Anthropic, "openai": evidence.OpenAI}

// A reply is what came back.
type reply struct {
	// Failure is how the provider failed in its own terms; nil when it answered.
	Failure *nodes.Error
	// Doubt is how a provider failed that does not say itself whether its answer is whole: it
	// stands unless the steps of accept prove that.
	Doubt *nodes.Error
	// Cutting says that what Doubt tells of may have cut the answer.
	Cutting bool

	// turned says that the model had ended its turn before a limit was reached: its text is whole.
	turned bool
	// refused says that the service refused the call.
	refused bool

	Ended bool   // the provider said itself how it ended
	Text  string // the answer
	// Object is a shaped answer that came beside the text; nil where the text is it, or holds it.
	Object json.RawMessage
	// Reported says that Text is the report file, and what the agent said stands in Said.
	Reported bool
	Said     string
	Earlier  []string // texts of other turns, newest first, where the answer may stand instead
	// Cut says that the provider stopped at a limit of length: the text is no answer unless
	// everything that accept asks for is whole.
	Cut string
	// Told is the error that was reported beside an empty answer.
	Told *nodes.Error

	Finish    string // stop | length | tool_calls | error
	Models    []string
	ByModel   map[string]float64 // dollars
	Usage     nodes.Usage
	CostUSD   *float64
	LeastUSD  float64 // see nodes.Result
	ToolCalls int
	Denials   []string      // tools that were refused
	Status    int           // of HTTP, when known
	Latency   time.Duration // set by recall
	Warnings  []string
	Survivors []string
}
