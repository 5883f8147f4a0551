package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
