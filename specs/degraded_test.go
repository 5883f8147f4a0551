package specs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// degradedIsTold proves that a run without pictures says so wherever somebody may look: in what it prints at its end,
// in its state, in status, in the report of errors and in the log (P-4).
func degradedIsTold(t *testing.T, s *site, summary string) {
	t.Helper()
	for place, text := range map[string]string{
		"summary": summary,
		"status":  s.must("status"),
	} {
		for _, want := range []string{h(1, "capture"), h(1, "gates"), "Degraded:", "no browser found"} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s does not say %q:\n%s", place, want, tail(text))
			}
		}
	}
	if n := strings.Count(summary, "not run: "); n < 2 {
		t.Errorf("the summary names what was not run %d times, want once for each cycle:\n%s", n, tail(summary))
	}
	if got := s.must("report", "errors"); !strings.Contains(got, h(1, "capture")+" failed") {
		t.Errorf("the report of errors does not name the capture:\n%s", tail(got))
	}
	if got := s.read("_orchestrator/snapshot.json"); !strings.Contains(got, `"degraded":true`) {
		t.Error("the state does not say degraded")
	}
	log := s.read("_orchestrator/logs/orchestrator.log")
	for line := range strings.Lines(log) {
		if strings.Contains(line, "[WARN]") && strings.Contains(line, h(1, "capture")) && strings.Contains(line, "no browser found") {
			return
		}
	}
	t.Errorf("no warning of the capture in the log:\n%s", tail(log))
}

// P-4: a browser that is missing is installed by the command that the specification allows, once and before money is
// spent, and then used.
func TestBrowserInstalled(t *testing.T) {
	t.Parallel()
	spec := edit(t, func(s string) string {
		s = replaced(`path: "/nowhere/chromium"`, `path: "./browser"`)(withoutBrowser(s))
		s = replaced(`install: ["false"]`, `install: ["sh", "install.sh"]`)(s)
		return replaced("\t{width: 768, height: 1024},\n\t{width: 375, height: 812},\n", "")(s)
	})
	dir := filepath.Dir(spec)
	script := "echo installed >>installs\n{ echo '#!/bin/sh'; echo 'exec " + realBrowser(t) + ` "$@"'; } >browser` + "\nchmod +x browser\n"
	if err := os.WriteFile(filepath.Join(dir, "install.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	out, err := s.dagrun([]string{"TMPDIR=" + s.temp()}, "apply", spec, "--seed", "7")
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(out))
	}
	s.quiet()
	if b, _ := os.ReadFile(filepath.Join(dir, "installs")); string(b) != "installed\n" {
		t.Errorf("the command ran %q, want once", b)
	}
	ends := finished(s.events())
	for _, cycle := range []int{1, 2} {
		if e := ends[h(cycle, "capture")]; e.Payload.Status != "completed" || string(e.Payload.Values["degraded"]) != "false" {
			t.Errorf("the capture of cycle %d: %s %s", cycle, e.Payload.Status, e.Payload.Values)
		}
		if e := ends[h(cycle, "source")]; e.Payload.Status != "skipped" {
			t.Errorf("the source of cycle %d: %s", cycle, e.Payload.Status)
		}
		if got := string(ends[h(cycle, "gates")].Payload.Values["notRun"]); got != "0" {
			t.Errorf("%s gates of cycle %d were not run", got, cycle)
		}
	}
	if prompt := s.read("_orchestrator/cycles/cycle-1/auditor-A/prompt.md"); strings.Contains(prompt, "There are no pictures") {
		t.Error("the auditors are told that there are no pictures")
	}
	if strings.Contains(out, "Degraded:") || !strings.Contains(out, "running sh install.sh") {
		t.Errorf("the run says:\n%s", tail(out))
	}
}

// realBrowser is the browser that tests use.
func realBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium", "chrome-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("these tests need a browser: internal/scripts/setup")
	return ""
}
