// Package disktest holds a disk in memory that can lose its power, and a disk that fails on demand,
// so that protocols are tried with the code that runs in earnest.
//
// It is for tests only and keeps no permissions, times or symbolic links.
package disktest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"dagrun.dev/internal/disk"
)

// A Mem is a disk in memory. Each file and directory has two contents: what processes see and what
// a loss of power leaves. Sync copies the first to the second, for a file's bytes, SyncDir for a
// directory's entries; nothing is more durable than it was asked to be.
type Mem struct {
	mu   sync.Mutex
	root *inode
}

type inode struct {
	entries, durable map[string]*inode // of a directory
	data, synced     []byte            // of a file
	holder           *memFile          // of the lock
}

func newDir() *inode {
	return &inode{entries: map[string]*inode{}, durable: map[string]*inode{}}
}

// NewMem returns an empty disk.
func NewMem() *Mem { return &Mem{root: newDir()} }

// FS returns the whole disk as a tree.
func (m *Mem) FS() disk.FS { return &memFS{m, "."} }

// Kill is what the disk holds after kill -9: all of it. Locks are gone.
func (m *Mem) Kill() *Mem {
	return m.copy(func(n *inode) ([]byte, map[string]*inode) { return n.data, n.entries })
}

// PowerLoss is what the disk holds after a loss of power: what was synced, and of each file's
// unsynced end as many bytes as keep says (0 = none; negative counts are none).
func (m *Mem) PowerLoss(keep func(unsynced int) int) *Mem {
	return m.copy(func(n *inode) ([]byte, map[string]*inode) {
		data := slices.Clone(n.synced)
		if extra := len(n.data) - len(n.synced); extra > 0 && keep != nil {
			if k := keep(extra); k > 0 {
				data = append(data, n.data[len(n.synced):len(n.synced)+k]...)
			}
		}
		return data, n.durable
	})
}

func (m *Mem) copy(view func(*inode) ([]byte, map[string]*inode)) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[*inode]*inode{}
	var walk func(n *inode) *inode
	walk = func(n *inode) *inode {
		if c := seen[n]; c != nil {
			return c
		}
		data, entries := view(n)
		c := &inode{data: slices.Clone(data), synced: slices.Clone(data)}
		seen[n] = c
		if n.entries != nil {
			c.entries, c.durable = map[string]*inode{}, map[string]*inode{}
			for name, child := range entries {
				c.entries[name] = walk(child)
				c.durable[name] = c.entries[name]
			}
		}
		return c
	}
	return &Mem{root: walk(m.root)}
}

// find walks to a name. Called with the lock held.
func (m *Mem) find(name string) (*inode, error) {
	n := m.root
	for _, part := range split(name) {
		if n.entries == nil {
			return nil, syscall.ENOTDIR
		}
		if n = n.entries[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

func split(name string) []string {
	if name = path.Clean(name); name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// A memFS is the tree below a directory of a Mem.
type memFS struct {
	m   *Mem
	dir string
}

// in does something about a name: f gets the directory that holds it, and its base. The lock is held; errors get the
// operation and the name.
func (t *memFS) in(op, name string, f func(dir *inode, base string) error) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	full := path.Join(t.dir, name)
	err := error(fs.ErrInvalid)
	if fs.ValidPath(name) {
		var dir *inode
		dir, err = t.m.find(path.Dir(full))
		if err == nil && dir.entries == nil {
			err = syscall.ENOTDIR
		}
		if err == nil {
			err = f(dir, path.Base(full))
		}
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// at does something about a file or directory that exists.
func (t *memFS) at(op, name string, f func(n *inode, base string) error) error {
	return t.in(op, name, func(*inode, string) error {
		full := path.Join(t.dir, name)
		n, err := t.m.find(full)
		if err != nil {
			return err
		}
		return f(n, path.Base(full))
	})
}

func (t *memFS) OpenFile(name string, flag int, _ fs.FileMode) (f disk.File, err error) {
	err = t.in("open", name, func(dir *inode, base string) error {
		n := dir.entries[base]
		switch {
		case n == nil && flag&os.O_CREATE == 0:
			return fs.ErrNotExist
		case n != nil && flag&os.O_EXCL != 0:
			return fs.ErrExist
		case n != nil && n.entries != nil:
			return syscall.EISDIR
		case n == nil:
			n = &inode{}
			dir.entries[base] = n
		case flag&os.O_TRUNC != 0:
			n.data = nil
		}
		f = &memFile{m: t.m, n: n, name: name, appends: flag&os.O_APPEND != 0}
		return nil
	})
	return f, err
}

func (t *memFS) MkdirAll(name string) error {
	if parent := path.Dir(name); parent != "." {
		if err := t.MkdirAll(parent); err != nil {
			return err
		}
	}
	return t.in("mkdir", name, func(dir *inode, base string) error {
		n := dir.entries[base]
		switch {
		case name == ".":
		case n == nil:
			dir.entries[base] = newDir()
		case n.entries == nil:
			return syscall.ENOTDIR
		}
		return nil
	})
}

func (t *memFS) Rename(from, to string) error {
	var source *inode
	var old string
	err := t.in("rename", from, func(dir *inode, base string) error {
		source, old = dir, base
		return nil
	})
	if err != nil {
		return err
	}
	return t.in("rename", to, func(dir *inode, base string) error {
		n, there := source.entries[old], dir.entries[base]
		switch {
		case n == nil:
			return fs.ErrNotExist
		case there != nil && there.entries != nil && (n.entries == nil || len(there.entries) > 0):
			return fs.ErrExist
		}
		delete(source.entries, old)
		dir.entries[base] = n
		return nil
	})
}

func (t *memFS) Remove(name string) error {
	return t.in("remove", name, func(dir *inode, base string) error {
		n := dir.entries[base]
		switch {
		case n == nil:
			return fs.ErrNotExist
		case len(n.entries) > 0:
			return syscall.ENOTEMPTY
		}
		delete(dir.entries, base)
		return nil
	})
}

func (t *memFS) RemoveAll(name string) error {
	_ = t.in("removeall", name, func(dir *inode, base string) error { // nothing there is nothing to remove
		delete(dir.entries, base)
		return nil
	})
	return nil
}

func (t *memFS) Lstat(name string) (fi fs.FileInfo, err error) {
	err = t.at("lstat", name, func(n *inode, base string) error {
		fi = info{base, n.entries != nil, int64(len(n.data))}
		return nil
	})
	return fi, err
}

func (t *memFS) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = t.at("readdir", name, func(n *inode, _ string) error {
		for base, c := range n.entries {
			list = append(list, fs.FileInfoToDirEntry(info{base, c.entries != nil, int64(len(c.data))}))
		}
		return nil
	})
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

func (t *memFS) SyncDir(name string) error {
	return t.at("sync", name, func(n *inode, _ string) error {
		n.durable = maps.Clone(n.entries)
		return nil
	})
}

func (t *memFS) Sub(name string) (disk.FS, error) {
	if _, err := t.Lstat(name); err != nil {
		return nil, err
	}
	return &memFS{t.m, path.Join(t.dir, name)}, nil
}

func (t *memFS) Path(name string) string { return path.Join("/mem", t.dir, name) }
func (t *memFS) Close() error            { return nil }

type memFile struct {
	m       *Mem
	n       *inode
	name    string
	off     int64
	appends bool
}

func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.off)
	f.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	if f.appends {
		fi, _ := f.Stat()
		f.off = fi.Size()
	}
	n, err := f.WriteAt(p, f.off)
	f.off += int64(n)
	return n, err
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if end := off + int64(len(p)); end > int64(len(f.n.data)) {
		f.n.data = append(f.n.data, make([]byte, end-int64(len(f.n.data)))...)
	}
	return copy(f.n.data[off:], p), nil
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	has := int64(len(f.n.data))
	f.n.data = append(slices.Clone(f.n.data[:min(size, has)]), make([]byte, max(0, size-has))...)
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.synced = slices.Clone(f.n.data)
	return nil
}

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return info{path.Base(f.name), false, int64(len(f.n.data))}, nil
}

func (f *memFile) TryLock() (bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.n.holder != nil && f.n.holder != f {
		return false, nil
	}
	f.n.holder = f
	return true, nil
}

// Lock is not for tests that run in one process.
func (f *memFile) Lock() error { return errors.ErrUnsupported }

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.n.holder == f {
		f.n.holder = nil
	}
	return nil
}

type info struct {
	name string
	dir  bool
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
