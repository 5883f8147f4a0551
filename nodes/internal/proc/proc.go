// Package proc runs one child process under supervision and leaves none of its descendants
// behind. It does not know what the child is for, and it classifies nothing but the failure
// to start.
package proc

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"
)

// A Spec says what to run. Argv and Dir are required.
type Spec struct {
	Argv []string
	Dir  string
	Env  []string // complete; see Environ
	// Stdin is read by the child from its current offset; nil is the null device.
	Stdin *os.File
	// Scratch is a folder for the two unnamed output files; empty = os.TempDir().
	Scratch string

	Grace   time.Duration // between the polite and the hard signal; 0 = 5 s
	Silence time.Duration // longest time without a new byte of output; 0 = no limit
	// Watch is called from the supervising goroutine with each new piece of stdout, in order,
	// and says whether the child has given its result. From then on it has ExitGrace to end.
	// Nil is not called and costs nothing.
	Watch     func(piece []byte) (done bool)
	ExitGrace time.Duration // 0 = 10 s
	// Beat is called when output grew; at most a few times a second.
	Beat   func()
	Limits Limits
}

// Limits bound the child and each of its descendants; zero fields do not.
type Limits struct {
	MemoryBytes uint64 // RLIMIT_DATA
	CPUSeconds  uint64
	FileBytes   uint64
	OpenFiles   uint64
}

// A Result is how the child ended and what it printed. Close it.
type Result struct {
	Pid    int
	Exit   int            // exit status; -1 when a signal ended it
	Signal syscall.Signal // the signal that ended it, or 0
	Cause  Cause          // why it was ended, if it was
	Wall   time.Duration
	CPU    time.Duration // user and system time of the child and what it waited for
	MaxRSS int64         // bytes
	Stdout *Capture
	Stderr *Capture
	// Left names processes that the child left behind and that were ended.
	Left []Process
	// Survivors names processes that could not be ended.
	Survivors []Process
}

// Cause says why a child was ended by its supervisor.
type Cause string

// The causes. Ended means that it ended by itself.
const (
	Ended     Cause = ""
	Cancelled Cause = "cancelled" // ctx was cancelled
	TimedOut  Cause = "timeout"   // ctx passed its deadline
	Silent    Cause = "silent"    // no output for Spec.Silence
	Lingered  Cause = "lingered"  // its result was there, it did not end
)

// A Process is one line of a process table.
type Process struct {
	Pid     int
	Command string // safe to print
}

// A StartError says that the child could not be started: not found, not executable, a bad
// interpreter, arguments too long. Path names what is missing.
type StartError struct {
	Path string
	Err  error
}

// Error names what could not be started and why.
func (e *StartError) Error() string { return "cannot start " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Adopt makes this process the reaper of orphaned descendants (Linux: child sub-reaper). Run
// calls it; calling it more than once does nothing.
func Adopt() error { panic("contract") }

// Run starts a child and returns when it and all its descendants are gone, or could not be
// ended. An error is a *StartError, or says that the operating system failed; how the child
// ended is in the Result. May be called from any goroutine, concurrently.
func Run(ctx context.Context, s *Spec) (*Result, error) { panic("contract") }

// Environ returns the variables of dagrun's own environment that every child gets (PATH, HOME,
// USER, LOGNAME, SHELL, LANG, LC_*, TZ, TERM) and those named in pass, then set, which wins. Sorted by name.
func Environ(pass []string, set map[string]string) []string { panic("contract") }

// A Capture is what a child printed on one stream: a file without a name.
type Capture struct {
	f    *os.File
	size int64
}

// Size returns the number of bytes.
func (c *Capture) Size() int64 { return c.size }

// Open returns a reader of all bytes from the start.
func (c *Capture) Open() io.Reader { panic("contract") }

// Tail returns at most n bytes from the end.
func (c *Capture) Tail(n int) []byte { panic("contract") }

// HeadTail returns at most n bytes: all, or the first and the last half with a line between
// that says how much is left out.
func (c *Capture) HeadTail(n int) []byte { panic("contract") }

// Close gives the files back. The captures may not be used afterwards.
func (r *Result) Close() { panic("contract") }

// Printable makes text of a child safe for a terminal and for a log line: no control
// characters but newline and tab, no escape sequences, valid UTF-8, no bidirectional overrides.
func Printable(s string) string { panic("contract") }

// A LineReader reads lines of any length up to a cap, without the line end.
type LineReader struct{ _ struct{} }

// NewLineReader reads r; a line over most bytes is an ErrLineTooLong after which reading can go on.
func NewLineReader(r io.Reader, most int) *LineReader { panic("contract") }
