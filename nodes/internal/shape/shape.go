// Package shape says which shape a structured answer has: a part of JSON Schema as data, whose top is
// an object. It reads such schemas, checks values against them, says of which type each field is, and gives
// the forms of a schema that services accept.
//
// It knows no provider and asks nobody.
package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// A Shape is a schema that has been read. It is immutable.
type Shape struct{ *Schema }

// language is the schema of a schema, with the keywords of JSON Schema that a shape may use: what can be checked by
// data alone, and has one meaning whoever checks it. Schemas within a schema are read on their own.
var language, _ = decode([]byte(`{"properties": {
	"type": {"anyOf": [
		{"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]},
		{"type": "array", "minItems": 1, "items": {
			"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]}}]},
	"const": {}, "enum": {"type": "array"},
	"title": {"type": "string"}, "description": {"type": "string"}, "pattern": {"type": "string"},
	"properties": {"type": "object"}, "additionalProperties": {},
	"required": {"type": "array", "items": {"type": "string"}},
	"items": {}, "anyOf": {"type": "array", "minItems": 1}, "not": {},
	"minimum": {"type": "number"}, "exclusiveMinimum": {"type": "number"},
	"maximum": {"type": "number"}, "exclusiveMaximum": {"type": "number"},
	"minLength": {"type": "integer", "minimum": 0}, "maxLength": {"type": "integer", "minimum": 0},
	"minItems": {"type": "integer", "minimum": 0}, "maxItems": {"type": "integer", "minimum": 0}
}}`))

var keywords = slices.Sorted(maps.Keys(language.(map[string]any)["properties"].(map[string]any)))

// Compile reads a schema of the keywords that a shape may use, whatever type it is of. Problems are its mistakes, with
// their paths within it; with one there is no schema.
func Compile(raw json.RawMessage) (*Schema, []nodes.Problem) {
	return parse(raw, false, "want a JSON Schema")
}

// last is the schema that was read last: a plan asks for that of a node once for each provider the node may have, and
// each time reading it is most of the work.
var last atomic.Pointer[struct {
	raw   string
	shape *Shape
}]

// Read reads a schema of an object whose fields are outputs; where it does not say so, an object has the fields that it
// names and no others. Problems are those of Compile.
func Read(raw json.RawMessage) (*Shape, []nodes.Problem) {
	if l := last.Load(); l != nil && l.raw == string(raw) {
		return l.shape, nil
	}
	s, problems := readObject(raw)
	if len(problems) == 0 {
		last.Store(&struct {
			raw   string
			shape *Shape
		}{string(raw), s})
	}
	return s, problems
}

func readObject(raw json.RawMessage) (*Shape, []nodes.Problem) {
	schema, problems := parse(raw, true, "want a JSON Schema whose type is object, or in CUE a struct type")
	if len(problems) > 0 {
		return nil, problems
	}
	switch t := schema.top["type"]; {
	case t == nil:
		text := "missing type: the answer is an object, so write type: object, and its fields under properties"
		return nil, []nodes.Problem{{Text: text}}
	case t != "object":
		text := "want object: the answer is an object, whose fields are the node's outputs"
		return nil, []nodes.Problem{{Path: "type", Text: text}}
	}
	s := &Shape{schema}
	return s, s.outputProblems()
}

// parse reads a schema and completes it. want is what to say of something else.
func parse(raw json.RawMessage, closing bool, want string) (*Schema, []nodes.Problem) {
	v, err := decode(raw)
	top, isMap := v.(map[string]any)
	if err != nil || !isMap {
		return nil, []nodes.Problem{{Text: want}}
	}
	r := reader{closing: closing, patterns: map[string]*regexp.Regexp{}}
	r.schema("", top)
	if r.problems != nil {
		return nil, r.problems
	}
	return &Schema{top, r.patterns}, nil
}

// A reader finds the mistakes of a schema, and completes it.
type reader struct {
	problems []nodes.Problem
	patterns map[string]*regexp.Regexp
	closing  bool // objects have no other fields than they name, unless they say so
}

func (r *reader) problem(path, format string, args ...any) {
	r.problems = append(r.problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (r *reader) schema(path string, s map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if slices.Contains(keywords, name) {
			continue
		}
		meant := rules.DidYouMean(name, keywords)
		if meant == "" {
			meant = fmt.Sprintf("; a field of the answer stands under properties: "+
				"{type: object, properties: {%s: {type: ...}}}", name)
		}
		r.problem(tree.Join(path, name), "a shape does not know this keyword of JSON Schema%s; it may use %s",
			meant, strings.Join(keywords, ", "))
	}
	r.problems = append(r.problems, new(Schema).mistakes(language.(map[string]any), s, path)...)
	if pattern, ok := s["pattern"].(string); ok {
		re, _, err := rules.CompilePattern(pattern)
		if err != nil {
			r.problem(tree.Join(path, "pattern"), "%v", err)
		}
		r.patterns[pattern] = re
	}
	for _, name := range []string{"required", "type"} {
		list, _ := s[name].([]any)
		for i, x := range list {
			if slices.ContainsFunc(list[:i], func(before any) bool { return equal(before, x) }) {
				r.problem(tree.At(tree.Join(path, name), i), "%s stands there twice", shown(x))
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	fields := slices.Sorted(maps.Keys(properties))
	for _, name := range fields {
		r.below(tree.Join(tree.Join(path, "properties"), name), properties[name])
	}
	required, _ := s["required"].([]any)
	for i, name := range required {
		if text, ok := name.(string); ok && properties[text] == nil && r.closing {
			r.problem(tree.At(tree.Join(path, "required"), i), "%q is not among the properties%s",
				text, rules.DidYouMean(text, fields))
		}
	}
	for _, name := range []string{"items", "not"} {
		if x, ok := s[name]; ok {
			r.below(tree.Join(path, name), x)
		}
	}
	list, _ := s["anyOf"].([]any)
	for i, x := range list {
		r.below(tree.At(tree.Join(path, "anyOf"), i), x)
	}
	further, given := s["additionalProperties"]
	if _, isBool := further.(bool); given && !isBool {
		r.below(tree.Join(path, "additionalProperties"), further)
	}
	if !given && r.closing && (s["type"] == "object" || properties != nil) {
		s["additionalProperties"] = false
	}
}

func (r *reader) below(path string, v any) {
	if s, ok := v.(map[string]any); ok {
		r.schema(path, s)
		return
	}
	r.problem(path, "want a schema, such as {type: string}")
}

// String is the schema as JSON, with nothing left to defaults.
func (s *Shape) String() string {
	raw, _ := Canonical(s.top) // of JSON
	return string(raw)
}

// Canonical writes JSON, such as an answer that Parse returned: compact, names sorted, whole numbers to the last digit,
// without escapes that JSON does not need.
func Canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// outputName is what the fields at the top are named like: they are outputs of a node.
var outputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Outputs returns the type of each field at the top: string, int, number, bool, list or map, with a "?" behind
// it where the answer may lack the field or give null.
func (s *Shape) Outputs() map[string]string {
	out := map[string]string{}
	properties, _ := s.top["properties"].(map[string]any)
	for name, v := range properties {
		types := typesOf(v)
		typ := ""
		for _, t := range types {
			if t != "null" {
				typ = outputTypes[t]
			}
		}
		if slices.Contains(types, "null") || !requires(s.top, name) {
			typ += "?"
		}
		out[name] = typ
	}
	return out
}

// Words returns of each field at the top that is one of some texts all of them.
func (s *Shape) Words() map[string][]string {
	out := map[string][]string{}
	properties, _ := s.top["properties"].(map[string]any)
	for name, v := range properties {
		schema, _ := v.(map[string]any)
		values, _ := schema["enum"].([]any)
		for _, v := range values {
			if text, ok := v.(string); ok {
				out[name] = append(out[name], text)
			}
		}
	}
	return out
}

func requires(schema map[string]any, name string) bool {
	required, _ := schema["required"].([]any)
	return slices.Contains(required, any(name))
}

var outputTypes = map[string]string{
	"string": "string", "integer": "int", "number": "number", "boolean": "bool", "array": "list", "object": "map",
}

// outputProblems are the fields at the top that cannot be outputs.
func (s *Shape) outputProblems() (problems []nodes.Problem) {
	properties, _ := s.top["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		types := slices.DeleteFunc(typesOf(properties[name]), func(t string) bool { return t == "null" })
		p := nodes.Problem{Path: tree.Join("properties", name)}
		switch {
		case !outputName.MatchString(name):
			p.Text = "want a name of letters, digits, _ and -, because it names an output of the node"
		case len(types) != 1:
			p.Text = "want a field of one type, with or without null, because it is an output of the node"
		default:
			continue
		}
		problems = append(problems, p)
	}
	return problems
}

// typesOf returns the types that a schema allows, each once; nil where it does not say.
func typesOf(v any) (types []string) {
	s, _ := v.(map[string]any)
	if types := saidTypes(s); types != nil {
		return types
	}
	add := func(list ...string) {
		for _, t := range list {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	values, _ := s["enum"].([]any)
	if c, ok := s["const"]; ok {
		values = []any{c}
	}
	for _, x := range values {
		if n, ok := x.(json.Number); ok && !strings.ContainsAny(n.String(), ".eE") {
			add("integer")
		} else {
			add(typeOf(x))
		}
	}
	alternatives, _ := s["anyOf"].([]any)
	for _, x := range alternatives {
		add(typesOf(x)...)
	}
	return types
}
