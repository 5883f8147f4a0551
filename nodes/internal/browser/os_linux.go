package browser

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const leastShared = 512 << 20 // bytes; containers often have 64 MB, which kills tabs

// sharedMemory says whether a folder for shared memory is there and large enough.
func sharedMemory(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	return st.Bavail*uint64(st.Bsize) >= leastShared && unix.Access(dir, unix.W_OK) == nil
}

// detach puts a command into a group of its own and ties its life to this program's.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
