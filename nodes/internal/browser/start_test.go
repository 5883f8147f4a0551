package browser

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

func TestMain(m *testing.M) {
	if os.Getenv("BROWSER_TEST_HOST") != "" {
		hostForTest()
		return
	}
	set := defaultSettings()
	if _, err := set.find("."); err != nil {
		fmt.Fprintln(os.Stderr, "these tests need a browser: internal/scripts/setup, or apt-get install --no-install-recommends chromium-headless-shell fonts-liberation")
		os.Exit(1)
	}
	_ = flag.Set("test.parallel", "4") // they wait more than they compute
	os.Exit(m.Run())
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "browser.sh")
	nodetest.Script(t, path, "#!/bin/sh\n"+text)
	return path
}

// P-4: a browser that is missing, does not start or is silent is told from one another, in its own
// words; a command that is allowed to install it is tried.
func TestStart(t *testing.T) {
	var real Settings
	found, err := real.find(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		set      func(t *testing.T, s *Settings)
		category string
		message  string
		says     string // in the log
	}{
		{name: "refuses", set: func(t *testing.T, s *Settings) {
			s.Path = script(t, "echo 'Running as root without --no-sandbox is not supported.' >&2; exit 1")
		}, category: "config", message: "Running as root without --no-sandbox is not supported"},
		{name: "refuses, pictures are not needed", set: func(t *testing.T, s *Settings) {
			s.Path, s.Missing = script(t, "echo no >&2; exit 1"), "degrade"
		}, category: "screenshot_failed", message: "does not start: no"},
		{name: "is killed", set: func(t *testing.T, s *Settings) { s.Path = script(t, "kill -9 $$") }, category: "config", message: "does not start"},
		{name: "silent, with a child", set: func(t *testing.T, s *Settings) { s.Path = script(t, "sleep 300 &\nwait") }, category: "stalled", message: "waits.launch"},
		{name: "silent, deaf to signals", set: func(t *testing.T, s *Settings) {
			s.Path = script(t, "trap '' TERM INT HUP\nwhile :; do sleep 1; done")
		}, category: "stalled", message: "waits.launch"},
		{name: "missing", set: func(_ *testing.T, s *Settings) { s.Path = "no-such-browser" }, category: "config", message: "no browser found at no-such-browser"},
		{name: "missing, pictures are not needed", set: func(_ *testing.T, s *Settings) { s.Path, s.Missing = "no-such-browser", "degrade" }, category: "screenshot_failed", message: "no browser found"},
		{name: "missing, installed", set: func(t *testing.T, s *Settings) {
			s.Path = filepath.Join(t.TempDir(), "shell")
			s.Install = []string{"ln", "-s", found, s.Path}
		}, says: "ln -s"},
		{name: "missing, not installable", set: func(_ *testing.T, s *Settings) {
			s.Path, s.Install = "no-such-browser", []string{"sh", "-c", "echo no network >&2; exit 7"}
		}, category: "config", message: "exit status 7", says: "sh -c"},
		{name: "missing, installer hangs", set: func(_ *testing.T, s *Settings) {
			s.Path, s.Install, s.InstallTimeout = "no-such-browser", []string{"sleep", "300"}, nodes.Duration(500*time.Millisecond)
		}, category: "config", message: "longer than 500ms"},
		{name: "missing, installed nothing", set: func(_ *testing.T, s *Settings) {
			s.Path, s.Install = "no-such-browser", []string{"true"}
		}, category: "config", message: "still no browser"},
		{name: "further flags", set: func(_ *testing.T, s *Settings) { s.Flags = []string{"--user-agent=dagrun", "disable-gpu"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task, h := nodetest.New(t, "screenshot", nil)
			set, waits := defaultSettings(), short()
			waits.Launch = defaultWaits().Launch
			if c.category == "stalled" {
				waits.Launch = nodes.Duration(2 * time.Second)
			}
			c.set(t, &set)
			_, survivors, err := Look(context.Background(), task, &Job{
				Source: &Source{own: []byte(ownPage)}, Settings: &set, Waits: &waits, Scale: 1, Viewports: []Viewport{{400, 300}},
				Visit: func(int, *Page) error { return nil },
			})
			if got := nodetest.Category(err); got != c.category {
				t.Errorf("category %q, want %q: %v", got, c.category, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.message) {
				t.Errorf("message %q, want one with %q", err, c.message)
			}
			if log := strings.Join(h.Warned, "\n"); !strings.Contains(log, c.says) {
				t.Errorf("log %q, want %q in it", log, c.says)
			}
			if len(survivors) > 0 {
				t.Errorf("survivors: %v", survivors)
			}
			nothingLeft(t, task.Scratch)
		})
	}
}

// P-4: one look at the browser before money is spent tells what will not work, once for each browser.
func TestPreflight(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	bad := fmt.Sprintf(`{"browser": {"path": %q}, "page": {"file": "x"}}`, script(t, "echo x >>"+count+"; echo broken >&2; exit 1"))
	for _, c := range []struct {
		name     string
		with     []string
		category string
		warning  string
	}{
		{"works", []string{`{}`, `{"browser": {}}`, `{"viewports": "${later}"}`}, "", ""},
		{"broken", []string{bad, bad}, "config", ""},
		{"missing, pictures are not needed", []string{`{"browser": {"path": "no-such", "missing": "degrade"}}`}, "", "no pictures will be taken"},
		{"known later", []string{`{"browser": {"memoryMB": "${params.x}"}}`}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var warnings []string
			var err error
			seen := map[string]bool{}
			for _, w := range c.with {
				v := DefaultView()
				_ = json.Unmarshal([]byte(w), &v) // as far as it is known
				for _, n := range v.Needs() {
					if !seen[n.Name] {
						seen[n.Name] = true
						_, warnings, err = n.Find(context.Background(), nodes.Machine{SpecDir: t.TempDir(), Scratch: t.TempDir()})
					}
				}
			}
			if got := nodetest.Category(err); got != c.category {
				t.Errorf("category %q, want %q: %v", got, c.category, err)
			}
			if all := strings.Join(warnings, "\n"); c.warning == "" && all != "" || !strings.Contains(all, c.warning) {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
		})
	}
	if b, _ := os.ReadFile(count); strings.Count(string(b), "x") != 2 { // once, and once more because it ended at once
		t.Errorf("the broken browser was started %d times, want 2", strings.Count(string(b), "x"))
	}
}

// hostForTest looks at a page until it is killed.
func hostForTest() {
	set, waits := defaultSettings(), defaultWaits()
	set.Path = os.Getenv("BROWSER_TEST_PATH")
	task := &nodes.Task{Scratch: os.Getenv("BROWSER_TEST_HOST"), Warn: func(string) {}, Beat: func() {}}
	_, _, err := Look(context.Background(), task, &Job{
		Source: &Source{own: []byte(ownPage)}, Settings: &set, Waits: &waits, Scale: 1, Viewports: []Viewport{{400, 300}},
		Visit: func(_ int, p *Page) error {
			fmt.Println("looking", pid(p))
			select {}
		},
	})
	fmt.Println(err)
}
