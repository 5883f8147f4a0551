package specs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// decision is what the route of a cycle decided.
func decision(ends map[string]record, cycle int) string {
	return strings.Trim(string(ends[h(cycle, "route")].Payload.Values["decision"]), `"`)
}

// P-1, P-2, P-6, P-9, P-10, P-12, S-8, D-5: all phases with a real browser. The page is refined twice and ships in the
// third cycle; the others stand in the plan and are skipped.
func TestWholeRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.must("apply", corpus, "--seed", "7", "--quiet")
	ends := finished(s.events())
	for cycle, want := range []string{1: "refine", 2: "refine", 3: "ship"} {
		if cycle == 0 {
			continue
		}
		if got := decision(ends, cycle); got != want {
			t.Errorf("cycle %d decided %s, want %s: %s", cycle, got, want, ends[h(cycle, "route")].Payload.Values["reason"])
		}
		if got := string(ends[h(cycle, "gates")].Payload.Values["verdict"]); got != `"PROCEED_TO_PA"` {
			t.Errorf("the gates of cycle %d say %s: %s", cycle, got, ends[h(cycle, "gates")].Payload.Values["reason"])
		}
		if e := ends[h(cycle, "capture")]; string(e.Payload.Values["degraded"]) != "false" {
			t.Errorf("the pictures of cycle %d lack something: %s", cycle, e.Payload.Warnings)
		}
		s.read(fmt.Sprintf("_orchestrator/checkpoints/cp-PA-%d/manifest.json", cycle))
		for _, size := range []string{"1440x900", "768x1024", "375x812"} {
			s.read(fmt.Sprintf("_orchestrator/screenshots/cycle-%d/viewport-%s.png", cycle, size))
			s.read(fmt.Sprintf("_orchestrator/screenshots/cycle-%d/scroll-%s-step1.png", cycle, size))
		}
	}
	for cycle := 4; cycle <= 6; cycle++ {
		for id, e := range ends {
			if strings.HasPrefix(id, fmt.Sprintf("hardening/%d/", cycle)) && e.Payload.Status != "skipped" {
				t.Errorf("%s: %s", id, e.Payload.Status)
			}
		}
	}
	if out, err := s.dagrun(nil, "verify"); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	isolation(t, s)
	scores(t, s, "2.6", "3.2", "3.6")
	shownInReadme(t, "status", s.must("status"))
	s.holds()
}

// isolation proves that a reader was given what the plan permits and nothing else (P-7), and a
// refiner no measure (P-11).
func isolation(t *testing.T, s *site) {
	t.Helper()
	for _, name := range strings.Split("ABCDEFGHI", "") {
		prompt := s.read(fmt.Sprintf("_orchestrator/cycles/cycle-2/auditor-%s/prompt.md", name))
		for _, secret := range []string{"Conviction brief", "The page belongs to a workshop", "GR-0", "PROCEED_TO_PA", "Weaver", "Mechanism catalog", "Report of auditor", "3.5"} {
			if strings.Contains(prompt, secret) {
				t.Errorf("auditor %s is told of %q", name, secret)
			}
		}
		if got := s.read(fmt.Sprintf("hardening/cycle-2/auditor-%s-report.md", name)); !strings.Contains(got, "## Completion") {
			t.Errorf("the report of auditor %s has no completion table", name)
		}
	}
	for _, k := range []int{1, 2} {
		prompt := s.read(fmt.Sprintf("_orchestrator/cycles/cycle-1/refine-%d/prompt.md", k))
		if found := regexp.MustCompile(`PA-\d\d|GR-\d\d|Tier 5|\d\.\d/4`).FindString(prompt); found != "" {
			t.Errorf("refinement %d is told of %q", k, found)
		}
	}
}

// shortened is the specification with two subsets, three auditors, one width and a lower threshold.
func shortened(t *testing.T) string {
	return edit(t, func(s string) string {
		s = subsetsInOrder(1, 2)(s)
		s = auditorBlock.ReplaceAllString(s, "")
		s = replaced("\t{width: 768, height: 1024},\n\t{width: 375, height: 812},\n", "")(s)
		return replaced(`release: {type: "number", default: 3.5`, `release: {type: "number", default: 3.0`)(s)
	})
}

// shortenedRun is a whole run of it.
func shortenedRun(t *testing.T) *site {
	t.Helper()
	return once(t, "shortened", func(s *site) { s.must("apply", shortened(t), "--seed", "7", "--quiet") })
}

// D-2, P-1, P-10: an edited specification is another run: one width, three auditors, a lower threshold. It ships in
// its second cycle.
func TestEditedWholeRun(t *testing.T) {
	t.Parallel()
	s := shortenedRun(t)
	ends := finished(s.events())
	if a, b := decision(ends, 1), decision(ends, 2); a != "refine" || b != "ship" {
		t.Errorf("decided %s, then %s, want refine, then ship", a, b)
	}
	if got := ends[h(3, "capture")].Payload.Status; got != "skipped" {
		t.Errorf("a third cycle: %s", got)
	}
	if got := strings.Count(s.read("artifact.html"), `<section class="chapter"`); got != 2 {
		t.Errorf("%d chapters, want 2", got)
	}
	if _, err := os.Stat(filepath.Join(s.out, "_orchestrator/screenshots/cycle-1/viewport-375x812.png")); err == nil {
		t.Error("a picture of a width that was taken out")
	}
}

// withoutBrowser is the specification with one subset, two cycles and a browser that is not there.
func withoutBrowser(s string) string {
	s = subsetsInOrder(1)(s)
	s = replaced("cycles: 6", "cycles: 2")(s)
	s = replaced(`delays: ["5s", "10s"]`, `delays: ["1ms", "1ms"]`)(s)
	a, b := strings.Index(s, "\tinstall: [\"sh\""), strings.Index(s, "\tmissing: \"degrade\"")
	return s[:a] + "\tpath: \"/nowhere/chromium\"\n\tinstall: [\"false\"]\n" + s[b:]
}

// P-4, P-13: without a browser, and without the rights to install one, the cycle goes on with the source of the page
// and says so.
func TestWithoutBrowser(t *testing.T) {
	t.Parallel()
	spec := edit(t, withoutBrowser)
	s := newSite(t)
	out := s.must("apply", spec, "--seed", "7")
	ends := finished(s.events())
	if e := ends[h(1, "capture")]; e.Payload.Status != "failed" || e.Payload.Category != "screenshot_failed" {
		t.Errorf("the capture %s: %s", e.Payload.Status, e.Payload.Category)
	}
	if e := ends[h(1, "source")]; e.Payload.Status != "completed" {
		t.Errorf("the source was not laid out: %s", e.Payload.Status)
	}
	if got := string(ends[h(1, "gates")].Payload.Values["verdict"]); got != `"INCOMPLETE"` {
		t.Errorf("the gates say %s", got)
	}
	prompt := s.read("_orchestrator/cycles/cycle-1/auditor-A/prompt.md")
	if !strings.Contains(prompt, "There are no pictures this time") || !strings.Contains(prompt, `<section class="chapter"`) {
		t.Error("the auditors are not given the source")
	}
	if got := decision(ends, 2); got != "ship" {
		t.Errorf("the last cycle decided %s", got)
	}
	degradedIsTold(t, s, out)
	s.holds() // T-5, 9: it went on to its end
}

// P-12, S-5, B-10, T-5, K-2: a run that is killed while a pass is asked, a cycle while pictures are taken, while checks run in the browser, among the
// auditors, and between weaver and refinement goes on each time with what was in flight and no
// more, leaves no browser behind and counts its cycles once.
func TestKilledInACycle(t *testing.T) {
	t.Parallel()
	spec := shortened(t)
	s := newSite(t)
	args := []string{"apply", spec, "--seed", "7", "--quiet"}
	w := s.watch()
	for _, at := range []string{
		"LLM_CALL_STARTED S1/p2",
		"WORK_ITEM_STARTED " + h(1, "capture"),
		"GATE_RUN_STARTED " + h(1, "gates"),
		"LLM_CALL_STARTED " + h(1, "auditor-B"),
		"WORK_ITEM_FINISHED " + h(1, "weaver"),
	} {
		w.during(func() {
			if !s.killed(at, args...) {
				t.Errorf("the run was not killed at %s", at)
			}
		})
		s.quiet()
		args = []string{"resume", "--quiet"}
	}
	w.during(func() { s.must("resume", "--quiet") })
	if w.n < 20 {
		t.Errorf("only %d looks at the run", w.n)
	}
	s.holds()
	documented(t, s, `(B-)?[0-9].*`, 150)
	s.intact(shortenedRun(t))
	s.must("verify")
	saved := map[string]int{}
	for _, e := range s.events() {
		if e.Type == "CHECKPOINT_CREATED" {
			saved[e.Payload.ID]++
		}
	}
	if saved["cp-PA-1"] != 1 || saved["cp-PA-2"] != 1 {
		t.Errorf("checkpoints of the cycles: %v", saved)
	}
}

// temp is where runs that are killed put what they need outside the run.
func (s *site) temp() string {
	dir := filepath.Join(filepath.Dir(s.out), "temp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// quiet waits until no process is left whose command or environment names the folder of temp.
func (s *site) quiet() {
	s.t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			s.t.Errorf("left running after the kill: %q", left)
		}
	}()
	program.Await(s.t, "the end of what the killed run had started", func() bool {
		left = processesOf(s.temp())
		return len(left) == 0
	})
}

func processesOf(dir string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		cmd, _ := os.ReadFile(p + "/cmdline")
		env, _ := os.ReadFile(p + "/environ")
		if bytes.Contains(cmd, []byte(dir)) || bytes.Contains(env, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(cmd, []byte{0}, []byte(" "))))
		}
	}
	return found
}
