package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/evidence"
)

// command runs any program by a declared template.
type command struct{}

func (command) address() string { return "cli:command" }

func (command) ask(ctx context.Context, q *question) (*reply, error) {
	c := q.set.command()
	prompt := guarded(withSystem(q))
	file := filepath.Join(q.task.Scratch, "prompt.md")
	fill := strings.NewReplacer("{prompt}", file, "{model}", q.set.Model, "{dir}", q.folder)
	p := &program{env: map[string]string{}, output: c.format(), patterns: c.Errors}
	for _, arg := range append(append([]string{}, q.set.Argv...), q.set.Flags...) {
		p.argv = append(p.argv, fill.Replace(arg))
	}
	switch c.Prompt {
	case "file":
		if err := os.WriteFile(file, []byte(prompt), 0o600); err != nil {
			return nil, err
		}
	case "argument":
		if len(prompt) > mostArgument {
			return nil, nodes.Permanent(nodes.Fail("input_too_big", fmt.Sprintf("a prompt of %d bytes cannot be an argument; use stdin or file", len(prompt))))
		}
		p.argv = append(p.argv, prompt)
	default:
		p.stdin = prompt
	}
	return p.run(ctx, q)
}

func (command) recall(q *question) (*reply, error) {
	c := q.set.command()
	return (&program{output: c.format(), patterns: c.Errors}).recall(q)
}

// command returns the declared template, or the default one.
func (s *settings) command() *commandSettings {
	if s.Command == nil {
		return &commandSettings{Prompt: "stdin", Parse: "text"}
	}
	return s.Command
}

// guarded keeps a prompt from beginning like an option, a command or an attachment.
func guarded(prompt string) string {
	if r, _ := utf8.DecodeRuneInString(prompt); unicode.IsLetter(r) || unicode.IsDigit(r) {
		return prompt
	}
	return firstLine + prompt
}

func (c *commandSettings) format() format {
	switch c.Parse {
	case "claude-json":
		f := claudeFormat
		f.stream = false
		return f
	case "claude-stream":
		return claudeFormat
	case "codex-jsonl":
		return codexFormat
	case "gemini-json":
		return geminiFormat
	case "json", "json-lines":
		return c.fields()
	}
	return format{table: evidence.Wrapped}
}

// check finds the mistakes of the settings that the schema cannot say.
func (c *commandSettings) check(d *describer) {
	if (c.Parse == "json" || c.Parse == "json-lines") && c.Field == "" {
		d.problem("command.field", "missing: where the answer is in the JSON")
	}
	for i, e := range c.Errors {
		if _, err := regexp.Compile("(?i)" + e.Match); err != nil {
			d.problem(fmt.Sprintf("command.errors.%d.match", i), "not a regular expression: %v", err)
		}
		d.tr.Categories = append(d.tr.Categories, nodes.Named{Path: fmt.Sprintf("command.errors.%d.category", i), Name: e.Category})
	}
}

// fields reads an answer at a declared place of any JSON. Its one ending is there as soon as the answer, or
// an error, has begun.
func (c *commandSettings) fields() format {
	field, failed, lines := strings.Split(c.Field, "."), strings.Split(c.ErrorField, "."), c.Parse == "json-lines"
	return format{table: evidence.Wrapped, pieces: lines, stream: lines, read: func(t *transcript, o object) {
		e := ending{turned: true}
		if len(t.endings) > 0 {
			e = t.endings[0]
		}
		raw, there := at(o, failed)
		if there = there && c.ErrorField != "" && !empty(raw); there {
			e.failure = t.fail(0, accept.Plain(raw))
		}
		var text string
		if raw, ok := at(o, field); ok && json.Unmarshal(raw, &text) == nil {
			if there = true; !lines {
				t.pieces.Reset()
			}
			t.pieces.WriteString(text)
		}
		if there {
			t.endings = []ending{e}
		}
	}, done: func(t *transcript) { t.endings[0].text = t.pieces.String() }}
}

// at returns the value at a path of names.
func at(o object, path []string) (json.RawMessage, bool) {
	for i, name := range path {
		raw, ok := o[name]
		if !ok || i == len(path)-1 {
			return raw, ok
		}
		if o = o.object(name); o == nil {
			return nil, false
		}
	}
	return nil, false
}

// empty reports whether a value means "no error".
func empty(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "0", "[]", "{}":
		return true
	}
	return false
}
