// Package artifact keeps what a run produces: a content-addressed object store and the working
// tree of live files, published so that a crash at any step leaves a version that was recorded.
//
// It does not know events: callers record facts between the steps.
package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"dagrun.dev/internal/disk"
)

// A Store holds immutable objects named by the sha256 of their content: ab/cdef... under its tree.
// All methods may be called from any goroutine; putting the same content twice stores it once.
type Store struct {
	fsys disk.FS
	// beside is the second place of a run: it takes what this one cannot, and holds again what decides about
	// everything; nil = there is none. It has none itself.
	beside *Store
	// durable holds digests that this process knows to be durable. An object that is merely there
	// may have been renamed by a process that died before it synced the directory.
	durable sync.Map
	dirs    sync.Map // directories made durable
	sound   sync.Map // digests of objects that stand in both places and were found right in this one
}

// NewStore uses a tree as a store. Directories are made on first need. beside, where it is not nil, is another tree:
// what cannot be put into the first goes there, and what is read is looked for in both.
func NewStore(fsys, beside disk.FS) *Store {
	s := &Store{fsys: fsys}
	if beside != nil {
		s.beside = &Store{fsys: beside}
	}
	return s
}

// Digest returns the name of a content.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// DigestOf is the digest of a value's JSON, which stands in a file beside it: what is damaged is told by it. The value
// must be one that JSON can say.
func DigestOf(v any) string {
	b, _ := json.Marshal(v)
	return Digest(b)
}

func objectDir(digest string) string  { return digest[:2] }
func objectName(digest string) string { return digest[:2] + "/" + digest[2:] }

// ValidDigest reports whether s is a lower-case hex sha256.
func ValidDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Path returns where an object stands, for messages.
func (s *Store) Path(digest string) string {
	if _, err := s.fsys.Lstat(objectName(digest)); err != nil && s.beside != nil && s.beside.Has(digest) {
		return s.beside.Path(digest)
	}
	return s.fsys.Path(objectName(digest))
}

// Put copies r into the store and returns its digest (lower-case hex sha256) and size. The object is durable when Put
// returns. Where the disk refuses it and r can be read again (an io.Seeker), it goes to the second place.
func (s *Store) Put(r io.Reader) (digest string, size int64, err error) {
	again, can := r.(io.Seeker)
	digest, size, err = s.put(r)
	if err == nil || s.beside == nil || !can {
		return digest, size, err
	}
	if _, e := again.Seek(0, io.SeekStart); e != nil {
		return digest, size, err
	}
	if digest, size, e := s.beside.put(r); e == nil {
		return digest, size, nil
	}
	return digest, size, err
}

func (s *Store) put(r io.Reader) (digest string, size int64, err error) {
	if err := s.room(r); err != nil {
		return "", 0, fmt.Errorf("artifact: put: %w", err)
	}
	h := sha256.New()
	temp, err := disk.Stage(s.fsys, "object", func(w io.Writer) error {
		size, err = io.Copy(io.MultiWriter(w, h), r)
		return err
	})
	if err != nil {
		return "", 0, fmt.Errorf("artifact: put: %w", err)
	}
	digest = hex.EncodeToString(h.Sum(nil))
	return digest, size, s.commit(temp, digest)
}

// room refuses a file that the disk has no room for before it is full: a file with holes is far longer than what it
// takes where it stands.
func (s *Store) room(r io.Reader) error {
	f, ok := r.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if free := disk.Free(s.fsys.Path(".")); err == nil && info.Size() > free {
		return fmt.Errorf("%s has %d bytes, and %d are free: %w", info.Name(), info.Size(), free, syscall.ENOSPC)
	}
	return nil
}

// Twice makes an object stand in both places, as far as one of them holds it whole. The error says that neither does;
// renewed, that one did not.
func (s *Store) Twice(digest string) (renewed bool, err error) {
	if s.beside == nil {
		return false, s.Verify(digest)
	}
	here, there := s.here(digest), s.beside.Verify(digest)
	switch {
	case here == nil && there == nil:
		return false, nil
	case here != nil && there != nil:
		return false, here
	}
	from, to := s, s.beside
	if here != nil {
		from, to = s.beside, s
	}
	to.durable.Delete(digest)
	r, err := from.openHere(digest)
	if err != nil {
		return false, err
	}
	defer r.Close()
	_, _, err = to.put(r)
	return err == nil, err
}

// PutBytes is Put for content in memory. Content that is there already is not written again.
func (s *Store) PutBytes(b []byte) (digest string, err error) {
	digest = Digest(b)
	if _, ok := s.durable.Load(digest); ok {
		return digest, nil
	}
	_, _, err = s.Put(bytes.NewReader(b))
	return digest, err
}

// commit gives a durable temporary file its name.
func (s *Store) commit(temp, digest string) error {
	if _, ok := s.durable.Load(digest); ok {
		return s.fsys.Remove(temp)
	}
	dir := objectDir(digest)
	err := s.makeDir(dir)
	if err == nil {
		// Over an existing object too: its content may not be durable, or no longer right.
		err = s.fsys.Rename(temp, objectName(digest))
	}
	if err == nil {
		err = s.fsys.SyncDir(dir)
	}
	if err != nil {
		s.fsys.Remove(temp)
		return fmt.Errorf("artifact: put %s: %w", digest, err)
	}
	s.durable.Store(digest, true)
	return nil
}

func (s *Store) makeDir(dir string) error {
	if _, ok := s.dirs.Load(dir); ok {
		return nil
	}
	if err := disk.MakeDirs(s.fsys, dir); err != nil {
		return err
	}
	s.dirs.Store(dir, true)
	return nil
}

// Open opens an object. What is read is checked: the read that reaches the end fails with *Corrupt
// when the content does not match the digest. A missing object is fs.ErrNotExist. Of one that stands in both places the
// second is read where the first is not right.
func (s *Store) Open(digest string) (io.ReadCloser, error) {
	if !ValidDigest(digest) {
		return nil, fmt.Errorf("artifact: %.80q is not a digest", digest)
	}
	f, err := s.openHere(digest)
	if s.beside == nil || err == nil && (!s.beside.Has(digest) || s.here(digest) == nil) {
		return f, err
	}
	second, e := s.beside.openHere(digest)
	if e != nil {
		return f, err
	}
	if err == nil {
		_ = f.Close()
	}
	return second, nil
}

func (s *Store) openHere(digest string) (io.ReadCloser, error) {
	f, err := disk.OpenRegular(s.fsys, objectName(digest))
	if err != nil {
		return nil, fmt.Errorf("artifact: object: %w", err)
	}
	return &checked{f, sha256.New(), digest, s.fsys.Path(objectName(digest))}, nil
}

// here reports what is wrong with an object in the first place. It reads it once.
func (s *Store) here(digest string) error {
	if _, ok := s.sound.Load(digest); ok {
		return nil
	}
	r, err := s.openHere(digest)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err = io.Copy(io.Discard, r); err == nil {
		s.sound.Store(digest, true)
	}
	return err
}

// Get reads a whole object, checked.
func (s *Store) Get(digest string) ([]byte, error) {
	r, err := s.Open(digest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Has reports whether the store holds an object, without reading it.
func (s *Store) Has(digest string) bool {
	fi, err := s.fsys.Lstat(objectName(digest))
	return err == nil && fi.Mode().IsRegular() || s.beside != nil && s.beside.Has(digest)
}

// Verify reads an object and checks its digest.
func (s *Store) Verify(digest string) error {
	r, err := s.Open(digest)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// Single says which of its two places lacks an object that should stand in both, or holds it wrong.
func (s *Store) Single(digest string) error {
	if s.beside == nil {
		return nil
	}
	return errors.Join(s.here(digest), s.beside.Verify(digest))
}

// Sweep removes temporary files of a process that died. No other process may use the store.
func (s *Store) Sweep() error {
	err := disk.Sweep(s.fsys, ".")
	if s.beside != nil {
		err = errors.Join(err, s.beside.Sweep())
	}
	return err
}

// Corrupt says that a file's content does not match its digest.
type Corrupt struct{ Path, Want, Got string }

func (c *Corrupt) Error() string {
	return c.Path + ": content has sha256 " + c.Got + ", recorded is " + c.Want
}

type checked struct {
	file disk.File
	hash hash.Hash
	want string
	path string
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.hash.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
			err = &Corrupt{c.path, c.want, got}
		}
	}
	return n, err
}

func (c *checked) Close() error { return c.file.Close() }

// fileDigest returns digest and size of a regular file of a tree.
func fileDigest(fsys disk.FS, name string) (string, int64, error) {
	f, err := disk.OpenRegular(fsys, name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}
