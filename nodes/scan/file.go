package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"path/filepath"

	"dagrun.dev/internal/regular"
)

// known looks at a file, once.
func (t *tree) known(f *file) *file {
	if f.seen {
		return f
	}
	f.seen = true
	name := filepath.FromSlash(f.path)
	if f.link {
		var info fs.FileInfo
		if info, f.err = regular.StatIn(t.root, name); f.err == nil {
			f.stamp = stampOf(info)
		}
	} else {
		f.stamp, f.err = stampAt(t.dir + string(filepath.Separator) + name)
	}
	if f.err != nil {
		return f
	}
	f.sure = f.stamp.settled(t.began)
	if f.same = f.was != nil && f.sure && f.was.stamp == f.stamp; f.same {
		f.digest = f.was.digest
	}
	return f
}

// entry is what is to be remembered of a file.
func (f *file) entry() entry {
	switch {
	case !f.seen && f.was != nil:
		return *f.was // nobody asked: it is held to its stamp when somebody does
	case f.sure && f.err == nil:
		return entry{f.path, f.stamp, f.digest}
	}
	return entry{path: f.path}
}

// read digests the content and returns the beginning of it, up to most bytes and one more.
func (t *tree) read(f *file, most int64) (begin []byte) {
	t.fresh = t.fresh || f.sure
	r, err := regular.OpenIn(t.root, filepath.FromSlash(f.path))
	if err != nil {
		f.err = err
		return nil
	}
	defer r.Close()
	h := sha256.New()
	both := io.TeeReader(r, h)
	if begin, f.err = io.ReadAll(io.LimitReader(both, most+1)); f.err == nil {
		_, f.err = io.Copy(io.Discard, both)
	}
	if f.err != nil {
		return nil
	}
	f.digest = hex.EncodeToString(h.Sum(nil))
	if info, err := r.Stat(); err != nil || stampOf(info) != f.stamp { // it was changed meanwhile
		f.sure = false
	}
	return begin
}
