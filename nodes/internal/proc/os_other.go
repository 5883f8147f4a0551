//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
	"time"
)

// Systems without /proc and sub-reapers: descendants that leave the child's process group are
// not found, and a runner that is killed leaves its children.

// Adopt does nothing here.
func Adopt() error { return nil }

// A Tree is a running child with the processes of its group.
type Tree struct {
	Mark string // an environment entry for the child
	root int
}

// NewTree returns a tree for a child that is started in a group of its own.
func NewTree() *Tree { return &Tree{Mark: "DAGRUN_PROCESS=1"} }

// Root names the tree's root process.
func (t *Tree) Root(pid int) { t.root = pid }

// Remember records nothing here.
func Remember(string) (forget func(), err error) { return func() {}, nil }

// EndLeft finds nothing.
func EndLeft(string) (left, survivors []Process, err error) { return nil, nil, nil }

// Sweep finds nothing: without /proc there is no telling.
func Sweep() []Process { return nil }

// End ends what is left of the tree once its root has been reaped.
func (t *Tree) End(asked bool, grace time.Duration) (left, survivors []Process) {
	there := func() bool { return t.root != 0 && syscall.Kill(-t.root, 0) == nil }
	if !there() {
		return nil, nil
	}
	left = []Process{{Pid: t.root, Command: "process group"}}
	if !asked {
		_ = syscall.Kill(-t.root, syscall.SIGTERM)
	}
	for end := time.Now().Add(grace); there() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	for end := time.Now().Add(5 * time.Second); there() && time.Now().Before(end); {
		_ = syscall.Kill(-t.root, syscall.SIGKILL)
		time.Sleep(10 * time.Millisecond)
	}
	if there() {
		survivors = left
	}
	return left, survivors
}

func (t *Tree) killAll() {}

func fork(path string, argv []string, attr *syscall.ProcAttr) (*Tree, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return &Tree{root: pid}, nil
}

// awaitExit returns at once: the reaping call waits.
func awaitExit(int) error { return nil }

func unnamedFile(folder string) (*os.File, error) { return removedFile(folder) }

func fileSize(f *os.File) int64 {
	if info, err := f.Stat(); err == nil {
		return info.Size()
	}
	return 0
}
