package eventlog

import (
	"sync"
	"time"

	"dagrun.dev/internal/disk"
)

// A Saver writes snapshots beside the loop: one at a time, the newest offered wins, and so seldom
// that they cost less than a fiftieth of the time. Its methods belong to one goroutine.
//
// Snapshots are a cache: the error of a failed one waits for Flush and the run goes on. The log, not
// the snapshot, notices a broken disk.
type Saver struct {
	fsys disk.FS
	name string
	log  *Log

	last time.Time     // when the last one was asked for
	cost time.Duration // what it took, encoding included

	mu   sync.Mutex
	busy chan struct{} // closed when the running write ends; nil when none ran yet
	took time.Duration // of the last write
	err  error
}

// Snapshots are at least so far apart, however cheap.
const leastInterval = 100 * time.Millisecond

// share is how many times the cost of a snapshot must pass before the next.
const share = 50

// NewSaver returns a saver of a log's snapshots.
func NewSaver(fsys disk.FS, name string, log *Log) *Saver {
	return &Saver{fsys: fsys, name: name, log: log, last: time.Now()}
}

// Due reports whether it is time for a snapshot.
func (s *Saver) Due() bool {
	if s.running() {
		return false
	}
	s.mu.Lock()
	cost := s.cost + s.took
	s.mu.Unlock()
	return time.Since(s.last) >= max(leastInterval, share*cost)
}

func (s *Saver) running() bool {
	if s.busy == nil {
		return false
	}
	select {
	case <-s.busy:
		return false
	default:
		return true
	}
}

// Save takes a snapshot and writes it in a goroutine of its own, after the one that is being written.
// take runs before Save returns.
func (s *Saver) Save(take func() (*Snapshot, error)) {
	start := time.Now()
	snap, err := take()
	s.last, s.cost = start, time.Since(start)
	before, done := s.busy, make(chan struct{})
	s.busy = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		began := time.Now()
		if err == nil {
			err = s.write(snap)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took, s.err = time.Since(began), err
	}()
}

// write waits until the log is durable up to the head: a snapshot that is ahead of its log after a
// loss of power would look like a log that somebody cut.
func (s *Saver) write(snap *Snapshot) error {
	if err := s.log.Wait(snap.Head.Seq); err != nil {
		return err
	}
	_, err := WriteSnapshot(s.fsys, s.name, snap)
	return err
}

// Flush waits for what Save began and returns the last error.
func (s *Saver) Flush() error {
	if s.busy != nil {
		<-s.busy
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
