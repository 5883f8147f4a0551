package agent

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
)

var update = flag.Bool("update", false, "rewrite PROVIDERS.md")

func described(t *testing.T, with m) nodes.Traits {
	t.Helper()
	with["prompt"] = m{"text": "p"}
	raw, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Kind.Describe(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// A-2, Q4: what a provider cannot do is a mistake at its path, which names those that can.
func TestUnable(t *testing.T) {
	for _, tt := range []struct {
		with m
		want []string // path: text
	}{
		{m{"provider": "claude", "temperature": 1}, []string{"temperature: provider claude cannot set a temperature; providers that can: gemini, anthropic, openai"}},
		{m{"provider": "codex", "maxTurns": 3, "maxOutputTokens": 5}, []string{
			"maxOutputTokens: provider codex cannot limit the length of an answer; providers that can: claude, gemini, anthropic, openai",
			"maxTurns: provider codex cannot limit the turns; providers that can: claude, gemini",
		}},
		{m{"provider": "gemini", "temperature": 1, "maxOutputTokens": 5}, nil},
		{m{"provider": "anthropic", "model": "x", "tools": []string{"Read"}}, []string{"tools: provider anthropic cannot use tools; providers that can: claude, codex, gemini"}},
		{m{"provider": "openai", "model": "x", "home": "user"}, []string{"home: provider openai cannot start a program; providers that can: claude, codex, gemini, command"}},
		{m{"provider": "claude", "params": m{"a": 1}, "headers": m{"a": "b"}}, []string{
			"headers: provider claude cannot change the request; providers that can: anthropic, openai",
			"params: provider claude cannot change the request; providers that can: anthropic, openai",
		}},
		{m{"provider": "anthropic", "model": "x", "thinking": 5000, "maxOutputTokens": 5000, "temperature": 0.5, "headers": m{"X-A": "a\nb"}}, []string{
			"headers.X-A: HTTP cannot send it: a line break or another character that no header may hold",
			"thinking: 5000 tokens leave nothing for the answer: they count against maxOutputTokens, which is 5000",
			"temperature: provider anthropic refuses one while it thinks; leave it out, or thinking",
		}},
		{m{"provider": "anthropic", "model": "x", "temperature": 1.5}, []string{"temperature: provider anthropic takes 0 to 1, not 1.5"}},
		{m{"provider": "anthropic", "model": "x", "thinking": 2000, "maxOutputTokens": 5000, "temperature": 1}, nil},
		{m{"provider": "anthropic", "model": "x", "api": "responses"}, []string{"api: provider anthropic cannot choose the API; providers that can: openai"}},
		{m{"provider": "claude", "tools": []string{"Write ", "Read(./**", "Bash()", "Bash(git *)", "Bash(f(x))"}}, []string{
			`tools.0: provider claude has no tool "Write "; did you mean "Write"?`,
			`tools.1: want a name, or a name and a rule in brackets such as Read(./docs/**), not "Read(./**"`,
			`tools.2: want a name, or a name and a rule in brackets such as Bash(./docs/**), not "Bash()"`}},
		{m{"provider": "claude", "tools": []string{"Raed", "Banana"}}, []string{
			`tools.0: provider claude has no tool "Raed"; did you mean "Read"?`,
			`tools.1: provider claude has no tool "Banana"; it has Agent, Bash, BashOutput, Edit, Glob, Grep, KillShell, NotebookEdit, Read, Skill, Task, TodoWrite, WebFetch, WebSearch, Write`,
		}},
		{m{"provider": "codex", "tools": []string{"Read(/data/**)"}}, []string{"tools.0: provider codex takes no paths and patterns with a tool; write Read"}},
		{m{"provider": "claude", "tools": []string{"Read(/data/**)", "Bash(git *)", "mcp__x__y", "Glob"}}, nil},
		{m{"provider": "codex", "session": "continue"}, []string{"session: provider codex cannot go on with work that was cut; providers that can: claude"}},
		{m{"provider": "anthropic", "model": "x", "session": "continue"}, []string{"session: provider anthropic cannot go on with work that was cut; providers that can: claude"}},
		{m{"provider": "claude", "session": "continue", "home": "user"}, []string{"session: not with home user: the agent's memory of its work is kept with the node, not with the user"}},
		{m{"provider": "claude", "session": "continue"}, nil},
		{m{"provider": "claude", "fallbackModels": []string{"a", ""}}, []string{"fallbackModels.1: missing: the name of a model"}},
		{m{"provider": "gemini", "byProvider": m{"claude": m{"session": "continue"}}}, nil},
		// What the schema fills in asks for nothing.
		{m{"provider": "anthropic", "model": "x", "home": "own", "exitGrace": "10s", "onDenial": "warn", "onModelSwitch": "warn", "api": "chat"}, nil},
		{m{"provider": "anthropic", "model": "x", "argv": []string{}, "env": m{}, "baseURL": ""}, nil},
		// The simulated agent stands for any provider; a provider that is not known yet for none.
		{m{"provider": "sim", "sim": m{"answers": "a"}, "temperature": 1, "tools": []string{"Raed"}, "maxTurns": 2}, nil},
		{m{"provider": "${nodes.a.out.p}", "temperature": 1}, nil},
		// What holds for one provider only is asked of no other, and has its own path.
		{m{"provider": "codex", "byProvider": m{"claude": m{"temperature": 1, "maxTurns": 3}}}, nil},
		{m{"provider": "claude", "byProvider": m{"claude": m{"temperature": 1, "tools": []string{"Reed"}}}}, []string{
			"byProvider.claude.temperature: provider claude cannot set a temperature; providers that can: gemini, anthropic, openai",
			`byProvider.claude.tools.0: provider claude has no tool "Reed"; did you mean "Read"?`,
		}},
	} {
		var got []string
		for _, p := range described(t, tt.with).Problems {
			got = append(got, p.Path+": "+p.Text)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v:\n%s\nwant\n%s", tt.with, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// A provider that becomes known only when the node runs is held to the table then.
func TestUnableAtRun(t *testing.T) {
	s, err := read(json.RawMessage(`{"provider": "codex", "temperature": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := providerOf(s); err == nil || !strings.Contains(err.Error(), "temperature: provider codex cannot") {
		t.Errorf("%v", err)
	}
}

// Every setting of #Agent is in the table, or is one that every provider honours.
func TestTableIsWhole(t *testing.T) {
	known := map[string]bool{}
	for _, name := range strings.Fields("provider model prompt accept answer to flatRate secrets maxOutputMB command sim byProvider") {
		known[name] = true
	}
	for _, c := range capability.Rows() {
		for _, name := range c.Settings {
			known[name] = true
		}
		for name := range c.How {
			if !slices.Contains(capability.Names(), name) {
				t.Errorf("row %s: no provider %s", c.Name, name)
			}
		}
		if len(c.Settings) > 0 && c.Cannot == "" {
			t.Errorf("row %s says nothing to those who cannot", c.Name)
		}
	}
	typ := reflect.TypeFor[settings]()
	for i := range typ.NumField() {
		if name := typ.Field(i).Tag.Get("json"); name != "" && !known[name] {
			t.Errorf("setting %s is not in the table of providers", name)
		}
	}
}

// Whoever adds a provider is told of every place.
func TestEveryProviderIsWhole(t *testing.T) {
	if names := `#AgentProvider: "` + strings.Join(capability.Names(), `" | "`) + `" |`; !strings.Contains(Kind.Schema, names) {
		t.Errorf("schema.cue: want %s", names)
	}
	spoken := map[any]bool{}
	for _, s := range speakers() {
		spoken[s.with["provider"]] = true
	}
	for _, name := range capability.Names() {
		if _, err := providerOf(&settings{Provider: name}); err != nil {
			t.Errorf("providerOf in provider.go: %v", err)
		}
		if !spoken[name] {
			t.Errorf("%s speaks in none of the cases of TestAnswerTable: give it a speaker and a row in answer_table_test.go", name)
		}
		if !slices.ContainsFunc(capability.Rows(), func(r capability.Row) bool { return r.How[name] != "" }) {
			t.Errorf("capability/table.txt: no row says what %s can do", name)
		}
	}
}

// T1, T2: the plan says which tools reach beyond the attempt's folder.
func TestUnconfined(t *testing.T) {
	for _, tt := range []struct {
		with m
		want string
	}{
		{m{"provider": "claude", "tools": []string{"Read", "Write(./out/**)", "Read(/data/**)", "Bash"}}, "tool Read(/data/**) reaches beyond the attempt's folder; tool Bash reaches beyond the attempt's folder"},
		{m{"provider": "codex", "tools": []string{"Read", "Bash", "WebSearch"}}, "tool WebSearch reaches beyond the attempt's folder"},
		{m{"provider": "gemini", "tools": []string{"Read", "Glob"}}, ""},
		{m{"provider": "command", "argv": []string{"x"}}, "provider command: what its program reads and writes is confined by wrapper alone"},
	} {
		notes := slices.DeleteFunc(described(t, tt.with).Notes, func(n string) bool { return strings.HasPrefix(n, "timeout.silence") })
		if got := strings.Join(notes, "; "); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.with, got, tt.want)
		}
	}
}

// Q5: after failures of a service the next model is asked; after other failures the same.
func TestFallBack(t *testing.T) {
	for _, tt := range []struct {
		failed map[string]int
		want   string
	}{
		{nil, "a"}, {map[string]int{"bad_answer": 2}, "a"}, {map[string]int{"transient": 1, "bad_answer": 1}, "b"},
		{map[string]int{"transient": 2}, "c"}, {map[string]int{"transient": 3}, "a"},
	} {
		s := &settings{Model: "a", FallbackModels: []string{"b", "c"}}
		s.fallBack(&nodes.Task{FailedWith: tt.failed})
		if s.Model != tt.want {
			t.Errorf("%v: %s, want %s", tt.failed, s.Model, tt.want)
		}
	}
	// A further model that answers is the one that is paid for.
	res := &nodes.Result{}
	models(&settings{Model: "b", FallbackModels: []string{"b"}}, &reply{Models: []string{"b"}}, res)
	if res.Model != "b" || res.Warnings != nil {
		t.Errorf("model %q, warnings %q", res.Model, res.Warnings)
	}
}

// PROVIDERS.md shows the table as it is.
func TestProvidersPage(t *testing.T) {
	page, err := os.ReadFile("PROVIDERS.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "<!-- the table of capability; renew with -update -->\n"
	head, _, found := strings.Cut(string(page), begin)
	if !found {
		t.Fatalf("PROVIDERS.md lacks %q", begin)
	}
	var b strings.Builder
	b.WriteString(head + begin)
	for _, c := range capability.Rows() {
		fmt.Fprintf(&b, "\n### %s%s\n\n", c.Name, strings.TrimSuffix(" (`"+strings.Join(c.Settings, "`, `")+"`)", " (``)"))
		for _, name := range capability.Names() {
			fmt.Fprintf(&b, "- %s: %s\n", name, cmp.Or(c.How[name], "cannot"))
		}
	}
	b.WriteString("\n### Tools by name\n\n")
	for _, name := range capability.Names() {
		if list := capability.Of(name).ToolNames(); len(list) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", name, strings.Join(list, ", "))
		}
	}
	if *update {
		if err := os.WriteFile("PROVIDERS.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if b.String() != string(page) {
		t.Error("PROVIDERS.md is not the table of capability; renew it with -update")
	}
}

// P-2: what a machine must have for an agent is known although a limit of its prompt is what a node before it records.
func TestNeedsOfSettingsThatAreNotWholeYet(t *testing.T) {
	s, err := Kind.Parse([]byte(`{"provider":"codex","prompt":{"text":"a","limit":"${nodes.a.limit}"}}`))
	if err == nil {
		t.Fatal("a text was read as a number")
	}
	if needs := s.(nodes.Preflighter).Needs(); len(needs) != 1 || !strings.HasPrefix(needs[0].Name, "program codex ") {
		t.Errorf("%+v", needs)
	}
}
