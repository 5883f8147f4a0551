package disk

import (
	"os"
	"path/filepath"
)

// Existing returns a folder, or the nearest one above it that there is.
func Existing(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for ; ; abs = filepath.Dir(abs) {
		if _, err := os.Lstat(abs); err == nil || abs == filepath.Dir(abs) {
			return abs
		}
	}
}

// Writable says what keeps files from being made in a folder, or in the one above it in which it would be made. It
// leaves nothing behind.
func Writable(dir string) error {
	f, err := os.CreateTemp(Existing(dir), ".dagrun-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}
