package eventlog

import (
	"sync"
	"time"
)

// A Saver writes what is made of a log, the snapshot and the document for people, beside the loop: one at a time, the
// newest offered wins, and so seldom that together they cost less than a fiftieth of the time. Its methods belong to
// one goroutine.
//
// All of that can be made again: the error of a failed write waits for Flush and the run goes on. The log notices a
// broken disk.
type Saver struct {
	log *Log

	head int64         // of the log, that the last one holds
	last time.Time     // when it was asked for
	cost time.Duration // what it took, encoding included

	mu   sync.Mutex
	busy chan struct{} // closed when the running write ends; nil when none ran yet
	took time.Duration // of the last write
	err  error
}

// Writes are at least so far apart, however cheap.
const leastInterval = 100 * time.Millisecond

// share is how many times the cost of a write must pass before the next. Fifty would be two per cent if the next one
// did not cost more: what is written grows.
const share = 60

// NewSaver returns a saver of what is made of a log.
func NewSaver(log *Log) *Saver { return &Saver{log: log, last: time.Now()} }

// DueIn returns how long it is until it is time to write what the log has had since the last write; false when it has
// had nothing.
func (s *Saver) DueIn(head int64) (time.Duration, bool) {
	switch {
	case head == s.head:
		return 0, false
	case s.running():
		return leastInterval, true
	}
	s.mu.Lock()
	cost := s.cost + s.took
	s.mu.Unlock()
	return max(0, max(leastInterval, share*cost)-time.Since(s.last)), true
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

// Save takes what is to be written, and writes it in a goroutine of its own, after what is being written. take runs
// before Save returns. The write begins when the log is durable up to head: what is ahead of its log after a loss of
// power would look like a log that somebody cut.
func (s *Saver) Save(take func() (head int64, write func() error, err error)) {
	start := time.Now()
	head, write, err := take()
	s.head, s.last, s.cost = head, start, time.Since(start)
	before, done := s.busy, make(chan struct{})
	s.busy = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		began := time.Now()
		if err == nil {
			err = s.log.Wait(head)
		}
		if err == nil {
			err = write()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took, s.err = time.Since(began), err
	}()
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
