package dag

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
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

// elements counts the elements of the array that comes next, without reading them; what is not JSON
// may be counted wrong, but never as more than there are commas.
func (d *decoder) elements() int {
	n, depth, quoted := 0, 0, false
	for i := d.at; i < len(d.src); i++ {
		switch c := d.src[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',' && depth == 1:
			n++
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth <= 0 {
				return n + 1
			}
		}
	}
	return n + 1
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
