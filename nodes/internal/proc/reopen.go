package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
)

// The files of Spec.Named.
const (
	stdoutName = "stdout"
	stderrName = "stderr"
)

// SpoolRoom is the room in bytes that is taken in advance for what cannot be had again: what comes in does not find the
// disk full, whoever else has filled it meanwhile.
const SpoolRoom = 2 << 20

// namedCapture returns an empty file with a name. It is locked, and the lock is inherited with the
// file: as long as the child or a descendant has it open, Reopen waits.
func namedCapture(dir, name string) (*Capture, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("a file for output: %w", err)
	}
	if name == stdoutName {
		if err := disk.Allocate(f, SpoolRoom); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("a file for output: %w", err)
		}
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // on a file system without locks, Reopen does not wait
	return &Capture{f: f}, nil
}

// orphanWait is how long Reopen waits for a child that outlived its supervisor. Tests change it.
var orphanWait = 5 * time.Second

// Reopen reads what a child printed into the files of Spec.Named whose supervisor, another process, has
// died: on Linux the child died with it, elsewhere it has a few seconds to end. Exit, times and
// processes of the Result say nothing. The error is fs.ErrNotExist when no child was started. Close
// the Result.
func Reopen(dir string) (*Result, error) {
	out, err := reopen(dir, stdoutName)
	if err != nil {
		return nil, err
	}
	errs, err := reopen(dir, stderrName)
	if err != nil {
		out.release(false)
		return nil, err
	}
	for end := time.Now().Add(orphanWait); !(out.free() && errs.free()) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	for _, c := range []*Capture{out, errs} {
		c.size = c.grown()
		c.exited = c.size
	}
	return &Result{Exit: -1, Cause: Orphaned, Stdout: out, Stderr: errs}, nil
}

func reopen(dir, name string) (*Capture, error) {
	f, err := regular.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return &Capture{f: f}, nil
}

// free reports whether no process has the file open for writing any more.
func (c *Capture) free() bool {
	err := syscall.Flock(int(c.f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK)
}
