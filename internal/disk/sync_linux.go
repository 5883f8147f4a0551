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
	err := f.control(func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return false, errors.ErrUnsupported
	}
	return false, &os.PathError{Op: "flock", Path: f.path, Err: err}
}

func (f *file) Lock() error {
	err := f.control(func(fd int) error { return unix.Flock(fd, unix.LOCK_EX) })
	switch {
	case err == nil:
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
