package attempt

import (
	"errors"
	"io"
	"time"

	"dagrun.dev/dag/machine"
)

// A World is what an attempt needs of the place where it is carried out. It is made for one attempt; its
// methods may be called from any goroutine until the Report is there.
type World interface {
	// Open opens a stored object, fs.ErrNotExist when the store has lost it. What is read is checked
	// against the digest.
	Open(digest string) (io.ReadCloser, error)
	// Store stores a content, durable when it returns. Storing it twice is allowed.
	Store(r io.Reader) (digest string, size int64, err error)
	// Find looks up what the job does not name. An attempt that read it has no fingerprint.
	Find(name string) (Reading, error)

	// Out and Scratch are absolute, existing and empty folders, of which files in Out can be stored.
	Out() string
	// Untouched reports whether Out is known to be as empty as it was. A world that cannot tell says no.
	Untouched() bool
	Scratch() string
	// Carry makes the folder that the attempts of the generation hand on, Spool one that outlives this
	// process until the attempt's end is recorded. A Rescue finds what the dead process left there.
	Carry() (string, error)
	Spool() (string, error)
	// Keep creates a file in the node's folder; nothing is overwritten.
	Keep(name string) (io.WriteCloser, error)
	// Yield gives up the room on the disk that is held back for what the attempt leaves, and says whether there was any.
	Yield() bool
	// TookEffect records that the work has ended well, and how, and returns when that is durable.
	TookEffect(how string) error

	// Emit records a fact and returns when it is written. Warn tells the user; no error, no wait.
	Emit(b machine.Body) error
	Warn(msg string)

	// Again reports whether a failure of a category would be followed by another attempt without a user.
	// A world that cannot tell says no.
	Again(category string) bool
	// Secret returns the value of a named secret.
	Secret(name string) (string, error)
	Now() time.Time
}

// Why an attempt is stopped: the causes with which its host cancels its context. nodes.ErrAtOnce is another.
var (
	ErrStopped   = errors.New("stopped by the user")
	ErrCancelled = errors.New("cancelled")
)

var errSilent = errors.New("gave no sign of life")
