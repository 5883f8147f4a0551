//go:build unix && !linux

package browser

import (
	"os/exec"
	"syscall"
)

// sharedMemory says yes: only Linux keeps shared memory in a folder.
func sharedMemory(string) bool { return true }

// detach puts a command into a group of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
