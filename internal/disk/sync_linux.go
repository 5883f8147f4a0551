package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync makes the content durable, and of the metadata what reading it back needs: fdatasync leaves
// out times, which saves a journal commit when the size has not changed.
func (f *file) Sync() error {
	err := f.control(unix.Fdatasync)
	if err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.path, Err: err}
	}
	return nil
}

func (f *file) TryLock() (bool, error) {
	err := f.flock(unix.LOCK_EX | unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func (f *file) Lock() error { return f.flock(unix.LOCK_EX) }

// Close ends a lock by itself: a child that is just being started has a copy of the descriptor until its program
// begins, and the lock would stay as long.
func (f *file) Close() error {
	if f.locked.Load() {
		_ = f.flock(unix.LOCK_UN)
	}
	return f.File.Close()
}

// flock locks the open file, see flock(2): unlike locks of fcntl, this one stays when another descriptor of the same
// file is closed.
func (f *file) flock(how int) error {
	err := f.control(func(fd int) error { return unix.Flock(fd, how) })
	switch {
	case err == nil:
		f.locked.Store(true)
		return nil
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return errors.ErrUnsupported
	}
	return &os.PathError{Op: "flock", Path: f.path, Err: err}
}

// control runs a system call on the descriptor, again while signals interrupt it.
func (f *file) control(call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Control(func(fd uintptr) {
		for {
			if result = call(int(fd)); result != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return result
}
