package eventlog

import (
	"fmt"
	"time"

	"dagrun.dev/internal/disk"
)

// A Holder describes the process that holds a lock.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	BootID  string    `json:"boot_id,omitempty"`
	Started time.Time `json:"started"`           // when the lock was taken
	Command string    `json:"command,omitempty"` // e.g. "dagrun apply"
}

// A Lock is held on a run directory by its one writer.
type Lock struct{}

// Locked says who holds the lock. The program ends with exit status 4.
type Locked struct {
	File   string
	Holder Holder
}

func (l *Locked) Error() string {
	return fmt.Sprintf("%s: the run is in use by process %d on %s (%s, since %s)",
		l.File, l.Holder.PID, l.Holder.Host, l.Holder.Command, l.Holder.Started.UTC().Format(time.RFC3339))
}

// AcquireLock takes the lock or returns *Locked. The lock of a dead process is taken over.
func AcquireLock(fsys disk.FS, name, command string, now time.Time) (*Lock, error) {
	panic("contract")
}

// ReadLock says who holds the lock; ok is false when nobody does. It writes nothing.
func ReadLock(fsys disk.FS, name string) (h Holder, ok bool, err error) { panic("contract") }

// Release gives the lock up. Releasing twice is allowed.
func (l *Lock) Release() error { panic("contract") }
