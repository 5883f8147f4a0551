package capability

import (
	"maps"
	"slices"
)

// A Provider is what is known of a provider beside its capabilities.
type Provider struct {
	Name string
	// Service says that it is asked by HTTP; the others are programs.
	Service bool
	// Vendor is whose models it asks, as price lists name it; "" = not certain.
	Vendor string
	// Keys are the variables that hold its key, Login how a user gets it to answer where a key is refused.
	Keys  []string
	Login string
	// Tools are the tools that it knows by the names of #Agent, with what stands for each there; nil = under its own
	// name. No Tools: any name is taken.
	Tools map[string][]string
	// Keeps is how long a service may be told to keep the beginning of a prompt.
	Keeps []string
	// Most is what one request may hold. What is over it would be refused after it has been sent.
	Most Request
}

// A Request is how much a request may hold.
type Request struct {
	Bytes, Picture int // of base64: in all, and a picture
	Pictures       int // in all
	Side           int // pixels, the longer side of a picture; 0 = any
	Many, ManySide int // with more pictures than Many, that side
}

// Providers are all providers, in the order of tables and messages.
var Providers = []Provider{
	{Name: "sim"},
	{
		Name: "claude", Vendor: "anthropic",
		Keys:  []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		Login: "log in with `claude /login` or set ANTHROPIC_API_KEY",
		Tools: named("NotebookEdit", "Bash", "BashOutput", "KillShell", "WebFetch", "WebSearch", "Agent", "Task",
			"TodoWrite", "Skill"),
	},
	{
		Name: "codex", Vendor: "openai",
		Keys:  []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		Login: "log in with `codex login` or set OPENAI_API_KEY",
		Tools: named("Bash", "WebSearch"),
	},
	{
		Name: "gemini", Vendor: "gemini",
		Keys:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Login: "start `gemini` and log in, or set GEMINI_API_KEY",
		Tools: map[string][]string{
			"Read": {"read_file", "read_many_files"}, "Write": {"write_file"}, "Edit": {"replace"},
			"Grep": {"grep_search"}, "WebSearch": {"google_web_search"},
			"Glob": {"list_directory"}, // its own glob lists names outside of the folder too
		},
	},
	{Name: "command"},
	{
		Name: "anthropic", Service: true, Vendor: "anthropic",
		Keys:  []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
		Login: "set ANTHROPIC_API_KEY to a valid key",
		Keeps: []string{"5m", "1h", "off"},
		Most: Request{
			Bytes: 30 << 20, Picture: 5 << 20, Pictures: 100, Side: 8000, Many: 20, ManySide: 2000,
		},
	},
	{
		Name: "openai", Service: true, Vendor: "openai",
		Keys:  []string{"OPENAI_API_KEY"},
		Login: "set OPENAI_API_KEY to a valid key",
		Keeps: []string{"30m", "off"},
		Most:  Request{Bytes: 48 << 20, Picture: 20 << 20, Pictures: 500},
	},
}

// Of returns a provider; one that is not known (yet) is empty.
func Of(name string) Provider {
	i := slices.IndexFunc(Providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}
	}
	return Providers[i]
}

// Names returns the names of all providers.
func Names() (list []string) {
	for _, p := range Providers {
		list = append(list, p.Name)
	}
	return list
}

// FileTools are the tools whose reach is a path. All providers that have tools know them by these names.
var FileTools = []string{"Read", "Write", "Edit", "Glob", "Grep"}

// named are the file tools and others, each under its own name.
func named(others ...string) map[string][]string {
	tools := map[string][]string{}
	for _, name := range slices.Concat(FileTools, others) {
		tools[name] = nil
	}
	return tools
}

// ToolNames returns the tools that a provider knows, without those of its servers.
func (p Provider) ToolNames() []string { return slices.Sorted(maps.Keys(p.Tools)) }
