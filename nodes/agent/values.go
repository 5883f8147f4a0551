package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// object is a JSON object with exact names. (Decoding into a struct would match names without
// regard to case, and one field of a wrong type would lose the whole object.)
type object map[string]json.RawMessage

// str returns a string field, "" when it is missing or something else.
func (o object) str(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s)
	return s
}

// num returns a number field; some write it as a text.
func (o object) num(name string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(string(bytes.Trim(o[name], `" `)), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// whole returns a whole number field, to the last digit; 3.0 and "3" are some.
func (o object) whole(name string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(bytes.Trim(o[name], `" `)), 10, 64); err == nil {
		return n, true
	}
	v, ok := o.num(name)
	if !ok || math.Abs(v) > mostCount {
		return 0, false
	}
	return int64(v), v == math.Trunc(v)
}

// countable reports whether the fields of these names that are there are counts: no negative number
// and nothing else than a whole number.
func (o object) countable(names ...string) bool {
	for _, name := range names {
		if n, ok := o.whole(name); o.has(name) && (!ok || n < 0 || n > mostCount) {
			return false
		}
	}
	return true
}

// usage takes the tokens of a reply, unless one of the numbers that they were read from is no count:
// then nothing of them is believed, and what the attempt cost has to be known otherwise.
func (r *reply) usage(sum nodes.Usage, countable bool) {
	r.Usage = sum
	switch {
	case !countable:
		r.Usage = nodes.Usage{}
		r.Warnings = append(r.Warnings, "the usage reported holds what is no count of tokens; it counts as unknown")
	case max(sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite) > mostLikely:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the usage reported is more than any model reads or writes: %d tokens in, %d out", sum.Input+sum.CacheRead+sum.CacheWrite, sum.Output))
	}
}

const (
	mostCount  = 1e16 // the largest count that is believed
	mostLikely = 1e10 // the largest that is believed without a word
)

// count returns a whole number field, 0 when it is missing or no count.
func (o object) count(name string) int64 {
	n, _ := o.whole(name)
	if n < 0 || n > mostCount {
		return 0
	}
	return n
}

// status returns a status of HTTP, which some write as a text; 0 when it is missing or something else.
func (o object) status(name string) int {
	raw := bytes.Trim(o[name], `" `)
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 100 || n > 599 {
		return 0
	}
	return n
}

// sane reports whether a number of dollars can be what an attempt cost.
func sane(usd float64) bool { return usd >= 0 && usd <= 1e6 }

// yes returns a truth value; the text "true" and the number 1 count.
func (o object) yes(name string) bool {
	raw := string(bytes.ToLower(bytes.Trim(o[name], `" `)))
	return raw == "true" || raw == "1"
}

// has reports whether a field is there and not null.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func (o object) object(name string) object {
	var v object
	_ = json.Unmarshal(o[name], &v)
	return v
}

func (o object) list(name string) []json.RawMessage {
	var v []json.RawMessage
	_ = json.Unmarshal(o[name], &v)
	return v
}

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
	s := scanner{src: src, size: size, most: most, each: each, scan: scan{cutAt: -1, tooLong: -1}}
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
	src        io.ReaderAt
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
func (s *scanner) from() *io.SectionReader { return io.NewSectionReader(s.src, s.pos, s.size-s.pos) }

// skipBlanks moves to the next byte that is no blank and returns it. Byte order marks and the sequences
// that colour a terminal are blanks.
func (s *scanner) skipBlanks() (byte, error) {
	r := bufio.NewReaderSize(s.from(), 512)
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
			s.pos++
		case 0x1b:
			next, _ := r.Peek(16)
			n := colour(next)
			if n == 0 {
				return c, nil
			}
			_, _ = r.Discard(n)
			s.pos += 1 + int64(n)
		default:
			return c, nil
		}
	}
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

// value takes the JSON value at the present position, if there is one.
func (s *scanner) value() (took bool, err error) {
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
	rest := make([]byte, 512)
	n, _ := s.from().Read(rest)
	s.pos += int64(n - len(bytes.TrimLeft(rest[:n], ", \t\r\n")))
	return true
}

// lineValue takes the rest of the line when it is a JSON value.
func (s *scanner) lineValue() (took bool, err error) {
	r := bufio.NewReader(io.LimitReader(s.from(), s.most+1))
	line, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if !json.Valid(line) {
		return false, nil
	}
	s.pos += int64(len(line))
	s.emit(bytes.TrimSpace(line))
	return true, nil
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
	r := bufio.NewReaderSize(s.from(), 64<<10)
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		s.pos += int64(len(piece))
		if len(line) < most {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return line, nil
	}
}

func (s *scanner) noiseLine(line []byte) {
	s.lines++
	if s.hole == "" && line[0] == '{' {
		s.hole = printable.Clip(strings.TrimSpace(string(line)), mostNoiseLine)
	}
	if len(s.noise) < mostNoise {
		s.noise = append(s.noise, printable.Clip(strings.TrimSpace(string(line)), mostNoiseLine))
	}
	if at := bytes.Index(line, []byte(`{"`)); at > 0 {
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
