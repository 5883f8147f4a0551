package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/internal/rules"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
)

// ordinary are the values that the schema fills in, which ask nothing of a provider.
var ordinary = map[string]string{
	"onDenial": `"warn"`, "onModelSwitch": `"warn"`, "home": `"own"`, "api": `"chat"`, "exitGrace": `"10s"`,
}

// asksNothing are values that ask for nothing.
var asksNothing = []string{"null", "[]", "{}", `""`}

// unable returns what the settings ask of their provider that it cannot do: the setting and why, in the table's order.
func (s *settings) unable() (list []nodes.Problem) {
	if capability.Of(s.Provider).Name == "" {
		return nil // known later
	}
	for _, c := range capability.Rows() {
		for _, name := range c.Settings {
			raw := string(bytes.TrimSpace(s.given[name]))
			if raw == "" || raw == ordinary[name] || slices.Contains(asksNothing, raw) || c.How[s.Provider] != "" {
				continue
			}
			text := fmt.Sprintf("provider %s cannot %s; providers that can: %s",
				s.Provider, c.Cannot, strings.Join(c.Able(), ", "))
			list = append(list, nodes.Problem{Path: name, Text: text})
		}
	}
	return append(list, s.unableTools()...)
}

func (s *settings) unableTools() (list []nodes.Problem) {
	known := capability.Of(s.Provider).Tools
	if known == nil {
		return nil
	}
	names := capability.Of(s.Provider).ToolNames()
	for i, tool := range s.Tools {
		problem := func(format string, args ...any) {
			path := fmt.Sprintf("tools.%d", i)
			list = append(list, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
		}
		name, rule, restricted := strings.Cut(tool, "(")
		_, there := known[name]
		switch {
		case strings.Contains(tool, "${"), s.Provider == "claude" && strings.HasPrefix(name, "mcp__"):
		case !there:
			known := "; it has " + strings.Join(names, ", ")
			problem("provider %s has no tool %q%s", s.Provider, name, cmp.Or(rules.DidYouMean(name, names), known))
		case restricted && s.Provider == "claude" && !closed(rule):
			problem("want a name, or a name and a rule in brackets such as %s(./docs/**), not %q", name, tool)
		case restricted && s.Provider != "claude":
			problem("provider %s takes no paths and patterns with a tool; write %s", s.Provider, name)
		}
	}
	return list
}

// closed reports whether what stands behind the bracket of a tool is a rule and the bracket that ends it, and nothing
// else.
func closed(rule string) bool {
	depth := 1
	for i, r := range rule {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i > 0 && i == len(rule)-1
		}
	}
	return false
}

// unconfined returns what a plan has to say of the tools that reach further than the attempt's folder.
func (s *settings) unconfined() (list []string) {
	if s.Provider == "command" {
		return []string{"provider command: what its program reads and writes is confined by wrapper alone"}
	}
	for _, tool := range s.Tools {
		name, path, restricted := strings.Cut(tool, "(")
		wide := restricted && (!strings.HasPrefix(path, "./") || strings.Contains(path, ".."))
		held := slices.Contains(capability.FileTools, name) && !wide
		if !held && s.Provider != "sim" && (s.Provider != "codex" || name != "Bash") {
			list = append(list, "tool "+tool+" reaches beyond the attempt's folder")
		}
	}
	return list
}

// confined returns the tools as permissions of claude: file tools without a path are held to the attempt's folder.
// Everything that writes goes by the permissions of Edit there.
func confined(list []string) (out []string) {
	for _, tool := range list {
		name, _, restricted := strings.Cut(tool, "(")
		if !restricted && (name == "NotebookEdit" || slices.Contains(capability.FileTools, name)) {
			tool += "(./**)"
		}
		out = append(out, tool)
		if name == "Write" || name == "NotebookEdit" {
			out = append(out, "Edit"+strings.TrimPrefix(tool, name))
		}
	}
	return unique(out)
}

// unique leaves out what stands in a list before.
func unique(list []string) (out []string) {
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// neutralSystem stands where a program would otherwise send the long instructions of a coding agent.
const neutralSystem = "Answer the request. Give what it asks for, whole and in the form it asks for, and nothing else."

// neutral is the system text of a node that has neither one of its own nor tools.
func (s *settings) neutral() string {
	if len(s.Tools) > 0 {
		return ""
	}
	return neutralSystem
}

// thinking reads the field: how many tokens, 0 for off; not set where the model decides.
func (s *settings) thinking() (tokens int64, set bool) {
	if string(s.Thinking) == `"off"` {
		return 0, true
	}
	return tokens, s.Thinking != nil && json.Unmarshal(s.Thinking, &tokens) == nil
}

// reason puts effort and thinking into the body of a request.
func (s *settings) reason(body map[string]any) {
	switch {
	case s.Effort == "":
	case s.Provider == "anthropic":
		config, _ := body["output_config"].(map[string]any)
		if config == nil {
			config = map[string]any{}
		}
		config["effort"], body["output_config"] = s.Effort, config
	case s.API == "responses":
		body["reasoning"] = map[string]any{"effort": s.Effort}
	default:
		body["reasoning_effort"] = s.Effort
	}
	switch n, set := s.thinking(); {
	case s.Thinking == nil:
	case !set:
		body["thinking"] = map[string]any{"type": "adaptive"}
	case n == 0:
		body["thinking"] = map[string]any{"type": "disabled"}
	default:
		body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": n}
	}
}

// fallBack takes the next model after each failure of a service that was overloaded or out of reach, and the first
// again after the last. Other failures, a bad answer say, are the same model's to put right.
func (s *settings) fallBack(t *nodes.Task) {
	if n := t.FailedWith["transient"] % (len(s.FallbackModels) + 1); n > 0 {
		s.Model = s.FallbackModels[n-1]
	}
}
