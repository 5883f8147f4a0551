package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/run"
)

// Each kind of trouble has its exit status, however deep the error lies (DESIGN 4b).
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("bad input"), exitBad},
		{exit(exitPaused), exitPaused},
		{&eventlog.Locked{}, exitLocked},
		{&eventlog.Damaged{}, exitDamaged},
		{&run.Newer{}, exitDamaged},
		{executor.ErrHard, exitKilled},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, exitDisk},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.EROFS}, exitDisk},
		{&fs.PathError{Op: "openat", Path: "x", Err: syscall.EACCES}, exitDisk},
	} {
		if got := exitStatus(fmt.Errorf("apply: %w", c.err)); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
}
