package disk

import (
	"math"

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
