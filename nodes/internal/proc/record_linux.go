package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dagrun.dev/internal/regular"
)

// The record names the roots of all trees that run, so that the guard, and whoever takes over from a process that was
// killed, finds what it left by session, whatever became of its environment. It is a file of lines of one length: who
// writes it, when that was alive last, then a slot for each root, used again when its tree has ended. One write of a
// few bytes for each start is all that it costs; it need not survive the machine, as no process does. A slot whose tree
// has ended is written over by the next start, and emptied when nothing has started by the next look: until then it
// names a process that is gone, as do the slots of a process that was killed.
//
// A root is written right after the fork: what it starts in the microseconds before that is found by its mark alone.
// Processes that leave the session of their root are looked for, 50 to 150 ms after a start, then more and more
// seldom, at the least once a second. One that leaves it, clears its environment and loses its ancestors, all since the
// last look before a kill, is not found.

// A record is the open file. forest.Lock orders its use.
type record struct {
	f     *os.File
	buf   []byte
	ended []int // slots that name a tree which has ended
	free  []int
	next  int
	stray map[int]int // slots of processes outside the session of their root, by process number
	begun chan struct{}
	soon  bool // it looks soon by itself
}

const (
	lineLen  = 128 // of the first two lines
	slotLen  = 48
	soonest  = 50 * time.Millisecond // looks for strays
	beatTime = time.Second
)

// Remember has the roots of all trees of this process recorded in a file, in place of what it holds; see EndLeft. Call
// forget when no child runs any more: it removes the file. There is one record at a time.
func Remember(path string) (forget func(), err error) {
	if path, err = filepath.Abs(path); err != nil { // the guard has another working folder
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	f, err := regular.OpenFileIn(root, name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	r := &record{f: f, stray: map[int]int{}, begun: make(chan struct{}, 1)}
	place, err := placeOf(f)
	if err == nil {
		_, err = f.WriteString(line(lineLen, place+" "+marks()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), root.Close())
	}
	r.alive()
	forest.Lock()
	forest.record, forest.path = r, path
	for t := range forest.trees {
		t.note()
	}
	forest.Unlock()
	stop, done := make(chan struct{}), make(chan struct{})
	go r.keep(stop, done)
	return sync.OnceFunc(func() {
		close(stop)
		<-done
		forest.Lock()
		forest.record = nil
		forest.Unlock()
		_, _, _ = root.Remove(name), root.Close(), f.Close()
	}), nil
}

// line fills a text up to a length, its end included.
func line(length int, text string) string { return fmt.Sprintf("%-*s\n", length-1, text) }

// placeOf says on which machine, since which start of it, in which namespace of processes and in which file a record
// stands. Process numbers mean something there only: a copy of the file is none.
func placeOf(f *os.File) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("the disk does not say which file it is")
	}
	return fmt.Sprintf("%s %s %x.%x", bytes.TrimSpace(boot), space, st.Dev, st.Ino), nil
}

func (r *record) alive() { _, _ = r.f.WriteAt([]byte(line(lineLen, fmt.Sprint(ticks()))), lineLen) }

// empty empties the slots of trees that have ended.
func (r *record) empty() {
	forest.Lock()
	defer forest.Unlock()
	for _, slot := range r.ended {
		r.write(slot, append(r.buf[:0], '-'))
	}
	r.free, r.ended = append(r.free, r.ended...), r.ended[:0]
}

// put records a process that was born between two ticks, and returns its slot. That a full disk keeps no more of them
// is no reason to stop.
func (r *record) put(pid int, from, to uint64) (slot int) {
	if n := len(r.ended); n > 0 {
		slot, r.ended = r.ended[n-1], r.ended[:n-1]
	} else if n := len(r.free); n > 0 {
		slot, r.free = r.free[n-1], r.free[:n-1]
	} else {
		slot, r.next = r.next, r.next+1
	}
	b := strconv.AppendInt(append(r.buf[:0], "+ "...), int64(pid), 10)
	b = strconv.AppendUint(append(b, ' '), from, 10)
	r.write(slot, strconv.AppendUint(append(b, ' '), to, 10))
	return slot
}

func (r *record) drop(slot int) { r.ended = append(r.ended, slot) }

func (r *record) write(slot int, text []byte) {
	for len(text) < slotLen-1 {
		text = append(text, ' ')
	}
	r.buf = append(text, '\n')
	_, _ = r.f.WriteAt(r.buf, int64(2*lineLen+slot*slotLen))
}

// note records a tree's root. The caller holds forest.Lock.
func (t *Tree) note() {
	if r := forest.record; r != nil && t.root != 0 {
		t.record, t.slot = r, r.put(t.root, t.born, ticks())
		if !r.soon {
			r.soon = true // waking it for each start would cost more than the start's line
			select {
			case r.begun <- struct{}{}:
			default:
			}
		}
	}
}

// keep says that this process is alive, and notes which processes are outside of the sessions of roots.
func (r *record) keep(stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	timer := time.NewTimer(beatTime)
	defer timer.Stop()
	for pause := beatTime; ; {
		select {
		case <-stop:
			return
		case <-r.begun:
			pause = soonest
			timer.Reset(pause)
		case <-timer.C:
			r.alive()
			r.empty()
			r.strays()
			pause = min(2*pause, beatTime)
			timer.Reset(pause)
		}
	}
}

// strays notes the descendants that left the session of their root, and orphans.
func (r *record) strays() {
	forest.Lock()
	r.soon = false
	roots := map[int]bool{}
	var old []int // commands that last a moment are not looked at
	for t := range forest.trees {
		if roots[t.root] = true; t.born+uint64(soonest/(20*time.Millisecond)) <= ticks() {
			old = append(old, t.root)
		}
	}
	forest.Unlock()
	found := map[int]*entry{}
	list, _ := children()
	for _, pid := range old {
		if p := readStat(pid); p != nil {
			list = append(list, p)
		}
	}
	const most = 1000 // a tree that forks without end is not followed to its end
	for n := 0; n < len(list) && n < most; n++ {
		p := list[n]
		if !p.dead && !roots[p.pid] && !roots[p.session] && p.pid != int(guardPid.Load()) {
			found[p.pid] = p
		}
		for _, field := range bytes.Fields(p.read("task/" + strconv.Itoa(p.pid) + "/children")) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				if q := readStat(pid); q != nil {
					list = append(list, q)
				}
			}
		}
	}
	forest.Lock()
	defer forest.Unlock()
	for pid, slot := range r.stray {
		if found[pid] == nil {
			r.drop(slot)
			delete(r.stray, pid)
		}
	}
	for pid, p := range found {
		if _, there := r.stray[pid]; !there {
			r.stray[pid] = r.put(pid, p.born, p.born)
		}
	}
}

// A recorded process is a slot of a record as it is read.
type recorded struct {
	pid      int
	from, to uint64 // it was born between these
}

// EndLeft ends and returns what the process that wrote a record has left, if that process is gone. A record that means
// nothing here (there is none; the machine was started since; it is a copy) names nobody. survivors could not be ended.
func EndLeft(path string) (left, survivors []Process, err error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := regular.OpenIn(root, filepath.Base(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	place, err := placeOf(f)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // without /proc nobody can be named
	}
	const most = 1 << 20
	head := make([]byte, 2*lineLen)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, nil, nil //nolint:nilerr // its writer was killed before it had started anything
	}
	rest := make([]byte, most)
	n, _ := f.ReadAt(rest, 2*lineLen)
	who, alive, _ := strings.Cut(string(head), "\n")
	mark, ours := strings.CutPrefix(strings.TrimSpace(who), place+" ")
	last, err := strconv.ParseUint(strings.TrimSpace(alive), 10, 64)
	if !ours || err != nil || writes(mark) {
		return nil, nil, nil
	}
	l := leavings{mark: mark, last: last}
	for at := 0; at+slotLen <= n; at += slotLen {
		var p recorded
		if k, _ := fmt.Sscanf(string(rest[at:at+slotLen]), "+ %d %d %d", &p.pid, &p.from, &p.to); k == 3 {
			l.roots = append(l.roots, p)
		}
	}
	seen := map[int]bool{}
	var found []*entry
	wait(hardFor, func() bool {
		found = l.find(readTable())
		for _, p := range found {
			if !seen[p.pid] {
				seen[p.pid], left = true, append(left, describe([]*entry{p})...)
			}
		}
		kill(found)
		return len(found) == 0
	})
	return left, describe(found), nil
}

// writes reports whether the process whose marks begin like this runs still.
func writes(mark string) bool {
	var pid int
	var born uint64
	_, err := fmt.Sscanf(strings.TrimPrefix(mark, markName), "%d-%d.", &pid, &born)
	p := readStat(pid)
	return err == nil && p != nil && !p.dead && p.born <= born
}

// leavings are what a process that was killed may have left.
type leavings struct {
	roots []recorded
	mark  string // what its marks begin with
	last  uint64 // when it was alive last, in ticks; it died within a beat or two
}

// find lists what is left of them. This process, its ancestors and its session are none of it.
func (l *leavings) find(all table) (list []*entry) {
	mine := map[int]bool{}
	for _, r := range l.roots {
		leader, members := all.at(r.pid), []*entry{}
		if leader != nil && (leader.born < r.from || leader.born > r.to) {
			continue // its number belongs to somebody else by now
		}
		// A number is not given away as long as a session or group has it. Where the leader is gone, and everybody in
		// its session was born after the one who recorded it died, they may be strangers.
		known := leader != nil
		for _, p := range all {
			if p.pid == r.pid || p.session == r.pid || p.group == r.pid {
				members = append(members, p)
				known = known || p.born >= r.from && p.born <= l.last+2*uint64(beatTime/(10*time.Millisecond))
			}
		}
		for _, p := range members {
			mine[p.pid] = known || mine[p.pid]
		}
	}
	for _, p := range all {
		if !p.dead && p.born+1 >= l.oldest() && strings.HasPrefix(p.mark(), l.mark) {
			mine[p.pid] = true
		}
	}
	me := all.at(self)
	for _, p := range all {
		if p.dead || !all.under(p, mine) || p.session == session() || all.under(me, map[int]bool{p.pid: true}) {
			continue
		}
		list = append(list, p)
	}
	return list
}

// oldest is when the process began that wrote the record: what is older carries none of its marks.
func (l *leavings) oldest() (born uint64) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(l.mark, markName), "%d-%d.", new(int), &born)
	return born
}
