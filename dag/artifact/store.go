// Package artifact keeps what a run produces: a content-addressed object store and the working
// tree of live files, published so that a crash at any step leaves a version that was recorded.
//
// It does not know events: callers record facts between the steps.
package artifact

import (
	"io"

	"dagrun.dev/internal/disk"
)

// A Store holds immutable objects named by the sha256 of their content. All methods may be called
// from any goroutine; putting the same content twice stores it once.
type Store struct{ store }
type store struct{}

// NewStore uses a tree as a store. Directories are made on first need.
func NewStore(fsys disk.FS) *Store { panic("contract") }

// Put copies r into the store and returns its digest (lower-case hex sha256) and size. The object
// is durable when Put returns.
func (s *Store) Put(r io.Reader) (digest string, size int64, err error) { panic("contract") }

// Open opens an object. What is read is checked: the read that reaches the end fails with *Corrupt
// when the content does not match the digest. A missing object is fs.ErrNotExist.
func (s *Store) Open(digest string) (io.ReadCloser, error) { panic("contract") }

// Has reports whether the store holds an object, without reading it.
func (s *Store) Has(digest string) bool { panic("contract") }

// Verify reads an object and checks its digest.
func (s *Store) Verify(digest string) error { panic("contract") }

// Corrupt says that a file's content does not match its digest.
type Corrupt struct{ Path, Want, Got string }

func (c *Corrupt) Error() string {
	return c.Path + ": content has sha256 " + c.Got + ", recorded is " + c.Want
}
