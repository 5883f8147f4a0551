package cli

import (
	"github.com/spf13/cobra"

	"dagrun.dev/nodes/agent"
)

// newSimAgent is the simulated agent, which provider sim starts as its child process.
func newSimAgent() *cobra.Command {
	return &cobra.Command{
		Use:                "sim-agent",
		Short:              "Answer as an agent would, from files",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			return exitWith(agent.SimMain(args, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
		},
	}
}
