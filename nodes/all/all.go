// Package all lists the built-in kinds of node. It is the one place that knows them all.
package all

import (
	"fmt"
	"sync"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/accumulate"
	"dagrun.dev/nodes/agent"
	"dagrun.dev/nodes/exec"
	"dagrun.dev/nodes/extract"
	"dagrun.dev/nodes/gates"
	"dagrun.dev/nodes/http"
	"dagrun.dev/nodes/internal/proc"
	"dagrun.dev/nodes/prompt"
	"dagrun.dev/nodes/scan"
	"dagrun.dev/nodes/screenshot"
	"dagrun.dev/nodes/validate"
	"dagrun.dev/nodes/verdict"
)

// Sweep ends what processes of nodes left behind that is alive still, and names it. Call it when no
// node is under way, before the program ends.
func Sweep() []string { return named(proc.Sweep()) }

// Remember has the processes of nodes recorded in a file, for EndLeft of the program that takes over when this one is
// killed. Call forget when no node is under way any more; it removes the file.
func Remember(file string) (forget func(), err error) { return proc.Remember(file) }

// EndLeft ends what the program that wrote such a file left running when it was killed, and names it. Where there is
// nothing to be found it does nothing. survivors could not be ended.
func EndLeft(file string) (left, survivors []string, err error) {
	l, s, err := proc.EndLeft(file)
	return named(l), named(s), err
}

func named(processes []proc.Process) (list []string) {
	for _, p := range processes {
		list = append(list, fmt.Sprintf("process %d (%s)", p.Pid, p.Command))
	}
	return list
}

// Registry is that of the built-in kinds, one per process: what is made of it is made once.
var Registry = sync.OnceValue(func() *nodes.Registry { return nodes.NewRegistry(kinds()...) })

// kinds are the built-in kinds, in the order of the documentation.
func kinds() []nodes.Kind {
	return []nodes.Kind{
		exec.Kind,
		http.Kind,
		agent.Kind,
		prompt.Kind,
		extract.Kind,
		validate.Kind,
		accumulate.Kind,
		scan.Kind,
		verdict.Kind,
		screenshot.Kind,
		gates.Kind,
	}
}
