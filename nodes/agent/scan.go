package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"dagrun.dev/internal/printable"
)

// A scan is what was found besides the objects.
type scan struct {
	objects int
	noise   []string // the first lines that are no JSON, shortened
	lines   int      // of noise
	cutAt   int64    // where a value begins that does not end; -1 = nowhere
	tooLong int64    // where a value begins that is longer than the cap; -1 = nowhere
	hole    string   // the first line of noise that begins like an object, shortened
	odd     oddities // of the objects
}

const (
	mostNoise     = 3 // lines kept
	mostNoiseLine = 200
)

// scanObjects calls each for every JSON object in the output of a program: one value or many, one a line
// or spread over lines or directly after one another, or inside an array; with other lines around
// them. A value begins at the start of a line or right after another; brackets inside a line of noise do
// not fool the scan. most is the cap in bytes for one value: a longer one is skipped. Only when
// there is nothing else, objects with a type inside noise lines count.
func scanObjects(src io.ReaderAt, size, most int64, each func(object)) (scan, error) {
	s := scanner{src: &window{src: src, size: size}, size: size, most: most, each: each, scan: scan{cutAt: -1, tooLong: -1}}
	err := s.run()
	if s.objects == 0 {
		for _, o := range s.hidden {
			s.objects++
			each(o)
		}
	}
	return s.scan, err
}

type scanner struct {
	scan
	src        *window
	size, most int64
	each       func(object)
	pos        int64
	strict     bool     // after a value that does not end: only whole values on one line
	hidden     []object // inside noise
}

func (s *scanner) run() error {
	for {
		c, err := s.skipBlanks()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		took := false
		if c == '{' || c == '[' {
			if took, err = s.value(); err != nil {
				return err
			}
		}
		if !took {
			broken := s.pos == s.cutAt || s.pos == s.tooLong
			line, err := s.skipLine()
			if err != nil {
				return err
			}
			if !broken {
				s.noiseLine(line)
			}
		}
	}
}

// from returns a reader from the present position.
func (s *scanner) from() io.Reader { return &tail{s.src, s.pos} }

// skipBlanks moves to the next byte that is no blank and returns it. Byte order marks and the sequences
// that colour a terminal are blanks.
func (s *scanner) skipBlanks() (byte, error) {
	for {
		b, err := s.src.at(s.pos, 17)
		if err != nil {
			return 0, err
		}
		n := blanks(b)
		s.pos += int64(n)
		switch {
		case n == len(b): // and more behind it
		case b[n] != 0x1b:
			return b[n], nil
		case n > 0: // look at the whole of it
		case colour(b[1:min(17, len(b))]) == 0:
			return b[0], nil
		default:
			s.pos += 1 + int64(colour(b[1:min(17, len(b))]))
		}
	}
}

// blanks returns how many bytes at the beginning of b are some.
func blanks(b []byte) int {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
		default:
			return i
		}
	}
	return len(b)
}

// colour returns the length of a control sequence behind its escape byte, or 0.
func colour(b []byte) int {
	if len(b) == 0 || b[0] != '[' {
		return 0
	}
	for i, c := range b[1:] {
		if c >= 0x40 && c <= 0x7e {
			return i + 2
		}
	}
	return 0
}

// value takes the JSON value at the present position, if there is one. Most stand on a line of their
// own, which shows without a decoder.
func (s *scanner) value() (took bool, err error) {
	b, err := s.src.at(s.pos, 64)
	if err != nil || !begins(b) {
		return false, err
	}
	if end := bytes.IndexByte(b, '\n'); end >= 0 && int64(end) <= s.most && json.Valid(b[:end]) {
		s.pos += int64(end)
		s.emit(bytes.TrimSpace(b[:end]))
		return true, nil
	}
	if s.strict {
		return s.lineValue()
	}
	dec := json.NewDecoder(io.LimitReader(s.from(), s.most+1))
	var raw json.RawMessage
	err = dec.Decode(&raw)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		s.pos += dec.InputOffset()
		s.emit(raw)
		return true, nil
	case errors.As(err, &syntax):
		return false, nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		s.strict = true
		if s.size-s.pos > s.most {
			s.tooLong = s.pos
		} else {
			took = s.elements()
			s.cutAt = s.pos
		}
		return took, nil
	}
	return false, err
}

// begins reports whether what begins with a bracket can go on as an object or a list; words of a log
// cannot.
func begins(b []byte) bool {
	rest := bytes.TrimLeft(b[1:], " \t\r\n")
	if len(rest) == 0 {
		return true
	}
	if b[0] == '{' {
		return rest[0] == '"' || rest[0] == '}'
	}
	return strings.IndexByte(`[{]"-0123456789tfn`, rest[0]) >= 0
}

// elements takes the whole elements of a list that breaks off, and moves to the one that has no end.
func (s *scanner) elements() (took bool) {
	dec := json.NewDecoder(s.from())
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return false
	}
	begin, behind := s.pos, int64(0)
	for dec.More() {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break
		}
		s.emit(raw)
		behind = dec.InputOffset()
	}
	if behind == 0 {
		return false
	}
	s.pos = begin + behind
	rest, _ := s.src.at(s.pos, 512)
	s.pos += int64(len(rest) - len(bytes.TrimLeft(rest, ", \t\r\n")))
	return true
}

// lineValue takes the rest of the line when it is a JSON value.
func (s *scanner) lineValue() (took bool, err error) {
	line, n, err := s.line(s.most + 1)
	if err != nil || !json.Valid(line) {
		return false, err
	}
	s.pos += n
	s.emit(bytes.TrimSpace(line))
	return true, nil
}

// line returns the beginning of the rest of the line, most bytes of it, and its whole length. It moves
// nothing. It is valid until the next piece is read.
func (s *scanner) line(most int64) (begin []byte, length int64, err error) {
	for {
		b, err := s.src.at(s.pos+length, 1)
		if errors.Is(err, io.EOF) {
			return begin, length, nil
		}
		if err != nil {
			return nil, 0, err
		}
		end := bytes.IndexByte(b, '\n')
		if end >= 0 {
			b = b[:end+1]
		}
		if left := most - length; length == 0 && end >= 0 {
			begin = b[:min(int64(len(b)), left)] // as most are: without a copy
		} else if left > 0 {
			begin = append(begin, b[:min(int64(len(b)), left)]...)
		}
		if length += int64(len(b)); end >= 0 {
			return begin, length, nil
		}
	}
}

func (s *scanner) emit(raw json.RawMessage) {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, item := range list {
			s.emitObject(item)
		}
		return
	}
	s.emitObject(raw)
}

func (s *scanner) emitObject(raw json.RawMessage) {
	if len(raw) > 0 && raw[0] == '[' {
		s.emit(raw) // a list in a list; the decoder bounds the depth
		return
	}
	var o object
	if json.Unmarshal(raw, &o) == nil && o != nil {
		s.objects++
		s.odd.look(raw)
		s.each(o)
	}
}

// skipLine moves behind the line end and returns the beginning of the line.
func (s *scanner) skipLine() ([]byte, error) {
	const most = 1 << 20 // of a line that may hide an object
	line, n, err := s.line(most)
	s.pos += n
	return line, err
}

func (s *scanner) noiseLine(line []byte) {
	s.lines++
	if s.hole == "" && line[0] == '{' {
		s.hole = printable.Clip(strings.TrimSpace(string(line)), mostNoiseLine)
	}
	if len(s.noise) < mostNoise {
		s.noise = append(s.noise, printable.Clip(strings.TrimSpace(string(line)), mostNoiseLine))
	}
	if at := bytes.Index(line, []byte(`{"`)); at > 0 && s.objects == 0 {
		var o object
		if json.NewDecoder(bytes.NewReader(line[at:])).Decode(&o) == nil && (o.has("type") || o.has("response")) {
			s.hidden = append(s.hidden, o)
		}
	}
}

// warning describes the noise, "" when there is none.
func (s *scan) warning() string {
	switch {
	case s.lines == 0:
		return ""
	case s.lines == 1:
		return fmt.Sprintf("a line that is no JSON stood in the output: %q", s.noise[0])
	}
	return fmt.Sprintf("%d lines that are no JSON stood in the output, the first: %q", s.lines, s.noise[0])
}

// A window is the piece of a source that was read last: what is read by lines is read in blocks.
type window struct {
	src   io.ReaderAt
	size  int64
	block []byte
	start int64 // of the block in the source
}

const windowSize = 64 << 10

// at returns what there is from a position on: want bytes at least, unless the source ends before, when the
// error is io.EOF if there is nothing at all. It is valid until the next call.
func (w *window) at(pos int64, want int) ([]byte, error) {
	if pos >= w.size {
		return nil, io.EOF
	}
	end := w.start + int64(len(w.block))
	if pos < w.start || pos >= end || pos+int64(want) > end && end < w.size {
		if w.block == nil {
			w.block = make([]byte, windowSize)
		}
		w.block = w.block[:min(windowSize, w.size-pos)]
		n, err := w.src.ReadAt(w.block, pos)
		w.block, w.start = w.block[:n], pos
		if n == 0 {
			return nil, err
		}
	}
	return w.block[pos-w.start:], nil
}

// A tail reads a source from a position on.
type tail struct {
	src *window
	pos int64
}

func (t *tail) Read(p []byte) (int, error) {
	b, err := t.src.at(t.pos, 1)
	n := copy(p, b)
	t.pos += int64(n)
	return n, err
}
