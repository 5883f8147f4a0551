package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"dagrun.dev/internal/regular"
)

// A stamp is what says, without opening a file, that it is the same with the same content.
type stamp struct {
	size     int64
	modified int64 // ns
	changed  int64 // ns: the inode, which nobody can set back
	inode    uint64
}

// known looks at a file, once.
func (e *evaluation) known(f *file) *file {
	if f.known {
		return f
	}
	f.known = true
	name := filepath.FromSlash(f.path)
	var info fs.FileInfo
	if f.link {
		info, f.err = regular.StatIn(e.root, name)
	} else {
		info, f.err = os.Lstat(filepath.Join(e.tree.dir, name))
	}
	if f.err != nil {
		return f
	}
	f.stamp = stampOf(info)
	f.sure = f.stamp.settled(e.began)
	if x, ok := e.memory.entries[f.path]; ok && f.sure && x.stamp == f.stamp {
		f.digest, f.before = x.digest, &x
	}
	return f
}

// read digests the content and returns the beginning of it, up to most bytes and one more.
func (e *evaluation) read(f *file, most int64) (begin []byte) {
	e.memory.fresh = e.memory.fresh || f.sure
	r, err := regular.OpenIn(e.root, filepath.FromSlash(f.path))
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
