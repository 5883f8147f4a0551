package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dagrun.dev/dag/report"
	"dagrun.dev/internal/printable"
)

// A screen owns a terminal: lines that are written to it scroll by, and below them stands a picture that is drawn
// again in place. Each drawing is one write that leaves the terminal as it found it, with the cursor below everything,
// so that whatever ends the program in between spoils nothing. Its methods may be called from any goroutine.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	size    func() (columns, rows int) // 0, 0: nothing is drawn now
	colours bool
	picture func(columns, rows int) []string // nil = none: the screen is a plain writer
	below   []string                         // under the picture; the cursor stays behind the last of them
	unread  []byte                           // that was written and is not shown yet
	drawn   []int                            // how wide the lines on the terminal are that are drawn again
	held    bool
}

// newScreen returns the screen of a file, which shows a picture if the file is a terminal that can.
func newScreen(out io.Writer) *screen {
	s := &screen{out: out, colours: os.Getenv("NO_COLOR") == ""}
	if f, ok := out.(*os.File); ok {
		s.size = func() (int, int) { return sizeOf(f) }
	} else {
		s.size = func() (int, int) { return 0, 0 }
	}
	return s
}

// draws reports whether a picture can be drawn.
func (s *screen) draws() bool {
	columns, rows := s.size()
	term := os.Getenv("TERM")
	return columns > 0 && rows > 0 && term != "" && term != "dumb"
}

// sizeOf is how large a terminal is; 0, 0 for other files, where it is not known, and while the program is in the
// background, where it must not draw over what the user does.
func sizeOf(f *os.File) (columns, rows int) {
	if group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// show has the screen draw a picture from now on, which picture returns line by line for a size, and again when the
// terminal has changed; the returned function takes the picture away.
func (s *screen) show(picture func(columns, rows int) []string) (end func()) {
	s.set(func() { s.picture = picture })
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH, syscall.SIGCONT)
	go func() {
		for sig := range changes {
			s.set(func() {
				if sig == syscall.SIGCONT { // others have written since
					s.drawn = nil
				}
			})
		}
	}()
	return func() {
		signal.Stop(changes)
		close(changes)
		s.set(func() { s.picture, s.below = nil, nil })
	}
}

// set changes what is shown, and draws it.
func (s *screen) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.draw()
}

func (s *screen) redraw() { s.set(func() {}) }

// under shows lines below the picture, such as what is typed to a question: the cursor stays behind the last of them.
func (s *screen) under(lines ...string) { s.set(func() { s.below = lines }) }

// hold leaves the terminal to somebody else, the picture taken away, until release is called: what is written meanwhile
// is shown then.
func (s *screen) hold() (release func()) {
	s.set(func() { s.held = true })
	return func() { s.set(func() { s.held = false }) }
}

// holdFor is hold for some time at most. release may be called again.
func (s *screen) holdFor(most time.Duration) (release func()) {
	once := sync.OnceFunc(s.hold())
	timer := time.AfterFunc(most, once)
	return func() { timer.Stop(); once() }
}

// forget leaves out what was written since hold.
func (s *screen) forget() { s.set(func() { s.unread = nil }) }

// Write shows lines above the picture. What is no whole line yet waits for the rest.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.picture == nil && s.drawn == nil && !s.held {
		return s.out.Write(p)
	}
	s.unread = append(s.unread, p...)
	s.draw()
	return len(p), nil
}

// draw brings the terminal up to date with one write. A terminal that has gone away ends no run.
func (s *screen) draw() {
	var b bytes.Buffer
	columns, rows := s.size()
	if columns == 0 {
		s.drawn = nil
	}
	if s.drawn != nil {
		up := -1
		for _, w := range s.drawn { // most terminals have broken long lines anew when they became narrower
			up += max(1, (w+columns-1)/columns)
		}
		if b.WriteByte('\r'); up > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", min(up, rows-1))
		}
	}
	var text []byte
	if whole := bytes.LastIndexByte(s.unread, '\n') + 1; !s.held && s.picture != nil {
		text, s.unread = s.unread[:whole], s.unread[whole:]
	} else if !s.held {
		text, s.unread = s.unread, nil
	}
	if s.drawn != nil && (len(text) > 0 || s.held || s.picture == nil) {
		b.WriteString("\x1b[J")
	}
	if columns == 0 {
		b.Write(text)
		text = nil
	}
	for line := range strings.Lines(string(text)) {
		b.WriteString(s.tint(report.Plain(strings.TrimSuffix(line, "\n"))) + "\r\n")
	}
	s.drawn = nil
	if s.picture != nil && !s.held && columns > 0 {
		s.paint(&b, columns, rows)
	}
	if b.Len() > 0 {
		_, _ = s.out.Write(b.Bytes())
	}
}

// paint draws the picture and what is below it. The last column stays free, and no line goes on in the next: where a
// terminal finds characters wider than was thought, the end of a line is lost and nothing else.
func (s *screen) paint(b *bytes.Buffer, columns, rows int) {
	rows -= max(1, len(s.below))
	lines := s.picture(columns-1, rows)
	lines = slices.Concat(lines[:min(len(lines), max(rows, 0))], s.below)
	if len(s.below) == 0 {
		lines = append(lines, "")
	}
	b.WriteString("\x1b[?7l")
	for i, line := range lines {
		line, w := printable.Cut(report.Plain(line), columns-1)
		s.drawn = append(s.drawn, w)
		if b.WriteString(s.tint(line) + "\x1b[K"); i < len(lines)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString("\x1b[J\x1b[?7h")
}

// tints are the colours of lines, by the word with which they begin, or the one behind their time.
var tints = map[string]string{
	"failed": "31", "lost": "31", "ends": "31", "error": "31", "refused": "33", "warning": "33", "warn": "33",
	"budget": "33", "breaker": "33", "paused": "33", "question": "33", "done": "32", "saved": "32",
}

func (s *screen) tint(line string) string {
	words := strings.Fields(line)
	for _, word := range words[:min(2, len(words))] {
		if c := tints[strings.ToLower(strings.TrimSuffix(word, ":"))]; c != "" && s.colours {
			return strings.Replace(line, word, "\x1b["+c+"m"+word+"\x1b[0m", 1)
		}
	}
	return line
}
