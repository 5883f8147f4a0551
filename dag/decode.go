package dag

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrUnknownField is wrapped by errors of DecodeJSON about a name that the Go type does not have.
var ErrUnknownField = errors.New("unknown field")

// DecodeJSON reads src into v, a pointer to a zero value. It is stricter than encoding/json:
// names are exact, an unknown or a repeated name is an error, and nothing may follow.
func DecodeJSON(src []byte, v any) error {
	rv := reflect.ValueOf(v).Elem()
	d := jsontext.NewDecoder(bytes.NewBuffer(src), jsontext.AllowDuplicateNames(true)) // who reads an object finds them
	if err := shapeOf(rv.Type()).decode(d, rv); err != nil {
		return err
	}
	switch _, err := d.ReadToken(); {
	case err == nil:
		return fmt.Errorf("want the end, found more text before byte %d", d.InputOffset())
	case err != io.EOF:
		return worded(err)
	}
	return nil
}

// scalar returns the text of the next value or name, which must be of a kind.
func scalar(d *jsontext.Decoder, kind jsontext.Kind, want string) ([]byte, error) {
	raw, err := d.ReadValue()
	switch {
	case err != nil:
		return nil, worded(err)
	case raw.Kind() != kind:
		return nil, unwanted(want, raw.Kind())
	}
	return raw, nil
}

func unwanted(want string, found jsontext.Kind) error {
	return fmt.Errorf("want %s, found %s", want, found)
}

// text reads a string or a name; the result may be part of the source.
func text(d *jsontext.Decoder) ([]byte, error) {
	raw, err := scalar(d, '"', "a string")
	switch {
	case err != nil:
		return nil, err
	case bytes.IndexByte(raw, '\\') < 0:
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// null reports whether null comes next, and reads it.
func null(d *jsontext.Decoder) bool {
	if d.PeekKind() != 'n' {
		return false
	}
	_, err := d.ReadToken() // a mistake is found again by who reads on
	return err == nil
}

// list reads an array or object; each reads one element.
func list(d *jsontext.Decoder, open, closing jsontext.Kind, each func(n int) error) error {
	token, err := d.ReadToken()
	if err == nil && token.Kind() != open {
		return unwanted("'"+open.String()+"'", token.Kind())
	}
	for n := 0; err == nil && d.PeekKind() != closing; n++ {
		if err := each(n); err != nil {
			return err
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if err != nil {
		return worded(err)
	}
	return nil
}

// elements counts the elements of the array that src begins with, without reading them; what is not JSON
// may be counted wrong, but never as more than there are commas.
func elements(src []byte) int {
	n, depth, quoted := 0, 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
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

func (s *shape) decodeStruct(d *jsontext.Decoder, v reflect.Value) error {
	var seen uint64
	next := 0 // canonical text has the names in this order
	return list(d, '{', '}', func(int) error {
		name, err := text(d)
		if err != nil {
			return err
		}
		i := s.find(name, next)
		if i < 0 {
			return fmt.Errorf("%w %q", ErrUnknownField, name)
		}
		if seen&(1<<i) != 0 {
			return fmt.Errorf("duplicate field %q", name)
		}
		seen |= 1 << i
		next = i + 1
		if err := s.fields[i].shape.decode(d, v.Field(s.fields[i].index)); err != nil {
			return inPath(s.fields[i].name, err)
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

func sliceDecoder(elem func() *shape) func(*jsontext.Decoder, reflect.Value) error {
	return func(d *jsontext.Decoder, v reflect.Value) error {
		if null(d) {
			return nil
		}
		elem := elem()
		room := 0
		if elem.fields != nil {
			room = elements(d.UnreadBuffer()) // a plan has many nodes, and growing would copy them again and again
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, room))
		return list(d, '[', ']', func(n int) error {
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

func mapDecoder(elem func() *shape) func(*jsontext.Decoder, reflect.Value) error {
	return func(d *jsontext.Decoder, v reflect.Value) error {
		if null(d) {
			return nil
		}
		elem := elem()
		v.Set(reflect.MakeMap(v.Type()))
		return list(d, '{', '}', func(int) error {
			raw, err := text(d)
			if err != nil {
				return err
			}
			name := string(raw)
			key := reflect.ValueOf(name).Convert(v.Type().Key())
			if v.MapIndex(key).IsValid() {
				return duplicateName(name)
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

func pointerDecoder(elem func() *shape) func(*jsontext.Decoder, reflect.Value) error {
	return func(d *jsontext.Decoder, v reflect.Value) error {
		if null(d) {
			return nil
		}
		v.Set(reflect.New(elem().typ))
		return elem().decode(d, v.Elem())
	}
}

func decodeStringValue(d *jsontext.Decoder, v reflect.Value) error {
	s, err := text(d)
	v.SetString(string(s))
	return err
}

func decodeBool(d *jsontext.Decoder, v reflect.Value) error {
	raw, err := d.ReadValue()
	switch kind := raw.Kind(); {
	case err != nil:
		return worded(err)
	case kind != 't' && kind != 'f':
		return unwanted("true or false", kind)
	}
	v.SetBool(raw.Kind() == 't')
	return nil
}

func integer(d *jsontext.Decoder) (int64, error) {
	raw, err := scalar(d, '0', "an integer")
	if err != nil {
		return 0, err
	}
	text := string(raw)
	if !isInteger(text) {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return 0, fmt.Errorf("want an integer, found %s", text)
		}
		return int64(f), nil
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, outOfRange(text)
	}
	return i, nil
}

func decodeInt(d *jsontext.Decoder, v reflect.Value) error {
	i, err := integer(d)
	switch {
	case err != nil:
		return err
	case v.CanInt() && !v.OverflowInt(i):
		v.SetInt(i)
	case v.CanUint() && i >= 0 && !v.OverflowUint(uint64(i)):
		v.SetUint(uint64(i))
	default:
		return outOfRange(strconv.FormatInt(i, 10))
	}
	return nil
}

func float(d *jsontext.Decoder) (float64, error) {
	raw, err := scalar(d, '0', "a number")
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, outOfRange(string(raw))
	}
	return f, nil
}

func decodeFloat(d *jsontext.Decoder, v reflect.Value) error {
	f, err := float(d)
	v.SetFloat(f)
	return err
}

func decodeUSD(d *jsontext.Decoder, v reflect.Value) error {
	f, err := float(d)
	if err != nil {
		return err
	}
	u, err := Dollars(f)
	v.SetInt(int64(u))
	return err
}

func decodeTime(d *jsontext.Decoder, v reflect.Value) error {
	s, err := text(d)
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	v.Set(reflect.ValueOf(t.UTC()))
	return err
}

func decodeText(d *jsontext.Decoder, v reflect.Value) error {
	s, err := text(d)
	if err != nil {
		return err
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(s)
}

// decodeRaw keeps the canonical form of any value.
func decodeRaw(d *jsontext.Decoder, v reflect.Value) error {
	raw, err := d.ReadValue()
	if err != nil {
		return worded(err)
	}
	kept, err := AppendCanonical(nil, raw)
	v.Set(reflect.ValueOf(json.RawMessage(kept)))
	return err
}
