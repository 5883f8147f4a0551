package shape

import (
	"encoding/json"
	"maps"
	"slices"
)

// Closed reports whether every object of the shape names all its fields: services that constrain a model
// while it writes take no other.
func (s *Shape) Closed() bool { return closed(s.top) }

func closed(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if further, given := v["additionalProperties"]; given && further != false {
			return false
		}
		for _, name := range []string{"items", "anyOf"} {
			if !closed(v[name]) {
				return false
			}
		}
		properties, _ := v["properties"].(map[string]any)
		for _, x := range properties {
			if !closed(x) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(x any) bool { return !closed(x) })
	}
	return true
}

// Strict is the schema as services take it that constrain a model while it writes: types, fields, lists of values
// and alternatives. Bounds, lengths and patterns, which some of them refuse, are said in the description; Parse holds
// the answer to them. With nullable every field is required, and one that may be left out may be null instead.
func (s *Shape) Strict(nullable bool) json.RawMessage {
	raw, _ := Canonical(strict(s.top, nullable)) // of JSON
	return raw
}

func strict(v any, nullable bool) any {
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out, bounds := map[string]any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch x := s[name]; name {
		case "type", "enum", "additionalProperties", "description":
			out[name] = x
		case "required":
			if !nullable {
				out[name] = x
			}
		case "const":
			out["enum"] = []any{x}
		case "items":
			out[name] = strict(x, nullable)
		case "anyOf":
			var list []any
			for _, x := range x.([]any) {
				list = append(list, strict(x, nullable))
			}
			out[name] = list
		case "title":
		case "properties":
			fields := map[string]any{}
			for field, x := range x.(map[string]any) {
				fields[field] = strict(x, nullable)
				if nullable && !requires(s, field) && !slices.Contains(typesOf(x), "null") {
					fields[field] = map[string]any{"anyOf": []any{fields[field], map[string]any{"type": "null"}}}
				}
			}
			out[name] = fields
			if nullable {
				out["required"] = slices.Sorted(maps.Keys(fields))
			}
		default:
			bounds[name] = x
		}
	}
	if out["type"] == nil && out["enum"] != nil { // they want a type beside the values
		if types := typesOf(v); len(types) == 1 {
			out["type"] = types[0]
		} else {
			out["type"] = types
		}
	}
	if len(bounds) > 0 {
		said, _ := Canonical(bounds) // of JSON
		text, _ := s["description"].(string)
		if text != "" {
			text += " "
		}
		out["description"] = text + string(said)
	}
	return out
}
