package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/internal/rules"
	"dagrun.dev/nodes"
)

// The table of providers: what each can do with a setting of #Agent. Everything that depends on that asks here; the
// plan, the command providers and PROVIDERS.md show it. A-2

// A Capability is a row of the table.
type Capability struct {
	Name string `json:"name"`
	// Settings are the fields of #Agent that the row is about; none where it only informs.
	Settings []string `json:"settings,omitempty"`
	// How says in which way each provider does it. Who does not stand there cannot.
	How map[string]string `json:"how"`
	// cannot completes "provider x cannot ...".
	cannot string
}

// ProviderNames returns the providers in the table's order.
func ProviderNames() []string {
	return []string{"sim", "claude", "codex", "gemini", "command", "anthropic", "openai"}
}

// programs and services are the two sorts of provider.
var (
	programs = []string{"sim", "claude", "codex", "gemini", "command"}
	services = []string{"anthropic", "openai"}
)

// simTakes is what the simulated agent does with a setting that only a real one can honour: it stands for any of
// them, so that a specification can be rehearsed as it is.
const simTakes = "accepted, without effect"

// Capabilities returns the table.
func Capabilities() []Capability {
	return []Capability{
		{Name: "system text", Settings: []string{"system"}, cannot: "take a system text", How: map[string]string{
			"sim":       "yes",
			"claude":    "instead of its own; without one and without tools a short neutral text",
			"codex":     "instead of its own; without one and without tools a short neutral text; with tools behind its own",
			"gemini":    "instead of its own; without one and without tools a short neutral text; with tools before the prompt",
			"command":   "before the prompt",
			"anthropic": "yes", "openai": "yes",
		}},
		{Name: "temperature", Settings: []string{"temperature"}, cannot: "set a temperature", How: map[string]string{
			"sim": simTakes, "gemini": "yes", "anthropic": "yes", "openai": "yes",
		}},
		{Name: "output limit", Settings: []string{"maxOutputTokens"}, cannot: "limit the length of an answer", How: map[string]string{
			"sim": simTakes, "claude": "yes", "gemini": "yes", "anthropic": "yes, 32000 by default", "openai": "yes",
		}},
		{Name: "turn limit", Settings: []string{"maxTurns"}, cannot: "limit the turns", How: map[string]string{
			"sim": "yes", "claude": "yes", "gemini": "yes",
		}},
		{Name: "tools", Settings: []string{"tools"}, cannot: "use tools", How: map[string]string{
			"sim":    "any name; its folder only",
			"claude": "by permissions: file tools are held to the attempt's folder unless a wider path is written out; 2.1.197 lists names outside with Glob",
			"codex":  "a shell in the system's sandbox: it reads the system's programs and the attempt's folder, writes there only with Write, Edit or Bash, and has no network",
			"gemini": "its own file tools, which it holds to the attempt's folder",
		}},
		{Name: "without tools", How: map[string]string{
			"sim": "none", "claude": "none", "codex": "none (its own models are offered a code cell, in which nothing runs)", "gemini": "none",
			"command": "whatever the program does; only wrapper confines it", "anthropic": "none", "openai": "none",
		}},
		{Name: "given files", Settings: []string{"give"}, cannot: "be given files", How: all(
			"in the attempt's folder", "in the request: pictures and texts, each behind its name")},
		{Name: "report file", Settings: []string{"report"}, cannot: "write a report", How: all(
			"the file, else the answer", "the answer")},
		{Name: "effort", Settings: []string{"effort"}, cannot: "set the effort", How: map[string]string{
			"sim": simTakes, "claude": "--effort", "codex": "model_reasoning_effort", "anthropic": "output_config.effort", "openai": "reasoning_effort, reasoning.effort",
		}},
		{Name: "thinking", Settings: []string{"thinking"}, cannot: "set the thinking", How: map[string]string{
			"sim": simTakes, "claude": "MAX_THINKING_TOKENS; on by default", "anthropic": "thinking; off by default",
		}},
		{Name: "fallback models", Settings: []string{"fallbackModels"}, cannot: "ask another model", How: map[string]string{
			"sim": simTakes, "claude": "yes", "codex": "yes", "gemini": "yes", "command": "through {model}", "anthropic": "yes", "openai": "yes",
		}},
		{Name: "money limit of a call", Settings: []string{"maxUSD"}, cannot: "stop at a sum of money", How: map[string]string{
			"sim": "yes", "claude": "looked at after each turn",
		}},
		{Name: shapeRow, Settings: []string{"answer"}, cannot: "answer in a shape", How: map[string]string{
			"sim": fencedBlock, "claude": "--json-schema", "codex": "--output-schema", "gemini": fencedBlock, "command": fencedBlock,
			"anthropic": "output_config.format", "openai": "response_format, text.format",
		}},
		{Name: "cache", Settings: []string{"cache"}, cannot: "be told what to keep", How: map[string]string{
			"sim": simTakes, "anthropic": "marks at the borders of the prompt: 5m, 1h, off", "openai": "equal beginnings are kept; marks on request: 30m, off",
		}},
		{Name: "images", How: map[string]string{
			"claude": "through Read", "codex": "through its tools", "gemini": "through Read", "anthropic": "through give", "openai": "through give",
		}},
		{Name: "continued work", Settings: []string{"session"}, cannot: "go on with work that was cut", How: map[string]string{
			"sim": "with the files, without memory", "claude": "--resume",
		}},
		{Name: "refused tools", Settings: []string{"onDenial"}, cannot: "report refused tools", How: map[string]string{
			"sim": "reported", "claude": "reported",
		}},
		{Name: "model that answered", Settings: []string{"onModelSwitch"}, cannot: "report which model answered", How: map[string]string{
			"sim": "reported", "claude": "reported", "gemini": "reported", "command": "where its output says so", "anthropic": "reported", "openai": "reported",
		}},
		{Name: "program", Settings: []string{"argv", "wrapper", "flags", "env", "pass", "home", "exitGrace", "startGap"}, cannot: "start a program", How: each(programs, "yes")},
		{Name: "address", Settings: []string{"baseURL"}, cannot: "be sent to another address", How: map[string]string{
			"sim": simTakes, "claude": "ANTHROPIC_BASE_URL", "codex": "a provider of its own", "gemini": "GOOGLE_GEMINI_BASE_URL", "anthropic": "yes", "openai": "yes",
		}},
		{Name: "headers and fields of the request", Settings: []string{"headers", "params", "idempotencyHeader"}, cannot: "change the request", How: each(services, "yes")},
		{Name: "chat or responses", Settings: []string{"api"}, cannot: "choose the API", How: each([]string{"openai"}, "yes")},
		{Name: "own retries, updates, statistics", How: map[string]string{
			"sim": "none", "claude": "off", "codex": "off", "gemini": "off", "command": "its own affair", "anthropic": "none", "openai": "none",
		}},
		{Name: "silence limit", How: map[string]string{
			"sim": "between two events", "claude": "between two events", "codex": "between two events; it prints none while an answer is written", "gemini": "no effect: its output comes at the end",
			"command": "between two pieces of output; no effect where that comes at the end", "anthropic": "between two events", "openai": "between two events",
		}},
		{Name: "cost", How: map[string]string{
			"sim": "reported", "claude": "reported", "codex": "price table", "gemini": "price table", "command": "as its output says", "anthropic": "price table", "openai": "price table",
		}},
	}
}

func each(names []string, how string) map[string]string {
	m := map[string]string{}
	for _, name := range names {
		m[name] = how
	}
	return m
}

func all(program, service string) map[string]string {
	m := each(programs, program)
	maps.Copy(m, each(services, service))
	return m
}

// Able returns the providers that have a row's capability, those that do real work alone.
func (c Capability) able() (list []string) {
	for _, name := range ProviderNames() {
		if c.How[name] != "" && name != "sim" {
			list = append(list, name)
		}
	}
	return list
}

// ordinary are the values that the schema fills in, which ask nothing of a provider.
var ordinary = map[string]string{"onDenial": `"warn"`, "onModelSwitch": `"warn"`, "home": `"own"`, "api": `"chat"`, "exitGrace": `"10s"`}

// unable returns what the settings ask of their provider that it cannot do: the setting and why, in the table's order.
func (s *settings) unable() (list [][2]string) {
	if !slices.Contains(ProviderNames(), s.Provider) {
		return nil // known later
	}
	for _, c := range Capabilities() {
		for _, name := range c.Settings {
			raw := bytes.TrimSpace(s.given[name])
			switch how := c.How[s.Provider]; {
			case len(raw) == 0 || string(raw) == ordinary[name] || slices.Contains(asksNothing, string(raw)):
			case how == "":
				list = append(list, [2]string{name, fmt.Sprintf("provider %s cannot %s; providers that can: %s", s.Provider, c.cannot, strings.Join(c.able(), ", "))})
			}
		}
	}
	return append(list, s.unableTools()...)
}

// asksNothing are values that ask for nothing.
var asksNothing = []string{"null", "[]", "{}", `""`}

// fileTools are the tools whose reach is a path. All providers that have tools know them by these names.
var fileTools = []string{"Read", "Write", "Edit", "Glob", "Grep"}

// tools are the names that each provider knows, with what stands for them there. claude has them under their names.
var tools = map[string]map[string][]string{
	"claude": named(append([]string{"NotebookEdit", "Bash", "BashOutput", "KillShell", "WebFetch", "WebSearch", "Agent", "Task", "TodoWrite", "Skill"}, fileTools...)),
	"codex":  named(append([]string{"Bash", "WebSearch"}, fileTools...)),
	"gemini": {
		"Read": {"read_file", "read_many_files"}, "Write": {"write_file"}, "Edit": {"replace"}, "Grep": {"grep_search"},
		// Its glob lists names outside of the folder too.
		"Glob": {"list_directory"}, "WebSearch": {"google_web_search"},
	},
}

// ToolNames returns the tools that a provider knows, without those of its servers.
func ToolNames(provider string) []string { return slices.Sorted(maps.Keys(tools[provider])) }

func named(names []string) map[string][]string {
	m := map[string][]string{}
	for _, name := range names {
		m[name] = nil
	}
	return m
}

func (s *settings) unableTools() (list [][2]string) {
	known := tools[s.Provider]
	if known == nil {
		return nil
	}
	names := ToolNames(s.Provider)
	for i, tool := range s.Tools {
		name, rule, restricted := strings.Cut(tool, "(")
		_, there := known[name]
		path := fmt.Sprintf("tools.%d", i)
		switch {
		case strings.Contains(tool, "${"), s.Provider == "claude" && strings.HasPrefix(name, "mcp__"):
		case !there && rules.Nearest(name, names) != "":
			list = append(list, [2]string{path, fmt.Sprintf("provider %s has no tool %q; did you mean %q?", s.Provider, name, rules.Nearest(name, names))})
		case !there:
			list = append(list, [2]string{path, fmt.Sprintf("provider %s has no tool %q; it has %s", s.Provider, name, strings.Join(names, ", "))})
		case restricted && s.Provider == "claude" && !closed(rule):
			list = append(list, [2]string{path, fmt.Sprintf("want a name, or a name and a rule in brackets such as %s(./docs/**), not %q", name, tool)})
		case restricted && s.Provider != "claude":
			list = append(list, [2]string{path, fmt.Sprintf("provider %s takes no paths and patterns with a tool; write %s", s.Provider, name)})
		}
	}
	return list
}

// closed reports whether what stands behind the bracket of a tool is a rule and the bracket that ends it, and nothing else.
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
		held := slices.Contains(fileTools, name) && !(restricted && (!strings.HasPrefix(path, "./") || strings.Contains(path, "..")))
		if !held && s.Provider != "sim" && (s.Provider != "codex" || name != "Bash") {
			list = append(list, "tool "+tool+" reaches beyond the attempt's folder")
		}
	}
	return list
}

// confined returns the tools as permissions of claude: file tools without a path are held to the attempt's folder.
// Everything that writes goes by the permissions of Edit there. T1
func confined(list []string) (out []string) {
	for _, tool := range list {
		name, _, restricted := strings.Cut(tool, "(")
		if !restricted && (name == "NotebookEdit" || slices.Contains(fileTools, name)) {
			tool += "(./**)"
		}
		add(&out, tool)
		if name == "Write" || name == "NotebookEdit" {
			add(&out, "Edit"+strings.TrimPrefix(tool, name))
		}
	}
	return out
}

// merged returns settings with those that byProvider declares for their provider, and where each of these stands.
func merged(with json.RawMessage) (_ json.RawMessage, given map[string]json.RawMessage, from map[string]string, err error) {
	if len(bytes.TrimSpace(with)) == 0 {
		return with, nil, nil, nil
	}
	if err := json.Unmarshal(with, &given); err != nil {
		return nil, nil, nil, err
	}
	var by map[string]map[string]json.RawMessage
	var provider string
	if given["byProvider"] == nil || json.Unmarshal(given["byProvider"], &by) != nil || json.Unmarshal(given["provider"], &provider) != nil {
		return with, given, nil, nil
	}
	delete(given, "byProvider")
	from = map[string]string{}
	for name, value := range by[provider] {
		given[name], from[name] = value, "byProvider."+provider+"."+name
	}
	with, err = json.Marshal(given)
	return with, given, from, err
}

// neutralSystem stands where a program would otherwise send the long instructions of a coding agent. Q2
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

// fallBack takes the next model after each failure of a service that was overloaded or out of reach, and the first again
// after the last. Other failures, a bad answer say, are the same model's to put right.
func (s *settings) fallBack(t *nodes.Task) {
	if n := t.FailedWith["transient"] % (len(s.FallbackModels) + 1); n > 0 {
		s.Model = s.FallbackModels[n-1]
	}
}
