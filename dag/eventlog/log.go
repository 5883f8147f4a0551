// Package eventlog keeps the facts of one run on disk: the hash-chained event log, the snapshot
// that shortens its replay, and the lock that allows one writer.
//
// It does not decide anything and does not know what the events mean beyond their codec.
package eventlog

import (
	"fmt"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// Version is the version of the events on disk (RunCreatedBody.Schema). A log of a newer version
// is refused.
const Version = 1

// A Head names a log up to and including one event. The zero Head is the empty log.
type Head struct {
	Seq    int64  `json:"seq"`    // of the last event; it equals the line number
	Hash   string `json:"hash"`   // its event_hash; empty for the empty log
	Offset int64  `json:"offset"` // bytes up to the end of its line
}

// A Log is an event log open for writing. Append belongs to one goroutine; the other methods may be
// called from any.
type Log struct{ log }
type log struct{}

// Options of a log. The zero value is right for programs.
type Options struct {
	// SyncWithin is the longest time from SyncSoon to durability, 50 ms when zero.
	SyncWithin time.Duration
	// Reserve is the size in bytes of the file that is kept so that last events can be written on a
	// full disk, 1 MiB when zero, none when negative.
	Reserve int64
}

// Create starts an empty log. A file of that name must not exist.
func Create(fsys disk.FS, name, runID string, o Options) (*Log, error) { panic("contract") }

// Open opens a log for writing: it verifies the events after the head from (zero = all) and hands
// them to fold in order. A tail cut off by a crash is removed and reported; anything else that is
// wrong is *Damaged.
func Open(fsys disk.FS, name string, from Head, o Options, fold func(*machine.Event) error) (*Log, Tail, error) {
	panic("contract")
}

// Read verifies the events after from and hands them to fold with their envelopes. It never
// writes: a torn tail is reported and left. It may be called while a writer appends.
func Read(fsys disk.FS, name string, from Head, fold func(*machine.Event, *Envelope) error) (Head, Tail, error) {
	panic("contract")
}

// A Tail says what was found behind the last whole event. The zero Tail is a clean end.
type Tail struct {
	Line   int64  // of the first bad line
	Offset int64  // where it begins
	Bytes  int64  // from there to the end of the file
	Why    string // what is wrong with it
}

// Append writes events with one write call, sets their Seq and returns the new head. They are
// written when it returns (a killed process loses nothing), not yet durable: see Wait and SyncSoon.
// On a full disk it gives the reserve up and tries once more: then the events are written and
// Low is true from now on. Any error is final: the log takes no more events.
func (l *Log) Append(events []machine.Event) (Head, error) { panic("contract") }

// SyncSoon asks for durability of everything appended so far within Options.SyncWithin.
func (l *Log) SyncSoon() { panic("contract") }

// SyncNow asks for durability of everything appended so far without delay. It does not wait.
func (l *Log) SyncNow() { panic("contract") }

// Wait returns when the event seq and all before it are durable; it asks for it if nobody has.
// Waiters share syncs. An error is final.
func (l *Log) Wait(seq int64) error { panic("contract") }

// Sync makes everything appended so far durable.
func (l *Log) Sync() error { panic("contract") }

// Head returns the head: what is written.
func (l *Log) Head() Head { panic("contract") }

// Synced returns the sequence number of the last event known to be durable.
func (l *Log) Synced() int64 { panic("contract") }

// Low reports that the disk was full and the reserve has been given up: stop starting work.
func (l *Log) Low() bool { panic("contract") }

// Close syncs and closes the log. Closing twice is allowed.
func (l *Log) Close() error { panic("contract") }

// An Envelope is a line of the log.
type Envelope struct {
	EventID      string
	RunID        string
	TS           string // RFC 3339, UTC, milliseconds
	Type         machine.Type
	Payload      []byte // canonical JSON; valid until the callback returns
	TraceID      string
	SpanID       string
	ParentSpanID string
	PrevHash     string
	EventHash    string
}

// Damaged says that the log or the snapshot cannot be trusted. The program ends with exit status 5.
type Damaged struct {
	File   string
	Line   int64 // 0 where it does not apply
	Offset int64
	Why    string
	WayOut string // what the user can do
}

func (d *Damaged) Error() string {
	if d.Line == 0 {
		return fmt.Sprintf("EVENT_CHAIN_BROKEN %s: %s; %s", d.File, d.Why, d.WayOut)
	}
	return fmt.Sprintf("EVENT_CHAIN_BROKEN %s line %d (byte %d): %s; %s", d.File, d.Line, d.Offset, d.Why, d.WayOut)
}
