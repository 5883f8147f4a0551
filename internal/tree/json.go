package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/internal/number"
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
func ParseJSON(file string, data []byte, lim Limits) (*Value, error) {
	if lim.Bytes > 0 && int64(len(data)) > lim.Bytes {
		text := fmt.Sprintf("the document has more than %d bytes", lim.Bytes)
		return nil, Diagnostic{Pos: Pos{File: FileOf(file)}, Text: text}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, Diagnostic{Pos: Pos{File: FileOf(file)}, Text: UTF16}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p := jsonReader{text: string(data), lim: lim, at: Pos{FileOf(file), 1, 1}}
	p.dec = jsontext.NewDecoder(bytes.NewBuffer(data))
	if p.rest() == "" {
		return nil, p.fail(len(data), "the document is empty")
	}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if rest := p.rest(); rest != "" {
		return nil, p.fail(len(p.text)-len(rest), "unexpected text after the end of the document")
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

// A jsonReader makes values of the decoder's tokens.
type jsonReader struct {
	dec  *jsontext.Decoder
	text string // the document: strings without escapes share its memory
	lim  Limits

	// at is the place of offset seen. Offsets never go back (but for mistakes, which end the reading), so the
	// text is counted once however long its lines are.
	at   Pos
	seen int

	values int
	// Fields and items of the maps and lists being read, those of the innermost last. They are moved into memory of their
	// exact number when their map or list ends.
	fields []Field
	items  []*Value
}

// rest is what follows the last token, without white space before it.
func (p *jsonReader) rest() string {
	return strings.TrimLeft(p.text[p.dec.InputOffset():], " \t\r\n")
}

// place returns the place of an offset.
func (p *jsonReader) place(offset int) Pos {
	for ; p.seen < offset; p.seen++ {
		switch c := p.text[p.seen]; {
		case c == '\n':
			p.at.Line, p.at.Col = p.at.Line+1, 1
		case utf8.RuneStart(c):
			p.at.Col++
		}
	}
	return p.at
}

func (p *jsonReader) fail(offset int, format string, args ...any) error {
	return Diagnostic{Pos: p.place(offset), Text: fmt.Sprintf(format, args...)}
}

// syntax gives a mistake that the decoder found its place.
func (p *jsonReader) syntax(err error) error {
	s, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok:
		return p.fail(len(p.text), "%v", err)
	case errors.Is(s.Err, io.ErrUnexpectedEOF):
		return p.fail(len(p.text), "the document ends before it is complete")
	}
	return p.fail(int(s.ByteOffset), "%v", s.Err)
}

// path writes a pointer of the decoder as paths are written here.
func (p *jsonReader) path(pointer jsontext.Pointer) string {
	path, depth := "", 1
	for name := range pointer.Tokens() {
		if kind, n := p.dec.StackIndex(depth); kind == '[' {
			path = At(path, int(n)-1)
		} else {
			path = Join(path, name)
		}
		depth++
	}
	return path
}

func (p *jsonReader) value() (*Value, error) {
	if p.values++; p.lim.Values > 0 && p.values > p.lim.Values {
		return nil, p.fail(len(p.text)-len(p.rest()), "the document has more than %d values", p.lim.Values)
	}
	kind := p.dec.PeekKind()
	if kind == '{' || kind == '[' {
		if _, err := p.dec.ReadToken(); err != nil {
			return nil, p.syntax(err)
		}
		v := &Value{Kind: List, Pos: p.place(int(p.dec.InputOffset()) - 1)}
		if p.lim.Depth > 0 && p.dec.StackDepth() > p.lim.Depth {
			return nil, p.fail(0, "nested deeper than %d levels", p.lim.Depth)
		}
		if kind == '{' {
			v.Kind = Map
			return v, p.object(v)
		}
		return v, p.array(v)
	}
	raw, pos, err := p.scalar()
	if err != nil {
		return nil, p.syntax(err)
	}
	v := &Value{Pos: pos}
	switch kind {
	case '"':
		v.Kind = String
		v.Str, err = unquoted(raw)
	case 't', 'f':
		v.Kind, v.Bool = Bool, kind == 't'
	case '0':
		err = p.number(v, raw)
	}
	return v, err
}

// scalar reads a value that is no map or list, or the name of a field.
func (p *jsonReader) scalar() (raw string, pos Pos, err error) {
	b, err := p.dec.ReadValue()
	if err != nil {
		return "", Pos{}, err
	}
	end := int(p.dec.InputOffset())
	return p.text[end-len(b) : end], p.place(end - len(b)), nil
}

func unquoted(raw string) (string, error) {
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1], nil
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err
}

func (p *jsonReader) object(v *Value) error {
	first := len(p.fields)
	for p.dec.PeekKind() != '}' {
		raw, pos, err := p.scalar()
		if err != nil {
			return p.name(err, p.fields[first:])
		}
		f := Field{Pos: pos}
		if f.Name, err = unquoted(raw); err != nil {
			return err
		}
		if f.Value, err = p.value(); err != nil {
			return err
		}
		p.fields = append(p.fields, f)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return p.syntax(err)
	}
	v.Fields = moved(&p.fields, first)
	return nil
}

// name says what is wrong with the name of a field that comes after others.
func (p *jsonReader) name(err error, before []Field) error {
	s, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok || !errors.Is(s.Err, jsontext.ErrDuplicateName) {
		return p.syntax(err)
	}
	for _, f := range before {
		if f.Name == s.JSONPointer.LastToken() {
			text := "duplicate key; first set at " + f.Pos.String()
			return Diagnostic{Pos: p.place(int(s.ByteOffset)), Path: p.path(s.JSONPointer), Text: text}
		}
	}
	return p.syntax(err)
}

func (p *jsonReader) array(v *Value) error {
	first := len(p.items)
	for p.dec.PeekKind() != ']' {
		x, err := p.value()
		if err != nil {
			return err
		}
		p.items = append(p.items, x)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return p.syntax(err)
	}
	v.Items = moved(&p.items, first)
	return nil
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

func (p *jsonReader) number(v *Value, text string) (err error) {
	if v.Int, err = strconv.ParseInt(text, 10, 64); err == nil {
		v.Kind = Int
		return nil
	}
	if number.Whole(text) {
		return Diagnostic{Pos: v.Pos, Path: p.path(p.dec.StackPointer()), Text: text + " does not fit 64 bits"}
	}
	f, ok := number.Float(text)
	if !ok {
		return Diagnostic{Pos: v.Pos, Path: p.path(p.dec.StackPointer()), Text: text + " is out of the range of numbers"}
	}
	if v.Kind, v.Int, v.Float = Float, 0, f; f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		v.Kind, v.Int, v.Float = Int, int64(f), 0
	}
	v.Written(text)
	return nil
}
