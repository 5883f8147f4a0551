// Package schemas embeds the CUE of the specification format: spec is what may stand in a
// pipeline, flow the vocabulary of templates built on it.
//
// It holds files and does nothing with them. The schemas of the kinds of node stand beside the
// kinds.
package schemas

import "embed"

// Library holds the folders spec and flow, the packages dagrun.dev/spec (without the kinds of
// node) and dagrun.dev/flow, and the JSON Schema of specifications for editors. A test of package compile writes that
// from the definitions and holds it to them.
//
//go:embed spec flow pipeline.schema.json
var Library embed.FS
