package tree

import (
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendJSON appends v as compact JSON in source order. It is not canonical (RFC 8785).
func (v *Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(b, v.Bool)
	case Int:
		return strconv.AppendInt(b, v.Int, 10)
	case Float:
		if math.Abs(v.Float) >= 1<<53 { // not as a whole number that would not fit
			return strconv.AppendFloat(b, v.Float, 'e', -1, 64)
		}
		return append(b, jsontext.Float(v.Float).String()...)
	case String:
		return appendString(b, v.Str)
	case List:
		b = append(b, '[')
		for i, x := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = x.AppendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i := range v.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.Fields[i].Value.AppendJSON(append(appendString(b, v.Fields[i].Name), ':'))
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// Plain prints a value as it is written on a command line: a string as it is, else JSON.
func (v *Value) Plain() string {
	if v.Kind == String {
		return v.Str
	}
	return string(v.AppendJSON(nil))
}

// appendString writes a string, of which all front ends have seen that it is UTF-8.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// MarshalJSON prints v without places.
func (v *Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// UnmarshalJSON reads what MarshalJSON prints.
func (v *Value) UnmarshalJSON(b []byte) error {
	x, err := ParseJSON("", b, Limits{})
	if err != nil {
		return err
	}
	x.PlaceAt(Pos{})
	*v = *x
	return nil
}

// PlaceAt gives v and everything in it one place.
func (v *Value) PlaceAt(pos Pos) {
	v.Pos = pos
	for _, x := range v.Items {
		x.PlaceAt(pos)
	}
	for i := range v.Fields {
		v.Fields[i].Pos = pos
		v.Fields[i].Value.PlaceAt(pos)
	}
}

// Native returns v as plain values of Go: nil, bool, int64, float64, string, []any, map[string]any.
func (v *Value) Native() any { return v.NativeFunc(func(v *Value) any { return v.Float }) }

// NativeFunc is Native, with float saying what becomes of a number that is no Int.
func (v *Value) NativeFunc(float func(*Value) any) any {
	switch v.Kind {
	case Bool:
		return v.Bool
	case Int:
		return v.Int
	case Float:
		return float(v)
	case String:
		return v.Str
	case List:
		out := make([]any, len(v.Items))
		for i, x := range v.Items {
			out[i] = x.NativeFunc(float)
		}
		return out
	case Map:
		out := make(map[string]any, len(v.Fields))
		for _, f := range v.Fields {
			out[f.Name] = f.Value.NativeFunc(float)
		}
		return out
	}
	return nil
}

// Any reports whether something holds of v or of a value in it.
func (v *Value) Any(is func(*Value) bool) bool {
	return is(v) || slices.ContainsFunc(v.Items, func(x *Value) bool { return x.Any(is) }) ||
		slices.ContainsFunc(v.Fields, func(f Field) bool { return f.Value.Any(is) })
}

// Edited returns v with what edit makes of its fields and items in their place, or v itself where none is another one.
// label is the name of a field, or the number of an item from 0.
func (v *Value) Edited(edit func(label string, x *Value) *Value) *Value {
	out := v
	own := func() *Value {
		if out == v {
			out = &Value{Kind: v.Kind, Pos: v.Pos, Items: slices.Clone(v.Items), Fields: slices.Clone(v.Fields)}
		}
		return out
	}
	for i, x := range v.Items {
		if y := edit(strconv.Itoa(i), x); y != x {
			own().Items[i] = y
		}
	}
	for i, f := range v.Fields {
		if y := edit(f.Name, f.Value); y != f.Value {
			own().Fields[i].Value = y
		}
	}
	return out
}

// PathOf is the path of a field or item of v, by its label; path is that of v.
func (v *Value) PathOf(path, label string) string {
	if v.Kind == List {
		return path + "[" + label + "]"
	}
	return Join(path, label)
}

// Clone returns a deep copy.
func (v *Value) Clone() *Value {
	if v == nil {
		return nil
	}
	c := *v
	c.Items = make([]*Value, len(v.Items))
	for i, x := range v.Items {
		c.Items[i] = x.Clone()
	}
	c.Fields = make([]Field, len(v.Fields))
	for i, f := range v.Fields {
		f.Value = f.Value.Clone()
		c.Fields[i] = f
	}
	return &c
}

// Set replaces or adds a field of a map.
func (v *Value) Set(name string, pos Pos, val *Value) {
	for i := range v.Fields {
		if v.Fields[i].Name == name {
			v.Fields[i].Pos, v.Fields[i].Value = pos, val
			return
		}
	}
	v.Fields = append(v.Fields, Field{Name: name, Pos: pos, Value: val})
}

// Equal says whether two values are the same but for places and the order of fields.
func Equal(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || len(a.Items) != len(b.Items) || len(a.Fields) != len(b.Fields) {
		return false
	}
	for i := range a.Items {
		if !Equal(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for i := range a.Fields {
		if x := b.Get(a.Fields[i].Name); x == nil || !Equal(a.Fields[i].Value, x) {
			return false
		}
	}
	return a.Bool == b.Bool && a.Int == b.Int && a.Float == b.Float && (a.Kind != String || a.Str == b.Str)
}

// Written notes how a number is written where that is not how it will be printed: as text it would
// become another one. It returns v.
func (v *Value) Written(text string) *Value {
	if string(v.AppendJSON(nil)) != text {
		v.Str = text
	}
	return v
}
