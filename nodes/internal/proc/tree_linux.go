package proc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Tree is a running child with all its descendants, wherever they went.
//
// A process belongs to a tree when it is in the session or group of the tree's root, when its
// environment holds Mark, or when an ancestor belongs to it. One that left all of these
// (a daemon with an environment of its own whose ancestors are gone) belongs to no tree; it is ended together
// with the last tree that can have made it.
type Tree struct {
	// Mark is an environment entry that no other tree of this process has.
	Mark string
	root int
	born uint64 // clock ticks since boot; nothing older can be a descendant

	record *record // where its root is recorded, nil = nowhere
	slot   int
}

var forest struct {
	sync.Mutex
	trees  map[*Tree]struct{}
	count  atomic.Uint64
	record *record // of their roots; nil = none
	path   string  // of the last record
}

// NewTree registers a tree for a child that is about to be started with Mark in its environment. Call Root with its
// process number, and End when it has been waited for.
func NewTree() *Tree {
	t := &Tree{Mark: marks() + strconv.FormatUint(forest.count.Add(1), 10), born: ticks()}
	forest.Lock()
	defer forest.Unlock()
	if forest.trees == nil {
		forest.trees = map[*Tree]struct{}{}
	}
	forest.trees[t] = struct{}{}
	return t
}

// Root names the tree's root process.
func (t *Tree) Root(pid int) {
	forest.Lock()
	defer forest.Unlock()
	t.root = pid
	t.note()
}

func (t *Tree) forget() {
	forest.Lock()
	defer forest.Unlock()
	delete(forest.trees, t)
	if t.record != nil && t.record == forest.record {
		t.record.drop(t.slot)
	}
}

const hardFor = 5 * time.Second // how long killed processes may take to be gone

var selfHelp = 50 * time.Millisecond // how long helpers may take to end by themselves; tests give them longer

// End ends what is left of the tree once its root has been reaped: the polite signal, grace, the hard one. It returns
// what it found, and what is there still. asked says that the root's group has had the polite signal.
func (t *Tree) End(asked bool, grace time.Duration) (left, survivors []Process) {
	defer t.forget()
	if !t.suspects() {
		return nil, nil
	}
	var found []*entry
	empty := 0 // looks in a row that found nothing though there are orphans
	gone := func() bool {
		var hidden bool
		found, hidden = t.remaining()
		if empty++; hidden || len(found) > 0 {
			empty = 0
		}
		// Twice: a process may have made another one while the table was read.
		return len(found) == 0 && (empty > 1 || !t.suspects())
	}
	begin := time.Now()
	wait(selfHelp+hardFor, func() bool { return gone() || len(found) > 0 && time.Since(begin) > selfHelp })
	if len(found) == 0 {
		return nil, nil
	}
	left = describe(found)
	for _, p := range found {
		if !asked || p.group != t.root {
			_ = syscall.Kill(p.pid, syscall.SIGTERM)
		}
	}
	if wait(grace, gone) {
		return left, nil
	}
	wait(hardFor, func() bool { kill(found); return gone() })
	return left, describe(found)
}

// Sweep ends what children left behind that is alive still, and returns it. Call it once no child is
// under way, before the process ends: what no tree could claim would outlive it unnamed.
func Sweep() []Process {
	if pids, known := orphans(); known && len(pids) == 0 {
		return nil
	}
	var left []Process
	seen := map[int]bool{}
	wait(hardFor, func() bool {
		found := leftBehind()
		for _, p := range found {
			if !seen[p.pid] {
				seen[p.pid], left = true, append(left, describe([]*entry{p})...)
			}
		}
		kill(found)
		return len(found) == 0
	})
	return left
}

// leftBehind lists the living processes that carry a mark of this process, or came to it as orphans
// from a session of their own. The guard is none of them.
func leftBehind() (list []*entry) {
	for _, p := range readTable() {
		switch {
		case !p.orphan() && !strings.HasPrefix(p.mark(), marks()):
		case p.dead:
			reap(p)
		default:
			list = append(list, p)
		}
	}
	return list
}

// killAll kills what belongs to a tree whose root still runs.
func (t *Tree) killAll() {
	list, _ := t.remaining()
	kill(list)
}

func kill(list []*entry) {
	for _, p := range list {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

func describe(list []*entry) []Process {
	var out []Process
	for _, p := range list {
		out = append(out, Process{Pid: p.pid, Command: p.command()})
	}
	return out
}

// wait asks done more and more seldom, until it says yes or the time is over.
func wait(most time.Duration, done func() bool) bool {
	end := time.Now().Add(most)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
}

// remaining lists the living processes of the tree, by number. hidden says that there are orphans that may be
// the tree's: what they are cannot be read yet.
func (t *Tree) remaining() (list []*entry, hidden bool) {
	all := readTable()
	mine := map[int]bool{}
	for _, p := range all {
		if p.pid == t.root || t.owns(p) {
			mine[p.pid] = true
		}
	}
	for _, p := range all {
		switch {
		case p.pid == self || !all.under(p, mine):
			hidden = hidden || p.hidden && p.parent == self
		case !p.dead:
			list = append(list, p)
		}
	}
	return list, hidden
}

// owns reports whether there is evidence that p belongs to t by itself, or that it can belong to
// no other tree.
func (t *Tree) owns(p *entry) bool {
	if t.root != 0 && (p.session == t.root || p.group == t.root) {
		return true
	}
	if p.dead || p.born < t.born {
		return false
	}
	if mark := p.mark(); strings.HasPrefix(mark, marks()) {
		return mark == t.Mark
	}
	if !p.orphan() {
		return false
	}
	forest.Lock()
	defer forest.Unlock()
	for other := range forest.trees {
		if other != t && (other.root == p.pid || other.root == p.session || other.root == 0 || other.born <= p.born) {
			return false
		}
	}
	return true
}

const markName = "DAGRUN_PROCESS="

// marks returns what all marks of this process begin with. Process numbers alone could meet those of
// another container.
var marks = sync.OnceValue(func() string { return fmt.Sprintf("%s%d-%d.", markName, self, ticks()) })

// orphans lists the children that this process did not fork itself, as far as they run still. Those that have ended
// are reaped: no one else waits for them, and a zombie keeps its place in the process table.
func orphans() (list []*entry, known bool) {
	list, known = children()
	return slices.DeleteFunc(list, reap), known
}

// suspects reports whether a process may be left of the tree: an orphan that is no older than it. Orphans of
// other trees cost one look each, however many nodes end while they stay.
func (t *Tree) suspects() bool {
	list, known := orphans()
	return !known || slices.ContainsFunc(list, func(p *entry) bool {
		return p.born >= t.born && p.pid != int(guardPid.Load())
	})
}

// reap takes the exit status of an orphan that has ended, and reports whether it did. Left alone are the roots of
// trees, which those who started them wait for, also before they have said which process it is.
func reap(p *entry) bool {
	if !p.dead || !p.orphan() {
		return false
	}
	forest.Lock()
	defer forest.Unlock()
	for t := range forest.trees {
		if t.root == p.pid || t.root == 0 && t.born <= p.born {
			return false
		}
	}
	_, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
	return err == nil
}
