package disktest

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"dagrun.dev/internal/disk"
)

// A Step is one change of the disk that is about to happen.
type Step struct {
	N    int    // counts from 1 over the whole Faulty
	Op   string // create, mkdir, rename, remove, removeall, syncdir, write, sync, truncate
	Name string // path below the root
}

// A Faulty is a disk whose changes can be made to fail. Reading never fails.
type Faulty struct {
	fs   disk.FS
	mu   sync.Mutex
	n    int
	hook func(Step) error
}

// Short makes a write stop half-way before it fails with Err.
type Short struct{ Err error }

func (s Short) Error() string { return s.Err.Error() }
func (s Short) Unwrap() error { return s.Err }

// ErrCrashed is the error of every step of a process that is no more.
var ErrCrashed = errors.New("crashed")

// NewFaulty wraps a disk. hook is called before every change; its error becomes the change's, and
// the change does not happen. One hook call happens at a time.
func NewFaulty(fsys disk.FS, hook func(Step) error) (*Faulty, disk.FS) {
	f := &Faulty{fs: fsys, hook: hook}
	return f, &faultyFS{fsys, f, ""}
}

// CrashAt returns a hook under which step n and all later ones fail, as after a crash; a write
// is cut in half.
func CrashAt(n int) func(Step) error {
	return func(s Step) error {
		switch {
		case s.N == n:
			return Short{ErrCrashed}
		case s.N > n:
			return ErrCrashed
		}
		return nil
	}
}

// FailAt returns a hook under which step n alone fails with err, if match accepts it; steps are
// counted among those accepted.
func FailAt(n int, err error, match func(Step) bool) func(Step) error {
	seen := 0
	return func(s Step) error {
		if match != nil && !match(s) {
			return nil
		}
		if seen++; seen == n {
			return Short{err}
		}
		return nil
	}
}

// Steps returns the number of changes asked for so far.
func (f *Faulty) Steps() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *Faulty) step(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.hook == nil {
		return nil
	}
	if err := f.hook(Step{f.n, op, name}); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// A faultyFS is a tree of a Faulty. What only reads goes to the disk below.
type faultyFS struct {
	disk.FS
	f   *Faulty
	dir string
}

func (t *faultyFS) try(op, name string, do func() error) error {
	if err := t.f.step(op, t.dir+name); err != nil {
		return err
	}
	return do()
}

func (t *faultyFS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		if _, err := t.FS.Lstat(name); err != nil || flag&os.O_TRUNC != 0 {
			if err := t.f.step("create", t.dir+name); err != nil {
				return nil, err
			}
		}
	}
	f, err := t.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: f, f: t.f, name: t.dir + name}, nil
}

func (t *faultyFS) MkdirAll(name string) error {
	if fi, err := t.FS.Lstat(name); err == nil && fi.IsDir() {
		return nil
	}
	return t.try("mkdir", name, func() error { return t.FS.MkdirAll(name) })
}

func (t *faultyFS) Rename(from, to string) error {
	return t.try("rename", to, func() error { return t.FS.Rename(from, to) })
}

func (t *faultyFS) Remove(name string) error {
	return t.try("remove", name, func() error { return t.FS.Remove(name) })
}

func (t *faultyFS) RemoveAll(name string) error {
	return t.try("removeall", name, func() error { return t.FS.RemoveAll(name) })
}

func (t *faultyFS) SyncDir(name string) error {
	return t.try("syncdir", name, func() error { return t.FS.SyncDir(name) })
}

func (t *faultyFS) Sub(name string) (disk.FS, error) {
	sub, err := t.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return &faultyFS{sub, t.f, t.dir + name + "/"}, nil
}

type faultyFile struct {
	disk.File
	f    *Faulty
	name string
}

func (f *faultyFile) Write(p []byte) (int, error) { return f.write(p, f.File.Write) }

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

// write writes the first half when the error asks for it.
func (f *faultyFile) write(p []byte, write func([]byte) (int, error)) (n int, err error) {
	if err = f.f.step("write", f.name); err == nil {
		return write(p)
	}
	if s := (Short{}); errors.As(err, &s) {
		n, _ = write(p[:len(p)/2])
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	if err := f.f.step("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.f.step("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}
