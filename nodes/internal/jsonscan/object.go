// Package jsonscan reads JSON as programs and services really write it: objects among lines of a log, counts
// written as text, lists that break off. It never fails because of one field; what it had to overlook it says.
//
// It knows no provider and gives the fields no meaning.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"dagrun.dev/internal/number"
)

// An Object is a JSON object with exact names. Decoding into a struct would match names without regard to
// case, and one field of a wrong type would lose the whole object.
type Object map[string]json.RawMessage

// mostCount is the largest number that is believed to be a count.
const mostCount = 1e16

// Str returns a string field, "" when it is missing or something else.
func (o Object) Str(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s)
	return s
}

// Num returns a number field; some write it as a text.
func (o Object) Num(name string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(string(bytes.Trim(o[name], `" `)), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// whole returns a whole number field, to the last digit; 3.0 and "3" are some.
func (o Object) whole(name string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(bytes.Trim(o[name], `" `)), 10, 64); err == nil {
		return n, true
	}
	v, ok := o.Num(name)
	if !ok || math.Abs(v) > mostCount {
		return 0, false
	}
	return int64(v), v == math.Trunc(v)
}

// Count returns a whole number field, 0 when it is missing or no count.
func (o Object) Count(name string) int64 {
	n, _ := o.whole(name)
	if n < 0 || n > mostCount {
		return 0
	}
	return n
}

// Countable reports whether the fields of these names that are there are counts: whole and not negative.
func (o Object) Countable(names ...string) bool {
	for _, name := range names {
		if n, ok := o.whole(name); o.Has(name) && (!ok || n < 0 || n > mostCount) {
			return false
		}
	}
	return true
}

// Status returns a status of HTTP, which some write as a text; 0 when it is missing or something else.
func (o Object) Status(name string) int {
	n, err := strconv.Atoi(string(bytes.Trim(o[name], `" `)))
	if err != nil || n < 100 || n > 599 {
		return 0
	}
	return n
}

// Yes returns a truth value; the text "true" and the number 1 count.
func (o Object) Yes(name string) bool {
	raw := string(bytes.ToLower(bytes.Trim(o[name], `" `)))
	return raw == "true" || raw == "1"
}

// Has reports whether a field is there and not null.
func (o Object) Has(name string) bool {
	raw, ok := o[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// Object returns a field that is an object, else nil.
func (o Object) Object(name string) Object {
	var v Object
	_ = json.Unmarshal(o[name], &v)
	return v
}

// List returns the items of a field that is a list.
func (o Object) List(name string) []json.RawMessage {
	var v []json.RawMessage
	_ = json.Unmarshal(o[name], &v)
	return v
}

// Objects returns the items of a list by their positions; one that is no object is nil.
func (o Object) Objects(name string) []Object {
	list := o.List(name)
	objects := make([]Object, len(list))
	for i, raw := range list {
		_ = json.Unmarshal(raw, &objects[i])
	}
	return objects
}

// Walk returns what stands in a decoded value at a path of names and positions with dots between; the empty path is the
// whole.
func Walk(v any, path string) (any, error) {
	if path == "" {
		return v, nil
	}
	for _, step := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[step]
			if !ok {
				return nil, fmt.Errorf("%s: no %q", path, step)
			}
			v = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(in) {
				return nil, fmt.Errorf("%s: no item %q of %d", path, step, len(in))
			}
			v = in[n]
		default:
			return nil, fmt.Errorf("%s: %q of neither an object nor a list", path, step)
		}
	}
	return v, nil
}

// Typed returns a decoded value, with its numbers as they are written, as one of a type of outputs, if it is one:
// string, bool, int, number, list or map. An int is an int64.
func Typed(x any, want string) (any, bool) {
	switch v := x.(type) {
	case string:
		return v, want == "string"
	case bool:
		return v, want == "bool"
	case json.Number:
		if want == "int" {
			return whole(v)
		}
		return v, want == "number" && holds(v.String())
	case []any:
		return v, want == "list"
	case map[string]any:
		return v, want == "map"
	}
	return nil, false
}

// holds reports whether a number stays what it is as a double, but for digits of a fraction: not an integer that
// becomes another one, nor what becomes infinite or nothing.
func holds(text string) bool {
	if number.Whole(text) {
		return number.Stays(text)
	}
	_, ok := number.Float(text)
	return ok
}

// whole returns a whole number of 64 bits to the last digit; 3.0 and 3e2 are some.
func whole(v json.Number) (any, bool) {
	if n, err := v.Int64(); err == nil {
		return n, true
	}
	f, err := v.Float64()
	if err != nil || math.Abs(f) > 1<<53 {
		return nil, false
	}
	return int64(f), f == math.Trunc(f)
}

// At returns the value at a path of names.
func (o Object) At(path []string) (json.RawMessage, bool) {
	for i, name := range path {
		raw, ok := o[name]
		if !ok || i == len(path)-1 {
			return raw, ok
		}
		if o = o.Object(name); o == nil {
			return nil, false
		}
	}
	return nil, false
}
