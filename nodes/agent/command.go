package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/evidence"
)

// startCommand runs any program by a declared template.
func startCommand(q *question) (*program, error) {
	prompt := guarded(withSystem(q))
	file := filepath.Join(q.task.Scratch, "prompt.md")
	fill := strings.NewReplacer("{prompt}", file, "{model}", q.set.Model, "{dir}", q.folder)
	p := &program{}
	for _, arg := range slices.Concat(q.set.Argv, q.set.Flags) {
		p.argv = append(p.argv, fill.Replace(arg))
	}
	switch q.set.Command.Prompt {
	case "file":
		if err := os.WriteFile(file, []byte(prompt), 0o600); err != nil {
			return nil, err
		}
	case "argument":
		if len(prompt) > mostArgument {
			msg := fmt.Sprintf("a prompt of %d bytes cannot be an argument; use stdin or file", len(prompt))
			return nil, nodes.Permanent(nodes.Fail("input_too_big", msg))
		}
		p.argv = append(p.argv, prompt)
	default:
		p.stdin = prompt
	}
	return p, nil
}

// guarded keeps a prompt from beginning like an option, a command or an attachment.
func guarded(prompt string) string {
	if r, _ := utf8.DecodeRuneInString(prompt); unicode.IsLetter(r) || unicode.IsDigit(r) {
		return prompt
	}
	return firstLine + prompt
}

// format is how the program prints its answer.
func (c *commandSettings) format() *transcript.Format {
	f := transcript.Format{Table: evidence.Wrapped}
	switch c.Parse {
	case "claude-json":
		f = transcript.Claude
		f.Stream = false
	case "claude-stream":
		f = transcript.Claude
	case "codex-jsonl":
		f = transcript.Codex
	case "gemini-json":
		f = transcript.Gemini
	case "json", "json-lines":
		f = transcript.Fields(c.Field, c.ErrorField, c.Parse == "json-lines")
	}
	return &f
}
