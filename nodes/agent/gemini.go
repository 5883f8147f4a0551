package agent

import (
	"context"
	"os"
	"path/filepath"
)

// gemini runs the gemini command line agent. It gives no sign of an answer that was cut; only
// the accept steps can see it.
type gemini struct{}

func (gemini) address() string { return "cli:gemini" }

// geminiSettings choose the API key: without them the agent asks for a login.
const geminiSettings = `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "selectedAuthType": "gemini-api-key"}` + "\n"

func (gemini) ask(ctx context.Context, q *question) (*reply, error) {
	argv := append([]string{}, q.set.Argv...)
	if len(argv) == 0 {
		argv = []string{"gemini"}
	}
	argv = append(argv, "--output-format", "json")
	if q.set.Model != "" {
		argv = append(argv, "-m", q.set.Model)
	}
	argv = append(argv, q.set.Flags...)
	env := map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_COLOR": "1"}
	if q.set.BaseURL != "" {
		env["GOOGLE_GEMINI_BASE_URL"] = q.set.BaseURL
	}
	if q.set.Home == "own" {
		dir := filepath.Join(q.task.Scratch, "home", ".gemini")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(geminiSettings), 0o600); err != nil {
			return nil, err
		}
	}
	p := &program{argv: argv, env: env, pass: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE"}, stdin: firstLine + withSystem(q), output: geminiFormat}
	return p.run(ctx, q)
}

func (gemini) recall(q *question) (*reply, error) {
	return (&program{output: geminiFormat}).recall(q)
}
