package proc

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"dagrun.dev/internal/printable"
)

// Printable makes text of a child safe for a terminal and for a log line, see printable.Text.
func Printable(s string) string { return printable.Text(s) }

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
