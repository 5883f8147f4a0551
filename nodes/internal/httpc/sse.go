package httpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"dagrun.dev/nodes"
)

// An Event is one server-sent event.
type Event struct {
	Name string // "" = none
	Data []byte // lines joined by newlines; valid until the next call of Next
	// Open says that the stream ended before the blank line that ends an event.
	Open bool
}

// Events reads a stream of server-sent events: lines that end with LF, CR or CRLF, comments, data
// over several lines, a byte order mark at the beginning.
type Events struct {
	r     *bufio.Reader
	most  int
	begun bool
	last  byte // of the line end before: the LF of a CRLF is no line of its own
	line  []byte
	data  []byte
}

// NewEvents reads from r. most is the longest event in bytes.
func NewEvents(r io.Reader, most int) *Events {
	return &Events{r: bufio.NewReaderSize(r, 32<<10), most: most}
}

// Next returns the next event that has data. At the end of the stream the error is io.EOF; an
// event over the cap is category protocol; other errors are the reader's.
func (e *Events) Next() (Event, error) {
	var ev Event
	e.data = e.data[:0]
	some := false
	for {
		line, err := e.next()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if some && errors.Is(err, io.EOF) {
				ev.Data, ev.Open = e.data, true
				return ev, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if some {
				ev.Data = e.data
				return ev, nil
			}
			ev.Name = "" // an event without data is none
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			ev.Name = string(value)
		case "data":
			if some {
				e.data = append(e.data, '\n')
			}
			e.data, some = append(e.data, value...), true
			if len(e.data) > e.most {
				return Event{}, e.tooLong()
			}
		}
	}
}

func (e *Events) tooLong() error {
	return nodes.Permanent(nodes.Failf("protocol", "an event of the stream is longer than %d MB", e.most>>20))
}

// next returns the next line without its end. A last line without one comes with io.EOF.
func (e *Events) next() ([]byte, error) {
	e.line = e.line[:0]
	if !e.begun {
		e.begun = true
		if mark, _ := e.r.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
			_, _ = e.r.Discard(3)
		}
	}
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return e.line, err
		}
		last := e.last
		e.last = c
		switch {
		case c == '\n' && last == '\r' && len(e.line) == 0:
			// the second half of a line end; the first has been seen
		case c == '\n' || c == '\r':
			return e.line, nil
		default:
			if e.line = append(e.line, c); len(e.line) > e.most+64 {
				return nil, e.tooLong()
			}
		}
	}
}
