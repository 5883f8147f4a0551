package agent

import "io"

// SimMain is the simulated agent, the hidden command `dagrun sim-agent`: it takes the arguments
// and the stdin of `claude -p --output-format stream-json` and prints what that would print. What it answers
// is told by the file that the environment variable DAGRUN_SIM names; see SIM.md. It returns
// the exit status.
func SimMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int { panic("contract") }
