// Package disk is the file system as a run directory uses it: one tree that no path leaves, with
// the steps that durable writing needs. It knows nothing of what the files mean.
package disk

import (
	"io"
	"io/fs"
)

// An FS is a directory tree. Names are slash-separated and relative to its root; a name that would
// leave the tree, by .. or through a symbolic link, is an error. All methods may be called from
// any goroutine.
type FS interface {
	// OpenFile opens name with the flags of package os. New files get mode perm.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// MkdirAll makes a directory and its parents, mode 0700.
	MkdirAll(name string) error
	Rename(from, to string) error
	// Link makes a second name for a file.
	Link(from, to string) error
	Remove(name string) error
	// RemoveAll removes a tree; nil when there is none.
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
	// Fd returns the descriptor, for locks; ^0 where there is none.
	Fd() uintptr
}

// Open opens a directory of the machine as a tree.
func Open(dir string) (FS, error) { panic("contract") }

// Full reports whether err says that the disk or quota is full.
func Full(err error) bool { panic("contract") }

// Broken reports whether err says that the disk cannot be written: full, read-only, input/output
// error, a failed sync. The program ends with exit status 6.
func Broken(err error) bool { panic("contract") }
