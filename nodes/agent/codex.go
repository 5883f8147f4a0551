package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

// codex runs the codex command line agent.
type codex struct{}

func (codex) address() string { return "cli:codex" }

// codexMost is the longest prompt that codex takes, in characters.
const codexMost = 1 << 20

func (codex) ask(ctx context.Context, q *question) (*reply, error) {
	prompt := firstLine + withSystem(q)
	if n := utf8.RuneCountInString(prompt); n > codexMost {
		return nil, nodes.Permanent(nodes.Fail("input_too_big", fmt.Sprintf("the prompt has %d characters; codex takes %d", n, codexMost)))
	}
	sandbox := "read-only"
	if len(q.set.Tools) > 0 {
		sandbox = "workspace-write"
	}
	argv := append([]string{}, q.set.Argv...)
	if len(argv) == 0 {
		argv = []string{"codex"}
	}
	argv = append(argv, "exec", "--json", "--skip-git-repo-check", "--sandbox", sandbox)
	if q.set.BaseURL != "" {
		argv = append(argv, "-c", `model_provider="dagrun"`, "-c", fmt.Sprintf(
			`model_providers.dagrun={name="dagrun",base_url=%q,env_key="OPENAI_API_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0,supports_websockets=false}`, q.set.BaseURL))
	}
	if q.set.Model != "" {
		argv = append(argv, "-m", q.set.Model)
	}
	if sh := q.set.native(); sh != nil {
		file := filepath.Join(q.task.Scratch, "schema.json")
		if err := os.WriteFile(file, sh.Strict(true), 0o600); err != nil {
			return nil, err
		}
		argv = append(argv, "--output-schema", file)
	}
	argv = append(append(argv, q.set.Flags...), "-")
	env := map[string]string{}
	if q.set.Home == "own" {
		env["CODEX_HOME"] = filepath.Join(q.task.Scratch, "home")
	}
	p := &program{argv: argv, env: env, pass: []string{"OPENAI_API_KEY", "CODEX_API_KEY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE"}, stdin: prompt, output: codexFormat}
	return p.run(ctx, q)
}

func (codex) recall(q *question) (*reply, error) {
	return (&program{output: codexFormat}).recall(q)
}

// withSystem puts the system prompt before the prompt, for agents that have no place for it.
func withSystem(q *question) string {
	if q.system == "" {
		return q.prompt
	}
	return q.system + "\n\n---\n\n" + q.prompt
}
