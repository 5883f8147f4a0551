// Package regular opens files that another program may have made or replaced: a child, an editor, a
// sync tool. What is no regular file is an error that says what it is; nothing here waits for a writer
// or reads without a bound. It knows nothing of what the files mean.
package regular

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// flags belong to every open of a file that may have been replaced. Without them the open of a named
// pipe waits for a writer (fifo(7)), and that of a terminal may make it the process's own (open(2), O_NOCTTY).
const flags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// Open opens the regular file at path for reading. A symbolic link is not followed.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|flags|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, explain(err, func() (fs.FileInfo, error) { return os.Lstat(path) })
	}
	return checked(f)
}

// OpenIn opens a regular file below root for reading. A symbolic link is followed as far as it stays below root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return OpenFileIn(root, name, os.O_RDONLY, 0)
}

// OpenFileIn opens a regular file below root with the flags of package os, and makes it where they say so.
func OpenFileIn(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := root.OpenFile(name, flag|flags, perm)
	if err != nil {
		if err := left(err); err != nil {
			return nil, err
		}
		return nil, explain(err, func() (fs.FileInfo, error) { return root.Stat(name) })
	}
	if flag&os.O_EXCL != 0 {
		return f, nil // it has just been made
	}
	return checked(f)
}

// StatIn returns what there is below root, links followed as far as they stay there.
func StatIn(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Stat(name)
	return info, cmp.Or(left(err), err)
}

// errLeft is the error of a name below a root that leads elsewhere.
var errLeft = errors.New("it is a link that leads out of its folder; put a copy in its place")

// left returns errLeft where that is what os says of a name below a root, in an error without a name; else nil.
func left(err error) error {
	pe := (*fs.PathError)(nil)
	if !errors.As(err, &pe) || pe.Err.Error() != "path escapes from parent" {
		return nil
	}
	return &fs.PathError{Op: pe.Op, Path: pe.Path, Err: errLeft}
}

// Read returns the content of the regular file at path, as Open finds it. More than most bytes are an error.
func Read(path string, most int64) ([]byte, error) { return all(most)(Open(path)) }

// ReadIn returns the content of a regular file below root, as OpenIn finds it. More than most bytes are an error.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	return all(most)(OpenIn(root, name))
}

func all(most int64) func(f *os.File, err error) ([]byte, error) {
	return func(f *os.File, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		defer f.Close()
		size := int64(0)
		if info, err := f.Stat(); err == nil {
			size = min(info.Size(), most)
		}
		var all bytes.Buffer
		all.Grow(int(size) + bytes.MinRead) // it may have grown meanwhile
		_, err = all.ReadFrom(io.LimitReader(f, most+1))
		b := all.Bytes()
		if err == nil && int64(len(b)) > most {
			err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("more than %d bytes", most)}
		}
		return b, err
	}
}

// checked returns an open file if it is a regular one. Any other it closes.
func checked(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	if err == nil {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: &NotRegular{info.Mode()}}
	}
	_ = f.Close()
	return nil, err
}

// explain puts what a file is in the place of what the system says of an open that it refused: "no such
// device or address" is a socket.
func explain(err error, stat func() (fs.FileInfo, error)) error {
	info, e := stat()
	pe, ok := err.(*fs.PathError)
	if e != nil || !ok || info.Mode().IsRegular() {
		return err
	}
	return &fs.PathError{Op: pe.Op, Path: pe.Path, Err: &NotRegular{info.Mode()}}
}

// NotRegular says what stands in the place of a regular file.
type NotRegular struct{ Mode fs.FileMode }

var kinds = map[fs.FileMode]string{
	fs.ModeDir:                        "a folder",
	fs.ModeSymlink:                    "a symbolic link",
	fs.ModeNamedPipe:                  "a named pipe",
	fs.ModeSocket:                     "a socket",
	fs.ModeDevice:                     "a device",
	fs.ModeDevice | fs.ModeCharDevice: "a device",
}

func (e *NotRegular) Error() string {
	return "it is " + cmp.Or(kinds[e.Mode.Type()], "a special file") + ", want a regular file"
}
