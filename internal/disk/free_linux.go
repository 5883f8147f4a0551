package disk

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes the disk that holds a folder has room for; where that cannot be found
// out, as many as there can be.
func Free(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Bavail > math.MaxInt64/uint64(st.Bsize) {
		return math.MaxInt64
	}
	return int64(st.Bavail) * st.Bsize
}

// Allocate takes room for the first n bytes of a file, whose size stays: writing them does not find the disk full.
// Where the file system knows no such thing it does nothing. The error is that there is no room.
func Allocate(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if Full(err) {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}
