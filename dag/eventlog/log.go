// Package eventlog keeps the facts of one run on disk: the hash-chained event log, the snapshot
// that shortens its replay, and the lock that allows one writer.
//
// It does not decide anything and does not know what the events mean beyond their codec.
package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dagrun.dev/dag/eventlog/chain"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// Version is the version of the events on disk (RunCreatedBody.Schema). A log of a newer version
// is refused.
const Version = machine.Schema

// What a line holds, and where it stands, is package chain's to say.
type (
	Head     = chain.Head
	Envelope = chain.Envelope
	Newer    = chain.Newer
)

// Options of a log. The zero value is right for programs.
type Options struct {
	// SyncWithin is the longest time from SyncSoon to durability, 50 ms when zero.
	SyncWithin time.Duration
	// Reserve is the size in bytes of the file that is kept so that last events can be written on a
	// full disk, 512 KiB when zero, none when negative.
	Reserve int64
}

// A Log is an event log open for writing. Append belongs to one goroutine; the other methods may be
// called from any.
//
// Three things happen to an event: Append writes it (the kernel has it: a killed process loses
// nothing), a goroutine of the log's own syncs it (a loss of power loses nothing), and waiters
// learn of it. The appender never waits for a sync.
//
// The file is not laid out in advance. That would save some 30 µs a sync (55 instead of 84 measured),
// but there is one sync in 50 ms or one a paid node, and zeros at the end would have to be told from
// a torn line.
type Log struct {
	fsys    disk.FS
	name    string
	file    disk.File
	mark    disk.File
	within  time.Duration
	reserve int64

	chain *chain.Chain // Append's
	buf   []byte

	mu      sync.Mutex
	changed sync.Cond // synced, err or closed
	head    Head      // written. Invariant: synced <= head
	synced  Head      // durable
	err     error     // the first error; final
	low     bool
	closed  bool

	asked           atomic.Bool   // to sync soon, since the last sync began
	soon, now, quit chan struct{} // to the syncer
	done            chan struct{} // from it
}

// Create starts a log with its first events, RUN_CREATED before all. It appears under its name whole
// and durable: a crash before leaves nothing that Open would find. A log of that name must not exist.
func Create(fsys disk.FS, name, runID string, o Options, first []machine.Event) (*Log, error) {
	if !chain.ValidRunID(runID) {
		return nil, fmt.Errorf("eventlog: %q cannot be a run id", runID)
	}
	if _, err := fsys.Lstat(name); err == nil {
		return nil, &fs.PathError{Op: "create", Path: fsys.Path(name), Err: fs.ErrExist}
	}
	// A mark of a log that is gone would accuse the new one.
	if err := fsys.Remove(MarkName(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c := chain.New(runID, Head{})
	buf, err := c.Append(nil, first)
	if err != nil {
		return nil, err
	}
	var f disk.File
	if err = disk.WriteFile(fsys, name, buf); err == nil {
		f, err = fsys.OpenFile(name, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("eventlog: create %s: %w", fsys.Path(name), err)
	}
	return start(fsys, name, f, c, o)
}

// Open opens a log for writing: it verifies the events after the head from (zero = all) and hands
// them to fold in order. A tail cut off by a crash is removed and reported; anything else that is
// wrong is *Damaged, or *Newer.
func Open(fsys disk.FS, name string, from Head, o Options,
	fold func(*machine.Event, *Envelope) error) (l *Log, tail Tail, err error) {
	if err := refuseOther(fsys, name); err != nil {
		return nil, Tail{}, err
	}
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, Tail{}, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	r, err := newReader(fsys, name, f, from)
	if err != nil {
		return nil, Tail{}, err
	}
	head, tail, err := r.run(fold)
	if err != nil {
		return nil, tail, err
	}
	if tail.Bytes > 0 {
		if err := f.Truncate(head.Offset); err != nil {
			return nil, tail, err
		}
	}
	// What was read may never have been durable: a killed process leaves its last events with the
	// kernel. It is acted upon now, so it must not vanish.
	if err := f.Sync(); err != nil {
		return nil, tail, err
	}
	l, err = start(fsys, name, f, r.chain, o)
	return l, tail, err
}

// refuseOther refuses what is no log at all: a folder, a link, a pipe that would never be read to its end.
func refuseOther(fsys disk.FS, name string) error {
	fi, err := fsys.Lstat(name)
	if err == nil && !fi.Mode().IsRegular() {
		err = &Damaged{File: fsys.Path(name), Why: "is no regular file", WayOut: wayOut}
	}
	return err
}

// start makes the log of a file whose lines are durable up to the chain's head.
func start(fsys disk.FS, name string, f disk.File, c *chain.Chain, o Options) (*Log, error) {
	l := &Log{
		fsys: fsys, name: name, file: f, chain: c, head: c.Head(), synced: c.Head(),
		within: o.SyncWithin, reserve: o.Reserve,
		soon: make(chan struct{}, 1), now: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.changed.L = &l.mu
	if l.within == 0 {
		l.within = 50 * time.Millisecond
	}
	if l.reserve == 0 {
		l.reserve = 512 << 10
	}
	var err error
	if l.mark, err = disk.OpenOwn(fsys, MarkName(name)); err == nil {
		_, err = l.mark.WriteAt(encodeMark(l.synced), 0)
	}
	if err == nil {
		err = l.keepReserve()
	}
	if err != nil {
		if l.mark != nil {
			l.mark.Close()
		}
		f.Close()
		return nil, err
	}
	go l.syncer()
	return l, nil
}

// Check returns *Damaged when the log's file is not as long as what has been written to it, or another file stands
// under its name: then another program has been at it. It reads nothing. Not beside Append.
func (l *Log) Check() error {
	why := ""
	here, err := l.fsys.Lstat(l.name)
	if err != nil {
		why = err.Error()
	} else if mine, err := l.file.Stat(); err != nil {
		return err
	} else if a, b := here.Sys(), mine.Sys(); a != nil && b != nil && !os.SameFile(here, mine) {
		why = "another file stands in its place"
	} else if mine.Size() != l.head.Offset {
		why = fmt.Sprintf("it has %d bytes, and dagrun has written %d", mine.Size(), l.head.Offset)
	}
	if why == "" {
		return nil
	}
	return &Damaged{File: l.fsys.Path(l.name), Why: "it was changed by another program: " + why, WayOut: wayOut}
}

// Append writes events with one write call, sets their Seq and returns the new head. They are
// written when it returns, not yet durable: see Wait and SyncSoon.
// On a full disk it gives the reserve up and tries once more: then the events are written and
// Low is true from now on. An error of the disk is final, the log takes no more events; an event
// that cannot be encoded is refused and leaves the log as it was.
func (l *Log) Append(events []machine.Event) (Head, error) {
	l.mu.Lock()
	head, err := l.head, l.err
	if err == nil && l.closed {
		err = fs.ErrClosed
	}
	l.mu.Unlock()
	if err != nil || len(events) == 0 {
		return head, err
	}
	if l.buf, err = l.chain.Append(l.buf[:0], events); err != nil {
		return head, err
	}
	err = l.write(l.buf, head.Offset)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fail(err)
		return head, l.err
	}
	l.head = l.chain.Head()
	if cap(l.buf) > 1<<20 {
		l.buf = nil // one large event should not pin its memory
	}
	return l.head, nil
}

// write puts whole lines at the end, or nothing.
func (l *Log) write(b []byte, at int64) error {
	_, err := l.file.WriteAt(b, at)
	if disk.Full(err) && l.dropReserve() {
		_, err = l.file.WriteAt(b, at)
	}
	if err != nil {
		// Half a line is cut at the next start if it cannot be cut now.
		l.file.Truncate(at)
		return fmt.Errorf("eventlog: append to %s: %w", l.fsys.Path(l.name), err)
	}
	return nil
}

// fail sets the final error and wakes the waiters. Called with the lock held.
func (l *Log) fail(err error) {
	if l.err == nil {
		l.err = err
	}
	l.changed.Broadcast()
}

// Head returns the head: what is written.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Low reports that the disk was full and the reserve has been given up: stop starting work.
func (l *Log) Low() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.low
}

// Close syncs and closes the log and gives the reserve back. Closing twice is allowed.
func (l *Log) Close() error {
	err := l.Sync()
	l.release()
	if err == nil {
		l.dropReserve()
	}
	return err
}

// Abandon closes the log as a killed process would: nothing is synced or written. For tests.
func (l *Log) Abandon() { l.release() }

func (l *Log) release() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	close(l.quit)
	<-l.done
	l.file.Close()
	l.mark.Close()
}

// keepReserve makes the reserve file. A disk too full for it is one on which no work is to start.
func (l *Log) keepReserve() error {
	if l.reserve < 0 {
		return nil
	}
	name := reserveName(l.name)
	err := l.fill(name)
	if disk.Full(err) {
		l.fsys.Remove(name)
		l.low = true
		return nil
	}
	return err
}

// fill writes real blocks; a file with holes would keep no room.
func (l *Log) fill(name string) error {
	f, err := disk.OpenOwn(l.fsys, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() == l.reserve {
		return nil
	}
	_, err = f.Write(make([]byte, l.reserve))
	return err
}

// dropReserve frees the reserve and reports whether there was one.
func (l *Log) dropReserve() bool {
	err := l.fsys.Remove(reserveName(l.name))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.low = l.low || err == nil && !l.closed
	return err == nil
}

func reserveName(log string) string { return log + ".reserve" }
