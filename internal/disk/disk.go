// Package disk is the file system as a run directory uses it: one tree that no path leaves, with
// the steps that durable writing needs. It knows nothing of what the files mean.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"dagrun.dev/internal/regular"
)

// An FS is a directory tree. Names are slash-separated and relative to its root; a name that would
// leave the tree, by .. or through a symbolic link, is an error. All methods may be called from
// any goroutine.
type FS interface {
	// OpenFile opens name with the flags of package os. New files get mode perm. What is no regular file is an
	// error at once: nothing waits for the other end of a pipe.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// MkdirAll makes a directory and its parents, mode 0700 (see OpenShared).
	MkdirAll(name string) error
	Rename(from, to string) error
	Remove(name string) error
	// RemoveAll removes a tree, folders that nobody may write included; nil when there is none.
	RemoveAll(name string) error
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the entries of a directory durable: what was created, renamed and removed in it.
	SyncDir(name string) error
	// Sub returns the tree below a directory, which must exist.
	Sub(name string) (FS, error)
	// Path returns the absolute path of a name in the machine's file system.
	Path(name string) string
	// Close releases the tree. Open files stay open.
	Close() error
}

// A File is an open file of an FS.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the content durable.
	Sync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	// TryLock takes an exclusive lock that ends with Close or with the process. It reports false
	// when another open file holds it, and errors.ErrUnsupported where there are no locks.
	TryLock() (bool, error)
	// Lock is TryLock that waits.
	Lock() error
}

// Open opens a directory of the machine as a tree.
func Open(dir string) (FS, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	return &tree{root, abs, 0o700}, nil
}

// OpenShared is Open for a tree that is not the program's own: new folders get mode 0777, as far as the process's umask
// lets them.
func OpenShared(dir string) (FS, error) {
	fsys, err := Open(dir)
	if err == nil {
		fsys.(*tree).folders = 0o777
	}
	return fsys, err
}

// Full reports whether err says that the disk or a quota is full.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// A Refused is an error of the run's own files, whatever the system said: of a permission that was taken away, as of a
// disk that is full, or that did not confirm what was written. It is no failure of the work that was to be kept.
type Refused struct{ Err error }

func (e *Refused) Error() string { return e.Err.Error() }

// Unwrap returns what the system said.
func (e *Refused) Unwrap() error { return e.Err }

// Fault names what is wrong with a disk, by what the system said: full, quota, read-only, permission, large (a file
// that may not grow) or broken.
func Fault(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "full"
	case errors.Is(err, syscall.EDQUOT):
		return "quota"
	case errors.Is(err, syscall.EROFS):
		return "read-only"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, syscall.EFBIG):
		return "large"
	}
	return "broken"
}

// Broken reports whether err says that the disk cannot be written: full, read-only, input/output
// error, not confirmed, refused, or a file that may not grow (ulimit -f). The program ends with exit status 6.
func Broken(err error) bool {
	_, refused := errors.AsType[*Refused](err)
	return refused || Full(err) ||
		errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EFBIG)
}

// tree is a directory of the machine.
type tree struct {
	root    *os.Root
	dir     string
	folders fs.FileMode // of new ones
}

func (t *tree) Path(name string) string      { return filepath.Join(t.dir, filepath.FromSlash(name)) }
func (t *tree) Close() error                 { return t.root.Close() }
func (t *tree) MkdirAll(name string) error   { return t.absolute(t.root.MkdirAll(name, t.folders)) }
func (t *tree) Rename(from, to string) error { return t.absolute(t.root.Rename(from, to)) }
func (t *tree) Remove(name string) error     { return t.absolute(t.root.Remove(name)) }

func (t *tree) RemoveAll(name string) error {
	return t.absolute(removeAll(t.root, name, func() error { return t.root.RemoveAll(name) }))
}

// RemoveAll removes what stands at a path of the machine, as that of an FS does.
func RemoveAll(path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return os.RemoveAll(path)
	}
	defer root.Close()
	return removeAll(root, filepath.Base(path), func() error { return os.RemoveAll(path) })
}

// removeAll has a tree removed. Programs leave folders that they have closed for writing, as Go does its modules: these
// are opened first where they stand in the way.
func removeAll(root *os.Root, name string, remove func() error) error {
	err := remove()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(filepath.Join(root.Name(), name), func(at string, d fs.DirEntry, err error) error {
		if inside, no := filepath.Rel(root.Name(), at); err == nil && no == nil && d.IsDir() {
			_ = root.Chmod(inside, 0o700)
		}
		return nil
	})
	return remove()
}

func (t *tree) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := regular.OpenFileIn(t.root, name, flag, perm)
	if err != nil {
		return nil, t.absolute(err)
	}
	return &file{File: f, path: t.Path(name)}, nil
}

func (t *tree) Lstat(name string) (fs.FileInfo, error) {
	fi, err := t.root.Lstat(name)
	return fi, t.absolute(err)
}

func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(t.root.FS(), name)
	return list, t.absolute(err)
}

func (t *tree) SyncDir(name string) error {
	d, err := t.root.Open(name)
	if err != nil {
		return t.absolute(err)
	}
	defer d.Close()
	return t.absolute(d.Sync())
}

func (t *tree) Sub(name string) (FS, error) {
	root, err := t.root.OpenRoot(name)
	if err != nil {
		return nil, t.absolute(err)
	}
	return &tree{root, t.Path(name), t.folders}, nil
}

// absolute puts the whole path into an error of package os, which knows the relative one only.
func (t *tree) absolute(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe) && filepath.IsAbs(pe.Path): // of an open file: it has the whole path
		return err
	case errors.As(err, &pe):
		return &fs.PathError{Op: pe.Op, Path: t.Path(pe.Path), Err: pe.Err}
	case errors.As(err, &le):
		return &os.LinkError{Op: le.Op, Old: t.Path(le.Old), New: t.Path(le.New), Err: le.Err}
	}
	return err
}

// file is a file of the machine.
type file struct {
	*os.File
	path   string
	locked atomic.Bool // whether Close ends a lock
}
