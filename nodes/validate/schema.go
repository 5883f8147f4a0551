package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes/internal/accept"
)

// schemaNode is the part of JSON Schema that settings may use.
type schemaNode struct {
	Type       string                     `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional *bool                      `json:"additionalProperties"`
	Items      json.RawMessage            `json:"items"`
	MinItems   int                        `json:"minItems"`
	MinLength  int                        `json:"minLength"`
	MaxLength  *int                       `json:"maxLength"`
	Pattern    string                     `json:"pattern"`
	Minimum    *float64                   `json:"minimum"`
	Maximum    *float64                   `json:"maximum"`
}

var schemaTypes = map[string]rules.Types{
	"object": rules.TypesOf(tree.Map), "array": rules.TypesOf(tree.List), "string": rules.TypesOf(tree.String),
	"integer": rules.TypesOf(tree.Int), "number": rules.TypesOf(tree.Int, tree.Float),
	"boolean": rules.TypesOf(tree.Bool), "null": rules.TypesOf(tree.Null),
}

// compileSchema makes rules of a schema.
func compileSchema(raw json.RawMessage) (*rules.Rule, error) {
	r, err := compileNode(raw, "json")
	if err != nil {
		return nil, err
	}
	return r, r.Validate()
}

func compileNode(raw json.RawMessage, at string) (*rules.Rule, error) {
	var n schemaNode
	if err := accept.Decode(raw, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	r := &rules.Rule{Min: n.Minimum, Max: n.Maximum, MinItems: n.MinItems, Open: n.Additional == nil || *n.Additional}
	if n.Type != "" {
		types, ok := schemaTypes[n.Type]
		if !ok {
			return nil, fmt.Errorf("%s: unknown type %q", at, n.Type)
		}
		r.Types = types
	}
	for _, e := range n.Enum {
		v, err := tree.ParseJSON("", e, tree.Defaults)
		if err != nil || v.Kind == tree.Map || v.Kind == tree.List {
			return nil, fmt.Errorf("%s: enum: want scalars, got %s", at, e)
		}
		r.Enum = append(r.Enum, v)
	}
	if n.Pattern != "" {
		r.Match = append(r.Match, n.Pattern)
	}
	if err := addLength(r, n, at); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		sub, err := compileNode(n.Properties[name], at+"."+name)
		if err != nil {
			return nil, err
		}
		r.Fields = append(r.Fields, rules.Field{Name: name, Required: slices.Contains(n.Required, name), Rule: sub})
	}
	for _, name := range n.Required {
		if _, ok := n.Properties[name]; !ok {
			r.Fields = append(r.Fields, rules.Field{Name: name, Required: true, Rule: anything()})
		}
	}
	r.Items = anything()
	if n.Items != nil {
		sub, err := compileNode(n.Items, at+".items")
		if err != nil {
			return nil, err
		}
		r.Items = sub
	}
	return r, nil
}

// anything accepts every value.
func anything() *rules.Rule { return &rules.Rule{} }

// addLength writes the bounds of a string's length as an expression.
func addLength(r *rules.Rule, n schemaNode, at string) error {
	const most = 1000 // the largest repetition of a regular expression
	if n.MinLength == 0 && n.MaxLength == nil {
		return nil
	}
	upper := ""
	if n.MaxLength != nil {
		if *n.MaxLength < n.MinLength || *n.MaxLength > most {
			return fmt.Errorf("%s: maxLength must be from minLength to %d", at, most)
		}
		upper = fmt.Sprint(*n.MaxLength)
	}
	if n.MinLength < 0 || n.MinLength > most {
		return fmt.Errorf("%s: minLength must be from 0 to %d", at, most)
	}
	expr := fmt.Sprintf(`(?s)^.{%d,%s}$`, n.MinLength, upper)
	if _, err := regexp.Compile(expr); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	r.Match = append(r.Match, expr)
	return nil
}
