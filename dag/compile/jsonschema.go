package compile

import (
	"bytes"
	"encoding/json"
)

// JSONSchema returns the JSON Schema (draft 2020-12) of specifications in YAML and JSON, for
// editors: a pipeline by itself, or the field pipeline with one or several named ones. It is
// rendered from the rules and accepts what they accept.
func (s *Schema) JSONSchema() []byte {
	defs := map[string]any{}
	pipeline := s.rules["Pipeline"].JSONSchema(defs)
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
