package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new terminal of a size.
func openTerminal(t *testing.T, columns, rows int) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(t, err)
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { slave.Close() })
	must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}))
	return master, slave
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A terminal shows what is written to it, as far as the program makes use of terminals. What it does not know is a
// mistake.
type terminal struct {
	mu            sync.Mutex
	columns, rows int
	lines         [][]rune // all that was ever shown; the last rows of them are on the screen
	row, column   int      // of the cursor; row counts from the first line
	wraps         bool
	wrong         []string
	rest          []byte // of a sequence that is not whole yet
}

func newTerminal(columns, rows int) *terminal {
	return &terminal{columns: columns, rows: rows, lines: [][]rune{nil}, wraps: true}
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.rest, p...)
	for len(text) > 0 {
		n := s.take(text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	s.rest = append([]byte(nil), text...)
	return len(p), nil
}

// take carries out what a text begins with and returns how long that is; 0 where more must come.
func (s *terminal) take(text []byte) int {
	switch c, n := utf8.DecodeRune(text); {
	case !utf8.FullRune(text):
		return 0
	case c == '\r':
		s.column = 0
		return 1
	case c == '\n':
		s.down()
		return 1
	case c != 0x1b:
		if c < ' ' {
			s.wrong = append(s.wrong, fmt.Sprintf("%q", c))
		}
		s.put(c)
		return n
	}
	end := 2
	for end < len(text) && (text[end] < 0x40 || text[end] > 0x7e) {
		end++
	}
	if end >= len(text) {
		return 0
	}
	s.obey(string(text[2:end]), text[end])
	return end + 1
}

func (s *terminal) down() {
	if s.row++; s.row == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
}

func (s *terminal) put(c rune) {
	if s.column == s.columns {
		if s.wraps {
			s.column = 0
			s.down()
		} else {
			s.column--
		}
	}
	line := s.lines[s.row]
	for len(line) <= s.column {
		line = append(line, ' ')
	}
	line[s.column] = c
	s.lines[s.row] = line
	s.column++
}

// top is the first line on the screen.
func (s *terminal) top() int { return max(0, len(s.lines)-s.rows) }

func (s *terminal) obey(arg string, what byte) {
	n, _ := strconv.Atoi(arg)
	switch {
	case what == 'm': // colours
	case what == 'A':
		s.row = max(s.top(), s.row-max(1, n))
	case what == 'K' && arg == "":
		s.lines[s.row] = s.lines[s.row][:min(s.column, len(s.lines[s.row]))]
	case what == 'J' && arg == "":
		s.lines[s.row] = s.lines[s.row][:min(s.column, len(s.lines[s.row]))]
		for i := s.row + 1; i < len(s.lines); i++ { // the lines stay, empty
			s.lines[i] = nil
		}
	case arg == "?7" && (what == 'l' || what == 'h'):
		s.wraps = what == 'h'
	default:
		s.wrong = append(s.wrong, "\\x1b["+arg+string(what))
	}
}

// String is all that was ever shown, the cursor as ▏.
func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i, line := range s.lines {
		text := strings.TrimRight(string(line), " ")
		if i == s.row {
			text = string(line[:min(s.column, len(line))]) + "▏"
		} else if i > s.row && strings.TrimSpace(text) == "" {
			continue
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}
