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
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	top, isMap := v.(map[string]any)
	if err != nil || !isMap {
		return nil, []nodes.Problem{{Text: "want a JSON Schema"}}
	}
	r := reader{}
	if r.schema("", top); len(r.problems) > 0 {
		return nil, r.problems
	}
	return compile(top)
}

// Read reads a schema of an object whose fields are outputs; where it does not say so, an object has the fields that it
// names and no others. Problems are those of Compile.
func Read(raw json.RawMessage) (*Shape, []nodes.Problem) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	top, isMap := v.(map[string]any)
	if err != nil || !isMap {
		return nil, []nodes.Problem{{Text: "want a JSON Schema whose type is object, or in CUE a struct type"}}
	}
	r := reader{closing: true}
	r.schema("", top)
	switch t := top["type"]; {
	case len(r.problems) > 0:
	case t == nil:
		r.problem("", "missing type: the answer is an object, so write type: object, and its fields under properties")
	case t != "object":
		r.problem("type", "want object: the answer is an object, whose fields are the node's outputs")
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	check, problems := compile(top)
	if check == nil {
		return nil, problems
	}
	s := &Shape{top: top, check: check}
	return s, s.outputProblems()
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
		text := "a shape does not know this keyword of JSON Schema; it may use " + strings.Join(keywords, ", ")
		if near := rules.Nearest(name, keywords); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		r.problem(tree.Join(path, name), "%s", text)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		r.below(tree.Join(tree.Join(path, "properties"), name), properties[name])
	}
	required, _ := s["required"].([]any)
	for i, name := range required {
		if text, ok := name.(string); ok && properties[text] == nil && r.closing {
			near := ""
			if n := rules.Nearest(text, slices.Collect(maps.Keys(properties))); n != "" {
				near = fmt.Sprintf("; did you mean %q?", n)
			}
			r.problem(tree.At(tree.Join(path, "required"), i), "%q is not among the properties%s", text, near)
		}
	}
	if items, ok := s["items"]; ok {
		r.below(tree.Join(path, "items"), items)
	}
	if not, ok := s["not"]; ok {
		r.below(tree.Join(path, "not"), not)
	}
	list, _ := s["anyOf"].([]any)
	for i, x := range list {
		r.below(tree.At(tree.Join(path, "anyOf"), i), x)
	}
	switch further, given := s["additionalProperties"]; {
	case given && !isBool(further):
		r.below(tree.Join(path, "additionalProperties"), further)
	case !given && r.closing && (s["type"] == "object" || properties != nil):
		s["additionalProperties"] = false
	}
}

func isBool(v any) bool { _, ok := v.(bool); return ok }

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
		if slices.Contains(types, "null") || !s.requires(name) {
			typ += "?"
		}
		out[name] = typ
	}
	return out
}

func (s *Shape) requires(name string) bool { return requires(s.top, name) }

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
		path := tree.Join("properties", name)
		types := slices.DeleteFunc(typesOf(properties[name]), func(t string) bool { return t == "null" })
		text := ""
		switch {
		case !outputName.MatchString(name):
			text = "want a name of letters, digits, _ and -, because it names an output of the node"
		case len(types) != 1:
			text = "want a field of one type, with or without null, because it is an output of the node"
		default:
			continue
		}
		problems = append(problems, nodes.Problem{Path: path, Text: text})
	}
	return problems
}

// typesOf returns the types that a schema allows, each once; nil where it does not say.
func typesOf(v any) (types []string) {
	s, _ := v.(map[string]any)
	add := func(t string) {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	values, _ := s["enum"].([]any)
	if c, ok := s["const"]; ok {
		values = []any{c}
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
	for _, x := range values {
		add(typeOf(x))
	}
	alternatives, _ := s["anyOf"].([]any)
	for _, x := range alternatives {
		for _, t := range typesOf(x) {
			add(t)
		}
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
