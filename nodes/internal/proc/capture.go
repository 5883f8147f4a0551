package proc

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"dagrun.dev/internal/printable"
)

// A Capture is what a child printed on one stream: a file, usually without a name. Nothing of it is
// held in memory.
type Capture struct {
	f      *os.File
	folder string // of a file without a name
	size   int64  // when all was over
	exited int64  // when the child itself had ended
}

// Size returns the number of bytes.
func (c *Capture) Size() int64 { return c.size }

// Open returns a reader of all bytes from the start. Several may be open.
func (c *Capture) Open() io.Reader { return io.NewSectionReader(c.f, 0, c.size) }

// UntilExit returns a reader of what had been printed when the child itself ended: without the
// output of helpers that went on.
func (c *Capture) UntilExit() io.Reader { return io.NewSectionReader(c.f, 0, c.Answer()) }

// Tail returns at most n bytes from the end.
func (c *Capture) Tail(n int) []byte {
	from := max(0, c.size-int64(n))
	return c.piece(from, c.size)
}

// HeadTail returns at most about n bytes: all, or the first and the last half with a line
// between that says how much is left out.
func (c *Capture) HeadTail(n int) []byte {
	if c.size <= int64(n) {
		return c.piece(0, c.size)
	}
	half := int64(n / 2)
	b := c.piece(0, half)
	b = fmt.Appendf(b, "\n[... %d bytes left out ...]\n", c.size-2*half)
	return append(b, c.piece(c.size-half, c.size)...)
}

// At returns a reader of any part.
func (c *Capture) At() io.ReaderAt { return c.f }

// Answer returns how many bytes had been printed when the child itself ended.
func (c *Capture) Answer() int64 { return min(c.exited, c.size) }

// Cut takes off what was printed beyond a number of bytes, first of stdout, as errors say why, and returns how much
// that was. Its space on the disk is free then.
func (r *Result) Cut(most int64) (off int64) {
	for _, c := range []*Capture{r.Stdout, r.Stderr} {
		over := min(r.Stdout.size+r.Stderr.size-most, c.size)
		if over > 0 && c.f.Truncate(c.size-over) == nil {
			c.size -= over
			off += over
		}
	}
	return off
}

// LastWords returns the ends of what the child printed, safe to print, at most 2,000 bytes. Errors
// stand at the end.
func (r *Result) LastWords() string {
	var b strings.Builder
	for _, s := range []struct {
		name string
		c    *Capture
		most int
	}{{"stderr", r.Stderr, 1200}, {"stdout", r.Stdout, 600}} {
		text := strings.TrimSpace(printable.Text(string(s.c.Tail(s.most))))
		if int64(s.most) < s.c.Size() || len(text) > s.most {
			text = "..." + strings.ToValidUTF8(text[max(0, len(text)-s.most):], "")
		}
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.name, text)
		}
	}
	return b.String()
}

// ExitMessage is the exit status, or the signal, with the last line on the first of some streams that has one.
func (r *Result) ExitMessage(streams ...*Capture) string {
	msg := fmt.Sprintf("exit status %d", r.Exit)
	if r.Signal != 0 {
		msg = fmt.Sprintf("ended by signal %d (%v)", int(r.Signal), r.Signal)
	}
	for _, c := range streams {
		said := strings.TrimSpace(printable.Text(string(c.Tail(2000))))
		if last := strings.TrimSpace(said[strings.LastIndexByte(said, '\n')+1:]); last != "" {
			return msg + ": " + printable.Clip(last, 200)
		}
	}
	return msg
}

// Leftovers puts into words which processes the child left behind, and names those that could not be ended.
func (r *Result) Leftovers(child string) (warnings, survivors []string) {
	for _, p := range r.Left {
		warnings = append(warnings, fmt.Sprintf("the %s left process %d (%s) behind; it was ended: start "+
			"what is to go on outside of the run, or in the node that needs it", child, p.Pid, p.Command))
	}
	for _, p := range r.Survivors {
		survivors = append(survivors, fmt.Sprintf("%d (%s)", p.Pid, p.Command))
	}
	return warnings, survivors
}

// NotStarted reports whether a shell or a wrapper says that it did not find or could not start
// the program.
func (r *Result) NotStarted() bool {
	tail := strings.ToLower(string(r.Stderr.Tail(2000)))
	says := func(text string) bool { return strings.Contains(tail, text) }
	switch r.Exit {
	case 127:
		return says("not found") || says("no such file")
	case 126:
		return says("permission denied") || says("not executable") || says("cannot execute")
	}
	return false
}

func (c *Capture) piece(from, to int64) []byte {
	b := make([]byte, to-from)
	n, _ := c.f.ReadAt(b, from) // a short read means that the child truncated its output
	return b[:n]
}

// grown returns the present size while something may write.
func (c *Capture) grown() int64 { return fileSize(c.f) }

// unused holds files that nothing was written to, oldest first. Most commands print nothing;
// making two files for each would cost more than starting it.
var unused struct {
	sync.Mutex
	files []*Capture
}

const mostUnused = 64

// capture returns an empty file for one stream.
func (s *Spec) capture(name string) (*Capture, error) {
	if s.Named != "" {
		return namedCapture(s.Named, name)
	}
	return newCapture(s.folder())
}

// folder is on the disk that takes what the child prints.
func (s *Spec) folder() string {
	if folder := cmp.Or(s.Named, s.Spool); folder != "" {
		return folder
	}
	return os.TempDir()
}

// newCapture returns an empty file on the file system of folder.
func newCapture(folder string) (*Capture, error) {
	if c := takeUnused(folder); c != nil {
		return c, nil
	}
	f, err := unnamedFile(folder)
	if err != nil {
		return nil, fmt.Errorf("a file for output: %w", err)
	}
	return &Capture{f: f, folder: folder}, nil
}

func takeUnused(folder string) *Capture {
	unused.Lock()
	defer unused.Unlock()
	for i := len(unused.files) - 1; i >= 0; i-- {
		if c := unused.files[i]; c.folder == folder {
			unused.files = append(unused.files[:i], unused.files[i+1:]...)
			return c
		}
	}
	return nil
}

// release keeps a file that is still empty for the next child, and closes any other.
func (c *Capture) release(reuse bool) {
	if !reuse || c.size != 0 || c.folder == "" {
		_ = c.f.Close()
		return
	}
	unused.Lock()
	defer unused.Unlock()
	if len(unused.files) == mostUnused {
		_ = unused.files[0].f.Close()
		unused.files = unused.files[1:]
	}
	unused.files = append(unused.files, &Capture{f: c.f, folder: c.folder})
}

// removedFile makes a file and takes its name away: for file systems that cannot do it at once.
func removedFile(folder string) (*os.File, error) {
	f, err := os.CreateTemp(folder, ".output-*")
	if err != nil {
		return nil, err
	}
	name := f.Name()
	_ = f.Close()
	f, err = os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0o600)
	if e := os.Remove(name); err == nil {
		err = e
	}
	return f, err
}
