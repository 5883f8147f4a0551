package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/internal/disk"
)

// A Tree is the working tree of a run: the live files that people and nodes look at. Each is a
// copy of an object, so that editing it in place harms no recorded version.
//
// Publishing a version goes in steps, and after a crash between any two the digest of the live file says which one
// was the last:
//
//	Store.Put     the new content is an object, durable          live = previous
//	Backup        the present live file is copied, durable       live = previous
//	(the caller records the version)                             live = previous
//	Promote       a durable copy is renamed to the live place    live = recorded
type Tree struct {
	fsys  disk.FS
	store *Store
	own   string   // first element of paths that belong to the run itself
	dirs  sync.Map // directories that this process has made durable
}

// NewTree uses an output directory as a working tree; own is the run's folder in it, where no
// artifact may live.
func NewTree(fsys disk.FS, store *Store, own string) *Tree {
	return &Tree{fsys: fsys, store: store, own: own}
}

// staging is the folder for files that are not yet in their places. It is emptied at the next start.
func (t *Tree) staging() string { return t.own + "/staging" }

// CheckName says why a name cannot be an artifact's: it is the path of the live file, relative to the
// output directory, slash-separated.
func (t *Tree) CheckName(name string) error {
	first, _, _ := strings.Cut(name, "/")
	switch file := strings.TrimSuffix(name, "/"); {
	case !fs.ValidPath(file) || name == "." || strings.ContainsAny(name, "\\\x00\n"):
		return fmt.Errorf("artifact: %q is not a path within the output directory", name)
	case strings.EqualFold(first, t.own):
		return fmt.Errorf("artifact: %q lies in the folder that the run keeps for itself (%s)", name, t.own)
	}
	return nil
}

// Live returns digest and size of a live file or folder; fs.ErrNotExist when there is none.
func (t *Tree) Live(name string) (digest string, size int64, err error) {
	if dag.IsFolder(name) {
		return t.liveFolder(name)
	}
	return fileDigest(t.fsys, name)
}

// Found is the digest of a live file or folder, empty when there is none.
func (t *Tree) Found(name string) (string, error) {
	digest, _, err := t.Live(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return digest, err
}

// Keep puts the live file as it is into the store.
func (t *Tree) Keep(name string) (digest string, size int64, err error) {
	if dag.IsFolder(name) {
		return t.keepFolder(name)
	}
	f, err := disk.OpenRegular(t.fsys, name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return t.store.Put(f)
}

// Backup copies the object of the present version to dir/stem-backup.ext, durable, and returns that
// path. A backup of the same content that is there already is used again, another one is left alone
// and the new one gets a number. dir is relative to the output directory.
func (t *Tree) Backup(name, digest, dir string) (string, error) {
	base, end := strings.ReplaceAll(strings.TrimSuffix(name, "/"), "/", "-"), ""
	if dag.IsFolder(name) {
		end = "/"
	}
	for n := 1; ; n++ {
		to := path.Join(dir, numbered(base, "-backup", n)) + end
		have, _, err := t.Live(to)
		switch {
		case err == nil && have == digest:
			return to, nil
		case err == nil:
			continue // another version's
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		return to, t.place(digest, to)
	}
}

// numbered returns stem+tag.ext, from n = 2 on stem+tag-n.ext.
func numbered(base, tag string, n int) string {
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if stem == "" { // .profile
		stem, ext = base, ""
	}
	if n > 1 {
		tag += "-" + strconv.Itoa(n)
	}
	return stem + tag + ext
}

// Promote makes an object the live file.
func (t *Tree) Promote(name, digest string) error {
	if err := t.CheckName(name); err != nil {
		return err
	}
	return t.place(digest, name)
}

// place makes a durable copy of an object under a name.
func (t *Tree) place(digest, name string) error {
	if dag.IsFolder(name) {
		return t.placeFolder(digest, name)
	}
	src, err := t.store.Open(digest)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := t.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	if err := t.fsys.MkdirAll(t.staging()); err != nil {
		return err
	}
	temp, err := disk.Stage(t.fsys, t.staging()+"/file", func(w io.Writer) error { _, err := io.Copy(w, src); return err })
	if err != nil {
		return err
	}
	if err := t.fsys.Rename(temp, name); err != nil {
		t.fsys.Remove(temp)
		return err
	}
	return t.fsys.SyncDir(path.Dir(name))
}

// makeDirs makes a directory and its parents, durable.
func (t *Tree) makeDirs(dir string) error {
	if _, ok := t.dirs.Load(dir); ok {
		return nil
	}
	if err := disk.MakeDirs(t.fsys, dir); err != nil {
		return err
	}
	t.dirs.Store(dir, true)
	return nil
}
