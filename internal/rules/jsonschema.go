package rules

import "strings"

// JSONSchema renders r as a JSON Schema (draft 2020-12), ready for encoding/json, that accepts what
// r accepts. Rules with a name become definitions: those it refers to are added to defs, the
// value of the document's $defs.
func (r *Rule) JSONSchema(defs map[string]any) map[string]any {
	if r == nil {
		return map[string]any{}
	}
	if r.Name == "" {
		return r.schema(defs)
	}
	if _, known := defs[r.Name]; !known {
		defs[r.Name] = nil // being made
		defs[r.Name] = r.schema(defs)
	}
	return map[string]any{"$ref": "#/$defs/" + r.Name}
}

func (r *Rule) schema(defs map[string]any) map[string]any {
	s := map[string]any{}
	if r.Doc != "" {
		s["description"] = r.Doc
	}
	if names := r.schemaTypes(); len(names) == 1 {
		s["type"] = names[0]
	} else if len(names) > 1 {
		s["type"] = names
	}
	if len(r.Enum) > 0 {
		s["enum"] = r.Enum
	}
	bound(s, "minimum", "exclusiveMinimum", r.Min, r.MinX)
	bound(s, "maximum", "exclusiveMaximum", r.Max, r.MaxX)
	r.schemaText(s)
	if r.aboutMaps() {
		r.schemaMap(s, defs)
	}
	if r.aboutLists() && len(r.AnyOf) == 0 {
		r.schemaList(s, defs)
	}
	if len(r.AnyOf) > 0 {
		var alts []any
		for _, a := range r.AnyOf {
			alts = append(alts, a.JSONSchema(defs))
		}
		s["anyOf"] = alts
	}
	return s
}

var schemaNames = strings.NewReplacer(
	"bool", "boolean", "list", "array", "map", "object", "int", "integer", "float", "number")

func (r *Rule) schemaTypes() []string {
	var out []string
	for _, n := range r.Types.Names() {
		out = append(out, schemaNames.Replace(n))
	}
	return out
}

func bound(s map[string]any, with, without string, b *float64, excluded bool) {
	if b == nil {
		return
	}
	if excluded {
		with = without
	}
	s[with] = *b
}

func (r *Rule) schemaText(s map[string]any) {
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

func (r *Rule) schemaMap(s, defs map[string]any) {
	props, required := map[string]any{}, []string{}
	var cases []any
	for i := range r.Fields {
		f := &r.Fields[i]
		props[f.Name] = f.schema(defs)
		if f.Required {
			required = append(required, f.Name)
		}
		cases = append(cases, f.schemaCases(defs)...)
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
			patterns[k.Match[0]] = p.Rule.JSONSchema(defs)
		case len(k.Match)+len(k.NotMatch)+len(k.Not)+len(k.Enum) == 0:
			others = p.Rule.JSONSchema(defs)
		default: // only where nothing else may stand, so that all names can be held to it
			others = p.Rule.JSONSchema(defs)
			s["propertyNames"] = k.JSONSchema(defs)
		}
	}
	if len(patterns) > 0 {
		s["patternProperties"] = patterns
	}
	if others != true {
		s["additionalProperties"] = others
	}
}

func (f *Field) schema(defs map[string]any) map[string]any {
	s := f.Rule.JSONSchema(defs)
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
func (f *Field) schemaCases(defs map[string]any) []any {
	var out []any
	for _, name := range f.caseNames() {
		rule := f.Cases[name]
		then := map[string]any{"properties": map[string]any{f.Name: rule.JSONSchema(defs)}}
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

func (r *Rule) schemaList(s, defs map[string]any) {
	var prefix []any
	for _, p := range r.Prefix {
		prefix = append(prefix, p.JSONSchema(defs))
	}
	if len(prefix) > 0 {
		s["prefixItems"], s["minItems"] = prefix, len(prefix)
	}
	if r.Items != nil {
		s["items"] = r.Items.JSONSchema(defs)
	} else {
		s["items"] = false
	}
}
