package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// T2: without tools nothing can run; with them a shell whose sandbox holds it to the folder and to the system's own
// files. Own retries, updates and statistics are off with or without an address (Q8).
func TestCodexTools(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	out := `{"type":"item.completed","item":{"type":"agent_message","text":"fine"}}` + "\n" + `{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}`
	quiet := []string{"arg check_for_update_on_startup=false", "arg analytics.enabled=false", "arg --ephemeral", "arg --ignore-user-config"}
	for _, tt := range []struct {
		tools []string
		want  []string
		not   []string
	}{
		{nil, []string{"arg --sandbox\narg read-only", "arg features.shell_tool=false", "arg features.code_mode_host=false", `arg web_search="disabled"`}, []string{"permissions.dagrun", "developer_instructions"}},
		{[]string{"Read", "Glob"}, []string{`arg default_permissions="dagrun"`, "arg permissions.dagrun.network.enabled=false", `arg web_search="disabled"`}, []string{"features.shell_tool", `"."="write"`, "model_instructions_file"}},
		{[]string{"Read", "Write"}, []string{`arg web_search="disabled"`}, []string{`"."="read"`}},
		{[]string{"WebSearch"}, []string{"arg features.shell_tool=false", `arg web_search="live"`}, []string{"permissions.dagrun"}},
	} {
		record, _, _ := spied(t, out, m{"provider": "codex", "tools": tt.tools, "effort": "high"})
		wants(t, record, append(append(tt.want, quiet...), `arg model_reasoning_effort="high"`)...)
		wantsNot(t, record, tt.not...)
		if !strings.Contains(record, "requires_openai_auth=true") || !strings.Contains(record, "stream_max_retries=0") {
			t.Errorf("%v: %s", tt.tools, record)
		}
	}
}

// T2, Q8: settings of its own with the tools by their names there and everything else off; a text of a node's own
// instead of the agent's. Without a model the agent would ask another one, several times, which to take.
func TestGeminiSettings(t *testing.T) {
	for _, tt := range []struct {
		with m
		want string
		args []string
	}{
		{m{}, `"core":[]`, []string{"arg -m\narg pro", "arg -e\narg none"}},
		{m{"tools": []string{"Read", "Glob"}}, `"core":["read_file","read_many_files","list_directory"]`, nil},
		{m{"tools": []string{"Write"}, "maxTurns": 4}, `"maxSessionTurns":4`, []string{"arg --approval-mode\narg auto_edit"}},
		{m{"model": "g", "temperature": 0.5, "maxOutputTokens": 9}, `"customOverrides":[{"match":{"overrideScope":"core"},"modelConfig":{"generateContentConfig":{"maxOutputTokens":9,"temperature":0.5}}}]`, []string{"arg -m\narg g"}},
	} {
		tt.with["provider"] = "gemini"
		tt.with["system"] = m{"text": "Be brief."}
		var scratch string
		record, _, _ := spied(t, `{"response": "fine", "stats": {"models": {}}}`, tt.with, func(task *nodes.Task, _ *nodetest.Host) { scratch = task.Scratch })
		wants(t, record, tt.args...)
		raw, err := os.ReadFile(filepath.Join(scratch, "home", ".gemini", "settings.json"))
		if err != nil || !strings.Contains(string(raw), tt.want) || !strings.Contains(string(raw), `"maxAttempts":1,`) || !strings.Contains(string(raw), `"usageStatisticsEnabled":false`) {
			t.Errorf("%v: %s %v", tt.with, raw, err)
		}
		own := strings.Contains(record, "env GEMINI_SYSTEM_MD=")
		if own == (tt.with["tools"] != nil) || own == strings.Contains(record, "stdin Be brief.") {
			t.Errorf("%v: the system text in\n%s", tt.with, record)
		}
	}
}
