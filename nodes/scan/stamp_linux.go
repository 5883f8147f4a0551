package scan

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) stamp {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return stampFrom(st)
	}
	return stamp{size: info.Size(), modified: info.ModTime().UnixNano()}
}

// stampAt is of what a path names, and of no link's end.
func stampAt(name string) (stamp, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(name, &st)
	return stampFrom(&st), err
}

func stampFrom(st *syscall.Stat_t) stamp {
	return stamp{size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano(), inode: st.Ino}
}
