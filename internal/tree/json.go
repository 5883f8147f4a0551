package tree

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits bound what a document may hold. A zero field means no limit of that kind.
type Limits struct {
	Bytes   int64 // size of a document
	Depth   int   // nesting of maps and lists
	Values  int   // values in all
	Aliases int   // values reached through aliases and merges (YAML)
}

// UTF16 is what is wrong with a file in UTF-16.
const UTF16 = "the file is in UTF-16; save it as UTF-8"

// Defaults are the limits for specifications.
var Defaults = Limits{Bytes: 64 << 20, Depth: 64, Values: 5_000_000, Aliases: 10_000}

// ParseJSON reads one JSON document: exact names, no name twice in a map, nothing after the
// document, whole numbers exact. JSON has one type of number, so 3.0 is the Int 3. A byte order mark
// is skipped. A mistake is a Diagnostic with its place in file.
func ParseJSON(file string, data []byte, lim Limits) (v *Value, err error) {
	if lim.Bytes > 0 && int64(len(data)) > lim.Bytes {
		return nil, Diagnostic{Pos: Pos{File: FileOf(file)}, Text: fmt.Sprintf("the document has more than %d bytes", lim.Bytes)}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, Diagnostic{Pos: Pos{File: FileOf(file)}, Text: UTF16}
	}
	p := jsonParser{s: strings.TrimPrefix(string(data), "\ufeff"), line: 1, col: 1, file: FileOf(file), lim: lim}
	defer func() {
		if r := recover(); r != nil {
			d, ok := r.(Diagnostic)
			if !ok {
				panic(r)
			}
			v, err = nil, d
		}
	}()
	p.space()
	if p.i == len(p.s) {
		p.fail("the document is empty")
	}
	v = p.value()
	p.space()
	if p.i < len(p.s) {
		p.fail("unexpected text after the end of the document")
	}
	return v, nil
}

// ParseText reads the value of an option such as --set a.b=TEXT: JSON where TEXT is JSON (3,
// true, "x", [1,2], {...}), else the text itself as a string. All places are pos.
func ParseText(text string, pos Pos) *Value {
	v, err := ParseJSON("", []byte(text), Defaults)
	if err != nil {
		return &Value{Kind: String, Str: text, Pos: pos}
	}
	v.PlaceAt(pos)
	return v
}

// jsonParser reads p.s from p.i on. Mistakes unwind as a Diagnostic to ParseJSON.
type jsonParser struct {
	s    string
	i    int
	file File
	lim  Limits

	// line and col are those of offset at; pos moves them on.
	at        int
	line, col int32

	values int
	path   []step // of the value being read; its length is the depth

	// Fields and items of the maps and lists being read, those of the innermost last. They are
	// moved into memory of their exact number when their map or list ends.
	fields []Field
	items  []*Value
}

// moved takes what a stack holds from first on into memory of its own.
func moved[T any](stack *[]T, first int) []T {
	top := (*stack)[first:]
	*stack = (*stack)[:first]
	if len(top) == 0 {
		return nil
	}
	out := make([]T, len(top))
	copy(out, top)
	clear(top)
	return out
}

// A step is a field's name, or an item's index where name is empty.
type step struct {
	name  string
	index int
}

func (p *jsonParser) where() string {
	path := ""
	for _, s := range p.path {
		if s.name == "" {
			path = At(path, s.index)
		} else {
			path = Join(path, s.name)
		}
	}
	return path
}

// pos returns the place of the current offset. Offsets never go back, so the text is counted
// once however long its lines are.
func (p *jsonParser) pos() Pos {
	for ; p.at < p.i; p.at++ {
		switch c := p.s[p.at]; {
		case c == '\n':
			p.line, p.col = p.line+1, 1
		case utf8.RuneStart(c):
			p.col++
		}
	}
	return Pos{File: p.file, Line: p.line, Col: p.col}
}

func (p *jsonParser) fail(format string, args ...any) {
	panic(Diagnostic{Pos: p.pos(), Text: fmt.Sprintf(format, args...)})
}

func (p *jsonParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *jsonParser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *jsonParser) new(k Kind) *Value {
	if p.values++; p.lim.Values > 0 && p.values > p.lim.Values {
		p.fail("the document has more than %d values", p.lim.Values)
	}
	return &Value{Kind: k, Pos: p.pos()}
}

func (p *jsonParser) value() *Value {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		v := p.new(String)
		v.Str = p.string()
		return v
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case p.word("true"), p.word("false"):
		v := p.new(Bool)
		v.Bool = c == 't'
		p.i += len(strconv.FormatBool(v.Bool))
		return v
	case p.word("null"):
		v := p.new(Null)
		p.i += len("null")
		return v
	}
	p.unexpected("a value")
	return nil
}

func (p *jsonParser) word(w string) bool { return strings.HasPrefix(p.s[p.i:], w) }

func (p *jsonParser) unexpected(want string) {
	if p.i >= len(p.s) {
		p.fail("the document ends where %s is expected", want)
	}
	r, _ := utf8.DecodeRuneInString(p.s[p.i:])
	p.fail("%q where %s is expected", r, want)
}

func (p *jsonParser) enter() {
	p.path = append(p.path, step{})
	if p.lim.Depth > 0 && len(p.path) > p.lim.Depth {
		p.fail("nested deeper than %d levels", p.lim.Depth)
	}
	p.i++
}

func (p *jsonParser) leave() {
	p.i++
	p.path = p.path[:len(p.path)-1]
}

func (p *jsonParser) object() *Value {
	v := p.new(Map)
	p.enter()
	var names Names
	first := len(p.fields)
	for p.space(); p.peek() != '}'; p.space() {
		if len(p.fields) > first {
			if p.peek() != ',' {
				p.unexpected("',' or '}'")
			}
			p.i++
			p.space()
		}
		if p.peek() != '"' {
			p.unexpected("a name in double quotes")
		}
		f := Field{Pos: p.pos()}
		f.Name = p.string()
		p.path[len(p.path)-1] = step{name: f.Name}
		if other, dup := names.Add(p.fields[first:], f.Name); dup {
			panic(Diagnostic{Pos: f.Pos, Path: p.where(), Text: "duplicate key; first set at " + other.Pos.String()})
		}
		p.space()
		if p.peek() != ':' {
			p.unexpected("':'")
		}
		p.i++
		p.space()
		f.Value = p.value()
		p.fields = append(p.fields, f)
	}
	p.leave()
	v.Fields = moved(&p.fields, first)
	return v
}

func (p *jsonParser) array() *Value {
	v := p.new(List)
	p.enter()
	first := len(p.items)
	for p.space(); p.peek() != ']'; p.space() {
		if len(p.items) > first {
			if p.peek() != ',' {
				p.unexpected("',' or ']'")
			}
			p.i++
			p.space()
		}
		p.path[len(p.path)-1] = step{index: len(p.items) - first}
		p.items = append(p.items, p.value())
	}
	p.leave()
	v.Items = moved(&p.items, first)
	return v
}

// number reads a number by JSON's grammar: no leading zero, no bare point.
func (p *jsonParser) number() *Value {
	v := p.new(Int)
	start := p.i
	if p.peek() == '-' {
		p.i++
	}
	if p.peek() == '0' {
		p.i++
	} else {
		p.digits()
	}
	whole := true
	if p.peek() == '.' {
		p.i++
		p.digits()
		whole = false
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		if c := p.peek(); c == '+' || c == '-' {
			p.i++
		}
		p.digits()
		whole = false
	}
	text := p.s[start:p.i]
	if whole {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic(Diagnostic{Pos: v.Pos, Path: p.where(), Text: text + " does not fit 64 bits"})
		}
		v.Int = n
		return v
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(Diagnostic{Pos: v.Pos, Path: p.where(), Text: text + " is out of the range of numbers"})
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		v.Int = int64(f)
	} else {
		v.Kind, v.Float = Float, f
	}
	return v.Written(text)
}

func (p *jsonParser) digits() {
	if c := p.peek(); c < '0' || c > '9' {
		p.unexpected("a digit")
	}
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.i++
	}
}

// string reads a string literal; one without escapes shares the document's memory.
func (p *jsonParser) string() string {
	p.i++
	start := p.i
	var b []byte
	escaped := false
	for {
		if p.i >= len(p.s) {
			p.fail("the document ends inside a string")
		}
		switch c := p.s[p.i]; {
		case c == '"':
			s := p.s[start:p.i]
			p.i++
			if escaped {
				s = string(append(b, s...))
			}
			if !utf8.ValidString(s) {
				p.fail("the string is not valid UTF-8")
			}
			return s
		case c == '\\':
			b = append(b, p.s[start:p.i]...)
			b = p.escape(b)
			start, escaped = p.i, true
		case c < ' ':
			p.fail("control character %#02x in a string; write it as \\u%04x", c, c)
		default:
			p.i++
		}
	}
}

func (p *jsonParser) escape(b []byte) []byte {
	p.i++
	c := p.peek()
	p.i++
	switch c {
	case '"', '\\', '/':
		return append(b, c)
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		r := p.hex4()
		if utf16.IsSurrogate(r) {
			second := rune(-1)
			if p.word(`\u`) {
				p.i += 2
				second = p.hex4()
			}
			if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
				p.fail("half of a surrogate pair in a string")
			}
		}
		return utf8.AppendRune(b, r)
	}
	p.i--
	p.unexpected(`one of " \ / b f n r t u after a backslash`)
	return nil
}

func (p *jsonParser) hex4() rune {
	if p.i+4 > len(p.s) {
		p.fail("the document ends inside a string")
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	if err != nil {
		p.fail("%q is not four hexadecimal digits", p.s[p.i:p.i+4])
	}
	p.i += 4
	return rune(n)
}
