package proc

import (
	"bytes"
	"os"
	"sort"
	"strconv"

	"golang.org/x/sys/unix"
)

// An entry is one process as /proc shows it.
type entry struct {
	pid, parent, group, session int
	born                        uint64 // clock ticks since boot
	dead                        bool   // a zombie
	hidden                      bool   // nothing could be read of it; see mark
	comm                        string
}

// readTable reads all processes, sorted by number. Those that end meanwhile are left out.
func readTable() []*entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	table := make([]*entry, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p := readStat(pid); p != nil {
			table = append(table, p)
		}
	}
	sort.Slice(table, func(i, j int) bool { return table[i].pid < table[j].pid })
	return table
}

func lookup(table []*entry, pid int) *entry {
	i := sort.Search(len(table), func(i int) bool { return table[i].pid >= pid })
	if i < len(table) && table[i].pid == pid {
		return table[i]
	}
	return nil
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
