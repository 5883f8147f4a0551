// Package screenshot is the kind of node that keeps pictures of a page. It does not judge what
// is on them but for blankness.
package screenshot

import (
	_ "embed"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/browser"
)

//go:embed schema.cue
var schema string

// Kind is the kind "screenshot".
var Kind = nodes.Kind{Name: "screenshot", Schema: schema, Parse: accept.Parser(func() *settings {
	return &settings{
		View: browser.DefaultView(), Shots: []string{"viewport", "full", "scroll"},
		Scale: 1, Step: 0.8, MaxSteps: 20, Tile: 8000, MaxTiles: 6, Blank: 0.998,
	}
})}
