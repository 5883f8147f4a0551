package jsonscan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"dagrun.dev/internal/printable"
)

// Found is what a scan found, besides the objects that it handed on.
type Found struct {
	Objects    int
	Other      string   // the first line that is no JSON, shortened
	OtherLines int      // how many there are
	CutAt      int64    // where a value begins that does not end; -1 = nowhere
	TooLong    int64    // where a value begins that is longer than the cap; -1 = nowhere
	Hole       string   // the first other line that begins like an object, shortened
	Odd        Oddities // of the objects
}

// Broken reports whether a value was cut, too long or damaged.
func (f *Found) Broken() bool { return f.CutAt >= 0 || f.TooLong >= 0 || f.Hole != "" }

// mostOther is how much of a line that is no JSON is kept, in bytes.
const mostOther = 200

// Scan calls each for every JSON object in the output of a program: one value or many, one a line
// or spread over lines or directly after one another, or inside an array; with other lines around
// them. A value begins at the start of a line or right after another; brackets inside such a line do
// not fool the scan. most is the cap in bytes for one value: a longer one is skipped. Only when
// there is nothing else, objects with a type inside other lines count. The error is src's.
func Scan(src io.ReaderAt, size, most int64, each func(Object)) (Found, error) {
	s := scanner{
		Found: Found{CutAt: -1, TooLong: -1},
		src:   src, size: size, most: most, each: each,
		lines: bufio.NewReaderSize(nil, 64<<10),
	}
	s.seek(0)
	for s.pos < s.size {
		if err := s.next(); err != nil {
			return s.Found, err
		}
	}
	if s.Objects == 0 {
		for _, o := range s.hidden {
			s.Objects++
			each(o)
		}
	}
	return s.Found, nil
}

type scanner struct {
	Found
	src        io.ReaderAt
	size, most int64
	each       func(Object)
	lines      *bufio.Reader
	pos        int64    // of lines
	strict     bool     // after a value that does not end: only whole values on one line
	hidden     []Object // inside other lines
}

func (s *scanner) seek(pos int64) {
	s.pos = pos
	s.lines.Reset(s.from(pos))
}

func (s *scanner) from(pos int64) io.Reader { return io.NewSectionReader(s.src, pos, s.size-pos) }

// lead is what may stand before a value: blanks, a byte order mark, and what colours a terminal.
var lead = regexp.MustCompile(`^(?:[\s\x{FEFF}]|\x1b\[[0-?]*[ -/]*[@-~])*`)

// next takes the value or the line at the present position. Most values stand on a line of their own, which
// shows without a decoder.
func (s *scanner) next() error {
	begin, err := s.lines.ReadSlice('\n')
	long := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !long && !errors.Is(err, io.EOF) {
		return err
	}
	if len(begin) == 0 {
		s.pos = s.size // less than was said is there
		return nil
	}
	at := len(lead.Find(begin))
	text := begin[at:]
	switch {
	case len(text) == 0:
		s.pos += int64(len(begin))
		return nil
	case !begins(text):
	case !long && int64(len(text)) <= s.most && json.Valid(text):
		s.pos += int64(len(begin))
		s.emit(bytes.TrimSpace(text))
		return nil
	case !s.strict || long:
		if took, err := s.value(s.pos + int64(at)); took || err != nil {
			return err
		}
	}
	return s.otherLine(begin, long)
}

// value takes a value that is not alone on its line, or moves behind the line where it has no end. It is not
// taken where there is none.
func (s *scanner) value(at int64) (took bool, err error) {
	dec := json.NewDecoder(io.LimitReader(s.from(at), s.most+1))
	var raw json.RawMessage
	err = dec.Decode(&raw)
	var syntax *json.SyntaxError
	switch {
	case err == nil && s.strict && bytes.IndexByte(raw, '\n') >= 0, errors.As(err, &syntax):
		return false, nil
	case err == nil:
		s.emit(raw)
		s.seek(at + dec.InputOffset())
		return true, nil
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return false, err
	case s.strict:
		return false, nil
	}
	s.strict = true
	if s.size-at > s.most {
		s.TooLong = at
	} else {
		at = s.elements(at)
		s.CutAt = at
	}
	s.seek(at)
	for {
		piece, err := s.lines.ReadSlice('\n')
		if s.pos += int64(len(piece)); !errors.Is(err, bufio.ErrBufferFull) {
			return true, nil // an error shows again at the next line
		}
	}
}

// begins reports whether what begins here can be an object or a list; words of a log in brackets cannot.
func begins(b []byte) bool {
	if b[0] != '{' && b[0] != '[' {
		return false
	}
	rest := bytes.TrimLeft(b[1:], " \t\r\n")
	if len(rest) == 0 {
		return true
	}
	if b[0] == '{' {
		return rest[0] == '"' || rest[0] == '}'
	}
	return strings.IndexByte(`[{]"-0123456789tfn`, rest[0]) >= 0
}

// elements takes the whole elements of a list that breaks off, and returns where the one begins that has no end.
func (s *scanner) elements(at int64) int64 {
	dec := json.NewDecoder(s.from(at))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return at
	}
	behind := int64(0)
	for dec.More() {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break
		}
		s.emit(raw)
		behind = dec.InputOffset()
	}
	if behind == 0 {
		return at
	}
	rest := make([]byte, 512)
	n, _ := io.ReadFull(s.from(at+behind), rest)
	return at + behind + int64(n-len(bytes.TrimLeft(rest[:n], ", \t\r\n")))
}

func (s *scanner) emit(raw json.RawMessage) {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, item := range list {
			s.emit(item) // perhaps a list; the decoder bounds the depth
		}
		return
	}
	var o Object
	if json.Unmarshal(raw, &o) == nil && o != nil {
		s.Objects++
		s.Odd.Look(raw)
		s.each(o)
	}
}

// mostHidden is how much of a line is looked at for an object that hides in it.
const mostHidden = 1 << 20

// otherLine takes a line of which begin was read, and that holds no value.
func (s *scanner) otherLine(begin []byte, long bool) error {
	s.pos += int64(len(begin))
	line := bytes.Clone(begin)
	for long {
		piece, err := s.lines.ReadSlice('\n')
		s.pos += int64(len(piece))
		line = append(line, piece[:min(len(piece), max(0, mostHidden-len(line)))]...)
		if long = errors.Is(err, bufio.ErrBufferFull); !long && err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	line = bytes.TrimRight(line[len(lead.Find(line)):], " \t\r\n")
	s.OtherLines++
	shown := printable.Clip(string(line), mostOther)
	if s.Hole == "" && line[0] == '{' {
		s.Hole = shown
	}
	if s.OtherLines == 1 {
		s.Other = shown
	}
	if s.Objects == 0 {
		s.lookInto(line)
	}
	return nil
}

// lookInto takes the first object of a line that names its type. It may not begin the line.
func (s *scanner) lookInto(line []byte) {
	for range 8 { // objects of a log
		at := bytes.Index(line, []byte(`{"`))
		if at < 0 {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(line[at:]))
		var o Object
		if dec.Decode(&o) != nil {
			return
		}
		if o.Has("type") || o.Has("response") {
			s.hidden = append(s.hidden, o)
			return
		}
		line = line[at+int(dec.InputOffset()):]
	}
}

// Warning describes the other lines, "" when there is none.
func (f *Found) Warning() string {
	switch {
	case f.OtherLines == 0:
		return ""
	case f.OtherLines == 1:
		return fmt.Sprintf("one line of the output is not JSON: %q", f.Other)
	}
	return fmt.Sprintf("%d lines of the output are not JSON, the first: %q", f.OtherLines, f.Other)
}
