package agent

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/simagent"
)

// startClaude runs the claude command line agent, or the simulated agent, which speaks the same way.
//
// Always stream-json: the result field alone may be only the tail of a long answer. Its object
// is the stream's last line.
func startClaude(q *question) (*program, error) {
	system, prompt := q.headed()
	if system == "" && q.set.Provider == "claude" {
		system = q.set.neutral()
	}
	if len(system) > mostArgument {
		msg := "the system prompt is too long for a command line; put it into the prompt"
		return nil, nodes.Permanent(nodes.Fail("config", msg))
	}
	p := &program{
		argv:  q.set.program("claude"),
		env:   claudeEnv(q),
		pass:  append(passed("claude"), "NODE_EXTRA_CA_CERTS"),
		stdin: firstLine + prompt,
	}
	if q.set.Provider == "sim" {
		if err := simulate(q, p, system); err != nil {
			return nil, err
		}
	}
	p.argv = append(p.argv, claudeFlags(q, system)...)
	return p, nil
}

func claudeFlags(q *question, system string) []string {
	s := q.set
	flags := []string{
		"-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config",
		"--setting-sources", "",
		"--max-turns", strconv.Itoa(s.MaxTurns), "--tools", strings.Join(bare(s.Tools), ","),
	}
	flags = append(flags, q.session.args()...)
	if len(s.Tools) > 0 {
		flags = append(flags, "--allowedTools", strings.Join(confined(s.Tools), ","))
	}
	for _, o := range [][]string{{"--model", s.Model}, {"--effort", s.Effort}, {"--system-prompt", system}} {
		if o[1] != "" {
			flags = append(flags, o...)
		}
	}
	if s.MaxUSD > 0 {
		flags = append(flags, "--max-budget-usd", strconv.FormatFloat(s.MaxUSD, 'f', -1, 64))
	}
	if sh := s.native(); sh != nil {
		flags = append(flags, "--json-schema", sh.String())
	}
	if q.task.Silence > 0 {
		flags = append(flags, "--include-partial-messages") // a sign of life while a long answer is written
	}
	return append(flags, s.Flags...)
}

// bare returns tool names without their restrictions: "Bash(git *)" is Bash.
func bare(tools []string) []string {
	var out []string
	for _, t := range tools {
		name, _, _ := strings.Cut(t, "(")
		out = append(out, strings.TrimSpace(name))
	}
	return unique(out)
}

// claudeEnv turns off the agent's own retries (they hide faults for minutes), its reading of
// files that a prompt names by @path, and everything that is not the call.
func claudeEnv(q *question) map[string]string {
	env := map[string]string{
		"CLAUDE_CODE_MAX_RETRIES":                   "0",
		"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1", // a stream that was cut would be paid for again.
		"CLAUDE_CODE_DISABLE_ATTACHMENTS":           "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC":  "1",
		"DISABLE_TELEMETRY":                         "1",
		"DISABLE_AUTO_COMPACT":                      "1",
		"DISABLE_AUTOUPDATER":                       "1",
		"DISABLE_ERROR_REPORTING":                   "1",
	}
	if q.set.native() != nil && len(q.set.Tools) > 0 {
		env["MAX_STRUCTURED_OUTPUT_RETRIES"] = "2" // see answerSettings
	}
	if q.set.Home == "own" {
		env["CLAUDE_CONFIG_DIR"] = filepath.Join(q.task.Scratch, "home", ".claude")
	}
	if q.session != nil {
		env["CLAUDE_CONFIG_DIR"] = q.base(claudeHome)
	}
	if q.set.MaxOutputTokens > 0 {
		env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = strconv.FormatInt(q.set.MaxOutputTokens, 10)
	}
	if n, ok := q.set.thinking(); ok {
		env["MAX_THINKING_TOKENS"] = strconv.FormatInt(n, 10)
	}
	if q.task.Timeout > 0 {
		env["API_TIMEOUT_MS"] = strconv.FormatInt((q.task.Timeout * 95 / 100).Milliseconds(), 10)
	}
	if q.set.BaseURL != "" {
		env["ANTHROPIC_BASE_URL"] = q.set.BaseURL
	}
	return env
}

// simulate puts the simulated agent in the place of claude.
func simulate(q *question, p *program, system string) error {
	t := q.task
	work := simagent.Work{
		Answers: q.set.Sim.Answers, Delay: q.set.Sim.Delay.D(), Dir: t.SpecDir,
		Node: t.Node, Generation: t.Generation, Attempt: t.Attempt, Failures: t.Failures, Labels: t.Labels, Seed: t.Seed,
		Model: cmp.Or(q.set.Model, "simulated"), System: system, FirstLine: firstLine,
		MaxTurns: q.set.MaxTurns, Tools: q.set.Tools,
	}
	var err error
	if work.Faults, err = simagent.LoadFaults(q.set.Sim.Faults, t.SpecDir); err != nil {
		return nodes.Permanent(nodes.Fail("config", "sim.faults: "+err.Error()))
	}
	raw, err := json.Marshal(work)
	if err != nil {
		return err
	}
	file := filepath.Join(t.Scratch, "sim.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	p.env[simagent.Variable] = file
	if len(q.set.Argv) == 0 {
		p.argv = []string{t.Binary, "sim-agent"}
	}
	return nil
}
