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

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// A Shape is a schema that has been read. It is immutable.
type Shape struct {
	top   map[string]any // with additionalProperties written out everywhere
	check *jsonschema.Schema
}

// keywords of JSON Schema that a shape may use: what can be checked by data alone, and has one meaning
// whoever checks it.
var keywords = []string{
	"additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "items",
	"maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "not", "pattern", "properties",
	"required", "title", "type",
}

// Compile reads a schema of the keywords that a shape may use, whatever type it is of. Problems are its mistakes, with
// their paths within it; with one there is no schema.
func Compile(raw json.RawMessage) (*jsonschema.Schema, []nodes.Problem) {
	top, problems := parse(raw, false, "want a JSON Schema")
	if len(problems) > 0 {
		return nil, problems
	}
	return compile(top)
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
	top, problems := parse(raw, true, "want a JSON Schema whose type is object, or in CUE a struct type")
	if len(problems) > 0 {
		return nil, problems
	}
	switch t := top["type"]; {
	case t == nil:
		text := "missing type: the answer is an object, so write type: object, and its fields under properties"
		return nil, []nodes.Problem{{Text: text}}
	case t != "object":
		text := "want object: the answer is an object, whose fields are the node's outputs"
		return nil, []nodes.Problem{{Path: "type", Text: text}}
	}
	check, problems := compile(top)
	if check == nil {
		return nil, problems
	}
	s := &Shape{top: top, check: check}
	return s, s.outputProblems()
}

// parse reads a schema and completes it. want is what to say of something else.
func parse(raw json.RawMessage, closing bool, want string) (top map[string]any, problems []nodes.Problem) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	top, isMap := v.(map[string]any)
	if err != nil || !isMap {
		return nil, []nodes.Problem{{Text: want}}
	}
	r := reader{closing: closing}
	r.schema("", top)
	return top, r.problems
}

func compile(top map[string]any) (schema *jsonschema.Schema, problems []nodes.Problem) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseRegexpEngine(func(src string) (jsonschema.Regexp, error) {
		re, _, err := rules.CompilePattern(src)
		return re, err
	})
	const name = "dagrun:answer"
	err := c.AddResource(name, top)
	if err == nil {
		schema, err = c.Compile(name)
	}
	if err != nil {
		return nil, schemaProblems(err)
	}
	return schema, nil
}

// A reader finds the mistakes of a schema that JSON Schema itself does not know, and completes it.
type reader struct {
	problems []nodes.Problem
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
		r.problem(tree.Join(path, name), "a shape does not know this keyword of JSON Schema; it may use %s%s",
			strings.Join(keywords, ", "), rules.DidYouMean(name, keywords))
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
	add := func(list ...string) {
		for _, t := range list {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, x := range t {
			add(fmt.Sprint(x))
		}
		return types
	}
	values, _ := s["enum"].([]any)
	if c, ok := s["const"]; ok {
		values = []any{c}
	}
	for _, x := range values {
		add(typeOf(x))
	}
	alternatives, _ := s["anyOf"].([]any)
	for _, x := range alternatives {
		add(typesOf(x)...)
	}
	return types
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	}
	return "null"
}
