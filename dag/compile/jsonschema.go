package compile

// JSONSchema returns the JSON Schema (draft 2020-12) of specifications in YAML and JSON.
func (s *Schema) JSONSchema() []byte { return s.rules["Pipeline"].JSONSchema("dagrun pipeline") }
