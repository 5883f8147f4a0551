package agent

import (
	"io"

	"dagrun.dev/nodes/internal/simagent"
)

// SimMain is the simulated agent, the hidden command `dagrun sim-agent`: it takes the arguments
// and the stdin of `claude -p --output-format stream-json` and prints what that would print. What
// it answers stands in the file that the environment variable DAGRUN_SIM names; see SIM.md. It
// returns the exit status. It may end the process, never to return, where a fault says so.
func SimMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return simagent.Main(args, stdin, stdout, stderr)
}
