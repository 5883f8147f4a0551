package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program that is killed leaves no browser behind, also where a script stands in front of that.
func TestKilledHost(t *testing.T) {
	set := defaultSettings()
	found, err := set.find(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"program": "", "script": script(t, found+` "$@"`)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedHost(t, path)
		})
	}
}

func killedHost(t *testing.T, path string) {
	scratch := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BROWSER_TEST_HOST="+scratch, "BROWSER_TEST_PATH="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var group int
	if _, err := fmt.Sscanf(line, "looking %d", &group); err != nil {
		t.Errorf("the host says %q", line)
	}
	running := working(scratch, group)
	if len(running) < 4 {
		t.Errorf("a running browser has too few processes: %q", running)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for len(running) > 0 && !t.Failed() {
		await(t, running)
		running = working(scratch, group)
	}
}

// await waits for the end of processes that working has listed.
func await(t *testing.T, list []string) {
	t.Helper()
	for _, p := range list {
		stat, _, _ := strings.Cut(p, " ") // /proc/PID/stat
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		n, err := 0, error(unix.EINTR)
		for err == unix.EINTR {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 120_000)
		}
		_ = unix.Close(fd)
		if n != 1 || err != nil {
			t.Errorf("goes on for two minutes after its host was killed: %s (%v)", p, err)
		}
	}
}
