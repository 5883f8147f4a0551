package proc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text of a child safe for a terminal and for a log line: terminal sequences
// are taken out, other control characters, reordering marks and bytes that are no UTF-8 are
// written as \x1b or \u202e. Newline and tab stay; carriage returns become newlines.
func Printable(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if n := sequence(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\r':
			if i+1 == len(s) || s[i+1] != '\n' {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t' || !unsafe(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// unsafe reports runes that move the cursor, reorder text or hide it.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || r == 0xfeff || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f ||
		r == 0x200e || r == 0x200f || r == 0x061c || r >= 0xe0000 && r <= 0xe007f
}

// sequence returns the length of the terminal sequence (ECMA-48) that s begins with, or 0.
func sequence(s string) int {
	if len(s) < 2 || s[0] != 0x1b {
		return 0
	}
	switch c := s[1]; {
	case c == '[': // control sequence: parameters, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X': // strings, up to BEL or ESC \
		for i := 2; i < len(s) && i < 4096; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			if s[i] == '\n' {
				return i
			}
		}
		return 2
	case c >= 0x20 && c <= 0x7e:
		return 2
	}
	return 0
}

// ErrLineTooLong says that a line passed the cap. Its rest has been skipped.
var ErrLineTooLong = errors.New("line too long")

// A LineReader reads lines of any length up to a cap. Unlike bufio.Scanner it goes on after a
// line that is too long.
type LineReader struct {
	r    *bufio.Reader
	most int
	buf  []byte
}

// NewLineReader returns a reader of the lines of r. most is the cap in bytes.
func NewLineReader(r io.Reader, most int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Line returns the next line without its end; the last one may have none. The bytes are valid
// until the next call. At the end it returns io.EOF; a line over the cap is ErrLineTooLong,
// after which reading can go on.
func (l *LineReader) Line() ([]byte, error) {
	l.buf = l.buf[:0]
	long, any := false, false
	for {
		piece, err := l.r.ReadSlice('\n')
		any = any || len(piece) > 0
		if len(l.buf)+len(piece) > l.most+2 {
			long, l.buf = true, l.buf[:0]
		}
		if !long {
			l.buf = append(l.buf, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !(errors.Is(err, io.EOF) && any) {
			return nil, err
		}
		if long {
			return nil, ErrLineTooLong
		}
		line := bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))
		if len(line) > l.most {
			return nil, ErrLineTooLong
		}
		return line, nil
	}
}
