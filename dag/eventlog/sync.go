package eventlog

import (
	"fmt"
	"io/fs"
	"time"

	"dagrun.dev/internal/disk"
)

// SyncSoon asks for durability of everything appended so far within Options.SyncWithin.
func (l *Log) SyncSoon() {
	if !l.asked.Swap(true) { // waking the syncer for each event would cost more than writing it
		poke(l.soon)
	}
}

// SyncNow asks for durability of everything appended so far without delay. It does not wait.
func (l *Log) SyncNow() { poke(l.now) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // asked already, and not yet begun
	}
}

// syncer syncs when asked. Requests that arrive during a sync share the next one.
func (l *Log) syncer() {
	defer close(l.done)
	var due <-chan time.Time
	for {
		select {
		case <-l.soon:
			if due == nil {
				due = time.After(l.within)
			}
			continue
		case <-l.now:
		case <-due:
		case <-l.quit:
			return
		}
		due = nil
		l.sync()
	}
}

// sync makes what is written durable. After a failed sync the kernel may have dropped what it could
// not write and report success the next time: the log is closed for good, never synced again.
func (l *Log) sync() {
	l.asked.Store(false)
	l.mu.Lock()
	head, idle := l.head, l.err != nil || l.synced == l.head
	l.mu.Unlock()
	if idle {
		return
	}
	err := l.file.Sync()
	if err == nil {
		_, err = l.mark.WriteAt(encodeMark(head), 0)
		if disk.Full(err) {
			err = nil // the events are durable; a mark that is old or broken only knows less
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fail(fmt.Errorf("eventlog: sync of %s: %w", l.fsys.Path(l.name), &disk.Refused{Err: err}))
		return
	}
	l.synced = head
	l.changed.Broadcast()
}

// Wait returns when the event seq and all before it are durable; it asks for it if nobody has.
// Waiters share syncs. An error is final.
func (l *Log) Wait(seq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced.Seq < seq && l.err == nil && !l.closed {
		l.SyncNow()
	}
	for l.synced.Seq < seq && l.err == nil && !l.closed {
		l.changed.Wait()
	}
	switch {
	case l.synced.Seq >= seq:
		return nil
	case l.err != nil:
		return l.err
	}
	return fs.ErrClosed
}

// Sync makes everything appended so far durable.
func (l *Log) Sync() error {
	l.mu.Lock()
	seq, err := l.head.Seq, l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.Wait(seq)
}

// Synced returns the sequence number of the last event known to be durable.
func (l *Log) Synced() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced.Seq
}
