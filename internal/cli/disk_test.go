package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onSmallDisk runs a script in a folder whose subfolder small is a disk of a size in memory. It skips the test where the
// machine lets us make none.
func (c *crash) onSmallDisk(size, script string) (said string, err error) {
	c.t.Helper()
	if exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt").Run() != nil {
		c.t.Skip("this machine lets us make no small disk")
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "small"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size="+size+" tmpfs small && "+script)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "BIN="+binary, "XDG_STATE_HOME="+filepath.Join(c.dir, "state"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// e-work/26, W-4: what prints without end is stopped while the disk of the run has room, for the rest of the run and
// for a copy of what was printed, also where its own limit is larger than the disk, and two at a time.
func TestEndlessOutputOnASmallDisk(t *testing.T) {
	t.Parallel()
	c := newCrashOf(t, `pipeline:
  name: endless
  defaults: {exec: {onFail: continue, retry: {attempts: 1}}}
  nodes:
    a: {kind: exec, with: {argv: [yes]}}
    b: {kind: exec, with: {argv: [yes]}}
    after: {kind: exec, needs: [a, b], when: "true", with: {run: 'head -c 20000000 /dev/zero > "$DAGRUN_OUT/more"'}, writes: [more]}
`)
	said, err := c.onSmallDisk("200m", `"$BIN" apply --output-dir small/run && "$BIN" verify --output-dir small/run`)
	if err != nil || strings.Count(said, "output_limit: stopped: it had printed") < 4 || !strings.Contains(said, "done     after") {
		t.Errorf("%v\n%s", err, said)
	}
}

// A disk that is full ends the program with status 6 and words that say so; when there is room
// again the run goes on where it was (DESIGN 4b). The disk is a small one in memory where the
// machine lets us make one, else files that may not grow.
func TestFullDisk(t *testing.T) {
	c := newCrashOf(t, killSpec())
	out := filepath.Join(c.dir, "small")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `"$BIN" apply -j 1 --output-dir small/run; echo "exit status $?"`
	small := exec.Command("unshare", "-rm", "sh", "-c",
		`mount -t tmpfs -o size=4m tmpfs small && head -c 4100000 /dev/zero > small/fill 2> /dev/null; truncate -s 4030464 small/fill && `+script+
			`; rm small/fill; `+script+`; "$BIN" verify --output-dir small/run > /dev/null && echo verified`)
	if exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt").Run() != nil {
		small = exec.Command("sh", "-c", `(ulimit -f 16; `+script+`); `+script+`; "$BIN" verify --output-dir small/run > /dev/null && echo verified`)
	}
	small.Dir = c.dir
	small.Env = append(os.Environ(), "BIN="+binary, "XDG_STATE_HOME="+filepath.Join(c.dir, "state"))
	said, err := small.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	first, then, _ := strings.Cut(string(said), "exit status ")
	if !strings.HasPrefix(then, "6\n") {
		t.Errorf("the first run did not end with status 6:\n%s", said)
	}
	if !strings.Contains(first, "is full") && !strings.Contains(first, "file too large") {
		t.Errorf("nothing says that the disk is full:\n%s", first)
	}
	if !strings.Contains(then, "exit status 0\n") || !strings.HasSuffix(then, "verified\n") {
		t.Errorf("the run did not go on when there was room:\n%s", said)
	}
}
