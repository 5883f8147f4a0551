package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Of a process table, what a record's writer may have left is what is in a session or group of a root, and what descends
// from there; never a stranger to whom a number was given since, and never who asks (B-10).
func TestLeavings(t *testing.T) {
	const none = 1 << 22 // above any number that a process has: nothing can be read of these
	p := func(pid, parent, group, session int, born uint64) *entry {
		return &entry{pid: none + pid, parent: none + parent, group: none + group, session: none + session, born: born}
	}
	me := &entry{pid: self, parent: none + 90, group: self, session: none + 90, born: 5000}
	for _, c := range []struct {
		name string
		all  table
		want string
	}{
		{"its session, its root gone", table{p(11, 1, 10, 10, 1005), p(12, 11, 12, 12, 3000)}, "11 12"},
		{"a group in another session", table{p(11, 1, 10, 77, 1005)}, "11"},
		{"the root itself", table{p(10, 1, 10, 10, 1001)}, "10"},
		{"a root of another birth", table{p(10, 1, 10, 10, 4000), p(11, 10, 10, 10, 4001)}, ""},
		{"a session that began after the record's writer died", table{p(11, 1, 10, 10, 4000)}, ""},
		{"somebody in it as old as the root, another one younger", table{p(11, 1, 10, 10, 1900), p(12, 1, 10, 10, 4000)}, "11 12"},
		{"a zombie", table{{pid: none + 11, parent: none + 1, session: none + 10, born: 1005, dead: true}}, ""},
		{"others", table{p(21, 1, 20, 20, 1005), p(22, 21, 20, 20, 1006)}, ""},
		{"whoever asks was started from there", table{me, p(10, 1, 10, 10, 1001), p(90, 10, 90, 90, 1002), p(91, 10, 91, 91, 1003)}, "91"},
	} {
		l := leavings{roots: []recorded{{none + 10, 1000, 1002}}, mark: markName + "1-900.", last: 2000}
		var got []string
		for _, p := range l.find(c.all) {
			got = append(got, fmt.Sprint(p.pid-none))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: found %q, want %q", c.name, strings.Join(got, " "), c.want)
		}
	}
}

// A record whose writer lives, that is a copy, or that is none at all names nobody, though a child runs; of a dead writer
// it names the root of its tree.
func TestRecordsThatNameNobody(t *testing.T) {
	tree := NewTree()
	defer tree.End(false, 0)
	child := exec.Command("sleep", "100")
	child.Env, child.SysProcAttr = []string{tree.Mark}, &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	tree.Root(child.Process.Pid)
	dir := t.TempDir()
	file := filepath.Join(dir, "processes")
	forget, err := Remember(file)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil || len(written) < 2*lineLen {
		t.Fatalf("%d bytes, %v", len(written), err)
	}
	quiet := func(name string) {
		t.Helper()
		if left, survivors, err := EndLeft(file); err != nil || len(left)+len(survivors) > 0 {
			t.Errorf("%s: %v %v %v", name, left, survivors, err)
		}
	}
	quiet("its writer lives")
	forget()
	quiet("there is none")
	if _, err := os.Stat(file); err == nil {
		t.Error("the record of a process that ended well stays")
	}
	for name, text := range map[string]string{"a copy": string(written), "empty": "", "text": strings.Repeat("x\n", 500), "zeros": strings.Repeat("\x00", 999)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		quiet(name)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	place, err := placeOf(f)
	dead := line(lineLen, place+" "+markName+"4194304-1.") // above any number that a process has
	if err = errors.Join(err, os.WriteFile(file, []byte(dead+string(written[lineLen:])), 0o600)); err != nil {
		t.Fatal(err)
	}
	if left, _, err := EndLeft(file); err != nil || len(left) != 1 || left[0].Pid != child.Process.Pid {
		t.Errorf("its writer is dead: %v, %v; want process %d", left, err, child.Process.Pid)
	}
}

// A slot whose tree has ended is given to the next one, and named by nobody any more after the next look.
func TestSlotsAreUsedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "processes")
	forget, err := Remember(file)
	if err != nil {
		t.Fatal(err)
	}
	defer forget()
	slots := func() string {
		written, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(written[2*lineLen:])
	}
	for _, pid := range []int{4194301, 4194302} { // above any number that a process has
		tree := NewTree()
		tree.Root(pid)
		if want := line(slotLen, fmt.Sprintf("+ %d %d %d", pid, tree.born, ticks())); len(slots()) != slotLen || slots()[:9] != want[:9] {
			t.Errorf("%q stands in the record; want %q", slots(), want)
		}
		tree.End(false, 0)
	}
	if !wait(hardFor, func() bool { return slots() == line(slotLen, "-") }) {
		t.Fatalf("%q stands in the record long after all trees have ended", slots())
	}
}
