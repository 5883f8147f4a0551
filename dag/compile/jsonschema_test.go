package compile

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// editorSchema is the JSON Schema (draft 2020-12) of specifications in YAML and JSON, for editors: a pipeline by itself,
// or the field pipeline with one or several named ones. It is rendered from the rules and accepts what they accept. The
// program brings the file along that TestJSONSchemaFile writes.
func editorSchema(s *schema.Schema) []byte {
	defs := map[string]any{}
	pipeline := jsonSchemaOf(s.Rule("Pipeline"), defs)
	several := map[string]any{"type": "object", "additionalProperties": pipeline}
	doc := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://dagrun.dev/pipeline.schema.json",
		"title":   "dagrun pipeline",
		"type":    "object",
		"$defs":   defs,
		"if":      map[string]any{"required": []string{"pipeline"}},
		"then": map[string]any{
			"properties":           map[string]any{"pipeline": map[string]any{"anyOf": []any{pipeline, several}}},
			"patternProperties":    map[string]any{"^x-": true},
			"additionalProperties": false,
		},
		"else": pipeline,
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		panic(err) // maps, strings and numbers always encode
	}
	return b.Bytes()
}

// jsonSchemaOf renders a rule as a JSON Schema (draft 2020-12), ready for encoding/json, that accepts what
// r accepts. Rules with a name become definitions: those it refers to are added to defs, the
// value of the document's $defs.
func jsonSchemaOf(r *rules.Rule, defs map[string]any) map[string]any {
	if r == nil {
		return map[string]any{}
	}
	if r.Name == "" {
		return unnamed(r, defs)
	}
	if _, known := defs[r.Name]; !known {
		defs[r.Name] = nil // being made
		defs[r.Name] = unnamed(r, defs)
	}
	return map[string]any{"$ref": "#/$defs/" + r.Name}
}

func unnamed(r *rules.Rule, defs map[string]any) map[string]any {
	s := map[string]any{}
	if r.Doc != "" {
		s["description"] = r.Doc
	}
	if names := schemaTypes(r); len(names) == 1 {
		s["type"] = names[0]
	} else if len(names) > 1 {
		s["type"] = names
	}
	if len(r.Enum) > 0 {
		s["enum"] = r.Enum
	}
	schemaBound(s, "minimum", "exclusiveMinimum", r.Min, r.MinX)
	schemaBound(s, "maximum", "exclusiveMaximum", r.Max, r.MaxX)
	schemaText(r, s)
	if len(r.Fields) > 0 || len(r.Patterns) > 0 || r.Types == rules.TypesOf(tree.Map) {
		schemaMap(r, s, defs)
	}
	if (len(r.Prefix) > 0 || r.Items != nil || r.Types == rules.TypesOf(tree.List)) && len(r.AnyOf) == 0 {
		schemaList(r, s, defs)
	}
	if len(r.AnyOf) > 0 {
		var alts []any
		for _, a := range r.AnyOf {
			alts = append(alts, jsonSchemaOf(a, defs))
		}
		s["anyOf"] = alts
	}
	return s
}

var schemaNames = strings.NewReplacer(
	"bool", "boolean", "list", "array", "map", "object", "int", "integer", "float", "number")

func schemaTypes(r *rules.Rule) []string {
	var out []string
	for _, n := range r.Types.Names() {
		out = append(out, schemaNames.Replace(n))
	}
	return out
}

func schemaBound(s map[string]any, with, without string, b *float64, excluded bool) {
	if b == nil {
		return
	}
	if excluded {
		with = without
	}
	s[with] = *b
}

func schemaText(r *rules.Rule, s map[string]any) {
	var all []any
	for _, re := range r.Match {
		all = append(all, map[string]any{"pattern": re})
	}
	for _, re := range r.NotMatch {
		all = append(all, map[string]any{"not": map[string]any{"type": "string", "pattern": re}})
	}
	if len(r.Not) > 0 {
		all = append(all, map[string]any{"not": map[string]any{"enum": r.Not}})
	}
	if len(r.Match) == 1 && len(all) == 1 {
		s["pattern"] = r.Match[0]
	} else if len(all) > 0 {
		s["allOf"] = all
	}
}

func schemaMap(r *rules.Rule, s, defs map[string]any) {
	props, required := map[string]any{}, []string{}
	var cases []any
	for i := range r.Fields {
		f := &r.Fields[i]
		props[f.Name] = schemaField(f, defs)
		if f.Required {
			required = append(required, f.Name)
		}
		cases = append(cases, schemaCases(f, defs)...)
	}
	if len(props) > 0 {
		s["properties"] = props
	}
	if len(required) > 0 {
		s["required"] = required
	}
	if len(cases) > 0 {
		s["allOf"] = cases
	}
	patterns := map[string]any{}
	others := any(r.Open)
	for _, p := range r.Patterns {
		switch k := p.Key; {
		case len(k.Match) == 1 && len(k.NotMatch)+len(k.Not)+len(k.Enum) == 0:
			patterns[k.Match[0]] = jsonSchemaOf(p.Rule, defs)
		case len(k.Match)+len(k.NotMatch)+len(k.Not)+len(k.Enum) == 0:
			others = jsonSchemaOf(p.Rule, defs)
		default: // only where nothing else may stand, so that all names can be held to it
			others = jsonSchemaOf(p.Rule, defs)
			s["propertyNames"] = jsonSchemaOf(k, defs)
		}
	}
	if len(patterns) > 0 {
		s["patternProperties"] = patterns
	}
	if others != true {
		s["additionalProperties"] = others
	}
}

func schemaField(f *rules.Field, defs map[string]any) map[string]any {
	s := jsonSchemaOf(f.Rule, defs)
	if f.By != "" {
		s = map[string]any{"type": "object"}
	}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	if f.Default != nil && f.By == "" {
		s["default"] = f.Default
	}
	return s
}

// schemaCases says for each value of the sibling what the field must be.
func schemaCases(f *rules.Field, defs map[string]any) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(f.Cases)) {
		rule := f.Cases[name]
		then := map[string]any{"properties": map[string]any{f.Name: jsonSchemaOf(rule, defs)}}
		if f.Default != nil && !rule.Valid(f.Default) {
			then["required"] = []string{f.Name}
		}
		out = append(out, map[string]any{
			"if": map[string]any{
				"properties": map[string]any{f.By: map[string]any{"const": name}},
				"required":   []string{f.By},
			},
			"then": then,
		})
	}
	return out
}

func schemaList(r *rules.Rule, s, defs map[string]any) {
	var prefix []any
	for _, p := range r.Prefix {
		prefix = append(prefix, jsonSchemaOf(p, defs))
	}
	if len(prefix) > 0 {
		s["prefixItems"], s["minItems"] = prefix, len(prefix)
	}
	if r.Items != nil {
		s["items"] = jsonSchemaOf(r.Items, defs)
	} else {
		s["items"] = false
	}
}
