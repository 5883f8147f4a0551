// Package all lists the built-in kinds of node. It is the one place that knows them all.
package all

import (
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/accumulate"
	"dagrun.dev/nodes/agent"
	"dagrun.dev/nodes/exec"
	"dagrun.dev/nodes/extract"
	"dagrun.dev/nodes/gates"
	"dagrun.dev/nodes/http"
	"dagrun.dev/nodes/prompt"
	"dagrun.dev/nodes/screenshot"
	"dagrun.dev/nodes/validate"
	"dagrun.dev/nodes/verdict"
)

// Kinds returns the built-in kinds, in the order of the documentation.
func Kinds() []nodes.Kind {
	return []nodes.Kind{
		exec.Kind{},
		http.Kind{},
		agent.Kind{},
		prompt.Kind{},
		extract.Kind{},
		validate.Kind{},
		accumulate.Kind{},
		verdict.Kind{},
		screenshot.Kind{},
		gates.Kind{},
	}
}
