package specs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// P-12, S-5: a run that is killed while its browser takes pictures leaves no browser behind, takes these pictures again
// and nothing else, and counts its cycles once.
func TestKilledWhileTakingPictures(t *testing.T) {
	spec := edit(t, func(s string) string {
		s = subsetsInOrder(1)(s)
		s = auditorBlock.ReplaceAllString(s, "")
		s = replaced("cycles: 6", "cycles: 2")(s)
		return replaced("\t{width: 768, height: 1024},\n\t{width: 375, height: 812},\n", "")(s)
	})
	s := newSite(t)
	cmd := program.Command(t.Context(), filepath.Join(program.Folder(t), "dagrun"), "apply", spec, "--seed", "7", "--quiet", "--output-dir", s.out)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+s.state, "HOME="+filepath.Dir(s.out), "TMPDIR="+s.temp())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program.Await(t, "the capture", func() bool { return s.logged("WORK_ITEM_STARTED", h(1, "capture")) })
	var browser string
	program.Await(t, "a browser that shows a page", func() bool {
		browser = s.browser()
		return browser != "" && tabsOf(browser) > 0
	})
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil { // it records nothing more
		t.Fatal(err)
	}
	if s.logged("WORK_ITEM_FINISHED", h(1, "capture")) {
		t.Error("the pictures were there already: nothing is tested")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	program.Await(t, "the end of the browser", func() bool { return tabsOf(browser) == 0 })
	s.quiet()

	s.must("resume", "--quiet")
	want := newSite(t)
	want.must("apply", spec, "--seed", "7", "--quiet")
	s.intact(want)
	s.must("verify")
	starts, saved := map[string]int{}, map[string]int{}
	for _, e := range s.events() {
		switch e.Type {
		case "WORK_ITEM_STARTED":
			starts[e.Payload.Node]++
		case "CHECKPOINT_CREATED":
			saved[e.Payload.ID]++
		}
	}
	for node, n := range starts {
		want := 1
		if node == h(1, "capture") {
			want = 2
		}
		if n != want {
			t.Errorf("%s was started %d times, want %d", node, n, want)
		}
	}
	if saved["cp-PA-1"] != 1 || saved["cp-PA-2"] != 1 {
		t.Errorf("checkpoints of the cycles: %v", saved)
	}
}

// logged says whether an event of a node is in the log.
func (s *site) logged(event, node string) bool {
	b, _ := os.ReadFile(filepath.Join(s.out, "_orchestrator/events.ndjson"))
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, `"type":"`+event+`"`) && strings.Contains(line, `"node":"`+node+`"`) {
			return true
		}
	}
	return false
}

// browser returns the process id of this site's browser, "" without one.
func (s *site) browser() string {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		if cmd, _ := os.ReadFile(p); bytes.Contains(cmd, []byte("--user-data-dir="+s.temp())) {
			return filepath.Base(filepath.Dir(p))
		}
	}
	return ""
}

// tabsOf counts the processes in a browser's group that show pages.
func tabsOf(browser string) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range all {
		stat, _ := os.ReadFile(p)
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, group, ...
		if len(fields) < 3 || fields[2] != browser {
			continue
		}
		if cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline")); bytes.Contains(cmd, []byte("--type=renderer")) {
			n++
		}
	}
	return n
}
