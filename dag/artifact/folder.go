package artifact

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/folder"
)

// A folder is an artifact whose name ends in a slash (dag.IsFolder). Its object is its manifest, which names the
// objects of its files.

// Folder reads the manifest of a stored folder.
func (s *Store) Folder(digest string) (*folder.Manifest, error) {
	b, err := s.Get(digest)
	if err != nil {
		return nil, err
	}
	return folder.Decode(b)
}

// Objects returns the objects that a version consists of: those of a folder's files too.
func (s *Store) Objects(name, digest string) ([]string, error) {
	list := []string{digest}
	if !dag.IsFolder(name) {
		return list, nil
	}
	m, err := s.Folder(digest)
	if err != nil {
		return list, err
	}
	for _, f := range m.Files {
		if f.Digest != "" {
			list = append(list, f.Digest)
		}
	}
	return list, nil
}

// VerifyVersion reads all that a version consists of and checks it.
func (s *Store) VerifyVersion(name, digest string) error {
	list, err := s.Objects(name, digest)
	for _, d := range list {
		if err == nil {
			err = s.Verify(d)
		}
	}
	return err
}

// walk makes the manifest of a live folder; fs.ErrNotExist when there is none.
func (t *Tree) walk(name string, file func(name string) (string, int64, error)) (*folder.Manifest, error) {
	name = strings.TrimSuffix(name, "/")
	fi, err := t.fsys.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: t.fsys.Path(name), Err: errors.New("want a folder")}
	}
	return folder.Walk(
		func(dir string) ([]fs.DirEntry, error) { return t.fsys.ReadDir(path.Join(name, dir)) },
		func(p string) (string, int64, error) { return file(path.Join(name, p)) })
}

// liveFolder is Live for a folder.
func (t *Tree) liveFolder(name string) (digest string, size int64, err error) {
	m, err := t.walk(name, func(name string) (string, int64, error) { return fileDigest(t.fsys, name) })
	if err != nil {
		return "", 0, err
	}
	return Digest(m.Encode()), m.Size(), nil
}

// keepFolder is Keep for a folder.
func (t *Tree) keepFolder(name string) (digest string, size int64, err error) {
	m, err := t.walk(name, t.Keep)
	if err != nil {
		return "", 0, err
	}
	digest, err = t.store.PutBytes(m.Encode())
	return digest, m.Size(), err
}

// placeFolder makes a durable copy of a stored folder under a name, in the place of what is there. The old one goes
// aside before the new one comes: a crash in between leaves none, which is found and mended at the next start.
func (t *Tree) placeFolder(digest, name string) error {
	name = strings.TrimSuffix(name, "/")
	if fi, err := t.fsys.Lstat(name); err == nil && !fi.IsDir() {
		return &fs.PathError{Op: "replace", Path: t.fsys.Path(name), Err: errors.New("a folder is to stand where a file is")}
	}
	m, err := t.store.Folder(digest)
	if err != nil {
		return err
	}
	if err := t.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	temp := disk.TempName(t.staging() + "/folder")
	defer t.fsys.RemoveAll(temp)
	if err := t.fill(m, temp+"/new"); err != nil {
		return err
	}
	if err := t.fsys.Rename(name, temp+"/old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.fsys.Rename(temp+"/new", name); err != nil {
		return errors.Join(err, t.fsys.Rename(temp+"/old", name))
	}
	return t.fsys.SyncDir(path.Dir(name))
}

// fill writes the files of a folder, durable.
func (t *Tree) fill(m *folder.Manifest, to string) error {
	if err := t.fsys.MkdirAll(to); err != nil {
		return err
	}
	made := map[string]bool{to: true}
	dirs := []string{to}
	dir := func(name string) error {
		for d := name; !made[d]; d = path.Dir(d) {
			made[d], dirs = true, append(dirs, d)
		}
		return t.fsys.MkdirAll(name)
	}
	for _, f := range m.Files {
		full := path.Join(to, f.Path)
		if f.Digest == "" {
			if err := dir(full); err != nil {
				return err
			}
			continue
		}
		if err := dir(path.Dir(full)); err != nil {
			return err
		}
		if err := t.copy(f.Digest, full); err != nil {
			return err
		}
	}
	for _, d := range dirs {
		if err := t.fsys.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// copy makes an object a file, durable.
func (t *Tree) copy(digest, to string) error {
	src, err := t.store.Open(digest)
	if err != nil {
		return err
	}
	defer src.Close()
	return disk.Replace(t.fsys, to, src, nil)
}

// Save copies a stored version to a place of the run's own, durable, and returns its size.
func (t *Tree) Save(digest, name string) (size int64, err error) {
	if !dag.IsFolder(name) {
		if err := t.copy(digest, name); err != nil {
			return 0, err
		}
		fi, err := t.fsys.Lstat(name)
		if err != nil {
			return 0, err
		}
		return fi.Size(), nil
	}
	m, err := t.store.Folder(digest)
	if err != nil {
		return 0, err
	}
	return m.Size(), t.fill(m, strings.TrimSuffix(name, "/"))
}
