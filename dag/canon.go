package dag

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AppendJSON appends the canonical JSON (RFC 8785) of v to dst: keys in order of UTF-16 code
// units, shortest numbers, no white space. v is built from structs, slices, maps with string
// keys, pointers, strings, booleans, numbers, time.Time (RFC 3339, UTC), Duration, USD and
// json.RawMessage, which is brought into canonical form. Tags are those of encoding/json; a
// field with omitzero is left out also when its struct would be written as {}. Integers beyond
// 2^53, NaN and infinities are errors: they would not be read back as they are. Bytes of a
// string that are not UTF-8 are written as U+FFFD.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return append(dst, "null"...), nil
	}
	return shapeOf(rv.Type()).append(dst, rv)
}

// A shape is how one Go type is written: built once a type, by reflection.
type shape struct {
	append func(dst []byte, v reflect.Value) ([]byte, error)
	fields []field // of a struct, in canonical order
}

// A field is one member of a struct.
type field struct {
	name      string
	key       string // `"name":`
	index     int
	omitEmpty bool
	omitZero  bool
	shape     *shape
}

var (
	shapes    sync.Map // reflect.Type -> *shape
	timeType  = reflect.TypeFor[time.Time]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	usdType   = reflect.TypeFor[USD]()
	textType  = reflect.TypeFor[encoding.TextMarshaler]()
	errTooBig = errors.New("an integer beyond 2^53 cannot be kept exactly in JSON: write it as a string")
)

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := new(shape)
	s.build(t)
	got, _ := shapes.LoadOrStore(t, s)
	return got.(*shape)
}

// lazyShape puts off building the shape of an element: types may contain themselves.
func lazyShape(t reflect.Type) func() *shape {
	return sync.OnceValue(func() *shape { return shapeOf(t) })
}

func (s *shape) build(t reflect.Type) {
	switch {
	case t == timeType:
		s.append = appendTime
	case t == rawType:
		s.append = appendRaw
	case t == usdType:
		s.append = appendUSD
	case t.Implements(textType) && t.Kind() != reflect.Pointer:
		s.append = appendText
	default:
		s.buildKind(t)
	}
}

func (s *shape) buildKind(t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		s.append = appendStringValue
	case reflect.Bool:
		s.append = appendBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.append = appendInt
	case reflect.Float64:
		s.append = appendFloatValue
	case reflect.Slice:
		elem := lazyShape(t.Elem())
		s.append = sliceAppender(elem)
	case reflect.Map:
		elem := lazyShape(t.Elem())
		s.append = mapAppender(elem)
	case reflect.Pointer:
		elem := lazyShape(t.Elem())
		s.append = pointerAppender(elem)
	case reflect.Struct:
		s.buildStruct(t)
	default:
		panic("dag: no canonical form for " + t.String())
	}
}

func (s *shape) buildStruct(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if name == "" {
			panic("dag: no JSON name for " + t.String() + "." + f.Name)
		}
		s.fields = append(s.fields, field{
			name: name, key: string(appendString(nil, name)) + ":", index: i,
			omitEmpty: strings.Contains(opts, "omitempty"),
			omitZero:  strings.Contains(opts, "omitzero"),
			shape:     shapeOf(f.Type),
		})
	}
	slices.SortFunc(s.fields, func(a, b field) int { return compareUTF16(a.name, b.name) })
	s.append = s.appendStruct
}

func (s *shape) appendStruct(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for i := range s.fields {
		f := &s.fields[i]
		fv := v.Field(f.index)
		if (f.omitEmpty || f.omitZero) && isEmpty(fv) {
			continue
		}
		start := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(dst, f.key...)
		at := len(dst)
		var err error
		if dst, err = f.shape.append(dst, fv); err != nil {
			return dst, inPath(f.name, err)
		}
		if f.omitZero && string(dst[at:]) == "{}" {
			dst = dst[:start]
			continue
		}
		first = false
	}
	return append(dst, '}'), nil
}

// isEmpty reports whether a value is left out by omitempty or omitzero. Structs are decided by
// what they write.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		if v.Type() == timeType {
			return v.Interface().(time.Time).IsZero()
		}
		return false
	default:
		return v.IsZero()
	}
}

func sliceAppender(elem func() *shape) func([]byte, reflect.Value) ([]byte, error) {
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		dst = append(dst, '[')
		elem := elem()
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = elem.append(dst, v.Index(i)); err != nil {
				return dst, inPath(fmt.Sprint(i), err)
			}
		}
		return append(dst, ']'), nil
	}
}

func mapAppender(elem func() *shape) func([]byte, reflect.Value) ([]byte, error) {
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return compareUTF16(a.String(), b.String()) })
		dst = append(dst, '{')
		elem := elem()
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, k.String()), ':')
			var err error
			if dst, err = elem.append(dst, v.MapIndex(k)); err != nil {
				return dst, inPath(k.String(), err)
			}
		}
		return append(dst, '}'), nil
	}
}

func pointerAppender(elem func() *shape) func([]byte, reflect.Value) ([]byte, error) {
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return elem().append(dst, v.Elem())
	}
}

func appendStringValue(dst []byte, v reflect.Value) ([]byte, error) {
	return appendString(dst, v.String()), nil
}

func appendBool(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendBool(dst, v.Bool()), nil
}

func appendInt(dst []byte, v reflect.Value) ([]byte, error) {
	var i int64
	if v.CanInt() {
		i = v.Int()
	} else {
		i = int64(min(v.Uint(), 1<<54))
	}
	if i > 1<<53 || i < -1<<53 {
		return dst, errTooBig
	}
	return strconv.AppendInt(dst, i, 10), nil
}

func appendFloatValue(dst []byte, v reflect.Value) ([]byte, error) {
	return appendNumber(dst, v.Float())
}

func appendUSD(dst []byte, v reflect.Value) ([]byte, error) {
	return appendNumber(dst, USD(v.Int()).Float())
}

func appendTime(dst []byte, v reflect.Value) ([]byte, error) {
	t, ok := v.Interface().(time.Time)
	if !ok || t.Year() < 0 || t.Year() > 9999 {
		return dst, fmt.Errorf("%v is not a time that JSON can hold", v)
	}
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"'), nil
}

func appendText(dst []byte, v reflect.Value) ([]byte, error) {
	b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return dst, err
	}
	return appendString(dst, string(b)), nil
}

func appendRaw(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Len() == 0 {
		return append(dst, "null"...), nil
	}
	return AppendCanonical(dst, v.Bytes())
}

// A pathError is an error at a place within a value.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// inPath adds one outer step to the place of an error.
func inPath(step string, err error) error {
	if p, ok := err.(*pathError); ok {
		return &pathError{step + "." + p.path, p.err}
	}
	return &pathError{step, err}
}
