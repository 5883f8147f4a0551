package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// A Schema is a part of JSON Schema that has been read. It is immutable.
type Schema struct {
	top      map[string]any // in a Shape with additionalProperties written out everywhere
	patterns map[string]*regexp.Regexp
}

// mostMistakes is how many mistakes of one answer are said: all that a model is likely to make at once.
const mostMistakes = 5

// Check says in one line where a JSON value does not follow the schema, by path, and what was wanted there; root is
// what it calls the value.
func (s *Schema) Check(raw json.RawMessage, root string) error {
	v, err := decode(raw)
	if err != nil {
		return err
	}
	return s.check(v, root)
}

// decode reads one JSON value, with numbers as they are written.
func decode(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// check is Check of a value whose numbers are json.Number, int64 or float64.
func (s *Schema) check(v any, root string) error {
	var lines []string
	for _, p := range s.mistakes(s.top, v, root) {
		lines = append(lines, p.Path+": "+p.Text)
	}
	if lines == nil {
		return nil
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if n := len(lines) - mostMistakes; n > 0 {
		lines = append(lines[:mostMistakes], fmt.Sprintf("and %d more", n))
	}
	return errors.New(strings.Join(lines, "; "))
}

// mistakes returns those of a value at a path. One of another type, or another value than those listed, has no others.
func (s *Schema) mistakes(schema map[string]any, v any, path string) (found []nodes.Problem) {
	say := func(format string, args ...any) {
		found = append(found, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	below := func(schema, v any, path string) {
		if schema, ok := schema.(map[string]any); ok {
			found = append(found, s.mistakes(schema, v, path)...)
		}
	}
	typ := typeOf(v)
	if typ == "number" && number(v) == nil {
		say("want a number of at most a thousand digits, got %s", shown(v))
		return found
	}
	if types := saidTypes(schema); !hasType(v, types) {
		say("want %s, got %s", strings.Join(types, " or "), typ)
		return found
	}
	if want, ok := schema["const"]; ok && !equal(want, v) {
		say("want %s, got %s", shown(want), shown(v))
		return found
	}
	same := func(want any) bool { return equal(want, v) }
	if values, ok := schema["enum"].([]any); ok && !slices.ContainsFunc(values, same) {
		say("want one of %s, got %s", shown(values...), shown(v))
		return found
	}
	measure := v
	switch v := v.(type) {
	case string:
		measure = int64(utf8.RuneCountInString(v))
		if pattern, ok := schema["pattern"].(string); ok && !s.patterns[pattern].MatchString(v) {
			say("want a text that matches %s, got %s", pattern, shown(v))
		}
	case []any:
		measure = int64(len(v))
		for i, x := range v {
			below(schema["items"], x, tree.At(path, i))
		}
	case map[string]any:
		var missing, further []string
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, given := v[name.(string)]; !given {
				missing = append(missing, name.(string))
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			property, known := properties[name]
			if !known {
				if property = schema["additionalProperties"]; property == false {
					further = append(further, name)
				}
			}
			below(property, v[name], tree.Join(path, name))
		}
		if missing != nil {
			say("missing %s", strings.Join(missing, ", "))
		}
		if further != nil {
			say("no field is named %s", strings.Join(further, ", "))
		}
	}
	for _, b := range bounds {
		limit, ok := schema[b.keyword]
		if ok && b.of == typ && slices.Contains(b.wrong, number(measure).Cmp(number(limit))) {
			say("%s: got %s, want %s", b.keyword, shown(measure), shown(limit))
		}
	}
	if no, ok := schema["not"].(map[string]any); ok && s.mistakes(no, v, path) == nil {
		say("want a value that does not follow %s, got %s", shown(no), shown(v))
	}
	if list, ok := schema["anyOf"].([]any); ok {
		found = append(found, s.nearest(list, v, path)...)
	}
	return found
}

// nearest returns no mistakes where a value follows one of the alternatives. Else that it is of no other one's type
// helps nobody, and that it is not null least of all.
func (s *Schema) nearest(alternatives []any, v any, path string) []nodes.Problem {
	var found [3][]nodes.Problem
	for _, x := range alternatives {
		schema, rank := x.(map[string]any), 0
		mistakes := s.mistakes(schema, v, path)
		if mistakes == nil {
			return nil
		}
		if types := saidTypes(schema); slices.Equal(types, []string{"null"}) {
			rank = 2
		} else if !hasType(v, types) {
			rank = 1
		}
		found[rank] = append(found[rank], mistakes...)
	}
	return found[slices.IndexFunc(found[:], func(list []nodes.Problem) bool { return list != nil })]
}

// bounds limit what is measured of values of a type: a number itself, the characters of a text, the items of a list.
var bounds = []struct {
	keyword, of string
	wrong       []int // how the measure compares with the limit where it is out of bounds
}{
	{"minimum", "number", []int{-1}},
	{"maximum", "number", []int{1}},
	{"exclusiveMinimum", "number", []int{-1, 0}},
	{"exclusiveMaximum", "number", []int{1, 0}},
	{"minLength", "string", []int{-1}},
	{"maxLength", "string", []int{1}},
	{"minItems", "array", []int{-1}},
	{"maxItems", "array", []int{1}},
}

// mostDigits is how long a number may be when it is written out: "1e999999999" would fill the memory.
const mostDigits = 1000

// number reads a number exactly. It is nil for one of more than mostDigits digits, and for what is none.
func number(v any) *big.Rat {
	text := ""
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case int64, float64:
		text = fmt.Sprint(v)
	}
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(text) > mostDigits || len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return nil
	}
	r, _ := new(big.Rat).SetString(text)
	return r
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case string, bool, nil:
		return a == b
	}
	x, y := number(a), number(b)
	return x != nil && y != nil && x.Cmp(y) == 0
}

// shown lists values for a message.
func shown(values ...any) string {
	list := make([]string, len(values))
	for i, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = fmt.Append(nil, v)
		}
		list[i] = printable.Clip(string(raw), 60)
	}
	return strings.Join(list, ", ")
}

// saidTypes returns what a schema says under type, nil where it says nothing.
func saidTypes(s map[string]any) (types []string) {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, x := range t {
			types = append(types, fmt.Sprint(x))
		}
	}
	return types
}

// hasType says whether a value is of one of the types; none are any.
func hasType(v any, types []string) bool {
	t := typeOf(v)
	return types == nil || slices.Contains(types, t) ||
		t == "number" && slices.Contains(types, "integer") && number(v).IsInt()
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}
