package agent

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"dagrun.dev/nodes/agent/capability"
)

// geminiDefault is asked where no model is named: otherwise the agent has another model choose one, in paid calls of
// their own.
const geminiDefault = "pro"

// geminiSettings are the agent's settings: the API key, because without it the agent asks for a login; the
// tools, by their names there; and off what is not the call: own retries, updates, statistics, sub-agents, extensions.
func geminiSettings(s *settings) ([]byte, error) {
	names := []string{} // null would be all
	for _, tool := range s.Tools {
		names = append(names, capability.Of("gemini").Tools[tool]...)
	}
	off := map[string]any{"enabled": false}
	set := map[string]any{
		"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}, "folderTrust": off},
		"general": map[string]any{
			"maxAttempts": 1, "enableAutoUpdate": false, "enableAutoUpdateNotification": false, "sessionRetention": off,
		},
		"privacy":      map[string]any{"usageStatisticsEnabled": false},
		"telemetry":    off,
		"skills":       off,
		"tools":        map[string]any{"core": names},
		"context":      map[string]any{"includeDirectoryTree": false},
		"model":        map[string]any{"maxSessionTurns": s.MaxTurns},
		"hooksConfig":  off,
		"experimental": map[string]any{"enableAgents": false, "extensionManagement": false},
	}
	config := map[string]any{}
	put(config, "temperature", s.Temperature)
	put(config, "maxOutputTokens", s.MaxOutputTokens)
	if len(config) > 0 {
		set["modelConfigs"] = map[string]any{"customOverrides": []any{map[string]any{
			"match":       map[string]any{"overrideScope": "core"},
			"modelConfig": map[string]any{"generateContentConfig": config},
		}}}
	}
	return json.Marshal(set)
}

// startGemini runs the gemini command line agent. It gives no sign of an answer that was cut; only
// the accept steps can see it.
func startGemini(q *question) (*program, error) {
	argv := append(q.set.program("gemini"),
		"--output-format", "json", "-e", "none", "-m", cmp.Or(q.set.Model, geminiDefault))
	if slices.Contains(q.set.Tools, "Write") || slices.Contains(q.set.Tools, "Edit") {
		argv = append(argv, "--approval-mode", "auto_edit")
	}
	env := map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_COLOR": "1"}
	if q.set.BaseURL != "" {
		env["GOOGLE_GEMINI_BASE_URL"] = q.set.BaseURL
	}
	set, err := geminiSettings(q.set)
	if err != nil {
		return nil, err
	}
	// The settings of a project stand over those of the user; with a home of its own there are no others.
	dir := filepath.Join(q.folder, ".gemini")
	if q.set.Home == "own" {
		dir = filepath.Join(q.task.Scratch, "home", ".gemini")
	}
	if err := writeInto(dir, "settings.json", set); err != nil {
		return nil, err
	}
	prompt := withSystem(q)
	if len(q.set.Tools) == 0 {
		prompt = q.prompt()
		env["GEMINI_SYSTEM_MD"] = filepath.Join(q.task.Scratch, "system.md")
		if err := writeInto(q.task.Scratch, "system.md", []byte(cmp.Or(q.system, q.set.neutral()))); err != nil {
			return nil, err
		}
	}
	return &program{argv: append(argv, q.set.Flags...), env: env, pass: passed("gemini"), stdin: firstLine + prompt}, nil
}

func writeInto(dir, name string, content []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), content, 0o600)
}
