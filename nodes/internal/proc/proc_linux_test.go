package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dagrun.dev/internal/testing/nodetest"
)

// sh runs a script and closes the result with the test. The grace is long: a child that obeys takes as little of
// it as it needs, on a slow machine as well.
func sh(t *testing.T, ctx context.Context, script string, change ...func(*Spec)) *Result {
	t.Helper()
	s := &Spec{
		Argv: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(), Env: Environ(nil, nil),
		Spool: t.TempDir(), Grace: time.Minute,
	}
	for _, f := range change {
		f(s)
	}
	r, err := Run(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// onceSaid returns a context that passes its deadline once the child has printed something, however long the
// machine takes to start it, and the change of a Spec that looks out for that.
func onceSaid() (context.Context, func(*Spec)) {
	ctx, pass := nodetest.Deadline()
	return ctx, func(s *Spec) { s.Watch = func([]byte) bool { pass(); return false } }
}

func text(t *testing.T, c *Capture) string {
	t.Helper()
	b, err := io.ReadAll(c.Open())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// alive says whether a process is there and no zombie.
func alive(pid int) bool {
	p := readStat(pid)
	return p != nil && !p.dead
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestRunReportsHowItEnded(t *testing.T) {
	tests := []struct {
		script   string
		exit     int
		signal   syscall.Signal
		out, err string
	}{
		{"echo hi; echo there >&2", 0, 0, "hi\n", "there\n"},
		{"exit 75", 75, 0, "", ""},
		{"kill -KILL $$", -1, syscall.SIGKILL, "", ""},
		{`printf 'a\000b\377'`, 0, 0, "a\x00b\xff", ""},
		{"cat", 0, 0, "", ""},                                       // stdin is the null device, never ours
		{"echo x > /dev/tty", 2, 0, "", ""},                         // no terminal to scribble on
		{"echo one >&2; echo two > /dev/stderr", 0, 0, "", "two\n"}, // opened anew: the shell truncates its own words
	}
	for _, tt := range tests {
		r := sh(t, context.Background(), tt.script)
		if r.Exit != tt.exit || r.Signal != tt.signal || r.Cause != Ended {
			t.Errorf("%s: exit %d signal %v cause %q", tt.script, r.Exit, r.Signal, r.Cause)
		}
		if out := text(t, r.Stdout); out != tt.out {
			t.Errorf("%s: stdout %q", tt.script, out)
		}
		if errs := text(t, r.Stderr); errs != tt.err && !strings.Contains(tt.script, "/dev/tty") {
			t.Errorf("%s: stderr %q", tt.script, errs)
		}
	}
}

func TestStdinIsAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, []byte("prompt"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := sh(t, context.Background(), "cat; echo .", func(s *Spec) { s.Stdin = f })
	if out := text(t, r.Stdout); out != "prompt.\n" {
		t.Errorf("stdout %q", out)
	}
}

// B-10: nothing that a child leaves behind outlives the run, wherever it went.
func TestNoDescendantSurvives(t *testing.T) {
	const stay = "exec sleep 300"
	tests := map[string]string{
		"background":              `sh -c 'echo $$ > pid; ` + stay + `' & while [ ! -s pid ]; do :; done`,
		"own session":             `setsid sh -c 'echo $$ > pid; ` + stay + `' & while [ ! -s pid ]; do :; done`,
		"double fork":             `(setsid sh -c '(sh -c "echo \$\$ > pid; ` + stay + `" &) ; exit' &); while [ ! -s pid ]; do :; done`,
		"own session, clean env":  `setsid env -i /bin/sh -c 'echo $$ > pid; ` + stay + `' & while [ ! -s pid ]; do :; done`,
		"ignores the polite word": `setsid sh -c 'trap "" TERM INT HUP; echo $$ > pid; while :; do sleep 1; done' & while [ ! -s pid ]; do :; done`,
		"respawns": `setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sh -c "trap \"\" TERM; sleep 300"; done' &
			while [ ! -s pid ]; do :; done`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := sh(t, context.Background(), script, func(s *Spec) { s.Dir, s.Grace = dir, 100*time.Millisecond })
			pid := pidIn(t, filepath.Join(dir, "pid"))
			if alive(pid) {
				t.Errorf("process %d is alive", pid)
			}
			if len(r.Left) == 0 || len(r.Survivors) != 0 {
				t.Errorf("left %v, survivors %v", r.Left, r.Survivors)
			}
			if r.Exit != 0 || r.Cause != Ended {
				t.Errorf("exit %d cause %q", r.Exit, r.Cause)
			}
		})
	}
}

// A helper that ends by itself together with the child is not worth a word.
func TestHelperThatEndsIsNotLeft(t *testing.T) {
	defer func(d time.Duration) { selfHelp = d }(selfHelp)
	selfHelp = time.Minute // the machine may be slow
	r := sh(t, context.Background(), `sleep 0.01 & echo done`)
	if len(r.Left) != 0 {
		t.Errorf("left %v", r.Left)
	}
}

// W-5, e-work/18: of what children leave detached no zombie stays, whether it was ended or ended by itself,
// whatever its environment, and a later tree does not look for its own behind it.
func TestDetachedChildrenLeaveNoZombies(t *testing.T) {
	for _, script := range []string{
		`setsid sleep 300 & true`,
		`setsid env -i /bin/sh -c 'exec sleep 300' & true`,
		`setsid sleep 0.01 & (sleep 0.02; true) & true`,
	} {
		for range 5 {
			sh(t, context.Background(), script)
		}
		own, _ := unix.Getsid(0)
		var left []*entry
		if !wait(time.Minute, func() bool {
			left, _ = orphans()
			left = slices.DeleteFunc(left, func(p *entry) bool { return p.session == own || p.pid == int(guardPid.Load()) })
			return len(left) == 0
		}) {
			t.Errorf("%s: %d orphans stay, the first is %+v", script, len(left), left[0])
		}
	}
}

// e-work/18: an orphan of an older tree is no reason to search the process table at the end of a younger one.
func TestOldOrphansAreNoSuspects(t *testing.T) {
	sh(t, context.Background(), "true") // orphans come to this process
	older := NewTree()
	dir := t.TempDir()
	attr := &os.ProcAttr{Dir: dir, Env: append(os.Environ(), older.Mark), Files: []*os.File{nil, nil, nil}}
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", `setsid sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do :; done`}, attr)
	if err != nil {
		t.Fatal(err)
	}
	older.Root(p.Pid)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	born := readStat(pidIn(t, filepath.Join(dir, "pid"))).born
	if !wait(time.Minute, func() bool { return ticks() > born }) { // the clock counts hundredths of a second
		t.Fatal("the clock stands still")
	}
	younger := NewTree()
	if younger.suspects() {
		t.Error("a process that is older than the tree is taken for its descendant")
	}
	younger.End(false, 0)
	if !older.suspects() {
		t.Error("what an older tree left is not found")
	}
	older.End(false, 0)
}

// polite signal to the whole group, grace, hard signal; what was printed is kept.
func TestDeadline(t *testing.T) {
	t.Run("polite", func(t *testing.T) {
		ctx, watch := onceSaid()
		r := sh(t, ctx, `trap 'echo bye; exit 3' TERM; echo partial; while :; do sleep 0.01; done`, watch)
		if r.Cause != TimedOut || r.Exit != 3 {
			t.Errorf("cause %q exit %d", r.Cause, r.Exit)
		}
		if out := text(t, r.Stdout); out != "partial\nbye\n" {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		ctx, watch := onceSaid()
		dir := t.TempDir()
		r := sh(t, ctx, `trap '' TERM INT HUP; sh -c 'echo $$ >pid; while :; do sleep 1; done' &
			while [ ! -s pid ]; do :; done; echo up; while :; do sleep 1; done`,
			watch, func(s *Spec) { s.Dir, s.Grace = dir, 100*time.Millisecond })
		if r.Cause != TimedOut || r.Signal != syscall.SIGKILL {
			t.Errorf("cause %q signal %v", r.Cause, r.Signal)
		}
		if len(r.Survivors) != 0 || alive(pidIn(t, filepath.Join(dir, "pid"))) {
			t.Errorf("survivors %v", r.Survivors)
		}
	})
	t.Run("one signal", func(t *testing.T) { // it stays for a while, a second one would be heard
		ctx, watch := onceSaid()
		r := sh(t, ctx, `trap 'echo term; over=yes' TERM; echo up; n=0
			while [ $n -lt 20 ]; do sleep 0.02; [ -z "$over" ] || n=$((n+1)); done`, watch)
		if out := text(t, r.Stdout); out != "up\nterm\n" || r.Exit != 0 {
			t.Errorf("stdout %q, exit %d", out, r.Exit)
		}
	})
}

func TestCancelBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, &Spec{Argv: []string{"/bin/true"}, Dir: "/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	enough := errors.New("enough")
	because, stop := context.WithCancelCause(context.Background())
	stop(enough)
	if _, err := Run(because, &Spec{Argv: []string{"/bin/true"}, Dir: "/"}); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

func TestSilence(t *testing.T) {
	r := sh(t, context.Background(), `echo a; sleep 300`, func(s *Spec) { s.Silence = 300 * time.Millisecond })
	if r.Cause != Silent {
		t.Errorf("cause %q", r.Cause)
	}
}

// A child that prints may take as long as it likes: every byte, on either stream, begins the time anew. Time in which
// this process was stopped is no silence.
func TestWhatPrintsIsNotSilent(t *testing.T) {
	out, errs := newFile(t), newFile(t)
	tree, err := start(&Spec{Argv: []string{"/bin/sleep", "300"}, Dir: "/", Env: Environ(nil, nil)}, out.f, errs.f)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{tree: tree, grace: time.Minute}
	begin := time.Now()
	f := follower{spec: &Spec{Silence: time.Minute}, child: c, out: out, errs: errs, fresh: begin, seen: begin}
	last := time.Duration(0)
	look := func(until time.Duration) {
		for at := begin.Add(last); !at.After(begin.Add(until)); at = at.Add(time.Second) {
			f.look(at)
		}
		last = until
	}
	for i, stream := range []*Capture{out, errs, errs, out} {
		look(time.Duration(i) * 50 * time.Second)
		if _, err := stream.f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		look(last)
	}
	look(last + 30*time.Second)
	last += time.Hour
	if look(last + 29*time.Second); c.why() != Ended {
		t.Errorf("a child that prints was ended: %q", c.why())
	}
	if look(last + time.Second); c.why() != Silent {
		t.Errorf("cause %q", c.why())
	}
	if _, err := c.wait(); err != nil {
		t.Error(err)
	}
	tree.End(c.patience())
}

func newFile(t *testing.T) *Capture {
	t.Helper()
	c, err := newCapture(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.release(false) })
	return c
}

// A child that has given its result and stays is ended, and that is no failure.
func TestLinger(t *testing.T) {
	var seen bytes.Buffer
	r := sh(t, context.Background(), `echo working; sleep 0.05; echo RESULT; sleep 300`, func(s *Spec) {
		s.ExitGrace = 50 * time.Millisecond
		s.Watch = func(piece []byte) bool { seen.Write(piece); return strings.Contains(seen.String(), "RESULT") }
	})
	if r.Cause != Lingered || text(t, r.Stdout) != "working\nRESULT\n" || seen.String() != "working\nRESULT\n" {
		t.Errorf("cause %q, stdout %q, seen %q", r.Cause, text(t, r.Stdout), seen.String())
	}
}

// Words of helpers after the child's end are kept, but are not its answer.
func TestLateWords(t *testing.T) {
	r := sh(t, context.Background(), `(trap 'echo late; exit' TERM; echo >ready; while :; do sleep 0.01; done) & while [ ! -s ready ]; do :; done; echo answer`)
	until, err := io.ReadAll(r.Stdout.UntilExit())
	if err != nil || string(until) != "answer\n" {
		t.Errorf("until exit %q %v", until, err)
	}
	if all := text(t, r.Stdout); all != "answer\nlate\n" {
		t.Errorf("all %q", all)
	}
}

// what cannot be started is said by name.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noexec := write("noexec.sh", "#!/bin/sh\n", 0o644)
	badinterp := write("badinterp.sh", "#!/nonexistent/interp -x\n", 0o755)
	windows := write("windows.sh", "#!/bin/sh\r\necho\r\n", 0o755)
	noshebang := write("plain.bin", "\x01\x02\x03", 0o755)
	big := strings.Repeat("x", 3<<20)
	tests := []struct {
		name string
		spec Spec
		want string
	}{
		{"missing on PATH", Spec{Argv: []string{"no-such-command-x1"}}, "cannot start no-such-command-x1: not found on PATH"},
		{"missing path", Spec{Argv: []string{"./nothing"}}, "cannot start ./nothing from " + dir + ": no such file or directory"},
		{"not executable", Spec{Argv: []string{noexec}}, "permission denied"},
		{"bad interpreter", Spec{Argv: []string{badinterp}}, "its interpreter /nonexistent/interp does not exist"},
		{"Windows line ends", Spec{Argv: []string{windows}}, `in CR LF, and so /bin/sh\r is looked for: save it with LF alone`},
		{"no program", Spec{Argv: []string{noshebang}}, "not a program"},
		{"too long", Spec{Argv: []string{"/bin/echo", big}}, "too long"},
		{"NUL", Spec{Argv: []string{"/bin/echo", "a\x00b"}}, "NUL"},
		{"no folder", Spec{Argv: []string{"/bin/true"}, Dir: filepath.Join(dir, "gone")}, "gone: no such file"},
		{"nothing", Spec{}, "no command"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.spec.Dir == "" {
				tt.spec.Dir = dir
			}
			tt.spec.Env = Environ(nil, nil)
			_, err := Run(context.Background(), &tt.spec)
			var start *StartError
			if !errors.As(err, &start) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a StartError with %q", err, tt.want)
			}
		})
	}
}

func TestProgramIsFoundOnTheChildsPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool-of-mine"), []byte("#!/bin/sh\necho found $0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, ".", ""} {
		r, err := Run(context.Background(), &Spec{Argv: []string{"tool-of-mine"}, Dir: dir, Env: []string{"PATH=" + path + ":/bin"}})
		if err != nil {
			t.Fatalf("PATH %q: %v", path, err)
		}
		if out := text(t, r.Stdout); !strings.HasPrefix(out, "found") {
			t.Errorf("PATH %q: %q", path, out)
		}
		r.Close()
	}
}

func TestBigOutputIsBounded(t *testing.T) {
	r := sh(t, context.Background(), `head -c 40000000 /dev/zero | tr '\0' 'e' >&2; echo end >&2`)
	if r.Stderr.Size() != 40000004 {
		t.Errorf("size %d", r.Stderr.Size())
	}
	ht := string(r.Stderr.HeadTail(1000))
	if len(ht) > 1100 || !strings.HasPrefix(ht, "eee") || !strings.HasSuffix(ht, "end\n") || !strings.Contains(ht, "39999004 bytes left out") {
		t.Errorf("head and tail: %d bytes, %.40q ... %q", len(ht), ht, ht[len(ht)-20:])
	}
	if tail := string(r.Stderr.Tail(4)); tail != "end\n" {
		t.Errorf("tail %q", tail)
	}
}

func TestLimits(t *testing.T) {
	r := sh(t, context.Background(), `ulimit -n; head -c 2000000 /dev/zero > big; echo $?; wc -c < big; echo $0`, func(s *Spec) {
		s.Limits = Limits{OpenFiles: 17, FileMB: 1}
	})
	if out := text(t, r.Stdout); !strings.HasPrefix(out, "17\n") || !strings.Contains(out, "\n1048576\n") {
		t.Errorf("stdout %q stderr %q", out, text(t, r.Stderr))
	}
}

func TestEnviron(t *testing.T) {
	t.Setenv("LC_TIME", "C")
	t.Setenv("TZ", "UTC")
	t.Setenv("SOME_TOKEN", "secret")
	t.Setenv("WANTED", "w")
	inheritance = inherit // it may have been read by now
	defer func() { inheritance = sync.OnceValue(inherit) }()
	env := strings.Join(Environ([]string{"WANTED"}, map[string]string{"TZ": "Asia/Tokyo", "NEW": "n"}), "\n")
	for _, want := range []string{"LC_TIME=C", "TZ=Asia/Tokyo", "WANTED=w", "NEW=n", "PATH="} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is missing in\n%s", want, env)
		}
	}
	if strings.Contains(env, "secret") || strings.Contains(env, "TZ=UTC") {
		t.Errorf("too much in\n%s", env)
	}
}

// Children of concurrent runs are told apart: a daemon of one is not taken for another's.
func TestConcurrentRuns(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			script := fmt.Sprintf(`setsid sh -c 'echo $$ > d; exec sleep 300' & while [ ! -s d ]; do :; done
				d=$(cat d); sleep 0.%d; kill -0 $d && echo there`, i+1)
			r := sh(t, context.Background(), script)
			if out := text(t, r.Stdout); out != "there\n" {
				t.Errorf("run %d: its daemon was gone before its end: %q %q", i, out, text(t, r.Stderr))
			}
			if len(r.Left) != 1 {
				t.Errorf("run %d: left %v", i, r.Left)
			}
		}()
	}
	wg.Wait()
}

// A child that somebody else started is swept by its Tree, and by no other run.
func TestTreeOfAForeignChild(t *testing.T) {
	tree := NewTree()
	dir := t.TempDir()
	attr := &os.ProcAttr{Dir: dir, Env: append(os.Environ(), tree.Mark), Files: []*os.File{nil, nil, nil}}
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", `setsid sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do :; done`}, attr)
	if err != nil {
		t.Fatal(err)
	}
	tree.Root(p.Pid)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, filepath.Join(dir, "pid"))
	sh(t, context.Background(), "true")
	if !alive(pid) {
		t.Error("another run ended the daemon")
	}
	left, survivors := tree.End(false, 100*time.Millisecond)
	if len(left) != 1 || len(survivors) != 0 || alive(pid) {
		t.Errorf("left %v, survivors %v", left, survivors)
	}
}

// TestMain lets the test binary stand for a runner that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PROC_TEST_RUNNER"); dir != "" {
		_, _ = Run(context.Background(), &Spec{Argv: []string{"/bin/sh", "-c", "echo $$ > pid; setsid sh -c 'echo $$ > deep; sleep 300; :' & sleep 300; :"}, Dir: dir, Env: Environ(nil, nil)})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A runner that is killed takes its children with it, and theirs.
func TestRunnerKilled(t *testing.T) {
	dir := t.TempDir()
	attr := &os.ProcAttr{Env: append(os.Environ(), "PROC_TEST_RUNNER="+dir), Files: []*os.File{nil, nil, nil}}
	p, err := os.StartProcess(os.Args[0], os.Args[:1], attr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pid")
	deep := filepath.Join(dir, "deep")
	if !wait(time.Minute, func() bool {
		a, _ := os.ReadFile(file)
		b, _ := os.ReadFile(deep)
		return len(a) > 0 && len(b) > 0
	}) {
		t.Fatal("the runner did not start its child")
	}
	pids := []int{pidIn(t, file), pidIn(t, deep)}
	for _, q := range readTable() {
		if q.parent == p.Pid || q.parent == pids[0] || q.parent == pids[1] { // the guard is one of them
			pids = append(pids, q.pid)
		}
	}
	_ = p.Kill()
	_, _ = p.Wait()
	for _, pid := range pids {
		if !wait(time.Minute, func() bool { return !alive(pid) }) {
			t.Errorf("process %d outlived its runner", pid)
		}
	}
}

// What no tree claimed is ended and named before the process ends, marked or not; the guard stays (B-10).
func TestSweep(t *testing.T) {
	for name, env := range map[string]string{"marked": marks() + "none", "unmarked": "A=b"} {
		sh(t, context.Background(), "true") // the guard stands, orphans come to this process
		dir := t.TempDir()
		parent := exec.Command("/bin/sh", "-c", "setsid env -i '"+env+"' /bin/sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do :; done")
		if parent.Dir = dir; parent.Run() != nil {
			t.Fatal(name)
		}
		pid := pidIn(t, filepath.Join(dir, "pid"))
		left := Sweep()
		if len(left) != 1 || left[0].Pid != pid || alive(pid) {
			t.Errorf("%s: swept %v, want process %d", name, left, pid)
		}
		if !alive(int(guardPid.Load())) || len(Sweep()) != 0 {
			t.Errorf("%s: the guard was taken for something left behind", name)
		}
	}
}

// The guard is born with the first child and belongs to no tree, however young both are (B-10).
func TestGuardBelongsToNoTree(t *testing.T) {
	sh(t, context.Background(), "true") // the guard stands before the first child
	if guardPid.Load() == 0 {
		t.Fatal("no guard runs")
	}
	old := &Tree{Mark: marks() + "none"} // born before everything
	list, _ := old.remaining()
	for _, p := range list {
		if p.pid == int(guardPid.Load()) {
			t.Errorf("the guard, process %d, is taken for a child's helper", p.pid)
		}
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) R (b) S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"
	p := parseStat(42, []byte(line))
	if p == nil || p.parent != 7 || p.group != 8 || p.session != 9 || p.born != 12345 || p.dead || p.comm != "a) R (b" {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1 2"} {
		if parseStat(42, []byte(bad)) != nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// The guard kills by the record what is in the session of a root, and nobody who has the number of one that is gone.
func TestGuardKnowsStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		recorded uint64
		lives    bool
	}{"a root": {ticks() + 1000, false}, "a stranger": {1, true}} {
		child := exec.Command("sleep", "60")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		record := filepath.Join(t.TempDir(), "record")
		text := line(lineLen, "place") + line(lineLen, "1") + line(slotLen, fmt.Sprintf("+ %d 0 %d", child.Process.Pid, c.recorded))
		if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", guardScript, "guard", "NO_SUCH_MARK=", record).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
		p := readStat(child.Process.Pid)
		if lives := p != nil && !p.dead; lives != c.lives {
			t.Errorf("%s lives: %v", name, lives)
		}
		child.Process.Kill()
		child.Wait()
	}
}
