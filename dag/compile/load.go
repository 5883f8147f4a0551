package compile

import (
	"dagrun.dev/internal/tree"
)

// A Source says where a specification came from.
type Source struct {
	Path     string   // as asked for, or as found in the current directory
	Dir      string   // absolute folder of the spec: relative files start here
	Language string   // cue, yaml or json
	Files    []string // absolute paths of the files of the spec itself, sorted
	Name     string   // of the pipeline among several, else ""
	// Warnings are what is valid but probably meant otherwise.
	Warnings tree.Diagnostics
}

// LoadOptions say what to load and how carefully. The zero value is for one's own specs.
type LoadOptions struct {
	Pipeline  string      // which of several pipelines
	Limits    tree.Limits // zero: tree.Defaults
	Untrusted bool        // evaluate CUE in a child process with limits
}

// Load reads the pipeline of a specification: a .cue, .yaml, .yml or .json file or the folder
// of a CUE package; empty means spec.cue, spec.yaml, spec.yml, spec.json or the CUE package of the
// current folder. The tree is the pipeline itself (not the file around it), checked by the
// rules, defaults filled in. A bad specification is a tree.Diagnostics with every mistake at once.
//
// The same pipeline in two languages gives the same tree but for places.
func (s *Schema) Load(path string, o LoadOptions) (*tree.Value, Source, error) { panic("contract") }
