package cli

import (
	"fmt"
	"strings"
	"testing"
)

// testScreen is a screen on a terminal of its own, which shows a picture of some lines.
func testScreen(columns, rows int, picture ...string) (*screen, *terminal) {
	to := newTerminal(columns, rows)
	s := &screen{out: to, size: func() (int, int) { return to.columns, to.rows }}
	s.picture = func(int, int) []string { return picture }
	return s, to
}

func shows(t *testing.T, to *terminal, want ...string) {
	t.Helper()
	if got := to.String(); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("the terminal shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if len(to.wrong) > 0 || !to.wraps {
		t.Errorf("wrong for a terminal: %q, it breaks lines: %v", to.wrong, to.wraps)
	}
}

// T-2: lines scroll above the picture, which is drawn in place, with the cursor below it.
func TestScreen(t *testing.T) {
	picture := []string{"Progress: 1", "Running: a"}
	s, to := testScreen(20, 6, picture...)
	s.redraw()
	shows(t, to, "Progress: 1", "Running: a", "▏")
	fmt.Fprint(s, "one\nand no whole line")
	shows(t, to, "one", "Progress: 1", "Running: a", "▏")
	fmt.Fprint(s, ", now it is\nthree\n")
	picture[0], picture[1] = "Progress: 2", "Running: b, which is too long for the line"
	s.redraw()
	shows(t, to, "one", "and no whole line, n", "ow it is",
		"three", "Progress: 2", "Running: b, which …", "▏")
	s.picture = func(int, int) []string { return picture[:1] }
	fmt.Fprint(s, "four\n\x1b[31mfive\a\n")
	shows(t, to, "one", "and no whole line, n", "ow it is",
		"three", "four", `\x1b[31mfive\x07`, "Progress: 2", "▏")
	s.under("Which?", "> ye")
	shows(t, to, "one", "and no whole line, n", "ow it is",
		"three", "four", `\x1b[31mfive\x07`, "Progress: 2", "Which?", "> ye▏")
	s.under()
	release := s.hold()
	shows(t, to, "one", "and no whole line, n", "ow it is",
		"three", "four", `\x1b[31mfive\x07`, "▏")
	fmt.Fprint(s, "six\n")
	fmt.Fprint(to, "\rasked> yes\r\n")
	release()
	shows(t, to, "one", "and no whole line, n", "ow it is",
		"three", "four", `\x1b[31mfive\x07`, "asked> yes", "six", "Progress: 2", "▏")
	fmt.Fprint(s, "the end")
	s.set(func() { s.picture = nil })
	fmt.Fprint(s, "Done.\n")
	if got := to.String(); !strings.HasSuffix(got, "six\nthe end\nDone.\n▏\n") {
		t.Errorf("in the end\n%s", got)
	}
}
