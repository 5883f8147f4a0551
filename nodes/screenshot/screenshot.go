// Package screenshot is the kind of node that keeps pictures of a page. It does not judge what
// is on them but for blankness.
package screenshot

import _ "embed"

//go:embed schema.cue
var schema string

// Kind is the kind "screenshot".
type Kind struct{}

// Name returns "screenshot".
func (Kind) Name() string { return "screenshot" }

// Schema returns the CUE source of #Screenshot.
func (Kind) Schema() string { return schema }
