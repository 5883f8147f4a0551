// Package gates is the kind of node that checks a page by declared rules and draws one verdict.
// It knows no rule of its own.
package gates

import _ "embed"

//go:embed schema.cue
var schema string

// Kind is the kind "gates".
type Kind struct{}

// Name returns "gates".
func (Kind) Name() string { return "gates" }

// Schema returns the CUE source of #Gates.
func (Kind) Schema() string { return schema }
