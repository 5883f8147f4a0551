// Package rules checks data against rules that are data themselves: types, bounds, patterns,
// fields, defaults. Every mistake becomes one line with its place and the nearest valid name.
//
// It knows neither CUE nor any specification language, and no kind of node: rules are compiled elsewhere.
package rules

import "dagrun.dev/internal/tree"

// A Rule says which values are valid. The zero Rule accepts everything. A Rule is immutable
// once in use and may be read from any goroutine.
//
// A value must satisfy every part of its rule. A part about another type than the value's says
// nothing: Match constrains strings only, Fields maps only; Types says which types may be.
type Rule struct {
	Name string `json:"name,omitempty"` // of the definition it comes from, e.g. Retry
	Doc  string `json:"doc,omitempty"`  // for people: hover texts, JSON Schema
	Want string `json:"want,omitempty"` // wording of a mistake: "want a duration such as 1h"

	Types Types         `json:"types,omitempty"` // empty = any type
	Enum  []*tree.Value `json:"enum,omitempty"`  // one of these scalars

	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	MinX     bool     `json:"minExclusive,omitempty"` // Min itself is not allowed
	MaxX     bool     `json:"maxExclusive,omitempty"` // Max itself is not allowed
	Match    []string `json:"match,omitempty"`        // RE2; each must match somewhere in a string
	NotMatch []string `json:"notMatch,omitempty"`     // RE2; none may match
	Not      []string `json:"not,omitempty"`          // strings that are refused

	Fields   []Field   `json:"fields,omitempty"`   // named fields of a map, in the schema's order
	Patterns []Pattern `json:"patterns,omitempty"` // further fields, by the shape of their names
	Open     bool      `json:"open,omitempty"`     // fields that are neither are allowed too
	Prefix   []*Rule   `json:"prefix,omitempty"`   // first items of a list, all required
	Items    *Rule     `json:"items,omitempty"`    // further items; nil: none

	AnyOf []*Rule `json:"anyOf,omitempty"` // at least one holds
}

// A step is a field's name, or the index of an item.
type step struct {
	name  string
	index int   // -1: a field
	in    *Rule // of the map or list
}

// A Field is a named field of a map.
type Field struct {
	Name     string `json:"name"`
	Required bool   `json:"required,omitempty"`
	Doc      string `json:"doc,omitempty"`
	Rule     *Rule  `json:"rule"`
	// Default is filled in where the field is absent.
	Default *tree.Value `json:"default,omitempty"`
	// By names a sibling field whose string picks the rule among Cases (settings by kind).
	// Without a case for it nothing is checked: the sibling's own rule reports the mistake.
	By    string           `json:"by,omitempty"`
	Cases map[string]*Rule `json:"cases,omitempty"`
}

// A Pattern allows any field whose name satisfies Key.
type Pattern struct {
	Key  *Rule `json:"key"`
	Rule *Rule `json:"rule"`
}
