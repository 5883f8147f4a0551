package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes/agent/capability"
	"dagrun.dev/nodes/internal/proc"
)

// An Installation is what a machine has of one provider. Of keys it names those that are set, never what they hold.
type Installation struct {
	Provider string   `json:"provider"`
	Program  string   `json:"program,omitempty"` // its path; empty: there is none
	Version  string   `json:"version,omitempty"`
	Keys     []string `json:"keys,omitempty"` // variables with a key that are set
	Missing  string   `json:"missing,omitempty"`
}

// longestVersion is how long a program may take to say its version.
const longestVersion = 20 * time.Second

// Installed looks for each provider's program and key. Programs are asked for their version only, without the
// environment's keys and with an empty home below scratch.
func Installed(ctx context.Context, scratch string) []Installation {
	var list []Installation
	for _, p := range capability.Providers {
		in := Installation{Provider: p.Name}
		for _, key := range p.Keys {
			if os.Getenv(key) != "" {
				in.Keys = append(in.Keys, key)
			}
		}
		if p.Keys != nil && !p.Service {
			if path, err := exec.LookPath(p.Name); err != nil {
				in.Missing = "no program " + p.Name + " on PATH"
			} else if in.Version, err = version(ctx, path, filepath.Join(scratch, p.Name)); err != nil {
				in.Program, in.Missing = path, "--version: "+err.Error()
			} else {
				in.Program = path
			}
		}
		list = append(list, in)
	}
	return list
}

// version returns the first line that a program prints of its version.
func version(ctx context.Context, path, home string) (string, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, longestVersion)
	defer cancel()
	env := map[string]string{
		"HOME": home, "TMPDIR": home, "CODEX_HOME": home, "CLAUDE_CONFIG_DIR": home,
		"DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1",
	}
	res, err := proc.Run(ctx, &proc.Spec{
		Argv: []string{path, "--version"}, Dir: home, Env: proc.Environ(nil, env), Spool: home, Grace: time.Second,
	})
	if err != nil {
		return "", err
	}
	defer res.Close()
	if ctx.Err() != nil {
		return "", context.DeadlineExceeded
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(res.Stdout.HeadTail(200))), "\n")
	return printable.Clip(printable.Text(line), 80), nil
}
