package disk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

func onDisk(t *testing.T) disk.FS {
	t.Helper()
	fsys, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

// Each behaves alike on the machine's disk and on the one in memory.
func each(t *testing.T, test func(t *testing.T, fsys disk.FS)) {
	t.Run("disk", func(t *testing.T) { test(t, onDisk(t)) })
	t.Run("memory", func(t *testing.T) { test(t, disktest.NewMem().FS()) })
}

func read(t *testing.T, fsys disk.FS, name string) string {
	t.Helper()
	b, err := disk.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFilesAndFolders(t *testing.T) {
	each(t, func(t *testing.T, fsys disk.FS) {
		if err := fsys.MkdirAll("a/b"); err != nil {
			t.Fatal(err)
		}
		sub, err := fsys.Sub("a")
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		for _, content := range []string{"one", "three"} {
			if err := disk.WriteFile(sub, "b/f", []byte(content)); err != nil || read(t, fsys, "a/b/f") != content {
				t.Fatal(err)
			}
		}
		if err := disk.Copy(fsys, "a/b/f", "g"); err != nil || read(t, fsys, "g") != "three" {
			t.Fatal(err)
		}
		if err := disk.Copy(fsys, "a/b/f", "g"); !errors.Is(err, fs.ErrExist) {
			t.Fatal("copied over a file:", err)
		}
		if err := fsys.Rename("g", "a/h"); err != nil {
			t.Fatal(err)
		}
		list, err := fsys.ReadDir("a")
		if err != nil || len(list) != 2 || list[0].Name() != "b" || !list[0].IsDir() || list[1].Name() != "h" {
			t.Fatal(list, err)
		}
		if err := fsys.Remove("a"); err == nil {
			t.Fatal("removed a folder with files")
		}
		if err := errors.Join(fsys.RemoveAll("a"), fsys.RemoveAll("a")); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"open":   second(fsys.OpenFile("a/x", os.O_RDONLY, 0)),
			"lstat":  second(fsys.Lstat("a")),
			"list":   second(fsys.ReadDir("a")),
			"sub":    second(fsys.Sub("a")),
			"rename": fsys.Rename("a", "c"),
			"remove": fsys.Remove("a"),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of what is not there: %v", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Errors name the whole path, once.
func TestErrorsNameThePath(t *testing.T) {
	fsys := onDisk(t)
	_, err := fsys.OpenFile("x/y", os.O_RDONLY, 0)
	if err == nil || strings.Count(err.Error(), fsys.Path("x/y")) != 1 {
		t.Error(err)
	}
	if err := fsys.Rename("x", "z"); err == nil || !strings.Contains(err.Error(), fsys.Path("z")) {
		t.Error(err)
	}
}

func TestNamesDoNotLeaveTheTree(t *testing.T) {
	fsys := onDisk(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, fsys.Path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/etc/passwd", "link/x", "a/../../x"} {
		if err := disk.WriteFile(fsys, name, []byte("x")); err == nil {
			t.Errorf("wrote %s", name)
		}
	}
	if list, _ := os.ReadDir(outside); len(list) > 0 {
		t.Error(list)
	}
	if err := syscall.Mkfifo(fsys.Path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "link", "."} {
		if _, err := disk.ReadFile(fsys, name); err == nil {
			t.Errorf("read %s", name)
		}
	}
}

func TestFailedReplaceLeavesTheOldFile(t *testing.T) {
	each(t, func(t *testing.T, fsys disk.FS) {
		if err := disk.WriteFile(fsys, "f", []byte("old")); err != nil {
			t.Fatal(err)
		}
		bad := errors.New("bad")
		for _, err := range []error{
			disk.Replace(fsys, "f", io.MultiReader(strings.NewReader("ne"), iotest.ErrReader(bad)), nil),
			disk.Replace(fsys, "f", strings.NewReader("new"), func(temp string) error {
				if read(t, fsys, temp) != "new" {
					t.Error("checked something else")
				}
				return bad
			}),
		} {
			if err != bad {
				t.Error(err)
			}
		}
		if list, _ := fsys.ReadDir("."); len(list) != 1 || read(t, fsys, "f") != "old" {
			t.Error(list)
		}
	})
}

func TestLocks(t *testing.T) {
	each(t, func(t *testing.T, fsys disk.FS) {
		open := func() disk.File {
			f, err := fsys.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		a, b := open(), open()
		defer b.Close()
		if ok, err := a.TryLock(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := b.TryLock(); ok || err != nil {
			t.Fatal(ok, err)
		}
		if c, ok := a.(syscall.Conn); ok { // a child that is just being started has a copy
			raw, err := c.SyscallConn()
			if err == nil {
				err = raw.Control(func(fd uintptr) {
					if fd, err := syscall.Dup(int(fd)); err == nil {
						t.Cleanup(func() { syscall.Close(fd) })
					}
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		a.Close()
		if ok, err := b.TryLock(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	})
}

// A loss of power leaves what was synced, of files and of folders, and no more.
func TestPowerLoss(t *testing.T) {
	m := disktest.NewMem()
	fsys := m.FS()
	create := func(name, content string) disk.File {
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	create("synced", "abc").Sync()
	create("unsynced", "abc")
	half := create("half", "abc")
	half.Sync()
	io.WriteString(half, "def")
	if err := fsys.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	create("unlisted", "abc").Sync()
	fsys.Rename("synced", "renamed")
	after := m.PowerLoss(func(n int) int { return n - 1 }).FS()
	for name, want := range map[string]string{"synced": "abc", "unsynced": "ab", "half": "abcde"} {
		if got := read(t, after, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	for _, name := range []string{"unlisted", "renamed"} {
		if _, err := after.Lstat(name); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if got := read(t, m.Kill().FS(), "renamed"); got != "abc" {
		t.Errorf("after a kill: %q", got)
	}
}

func TestWhatBreaksADisk(t *testing.T) {
	for err, want := range map[error][2]bool{
		syscall.ENOSPC: {true, true}, syscall.EDQUOT: {true, true}, syscall.EROFS: {false, true}, syscall.EIO: {false, true}, syscall.EFBIG: {false, true},
		syscall.ENOENT: {false, false}, &disk.Refused{Err: errors.New("x")}: {false, true},
	} {
		wrapped := fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: "x", Err: err})
		if disk.Full(wrapped) != want[0] || disk.Broken(wrapped) != want[1] {
			t.Errorf("%v", err)
		}
	}
	if disk.Full(nil) || disk.Broken(nil) {
		t.Error("nil")
	}
}

func TestTempNames(t *testing.T) {
	name := disk.TempName("a/b/state.json")
	if filepath.Dir(name) != "a/b" || !disk.IsTemp(filepath.Base(name)) || name == disk.TempName("a/b/state.json") {
		t.Error(name)
	}
	for _, other := range []string{"", "state.json", ".tmp-", ".tmp-x"} {
		if disk.IsTemp(other) {
			t.Error(other)
		}
	}
}
