package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"dagrun.dev/internal/disk"
)

// W-1: a program that closes its folders for writing or reading, as Go does its modules, does not keep them from being
// removed, so that a run in which one has done so can be opened again.
func TestRemoveAllOfWhatIsClosed(t *testing.T) {
	asOwner(t, func() {
		fsys := onDisk(t)
		remove := map[string]func(name string) error{
			"FS":   fsys.RemoveAll,
			"path": func(name string) error { return disk.RemoveAll(fsys.Path(name)) },
		}
		for what, remove := range remove {
			for _, mode := range []os.FileMode{0, 0o500, 0o200} {
				for _, name := range []string{"a", "a/b\xff/c"} {
					at := fsys.Path(name)
					err := errors.Join(os.MkdirAll(fsys.Path("a/b\xff/c/d"), 0o700),
						os.WriteFile(filepath.Join(at, "f"), nil, 0o400), os.Chmod(at, mode))
					if err != nil {
						t.Error(err)
						return
					}
					if err := remove("a"); err != nil {
						t.Errorf("%s, %s with mode %v: %v", what, name, mode, err)
					}
					if _, err := os.Lstat(fsys.Path("a")); !os.IsNotExist(err) {
						t.Errorf("%s, %s with mode %v: still there (%v)", what, name, mode, err)
						_ = os.Chmod(at, 0o700)
					}
				}
			}
		}
		if err := disk.RemoveAll(fsys.Path("none/none")); err != nil {
			t.Error(err)
		}
	})
}

// asOwner calls f on a thread that files are closed to as they are to anybody but root.
func asOwner(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&h, &data[0])
		data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if err == nil {
			err = unix.Capset(&h, &data[0])
		}
		if err != nil {
			done <- err
			return
		}
		f()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
