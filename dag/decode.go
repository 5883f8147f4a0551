package dag

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrUnknownField is wrapped by errors of DecodeJSON about a name that the Go type does not have.
var ErrUnknownField = errors.New("unknown field")

// DecodeJSON reads src into v, a pointer to a zero value. It is stricter than encoding/json:
// names are exact, an unknown or a repeated name is an error, and nothing may follow.
func DecodeJSON(src []byte, v any) error {
	rv := reflect.ValueOf(v).Elem()
	d := &decoder{src: src}
	if err := shapeOf(rv.Type()).decode(d, rv); err != nil {
		return err
	}
	return d.end()
}

// A decoder reads one JSON text from the front.
type decoder struct {
	src   []byte
	at    int
	depth int
}

func (d *decoder) space() {
	for d.at < len(d.src) {
		switch d.src[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end.
func (d *decoder) peek() byte {
	if d.at < len(d.src) {
		return d.src[d.at]
	}
	return 0
}

func (d *decoder) word(w string) bool {
	if len(d.src)-d.at >= len(w) && string(d.src[d.at:d.at+len(w)]) == w {
		d.at += len(w)
		return true
	}
	return false
}

func (d *decoder) unexpected(want string) error {
	if d.at >= len(d.src) {
		return fmt.Errorf("JSON ends where %s was expected", want)
	}
	return fmt.Errorf("want %s at byte %d, found %q", want, d.at, d.src[d.at])
}

func (d *decoder) end() error {
	if d.space(); d.at < len(d.src) {
		return d.unexpected("the end")
	}
	return nil
}

// list reads an array or object; each reads one element.
func (d *decoder) list(open, closing byte, each func(n int) error) error {
	if d.space(); d.peek() != open {
		return d.unexpected(strconv.QuoteRune(rune(open)))
	}
	d.at++
	if d.space(); d.peek() == closing {
		d.at++
		return nil
	}
	if d.depth++; d.depth > maxDepth {
		return errors.New("nested too deeply")
	}
	defer func() { d.depth-- }()
	for n := 0; ; n++ {
		if err := each(n); err != nil {
			return err
		}
		d.space()
		switch d.peek() {
		case ',':
			d.at++
		case closing:
			d.at++
			return nil
		default:
			return d.unexpected("',' or " + strconv.QuoteRune(rune(closing)))
		}
	}
}

// name reads `"name":`.
func (d *decoder) name() ([]byte, error) {
	d.space()
	s, err := d.text()
	if err != nil {
		return nil, err
	}
	if d.space(); d.peek() != ':' {
		return nil, d.unexpected("':'")
	}
	d.at++
	return s, nil
}

// str reads a string.
func (d *decoder) str() (string, error) {
	d.space()
	s, err := d.text()
	return string(s), err
}

// text reads a string; the result may be part of the source.
func (d *decoder) text() ([]byte, error) {
	if d.peek() != '"' {
		return nil, d.unexpected("a string")
	}
	d.at++
	start, ascii := d.at, true
	for d.at < len(d.src) {
		switch c := d.src[d.at]; {
		case c == '"':
			s := d.src[start:d.at]
			d.at++
			if !ascii && !utf8.Valid(s) {
				return nil, errNotUTF8
			}
			return s, nil
		case c == '\\':
			return d.escaped(start)
		case c < 0x20:
			return nil, d.unexpected("a printable character")
		case c >= utf8.RuneSelf:
			ascii = false
		}
		d.at++
	}
	return nil, d.unexpected(`'"'`)
}

var errNotUTF8 = errors.New("a string is not UTF-8")

// escaped goes on with a string that holds an escape at d.at.
func (d *decoder) escaped(start int) ([]byte, error) {
	out := append([]byte(nil), d.src[start:d.at]...)
	for d.at < len(d.src) {
		c := d.src[d.at]
		switch {
		case c == '"':
			d.at++
			if !utf8.Valid(out) {
				return nil, errNotUTF8
			}
			return out, nil
		case c < 0x20:
			return nil, d.unexpected("a printable character")
		case c != '\\':
			out = append(out, c)
			d.at++
			continue
		}
		r, err := d.escape()
		if err != nil {
			return nil, err
		}
		out = utf8.AppendRune(out, r)
	}
	return nil, d.unexpected(`'"'`)
}

// escape reads one escape sequence, a surrogate pair as one.
func (d *decoder) escape() (rune, error) {
	d.at++ // the backslash
	c := d.peek()
	d.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := d.hex4()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if d.word(`\u`) {
			low, err := d.hex4()
			if pair := utf16.DecodeRune(r, low); err == nil && pair != utf8.RuneError {
				return pair, nil
			}
		}
		return 0, errors.New("half of a surrogate pair stands alone in a string")
	}
	d.at--
	return 0, d.unexpected("an escape")
}

func (d *decoder) hex4() (rune, error) {
	if len(d.src)-d.at < 4 {
		return 0, d.unexpected("four hex digits")
	}
	v, err := strconv.ParseUint(string(d.src[d.at:d.at+4]), 16, 16)
	if err != nil {
		return 0, d.unexpected("four hex digits")
	}
	d.at += 4
	return rune(v), nil
}

// number reads the text of a number and says whether it is written as an integer.
func (d *decoder) number() (text []byte, integer bool, err error) {
	start := d.at
	if d.peek() == '-' {
		d.at++
	}
	if d.peek() == '0' {
		d.at++
	} else if !d.digits() {
		return nil, false, d.unexpected("a digit")
	}
	integer = true
	if d.peek() == '.' {
		d.at++
		if integer = false; !d.digits() {
			return nil, false, d.unexpected("a digit")
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		if integer = false; !d.digits() {
			return nil, false, d.unexpected("a digit")
		}
	}
	return d.src[start:d.at], integer, nil
}

func (d *decoder) digits() bool {
	start := d.at
	for c := d.peek(); c >= '0' && c <= '9'; c = d.peek() {
		d.at++
	}
	return d.at > start
}

func (s *shape) decodeStruct(d *decoder, v reflect.Value) error {
	var seen uint64
	next := 0 // canonical text has the names in this order
	return d.list('{', '}', func(int) error {
		name, err := d.name()
		if err != nil {
			return err
		}
		i := s.find(name, next)
		if i < 0 {
			return fmt.Errorf("%w %q", ErrUnknownField, name)
		}
		if seen&(1<<i) != 0 {
			return fmt.Errorf("field %q stands twice", name)
		}
		seen |= 1 << i
		next = i + 1
		if err := s.fields[i].shape.decode(d, v.Field(s.fields[i].index)); err != nil {
			return inPath(string(name), err)
		}
		return nil
	})
}

func (s *shape) find(name []byte, from int) int {
	for i := from; i < len(s.fields); i++ {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	for i := range min(from, len(s.fields)) {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

func sliceDecoder(elem func() *shape) func(*decoder, reflect.Value) error {
	return func(d *decoder, v reflect.Value) error {
		if d.space(); d.word("null") {
			return nil
		}
		elem := elem()
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return d.list('[', ']', func(n int) error {
			if n == v.Cap() {
				v.Grow(1)
			}
			v.SetLen(n + 1)
			if err := elem.decode(d, v.Index(n)); err != nil {
				return inPath(strconv.Itoa(n), err)
			}
			return nil
		})
	}
}

func mapDecoder(elem func() *shape) func(*decoder, reflect.Value) error {
	return func(d *decoder, v reflect.Value) error {
		if d.space(); d.word("null") {
			return nil
		}
		elem := elem()
		v.Set(reflect.MakeMap(v.Type()))
		return d.list('{', '}', func(int) error {
			text, err := d.name()
			if err != nil {
				return err
			}
			name := string(text)
			key := reflect.ValueOf(name).Convert(v.Type().Key())
			if v.MapIndex(key).IsValid() {
				return fmt.Errorf("name %q stands twice in one object", name)
			}
			value := reflect.New(elem.typ).Elem()
			if err := elem.decode(d, value); err != nil {
				return inPath(name, err)
			}
			v.SetMapIndex(key, value)
			return nil
		})
	}
}

func pointerDecoder(elem func() *shape) func(*decoder, reflect.Value) error {
	return func(d *decoder, v reflect.Value) error {
		if d.space(); d.word("null") {
			return nil
		}
		v.Set(reflect.New(elem().typ))
		return elem().decode(d, v.Elem())
	}
}

func decodeStringValue(d *decoder, v reflect.Value) error {
	s, err := d.str()
	v.SetString(s)
	return err
}

func decodeBool(d *decoder, v reflect.Value) error {
	d.space()
	switch {
	case d.word("true"):
		v.SetBool(true)
	case !d.word("false"):
		return d.unexpected("true or false")
	}
	return nil
}

func (d *decoder) integer() (int64, error) {
	d.space()
	text, integer, err := d.number()
	if err != nil {
		return 0, err
	}
	if !integer {
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return 0, fmt.Errorf("want an integer, found %s", text)
		}
		return int64(f), nil
	}
	i, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("number %s is out of range", text)
	}
	return i, nil
}

func decodeInt(d *decoder, v reflect.Value) error {
	i, err := d.integer()
	if err == nil && v.OverflowInt(i) {
		return fmt.Errorf("number %d is out of range", i)
	}
	v.SetInt(i)
	return err
}

func decodeUint(d *decoder, v reflect.Value) error {
	i, err := d.integer()
	if err == nil && (i < 0 || v.OverflowUint(uint64(i))) {
		return fmt.Errorf("number %d is out of range", i)
	}
	v.SetUint(uint64(i))
	return err
}

func (d *decoder) float() (float64, error) {
	d.space()
	text, _, err := d.number()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, fmt.Errorf("number %s is out of range", text)
	}
	return f, nil
}

func decodeFloat(d *decoder, v reflect.Value) error {
	f, err := d.float()
	v.SetFloat(f)
	return err
}

func decodeUSD(d *decoder, v reflect.Value) error {
	f, err := d.float()
	if err != nil {
		return err
	}
	u, err := Dollars(f)
	v.SetInt(int64(u))
	return err
}

func decodeTime(d *decoder, v reflect.Value) error {
	s, err := d.str()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	v.Set(reflect.ValueOf(t.UTC()))
	return err
}

func decodeText(d *decoder, v reflect.Value) error {
	s, err := d.str()
	if err != nil {
		return err
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
}

// decodeRaw keeps the canonical form of any value.
func decodeRaw(d *decoder, v reflect.Value) error {
	raw, err := d.canonical(nil, d.depth)
	v.Set(reflect.ValueOf(json.RawMessage(raw)))
	return err
}
