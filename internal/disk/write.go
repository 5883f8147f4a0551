package disk

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"dagrun.dev/internal/regular"
)

// ReadFile reads a whole file, refusing what is not a regular one: a named pipe in its place
// would block for ever.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := OpenRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Holds reports whether a file holds just these bytes. However long it is, it needs little memory.
func Holds(fsys FS, name string, want []byte) (bool, error) {
	f, err := OpenRegular(fsys, name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := f.Read(piece)
		if !bytes.HasPrefix(want, piece[:n]) {
			return false, nil
		}
		want = want[n:]
		if err == io.EOF {
			return len(want) == 0, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// OpenRegular opens a file for reading. What is not a regular file, a symbolic link included, is an error.
func OpenRegular(fsys FS, name string) (File, error) {
	fi, err := fsys.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: fsys.Path(name), Err: &regular.NotRegular{Mode: fi.Mode()}}
	}
	return fsys.OpenFile(name, os.O_RDONLY, 0)
}

// OpenOwn opens a file that the program keeps for itself for reading and writing, and makes it when there is none.
// Something else of that name is an error that says so: to follow a link or to wait for a pipe would do harm.
func OpenOwn(fsys FS, name string) (File, error) {
	fi, err := fsys.Lstat(name)
	if err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file, and stands where dagrun keeps one of its own: move it away",
			fsys.Path(name))
	}
	return fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}

// TempName returns an unused name beside name. Names of this form are leftovers when no process runs.
func TempName(name string) string {
	var b [6]byte
	rand.Read(b[:])
	return path.Join(path.Dir(name), ".tmp-"+hex.EncodeToString(b[:]))
}

// IsTemp reports whether a base name is one of TempName.
func IsTemp(base string) bool { return len(base) == 17 && base[:5] == ".tmp-" }

// WriteFile replaces a file so that a crash leaves the old content or the new one: temporary name,
// write, sync, close, rename, sync of the directory.
func WriteFile(fsys FS, name string, data []byte) error {
	return Replace(fsys, name, bytes.NewReader(data), nil)
}

// Replace is WriteFile with the content of src; check, when set, is called with the temporary file's name before it
// takes the place of the old one.
func Replace(fsys FS, name string, src io.Reader, check func(temp string) error) error {
	temp, err := Stage(fsys, name, func(w io.Writer) error { _, err := io.Copy(w, src); return err })
	if err != nil {
		return err
	}
	if check != nil {
		err = check(temp)
	}
	if err == nil {
		err = fsys.Rename(temp, name)
	}
	if err != nil {
		fsys.Remove(temp)
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// Stage writes a durable temporary file beside name and returns its name.
func Stage(fsys FS, name string, fill func(io.Writer) error) (temp string, err error) {
	temp = TempName(name)
	f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		fsys.Remove(temp)
		return "", err
	}
	return temp, nil
}

// Copy copies a file durably under a new name, which must not exist.
func Copy(fsys FS, from, to string) error {
	src, err := OpenRegular(fsys, from)
	if err != nil {
		return err
	}
	defer src.Close()
	return Replace(fsys, to, src, func(string) error {
		if _, err := fsys.Lstat(to); err == nil { // the run's lock keeps other processes away
			return &fs.PathError{Op: "rename", Path: fsys.Path(to), Err: fs.ErrExist}
		}
		return nil
	})
}

// MakeDirs makes a directory and its parents, durable: those too that are there, for whoever made them may have died
// before they were.
func MakeDirs(fsys FS, dir string) error {
	err := fsys.MkdirAll(dir)
	for err == nil && dir != "." {
		dir = path.Dir(dir)
		err = fsys.SyncDir(dir)
	}
	return err
}

// List lists a directory, sorted by name. One that is not there is empty.
func List(fsys FS, name string) ([]fs.DirEntry, error) {
	list, err := fsys.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// Sweep removes the leftovers in a directory of processes that died; no other may be at work in it.
func Sweep(fsys FS, name string) error {
	list, err := List(fsys, name)
	for _, e := range list {
		if IsTemp(e.Name()) {
			err = errors.Join(err, fsys.Remove(path.Join(name, e.Name())))
		}
	}
	return err
}
