package dag

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

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
			return fmt.Errorf("duplicate field %q", name)
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
		room := 0
		if elem.fields != nil {
			room = d.elements() // a plan has many nodes, and growing would copy them again and again
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, room))
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
				return fmt.Errorf("duplicate name %q in one object", name)
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
