package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/proc"
)

// known are the programs that are looked for, in this order. Real binaries stand before the scripts
// that distributions put in front of them: a script that does not become the browser hides its
// process. The headless shell needs half of the memory.
var known = []string{
	"/usr/lib/chromium/chromium-headless-shell",
	"/usr/lib/chromium/chromium",
	"/usr/lib/chromium-browser/chromium-browser",
	"/usr/lib64/chromium-browser/chromium-browser",
	"/opt/google/chrome/chrome",
	"chrome-headless-shell",
	"chromium-headless-shell",
	"headless_shell",
	"chromium",
	"chromium-browser",
	"google-chrome",
	"google-chrome-stable",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
}

// Unavailable says that no browser can be used here: none found, or it does not start.
type Unavailable struct{ Failure *nodes.Error }

// Error says why.
func (u *Unavailable) Error() string { return u.Failure.Error() }

// Unwrap returns the failure with its category.
func (u *Unavailable) Unwrap() error { return u.Failure }

// unavailable makes the failure that the settings ask for. Without a browser the run stops for
// the user; with missing: degrade only the node fails.
func (s *Settings) unavailable(category, message, diagnostics string) *Unavailable {
	if s.Missing == "degrade" && category == "config" {
		category = "screenshot_failed"
	}
	return &Unavailable{&nodes.Error{Category: category, Message: message, Diagnostics: diagnostics}}
}

// find returns the browser's program. Relative paths begin at specDir.
func (s *Settings) find(specDir string) (string, error) {
	if s.Path == "" {
		for _, name := range known {
			if path, err := exec.LookPath(name); err == nil {
				return path, nil
			}
		}
		return "", errors.New("no browser found (chromium-headless-shell, chromium or the like)")
	}
	path := s.Path
	if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
		path = filepath.Join(specDir, path)
	}
	path, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("no browser found at %s: %w", s.Path, err)
	}
	return path, nil
}

// locate returns the browser's program, installing it when that is allowed and it is missing. warn may be nil.
func (s *Settings) locate(ctx context.Context, specDir, scratch string, warn func(msg string)) (string, error) {
	path, err := s.find(specDir)
	if err == nil {
		return path, nil
	}
	if len(s.Install) == 0 {
		u := s.unavailable("config", err.Error()+"; install one, name its path, or allow a command to install it", "")
		u.Failure.Permanent = true
		return "", u
	}
	if warn != nil {
		warn(err.Error() + "; running " + strings.Join(s.Install, " "))
	}
	failed := s.install(ctx, specDir, scratch)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if path, err := s.find(specDir); err == nil {
		return path, nil // whatever the command said
	}
	if failed == nil {
		failed = &nodes.Error{Message: "it succeeded, but there is still no browser"}
	}
	return "", s.unavailable("config", err.Error()+"; installing it failed: "+failed.Message, failed.Diagnostics)
}

// install runs the command that may install a browser.
func (s *Settings) install(ctx context.Context, specDir, scratch string) *nodes.Error {
	ctx, cancel := context.WithTimeout(ctx, s.InstallTimeout.D())
	defer cancel()
	r, err := proc.Run(ctx, &proc.Spec{
		Argv: s.Install, Dir: specDir, Env: proc.Environ([]string{"DEBIAN_FRONTEND"}, nil), Spool: scratch,
	})
	if err != nil {
		return &nodes.Error{Message: err.Error()}
	}
	defer r.Close()
	e := &nodes.Error{Diagnostics: r.LastWords()}
	switch {
	case r.Cause == proc.TimedOut:
		e.Message = fmt.Sprintf("it took longer than %v", s.InstallTimeout.D())
	case r.Signal != 0, r.Exit != 0:
		e.Message = r.ExitMessage()
	default:
		return nil
	}
	return e
}
