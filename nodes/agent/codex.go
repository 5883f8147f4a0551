package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

// codexMost is the longest prompt that codex takes, in characters.
const codexMost = 1 << 20

// startCodex runs the codex command line agent.
func startCodex(q *question) (*program, error) {
	prompt := firstLine + q.prompt()
	if n := utf8.RuneCountInString(prompt); n > codexMost {
		msg := fmt.Sprintf("the prompt has %d characters; codex takes %d", n, codexMost)
		return nil, nodes.Permanent(nodes.Fail("input_too_big", msg))
	}
	argv := q.set.program("codex")
	confined, err := codexTools(q, argv[0])
	if err != nil {
		return nil, err
	}
	argv = append(argv, "exec", "--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--ignore-rules")
	argv = slices.Concat(argv, codexQuiet, confined)
	if system := cmp.Or(q.system, q.set.neutral()); system != "" && len(q.set.Tools) > 0 {
		argv = append(argv, "-c", "developer_instructions="+quoted(system))
	} else if system != "" {
		if err := writeInto(q.task.Scratch, "system.md", []byte(system)); err != nil {
			return nil, err
		}
		argv = append(argv, "-c", "model_instructions_file="+quoted(filepath.Join(q.task.Scratch, "system.md")))
	}
	argv = append(argv, configs(`model_provider="dagrun"`, "model_providers.dagrun="+codexService(q.set))...)
	if q.set.Model != "" {
		argv = append(argv, "-m", q.set.Model)
	}
	if q.set.Effort != "" {
		argv = append(argv, "-c", "model_reasoning_effort="+quoted(q.set.Effort))
	}
	if sh := q.set.native(); sh != nil {
		if err := writeInto(q.task.Scratch, "schema.json", sh.Strict(true)); err != nil {
			return nil, err
		}
		argv = append(argv, "--output-schema", filepath.Join(q.task.Scratch, "schema.json"))
	}
	p := &program{argv: append(append(argv, q.set.Flags...), "-"), pass: passed("codex"), stdin: prompt}
	if q.set.Home == "own" {
		p.env = map[string]string{"CODEX_HOME": filepath.Join(q.task.Scratch, "home")}
	}
	return p, nil
}

// codexService describes the API, because retries can be turned off only for one that is not built in. A key in
// OPENAI_API_KEY is used where the program has a home of its own or another address; else what it was logged in with.
func codexService(s *settings) string {
	account := `base_url=` + quoted(cmp.Or(s.BaseURL, "https://api.openai.com/v1")) + `,env_key="OPENAI_API_KEY"`
	if s.BaseURL == "" && (s.Home == "user" || !s.holds("OPENAI_API_KEY")) {
		account = "requires_openai_auth=true"
	}
	return `{name="dagrun",` + account +
		`,wire_api="responses",request_max_retries=0,stream_max_retries=0,supports_websockets=false}`
}

// codexQuiet turns off what is not the call: own retries, updates, statistics, what the agent remembers, and
// the texts about its surroundings. Names of codex 0.171.0; a version that does not know one passes over it.
var codexQuiet = configs(
	"check_for_update_on_startup=false", "analytics.enabled=false", "feedback.enabled=false",
	`history.persistence="none"`, "features.unbounded_connection_retries=false",
	"project_doc_max_bytes=0", "skills.include_instructions=false", "include_environment_context=false",
	"include_permissions_instructions=false", "include_collaboration_mode_instructions=false",
	"features.apps=false", "features.plugins=false",
)

// codexOff are the tools that no node is given.
var codexOff = configs(
	"agents.enabled=false", "features.multi_agent=false", "features.goals=false", "features.skill_search=false",
	"features.sleep_tool=false", "features.tool_suggest=false", "features.image_generation=false",
	"tools.experimental_request_user_input.enabled=false",
)

// codexNone takes away the rest. codex offers its own models a cell for code in any case; without its host nothing
// runs in that.
var codexNone = configs("features.shell_tool=false", "features.unified_exec=false", "features.code_mode_host=false",
	"features.view_image=false")

func configs(list ...string) (args []string) {
	for _, c := range list {
		args = append(args, "-c", c)
	}
	return args
}

// codexTools says what the agent may do: nothing, or what a shell can do in a sandbox that shows the system's
// own files and the working folder and has no network.
func codexTools(q *question, program string) ([]string, error) {
	search, access := "disabled", ""
	for _, tool := range q.set.Tools {
		switch tool {
		case "WebSearch":
			search = "live"
		case "Write", "Edit", "Bash":
			access = "write"
		case "Read", "Glob", "Grep":
			access = cmp.Or(access, "read")
		}
	}
	args := slices.Concat(codexOff, configs("web_search="+quoted(search)))
	if access == "" {
		return append(append(args, codexNone...), "--sandbox", "read-only"), nil
	}
	own, err := installed(program)
	if err != nil {
		return nil, err
	}
	files := fmt.Sprintf(`{":minimal"="read",%s="read",":workspace_roots"={"."=%q}}`, quoted(own), access)
	return append(args, configs(`default_permissions="dagrun"`, "permissions.dagrun.network.enabled=false",
		"permissions.dagrun.filesystem="+files)...), nil
}

// installed returns the folder that a program needs to see to start itself again: its own, or of one that npm has
// installed that of its packages.
func installed(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", nodes.Fail("spawn_failed", err.Error())
	}
	dir := filepath.Dir(path)
	if at := strings.Index(path, "/node_modules/@openai/"); at >= 0 {
		dir = path[:at] + "/node_modules/@openai"
	}
	return dir, nil
}

// quoted writes text as TOML.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a JSON string is one of TOML too
	return string(b)
}
