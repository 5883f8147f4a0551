package proc

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the reaper of orphaned descendants. Calling it more than once does
// nothing; starting a child calls it.
var Adopt = sync.OnceValue(func() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
})

// guardScript waits for the end of its input, which is the end of the runner however that comes, and
// kills what carries one of the runner's marks, or is in the session or group of a root that the runner's record
// names. A runner that is killed takes its children with it by the parent-death signal; this is for their children.
// It looks once more when it has found nothing: a process that is replacing its program shows no environment
// meanwhile. A root that was born after it was recorded is a stranger who has its number now. Of what follows the
// command in /proc/PID/stat field 3 is the group, 4 the session, 20 the birth.
const guardScript = `read x
mark=$1 record=$2 recorded= quiet=0
[ -f "$record" ] && while read -r used root from to rest; do
	[ "$used" = + ] && recorded="$recorded $root:$to"
done < "$record"
for i in 1 2 3 4 5 6 7 8; do
	roots=' '
	for entry in $recorded; do
		if read -r stat < "/proc/${entry%:*}/stat"; then
			set -- ${stat##*) }
			[ "${20}" -le "${entry#*:}" ] || continue
		fi
		roots="$roots${entry%:*} "
	done
	left=$(grep -ls "$mark" /proc/[0-9]*/environ)
	[ "$roots" = ' ' ] || for file in /proc/[0-9]*/stat; do
		read -r stat < "$file" || continue
		set -- ${stat##*) }
		case "$1$roots" in
		Z*) ;;
		*" $3 "*|*" $4 "*) left="$left $file" ;;
		esac
	done
	if [ -n "$left" ]; then quiet=0; else quiet=$((quiet+1)); fi
	[ $quiet -lt 2 ] || exit 0
	for file in $left; do pid=${file#/proc/}; kill -9 "${pid%/*}"; done
done`

// guard starts the guard, once. Without a shell there is none. The writing end of its input is
// never closed: the kernel does it.
var guard = sync.OnceFunc(func() {
	var ends [2]int
	if unix.Pipe2(ends[:], unix.O_CLOEXEC) != nil {
		return
	}
	defer unix.Close(ends[0])
	sink, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer sink.Close()
	attr := &syscall.ProcAttr{
		Dir: "/", Env: Environ(nil, nil), Files: []uintptr{uintptr(ends[0]), sink.Fd(), sink.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	argv := []string{"sh", "-c", guardScript, "dagrun-guard", marks(), recordPath()}
	if pid, err := syscall.ForkExec("/bin/sh", argv, attr); err == nil {
		guardPid.Store(int64(pid))
	}
})

func recordPath() string {
	forest.Lock()
	defer forest.Unlock()
	return forest.path
}

// guardPid is the guard's process number, 0 without one. It belongs to no tree.
var guardPid atomic.Int64

// fork starts a child from the thread that it is called on, unless that is the main one. The kernel
// hangs orphans on the main thread, whose list of children is therefore the list of orphans,
// and reading it is all that a run costs where nothing was left behind. A program that keeps its
// main thread for main's goroutine, and works in others, never takes the way round.
//
// A child's parent-death signal is sent when the *thread* that forked it ends (golang/go#27505).
// The runtime ends a thread only when a goroutine that is locked to it returns; nothing here does
// that.
func fork(path string, argv []string, attr *syscall.ProcAttr) (*Tree, error) {
	if err := Adopt(); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() != self {
		guard()
		return forkHere(path, argv, attr)
	}
	var tree *Tree
	var err error
	done := make(chan struct{})
	go func() { // on another thread: this one is held
		defer close(done)
		tree, err = fork(path, argv, attr)
	}()
	<-done
	return tree, err
}

func forkHere(path string, argv []string, attr *syscall.ProcAttr) (*Tree, error) {
	t := NewTree()
	attr.Env = append(attr.Env[:len(attr.Env):len(attr.Env)], t.Mark)
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		t.forget()
		return nil, err
	}
	t.Root(pid)
	return t, nil
}

// awaitExit blocks until a child has ended and leaves it to be reaped, so that its number
// and its group's cannot be given away yet.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return os.NewSyscallError("waitid", err)
		}
	}
}

// unnamedFile makes a file that no folder lists. It is opened for appending: a child that
// opens /dev/stderr anew and truncates it leaves no hole.
func unnamedFile(folder string) (*os.File, error) {
	const flags = unix.O_TMPFILE | unix.O_RDWR | unix.O_APPEND | unix.O_CLOEXEC
	fd, err := unix.Open(folder, flags, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), "output"), nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return nil, &os.PathError{Op: "open", Path: folder, Err: err}
	}
	return removedFile(folder)
}

func fileSize(f *os.File) int64 {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0
	}
	return st.Size
}
