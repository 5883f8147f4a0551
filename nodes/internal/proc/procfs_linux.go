package proc

import (
	"bytes"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"dagrun.dev/internal/printable"
)

// All that this package reads of /proc; see proc(5) for the files.

// self and session are those of this process, which neither forks nor calls setsid.
var (
	self    = os.Getpid()
	session = sync.OnceValue(func() int {
		id, _ := unix.Getsid(0) // of the caller itself it never fails
		return id
	})
)

// An entry is one process as /proc shows it.
type entry struct {
	pid, parent, group, session int
	born                        uint64 // clock ticks since boot
	dead                        bool   // a zombie
	hidden                      bool   // nothing could be read of it yet; see mark
	comm                        string
}

// A table is all processes at about one moment, sorted by number.
type table []*entry

// readTable reads the table. Processes that end meanwhile are left out.
func readTable() table {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	list := make(table, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p := readStat(pid); p != nil {
			list = append(list, p)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].pid < list[j].pid })
	return list
}

// at returns the process of a number, or nil.
func (t table) at(pid int) *entry {
	i := sort.Search(len(t), func(i int) bool { return t[i].pid >= pid })
	if i < len(t) && t[i].pid == pid {
		return t[i]
	}
	return nil
}

// under reports whether p or one of its ancestors is in set.
func (t table) under(p *entry, set map[int]bool) bool {
	for n := 0; p != nil && n < 10000; n++ { // numbers can be reused while the table is read: no endless loop
		if set[p.pid] {
			return true
		}
		p = t.at(p.parent)
	}
	return false
}

func readStat(pid int) *entry {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return parseStat(pid, b)
}

// parseStat reads proc_pid_stat(5). The command stands in parentheses and may hold any byte,
// parentheses included.
func parseStat(pid int, b []byte) *entry {
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || shut < open {
		return nil
	}
	f := bytes.Fields(b[shut+1:])
	if len(f) < 20 {
		return nil
	}
	num := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n }
	born, _ := strconv.ParseUint(string(f[19]), 10, 64)
	state := f[0][0]
	return &entry{
		pid: pid, parent: num(1), group: num(2), session: num(3), born: born,
		dead: state == 'Z' || state == 'X', comm: string(b[open+1 : shut]),
	}
}

// ticks returns the clock that parseStat's born counts: hundredths of a second since boot.
func ticks() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return uint64(ts.Sec)*100 + uint64(ts.Nsec)/1e7
}

// orphan reports whether a process came to this one because its parent ended, or is the root of a tree: a child in a
// session of its own. Children in this process's session are those of other packages. The guard is none.
func (p *entry) orphan() bool {
	return p.parent == self && p.session != session() && p.pid != int(guardPid.Load())
}

// mark returns the last environment entry that names a tree, or "". A process that is replacing its program
// shows neither environment nor arguments until that is done: then it is hidden, and worth another look.
func (p *entry) mark() string {
	env := p.read("environ")
	if len(env) == 0 {
		p.hidden = len(p.read("cmdline")) == 0
		env = p.read("environ") // it may have been done between the two
	}
	entries := strings.Split(string(env), "\x00")
	slices.Reverse(entries)
	for _, kv := range entries {
		if strings.HasPrefix(kv, markName) {
			return kv
		}
	}
	return ""
}

// command returns program and arguments, cut to a line, safe to print.
func (p *entry) command() string {
	b := p.read("cmdline")
	if len(b) == 0 {
		return printable.Text(p.comm)
	}
	const most = 120
	s := strings.TrimRight(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})), " ")
	if len(s) > most {
		s = s[:most] + "..."
	}
	return printable.Text(s)
}

// read returns a file of /proc about the process; empty when it is gone.
func (p *entry) read(name string) []byte {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/" + name)
	return b
}

// childrenFile is the kernel's list of the main thread's children. It stays open: reading it is all that a run costs
// where nothing was left behind.
var childrenFile = sync.OnceValue(func() *os.File {
	f, _ := os.Open("/proc/self/task/" + strconv.Itoa(self) + "/children")
	return f
})

// children lists the children that this process did not fork through fork (see there). known is false where the
// kernel does not say (built without CONFIG_PROC_CHILDREN).
func children() (list []*entry, known bool) {
	f := childrenFile()
	if f == nil {
		return nil, false
	}
	var first [1]byte // mostly there are none, and nothing is allocated to learn that
	if n, err := unix.Pread(int(f.Fd()), first[:], 0); n == 0 && err == nil {
		return nil, true
	}
	b := make([]byte, 512)
	n, err := f.ReadAt(b, 0)
	for n == len(b) { // there may be more: read again from the start, for a list in pieces may leave some out
		b = make([]byte, 4*len(b))
		n, err = f.ReadAt(b, 0)
	}
	if err != nil && err != io.EOF {
		return nil, false
	}
	for _, field := range bytes.Fields(b[:n]) {
		pid, err := strconv.Atoi(string(field))
		if p := readStat(pid); err == nil && p != nil {
			list = append(list, p)
		}
	}
	return list, true
}
